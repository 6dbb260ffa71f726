//! The value of NTBRING_FAULT: kinds of faults, their rates, their links and their times.

use super::links::{LinkName, Place};
use super::outage::Outage;
use super::times::{show, time};
use crate::{Side, DOORBELLS};
use std::fmt;
use std::time::Duration;

/// The keys of a description.
const KEYS: &str = "seed, flip, drop, double, delay, bell, stuck, down, link, from, timeout";

/// The description without faults of its own: links go down only by command (`ntbring link`).
const COMMAND: &str = "command";

/// Default of the time without progress after which a waiting rank gives up.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(30);

/// A probability, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(f64);

impl Rate {
    /// Probability 0.
    pub const NEVER: Rate = Rate(0.0);

    /// Returns the rate of this value; None if it is not in 0..=1.
    pub fn new(rate: f64) -> Option<Rate> {
        (0.0..=1.0).contains(&rate).then_some(Rate(rate))
    }

    /// Returns the value.
    pub fn get(self) -> f64 {
        self.0
    }

    fn parse(text: &str) -> Result<Rate, String> {
        let rate = text.trim().parse().ok().and_then(Rate::new);
        rate.ok_or_else(|| format!("{text:?} is no rate from 0 to 1, such as 0.01 or 1e-6"))
    }
}

/// Time at which faults begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Faults begin at once, so the handshake is affected, too.
    Start,
    /// Faults begin this long after the process has joined the ring.
    Joined(Duration),
}

/// The faults of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Seed of all random decisions.
    pub seed: u64,
    /// Rate of writes of which one bit is inverted.
    pub flip: Rate,
    /// Rate of writes that are lost.
    pub drop: Rate,
    /// Rate of writes that arrive twice.
    pub double: Rate,
    /// Rate of writes and rings that arrive late.
    pub delay: Rate,
    /// Delay of late writes and rings.
    pub lateness: Duration,
    /// Rate of rings that are lost.
    pub bell: Rate,
    /// Bit mask of the doorbells of which all rings are lost.
    pub stuck: u16,
    /// Times at which links are down.
    pub outages: Vec<Outage>,
    /// Links that have the faults, except outages that name a link of their own; empty: all links.
    pub links: Vec<LinkName>,
    /// Time at which the faults begin.
    pub begin: Begin,
    /// Time without any progress after which a waiting rank gives up; None: it never does.
    pub receive_timeout: Option<Duration>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            seed: 1,
            flip: Rate::NEVER,
            drop: Rate::NEVER,
            double: Rate::NEVER,
            delay: Rate::NEVER,
            lateness: Duration::ZERO,
            bell: Rate::NEVER,
            stuck: 0,
            outages: Vec::new(),
            links: Vec::new(),
            begin: Begin::Joined(Duration::ZERO),
            receive_timeout: Some(RECEIVE_TIMEOUT),
        }
    }
}

