//! Schedules of times at which a link is down: arithmetic only, without a clock.

use super::links::LinkName;
use super::times::{show, time};
use std::fmt;
use std::time::Duration;

/// Times at which a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The link; None: the links that have the other faults.
    pub link: Option<LinkName>,
    /// Time from the beginning of faults to the first outage.
    pub first: Duration,
    /// Period after which outages repeat; None: there is one outage.
    pub every: Option<Duration>,
    /// Duration of each outage; None: the link never comes up again.
    pub lasts: Option<Duration>,
}

impl Outage {
    /// Parses `every:1s:for:200ms`, `at:2s:for:1s` or `at:2s`, optionally with a link before it: `0-1:at:2s`.
    pub fn parse(text: &str) -> Result<Outage, String> {
        let words: Vec<&str> = text.split(':').map(str::trim).collect();
        let (link, rest) = match words.split_first() {
            Some((first, rest)) if !matches!(*first, "at" | "every") => (Some(LinkName::parse(first)?), rest),
            _ => (None, &words[..]),
        };
        match rest {
            ["at", start] => Ok(Outage { link, first: time(start)?, every: None, lasts: None }),
            ["at", start, "for", lasts] => {
                Ok(Outage { link, first: time(start)?, every: None, lasts: Some(time(lasts)?) })
            }
            ["every", period, "for", lasts] => {
                let (period, lasts) = (time(period)?, time(lasts)?);
                if lasts >= period {
                    return Err(format!("{text:?} never comes up again"));
                }
                Ok(Outage { link, first: period, every: Some(period), lasts: Some(lasts) })
            }
            _ => {
                Err(format!("{text:?} is none of every:1s:for:200ms, at:2s:for:1s, at:2s, or these after a link and :"))
            }
        }
    }

    /// Returns true if the link is down at the time `since` after the beginning of faults.
    pub fn is_on(&self, since: Duration) -> bool {
        let Some(later) = since.checked_sub(self.first) else { return false };
        match (self.every, self.lasts) {
            (_, None) => true,
            (None, Some(lasts)) => later < lasts,
            (Some(every), Some(lasts)) => later.as_nanos() % every.as_nanos().max(1) < lasts.as_nanos(),
        }
    }

    /// Returns the number of outages that have begun until the time `since` after the beginning of faults.
    pub fn count(&self, since: Duration) -> u64 {
        let Some(later) = since.checked_sub(self.first) else { return 0 };
        1 + self.every.map_or(0, |every| (later.as_nanos() / every.as_nanos().max(1)) as u64)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = self.link {
            write!(f, "{link}:")?;
        }
        match self.every {
            Some(every) => write!(f, "every:{}", show(every))?,
            None => write!(f, "at:{}", show(self.first))?,
        }
        match self.lasts {
            Some(lasts) => write!(f, ":for:{}", show(lasts)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns those of the first 3000 milliseconds, in steps of 100, at which the link is down.
    fn on(text: &str) -> Vec<u64> {
        let outage = Outage::parse(text).unwrap();
        assert_eq!(Outage::parse(&outage.to_string()), Ok(outage));
        (0..3000).step_by(100).filter(|&ms| outage.is_on(Duration::from_millis(ms))).collect()
    }

    #[test]
    fn schedules() {
        assert_eq!(on("every:1s:for:200ms"), [1000, 1100, 2000, 2100]);
        assert_eq!(on("at:500ms:for:0.2s"), [500, 600]);
        assert_eq!(on("at:2.7s"), [2700, 2800, 2900]);
        assert_eq!(on("at:0s:for:100ms"), [0]);
        assert_eq!(Outage::parse("3-0:at:1s").unwrap().link, Some(LinkName::Between(3, 0)));
    }

    #[test]
    fn beginnings_are_counted() {
        for (text, ms, count) in [
            ("at:2s", 1999, 0),
            ("at:2s", 9000, 1),
            ("at:0s:for:1s", 0, 1),
            ("every:1s:for:200ms", 999, 0),
            ("every:1s:for:200ms", 1500, 1),
            ("every:1s:for:200ms", 3000, 3),
        ] {
            assert_eq!(Outage::parse(text).unwrap().count(Duration::from_millis(ms)), count, "{text} at {ms} ms");
        }
    }

    #[test]
    fn what_is_no_schedule() {
        for text in
            ["", "at", "at:", "at:1", "at:1s:for", "every:1s", "every:1s:for:1s", "up:at:1s", "at:1s:2s", "0-1:"]
        {
            assert!(Outage::parse(text).is_err(), "{text}");
        }
    }
}
