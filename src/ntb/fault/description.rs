//! What NTBRING_FAULT says: which faults there are to be, how often, where, and when.

use super::links::{LinkName, Place};
use super::outage::Outage;
use crate::timing::model::scaled;
use crate::{Side, DOORBELLS};
use std::fmt;
use std::time::Duration;

/// The keys of a description.
const KEYS: &str = "seed, flip, drop, double, delay, bell, stuck, down, link, from, patience";

/// A description that has no faults of its own: links go down when they are told to.
const COMMAND: &str = "command";

/// How long nothing may move, if nothing is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time that can be said.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How likely something is, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(f64);

impl Rate {
    /// It does not happen.
    pub const NEVER: Rate = Rate(0.0);

    /// The rate of that number; None if it is none.
    pub fn new(rate: f64) -> Option<Rate> {
        (0.0..=1.0).contains(&rate).then_some(Rate(rate))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    fn parse(text: &str) -> Result<Rate, String> {
        let rate = text.trim().parse().ok().and_then(Rate::new);
        rate.ok_or_else(|| format!("{text:?} is no rate from 0 to 1, such as 0.01 or 1e-6"))
    }
}

/// When faults begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At once, with the handshake.
    Start,
    /// When the process has joined the ring, or so much later.
    Joined(Duration),
}

/// The faults of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// From which all chance is derived.
    pub seed: u64,
    /// A bit of a write is inverted.
    pub flip: Rate,
    /// A write is lost.
    pub drop: Rate,
    /// A write arrives twice.
    pub double: Rate,
    /// A write or a ring arrives late...
    pub delay: Rate,
    /// ...by so much.
    pub lateness: Duration,
    /// A ring is lost.
    pub bell: Rate,
    /// Doorbells of which all rings are lost, a bit each.
    pub stuck: u16,
    /// When links are down.
    pub outages: Vec<Outage>,
    /// On which links all this is, outages that name one apart; none: on all.
    pub links: Vec<LinkName>,
    /// When it begins.
    pub begin: Begin,
    /// After how long without any progress a rank that waits gives up; None: it never does.
    pub patience: Option<Duration>,
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
            patience: Some(PATIENCE),
        }
    }
}

impl Faults {
    /// The faults of a description such as `flip=1e-6,delay=0.01:50us,down=every:1s:for:200ms,seed=7`;
    /// None for `none`. The error says what is wrong.
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
                let (rate, by) = value.split_once(':').ok_or("how late is missing, as in 0.01:50us")?;
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
            "patience" if value == "off" => self.patience = None,
            "patience" => match time(value)? {
                Duration::ZERO => return Err("nobody could wait for anything; off: waits for ever".into()),
                patience => self.patience = Some(patience),
            },
            _ => return Err(format!("{key:?} is none of {KEYS}")),
        }
        Ok(())
    }

    /// Whether the faults of chance are on what this port sends.
    pub fn covers(&self, place: &Place, side: Side) -> bool {
        self.links.is_empty() || self.links.iter().any(|link| link.covers(place, side))
    }

    /// The outages of this port.
    pub fn outages(&self, place: &Place, side: Side) -> Vec<Outage> {
        let here = |outage: &&Outage| outage.link.map_or_else(|| self.covers(place, side), |l| l.covers(place, side));
        self.outages.iter().filter(here).copied().collect()
    }

    /// The links that are named by the hosts at their ends.
    pub fn pairs(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let names = self.links.iter().copied().chain(self.outages.iter().filter_map(|outage| outage.link));
        names.filter_map(|name| match name {
            LinkName::Between(a, b) => Some((a, b)),
            LinkName::Side(_) => None,
        })
    }
}

impl fmt::Display for Faults {
    /// As it would be written.
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
        match self.patience {
            Some(patience) => write!(f, ",patience={}", show(patience))?,
            None => write!(f, ",patience=off")?,
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

/// A time such as `50us` or `1.5s`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let ns = scaled(text, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)], "50us, 200ms or 1.5s")?;
    if ns > LONGEST.as_nanos() as f64 {
        return Err(format!("{text:?} is more than a day"));
    }
    Ok(Duration::from_nanos(ns as u64))
}

/// A time as [`time`] reads it.
pub(super) fn show(time: Duration) -> String {
    let ns = time.as_nanos();
    let unit = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)].into_iter().find(|(_, scale)| ns % scale == 0);
    let (unit, scale) = unit.unwrap_or(("ns", 1));
    format!("{}{unit}", ns / scale)
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
             down=every:1s:for:200ms+2-3:at:5s,from=join:1.5s,patience=off",
        );
        let of = |rate| Rate::new(rate).unwrap();
        assert_eq!([faults.flip, faults.drop, faults.double], [1e-6, 0.5, 1.0].map(of));
        assert_eq!((faults.delay, faults.lateness), (of(0.01), Duration::from_micros(50)));
        assert_eq!((faults.bell, faults.stuck, faults.seed), (Rate::NEVER, 0b1001, 9));
        assert_eq!(faults.links, [LinkName::Between(0, 1), LinkName::Side(Side::Left)]);
        assert_eq!(faults.outages.len(), 2);
        assert_eq!(faults.pairs().collect::<Vec<_>>(), [(0, 1), (2, 3)]);
        assert_eq!((faults.begin, faults.patience), (Begin::Joined(Duration::from_millis(1500)), None));
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
            ("delay=0.1", "how late is missing"),
            ("delay=0.1:5", "the unit is missing"),
            ("delay=0.1:2000000s", "more than a day"),
            ("stuck=16", "no doorbell"),
            ("stuck=", "no doorbell"),
            ("down=at", "is none of every"),
            ("down=every:1s:for:2s", "never comes up again"),
            ("link=0", "is no link"),
            ("from=now", "is none of start, join"),
            ("patience=long", "the unit is missing"),
            ("patience=0s", "nobody could wait"),
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