impl Faults {
    /// Parses a description such as `flip=1e-6,delay=0.01:50us,down=every:1s:for:200ms,seed=7`.
    /// Returns None for `none`. The error text describes the first problem.
    pub fn parse(text: &str) -> Result<Option<Faults>, String> {
        if text == "none" {
            return Ok(None);
        }
        let mut faults = Faults::default();
        let mut said = Vec::new();
        for item in text.split(',').map(str::trim) {
            if item == COMMAND {
                continue;
            }
            let Some((key, value)) = item.split_once('=') else {
                return Err(format!("{item:?} is neither {COMMAND} nor key=value"));
            };
            let key = key.trim();
            if said.contains(&key) {
                return Err(format!("{key} is there twice"));
            }
            said.push(key);
            faults.set(key, value.trim()).map_err(|problem| format!("{item:?}: {problem}"))?;
        }
        Ok(Some(faults))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "seed" => self.seed = value.parse().map_err(|_| format!("{value:?} is no whole number"))?,
            "flip" => self.flip = Rate::parse(value)?,
            "drop" => self.drop = Rate::parse(value)?,
            "double" => self.double = Rate::parse(value)?,
            "delay" => {
                let (rate, by) = value.split_once(':').ok_or("the delay is missing, as in 0.01:50us")?;
                (self.delay, self.lateness) = (Rate::parse(rate)?, time(by)?);
            }
            "bell" => self.bell = Rate::parse(value)?,
            "stuck" => self.stuck = bells(value)?,
            "down" => self.outages = value.split('+').map(Outage::parse).collect::<Result<_, _>>()?,
            "link" => self.links = value.split('+').map(LinkName::parse).collect::<Result<_, _>>()?,
            "from" => {
                self.begin = match (value, value.strip_prefix("join:")) {
                    ("start", _) => Begin::Start,
                    ("join", _) => Begin::Joined(Duration::ZERO),
                    (_, Some(later)) => Begin::Joined(time(later)?),
                    _ => return Err(format!("{value:?} is none of start, join, join:500ms")),
                }
            }
            "timeout" if value == "off" => self.receive_timeout = None,
            "timeout" => match time(value)? {
                Duration::ZERO => return Err("a rank would give up at once; off: ranks wait for ever".into()),
                receive_timeout => self.receive_timeout = Some(receive_timeout),
            },
            _ => return Err(format!("{key:?} is none of {KEYS}")),
        }
        Ok(())
    }

    /// Returns true if the random faults affect the accesses that this port sends.
    pub fn covers(&self, place: &Place, side: Side) -> bool {
        self.links.is_empty() || self.links.iter().any(|link| link.covers(place, side))
    }

    /// Returns the outages of the link of the port on `side`.
    pub fn outages(&self, place: &Place, side: Side) -> Vec<Outage> {
        let here = |outage: &&Outage| outage.link.map_or_else(|| self.covers(place, side), |l| l.covers(place, side));
        self.outages.iter().filter(here).copied().collect()
    }

    /// Returns the links that are named by the hosts at their ends, as pairs of host numbers.
    pub fn pairs(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let names = self.links.iter().copied().chain(self.outages.iter().filter_map(|outage| outage.link));
        names.filter_map(|name| match name {
            LinkName::Between(a, b) => Some((a, b)),
            LinkName::Side(_) => None,
        })
    }
}

impl fmt::Display for Faults {
    /// Writes the description in the form that [`Faults::parse`] accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{COMMAND}")?;
        for (key, rate) in [("flip", self.flip), ("drop", self.drop), ("double", self.double), ("bell", self.bell)] {
            if rate != Rate::NEVER {
                write!(f, ",{key}={}", rate.0)?;
            }
        }
        if self.delay != Rate::NEVER || !self.lateness.is_zero() {
            write!(f, ",delay={}:{}", self.delay.0, show(self.lateness))?;
        }
        let stuck = (0..DOORBELLS).filter(|bell| self.stuck >> bell & 1 != 0);
        list(f, "stuck", stuck)?;
        list(f, "down", &self.outages)?;
        list(f, "link", &self.links)?;
        match self.begin {
            Begin::Start => write!(f, ",from=start")?,
            Begin::Joined(later) if later.is_zero() => write!(f, ",from=join")?,
            Begin::Joined(later) => write!(f, ",from=join:{}", show(later))?,
        }
        match self.receive_timeout {
            Some(receive_timeout) => write!(f, ",timeout={}", show(receive_timeout))?,
            None => write!(f, ",timeout=off")?,
        }
        write!(f, ",seed={}", self.seed)
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, key: &str, of: impl IntoIterator<Item = T>) -> fmt::Result {
    for (i, item) in of.into_iter().enumerate() {
        match i {
            0 => write!(f, ",{key}={item}")?,
            _ => write!(f, "+{item}")?,
        }
    }
    Ok(())
}

