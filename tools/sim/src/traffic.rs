//! Who sends what to whom, and when.

use super::agenda::{time_for, us, Time};
use super::net::{Form, Net, PORTS};
use fastrand::Rng;

/// Whom hosts send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The next host.
    Neighbour,
    /// Any other host, by chance.
    Uniform,
    /// The host that is furthest away on a ring, and in both directions of a torus.
    Opposite,
    /// All other hosts in turn.
    AllToAll,
    /// All to host 0.
    Incast,
    /// One host to one.
    Pair(usize, usize),
}

impl Pattern {
    /// The pattern of that name, as the command line has it.
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

    /// Whom a host sends its message of this number to; None if it sends none.
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

    /// How many bytes a second each host can send to others in the long run: what the busiest direction of a link
    /// allows, and at most what one link carries. This is load 1.
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

/// When hosts send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// At random, so that this share of what the network can carry is asked for, for so long.
    Load {
        /// 1 is [`Pattern::capacity`].
        load: f64,
        /// From the beginning.
        time: Time,
        /// What is sent before is not measured.
        warm_up: Time,
    },
    /// So many messages each, so many of them under way at once.
    Window {
        /// Under way.
        open: usize,
        /// In all.
        count: u64,
    },
    /// Each as soon as the one before has left the host, for so long: a put that returns when its buffer can be used again.
    Local {
        /// From the beginning.
        time: Time,
        /// What is sent before is not measured.
        warm_up: Time,
    },
}

/// A message of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// When it is sent.
    pub at: Time,
    /// From this host
    pub src: usize,
    /// to this one.
    pub dst: usize,
    /// So many bytes.
    pub bytes: u64,
}

/// A message to several hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Multicast {
    /// When it is sent.
    pub at: Time,
    /// From this host
    pub src: usize,
    /// to each of these.
    pub to: Vec<usize>,
    /// So many bytes.
    pub bytes: u64,
}

/// All that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// By a rule.
    Made {
        /// To whom.
        pattern: Pattern,
        /// When.
        pacing: Pacing,
        /// Bytes of a message.
        bytes: u64,
    },
    /// As it was written down.
    Trace(Vec<Call>),
    /// Messages to several hosts, on rings: each link carries one once. To each of its hosts it counts as a message.
    Multicast(Vec<Multicast>),
}

/// A trace that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; a line is: time_us src dst bytes")]
pub struct TraceError {
    line: usize,
    what: String,
}

impl Traffic {
    /// The calls of a trace: lines with time in microseconds, source, destination, bytes. What follows a `#` is a remark.
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
            let bytes = bytes.ok_or_else(|| wrong("a message has 1 byte to 2^40"))?;
            if src == dst {
                return Err(wrong("a host does not send to itself over the ring"));
            }
            calls.push(Call { at: (at * us(1) as f64) as Time, src, dst, bytes });
        }
        calls.sort_by_key(|call| call.at);
        Ok(Traffic::Trace(calls))
    }
}

/// The time between two messages of a host that asks for so many bytes a second, by chance.
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
        // Seven messages into host 0, by two links, one of which has the longer share.
        assert_eq!(capacity("ring:8", Pattern::Incast), 4.0);
        // Even hosts go right, odd ones left: two of four ways over each direction.
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
