//! Traffic: the messages that hosts send, their destinations and times.

use super::agenda::{time_for, us, Time};
use super::collective::Operation;
use super::net::{Form, Net, PORTS};
use fastrand::Rng;

/// Largest number of hosts of a ring with messages to a list of hosts.
pub(super) const MULTICAST_HOSTS: usize = 64;

/// Bytes of a packet in addition to such a message: its list, with one bit for each host.
pub(super) const MULTICAST_LIST: u64 = MULTICAST_HOSTS as u64 / 8;

/// The destinations of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The next host.
    Neighbour,
    /// Any other host, at random.
    Uniform,
    /// The host that is furthest away on a ring, and in both directions of a torus.
    Opposite,
    /// All other hosts in turn.
    AllToAll,
    /// All hosts send to host 0.
    Incast,
    /// One host sends to one other.
    Pair(usize, usize),
}

impl Pattern {
    /// Parses the name of a pattern, as on the command line.
    pub fn parse(name: &str) -> Option<Pattern> {
        Some(match name {
            "neighbour" => Pattern::Neighbour,
            "uniform" => Pattern::Uniform,
            "opposite" => Pattern::Opposite,
            "all-to-all" => Pattern::AllToAll,
            "incast" => Pattern::Incast,
            _ => return None,
        })
    }

    /// Returns the destination of a host's message of this number; None if the host sends none.
    pub fn destination(self, form: Form, host: usize, number: u64, rng: &mut Rng) -> Option<usize> {
        let hosts = form.hosts();
        let dst = match (self, form) {
            (Pattern::Neighbour, Form::Torus(width, _)) => host / width * width + (host + 1) % width,
            (Pattern::Neighbour, _) => (host + 1) % hosts,
            (Pattern::Uniform, _) => (host + rng.usize(1..hosts)) % hosts,
            (Pattern::Opposite, Form::Torus(width, height)) => {
                (host / width + height / 2) % height * width + (host % width + width / 2) % width
            }
            (Pattern::Opposite, _) => (host + hosts / 2) % hosts,
            (Pattern::AllToAll, _) => (host + 1 + (number % (hosts as u64 - 1)) as usize) % hosts,
            (Pattern::Incast, _) => 0,
            (Pattern::Pair(src, dst), _) if host == src => dst,
            (Pattern::Pair(..), _) => host,
        };
        (dst != host).then_some(dst)
    }

    /// Returns the bytes per second that each host can send in the long run: the limit set by the busiest direction of
    /// a link, and at most the bandwidth of one link. This is load 1.
    pub fn capacity(self, net: &Net, bandwidth: u64) -> f64 {
        let (form, hosts) = (net.form(), net.form().hosts());
        let mut crossings = vec![0.0f64; hosts * PORTS];
        for src in 0..hosts {
            let all = matches!(self, Pattern::Uniform | Pattern::AllToAll);
            let numbers = if all { hosts as u64 - 1 } else { 1 };
            let each = if all { Pattern::AllToAll } else { self };
            for number in 0..numbers {
                if let Some(dst) = each.destination(form, src, number, &mut Rng::with_seed(0)) {
                    net.walk(src, dst, |link| crossings[link] += 1.0 / numbers as f64);
                }
            }
        }
        bandwidth as f64 / crossings.into_iter().fold(1.0, f64::max)
    }
}

/// The times at which hosts send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// At random times, such that this share of the network's capacity is requested, for this duration.
    Load {
        /// Share of the capacity; 1 is [`Pattern::capacity`].
        load: f64,
        /// Duration from the beginning.
        time: Time,
        /// Time before which messages are not measured.
        warm_up: Time,
    },
    /// A fixed number of messages from each host, of which a fixed number is in transit at once.
    Window {
        /// Number in transit at once.
        open: usize,
        /// Number in all.
        count: u64,
    },
    /// Each message as soon as the previous one has left the host, for this duration: like a put that returns when its
    /// buffer can be reused.
    Local {
        /// Duration from the beginning.
        time: Time,
        /// Time before which messages are not measured.
        warm_up: Time,
    },
}

/// A message of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Time at which it is sent.
    pub at: Time,
    /// Source host.
    pub src: usize,
    /// Destination host.
    pub dst: usize,
    /// Size in bytes.
    pub bytes: u64,
}