fn bells(text: &str) -> Result<u16, String> {
    let bit = |text: &str| match text.trim().parse::<usize>() {
        Ok(bell) if bell < DOORBELLS => Ok(1u16 << bell),
        _ => Err(format!("{text:?} is no doorbell: all, or numbers from 0 to {}, such as 0+3", DOORBELLS - 1)),
    };
    match text {
        "all" => Ok(u16::MAX),
        _ => text.split('+').try_fold(0, |bits, text| Ok(bits | bit(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Faults {
        Faults::parse(text).unwrap().unwrap()
    }

    #[test]
    fn descriptions() {
        assert_eq!(Faults::parse("none"), Ok(None));
        assert_eq!(parsed("command"), Faults::default());
        let faults = parsed(
            "seed=9, flip=1e-6,drop=0.5,double=1,delay=0.01:50us,bell=0,stuck=0+3,link=0-1+left,\
             down=every:1s:for:200ms+2-3:at:5s,from=join:1.5s,timeout=off",
        );
        let of = |rate| Rate::new(rate).unwrap();
        assert_eq!([faults.flip, faults.drop, faults.double], [1e-6, 0.5, 1.0].map(of));
        assert_eq!((faults.delay, faults.lateness), (of(0.01), Duration::from_micros(50)));
        assert_eq!((faults.bell, faults.stuck, faults.seed), (Rate::NEVER, 0b1001, 9));
        assert_eq!(faults.links, [LinkName::Between(0, 1), LinkName::Side(Side::Left)]);
        assert_eq!(faults.outages.len(), 2);
        assert_eq!(faults.pairs().collect::<Vec<_>>(), [(0, 1), (2, 3)]);
        assert_eq!((faults.begin, faults.receive_timeout), (Begin::Joined(Duration::from_millis(1500)), None));
        assert_eq!(parsed(&faults.to_string()), faults);
        assert_eq!(parsed("command,from=start,stuck=all").begin, Begin::Start);
    }

    #[test]
    fn an_outage_may_have_a_link_of_its_own() {
        let faults = parsed("link=0-1,down=at:1s+1-2:at:2s");
        let place = |host| Place { host, process: 0, neighbours: [(host + 3) % 4, (host + 1) % 4] };
        let first = |host, side| -> Vec<u64> {
            faults.outages(&place(host), side).iter().map(|outage| outage.first.as_secs()).collect()
        };
        assert_eq!([first(0, Side::Right), first(1, Side::Left)], [[1], [1]]);
        assert_eq!([first(1, Side::Right), first(2, Side::Left)], [[2], [2]]);
        assert!(first(0, Side::Left).is_empty() && first(3, Side::Right).is_empty());
        assert!(faults.covers(&place(1), Side::Left) && !faults.covers(&place(1), Side::Right));
    }

    #[test]
    fn what_is_wrong_with_a_bad_one() {
        for (text, problem) in [
            ("", "neither command nor key=value"),
            ("on", "neither command nor key=value"),
            ("none,drop=1", "neither command nor key=value"),
            ("speed=1", "is none of seed, flip"),
            ("flip=2", "no rate from 0 to 1"),
            ("flip=-0.1", "no rate"),
            ("flip=nan", "no rate"),
            ("flip=inf", "no rate"),
            ("drop=often", "no rate"),
            ("drop=0.1,drop=0.2", "drop is there twice"),
            ("delay=0.1", "the delay is missing"),
            ("delay=0.1:5", "the unit is missing"),
            ("delay=0.1:2000000s", "more than a day"),
            ("stuck=16", "no doorbell"),
            ("stuck=", "no doorbell"),
            ("down=at", "is none of every"),
            ("down=every:1s:for:2s", "never comes up again"),
            ("link=0", "is no link"),
            ("from=now", "is none of start, join"),
            ("timeout=long", "the unit is missing"),
            ("timeout=0s", "a rank would give up at once"),
            ("seed=x", "no whole number"),
        ] {
            let error = Faults::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }

    #[test]
    fn times_survive_their_text() {
        for ns in [0, 1, 999, 1_000, 1_500, 2_000_000, 1_000_000_000, 61_000_000_000, 1_000_000_001] {
            let span = Duration::from_nanos(ns);
            assert_eq!(time(&show(span)), Ok(span));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(text in "[a-z0-9=,.:+-]{0,60}") {
            if let Ok(Some(faults)) = Faults::parse(&text) {
                prop_assert_eq!(parsed(&faults.to_string()), faults);
            }
        }
    }
}