/// A message to several hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Multicast {
    /// Time at which it is sent.
    pub at: Time,
    /// Source host.
    pub src: usize,
    /// Destination hosts.
    pub to: Vec<usize>,
    /// Size in bytes.
    pub bytes: u64,
}

/// All messages of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Messages by a rule.
    Made {
        /// The destinations.
        pattern: Pattern,
        /// The times.
        pacing: Pacing,
        /// Size of a message in bytes.
        bytes: u64,
    },
    /// Messages of a trace.
    Trace(Vec<Call>),
    /// Messages to several hosts, on rings: each link carries a message once. It counts as one message for each
    /// destination.
    Multicast(Vec<Multicast>),
    /// The messages of a collective, on rings.
    Collective(Operation),
}

/// Error: a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; a line is: time_us src dst bytes")]
pub struct TraceError {
    line: usize,
    what: String,
}

impl Traffic {
    /// Parses a trace: lines with time in microseconds, source, destination, bytes. The text after a `#` is a comment.
    pub fn trace(text: &str, hosts: usize) -> Result<Traffic, TraceError> {
        let mut calls = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |what: &str| TraceError { line, what: what.into() };
            let words: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
            let [at, src, dst, bytes] = words[..] else {
                if words.is_empty() {
                    continue;
                }
                return Err(wrong(&format!("{} words", words.len())));
            };
            let at = at.parse::<f64>().ok().filter(|at| (0.0..1e12).contains(at));
            let at = at.ok_or_else(|| wrong("the time is not a number of microseconds"))?;
            let host = |word: &str| word.parse::<usize>().ok().filter(|host| *host < hosts);
            let (Some(src), Some(dst)) = (host(src), host(dst)) else {
                return Err(wrong(&format!("there are hosts 0 to {}", hosts - 1)));
            };
            let bytes = bytes.parse::<u64>().ok().filter(|bytes| *bytes > 0 && *bytes <= 1 << 40);
            let bytes = bytes.ok_or_else(|| wrong("a message must have 1 byte to 2^40 bytes"))?;
            if src == dst {
                return Err(wrong("a host does not send to itself over the ring"));
            }
            calls.push(Call { at: (at * us(1) as f64) as Time, src, dst, bytes });
        }
        calls.sort_by_key(|call| call.at);
        Ok(Traffic::Trace(calls))
    }
}

/// Returns a random time between two messages of a host that sends `rate` bytes per second.
pub(super) fn interval(bytes: u64, rate: f64, rng: &mut Rng) -> Time {
    let mean = time_for(bytes, 1) as f64 / rate;
    (-(1.0 - rng.f64()).ln() * mean) as Time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_that_of_the_busiest_link() {
        let capacity = |form: &str, pattern: Pattern| {
            let net = Net::new(form.parse().unwrap(), false).unwrap();
            (1000.0 / pattern.capacity(&net, 1000)).round()
        };
        assert_eq!(capacity("ring:8", Pattern::Neighbour), 1.0);
        // Seven messages arrive at host 0 by two links, of which one carries four.
        assert_eq!(capacity("ring:8", Pattern::Incast), 4.0);
        // Even hosts send to the right, odd ones to the left: each direction of a link is used by two of four routes.
        assert_eq!(capacity("ring:8", Pattern::Opposite), 2.0);
        assert_eq!(capacity("line:9", Pattern::Neighbour), 1.0);
    }

    #[test]
    fn traces_are_read_or_refused() {
        let trace = Traffic::trace("# a remark\n5.5 0 1 100\n\n1 3 2 8 # another\n", 4).unwrap();
        let call = |at, src, dst, bytes| Call { at, src, dst, bytes };
        assert_eq!(trace, Traffic::Trace(vec![call(us(1), 3, 2, 8), call(us(11) / 2, 0, 1, 100)]));
        for (text, what) in [
            ("1 0 1", "3 words"),
            ("x 0 1 8", "time"),
            ("1 0 4 8", "hosts 0 to 3"),
            ("1 1 1 8", "itself"),
            ("1 0 1 0", "1 byte"),
        ] {
            let error = Traffic::trace(&format!("0 0 1 1\n{text}"), 4).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("line 2"), "{error}");
        }
    }
}
