//! The links of a job between two readings.

use super::change::Change;
use ntbring_ntb::Side;
use serde::Serialize;

/// A link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkLine {
    /// Its name, as `ntbring link` takes it.
    pub link: String,
    /// The two hosts; the second is the right neighbour of the first.
    pub ends: [u64; 2],
    /// False if one of its ends reports that it is down.
    pub up: bool,
    /// The direction to the right, then the one to the left.
    pub directions: [Direction; 2],
    /// Lane entries retransmitted over the link.
    pub resent: Count,
    /// Lane entries found lost or damaged.
    pub damaged: Count,
    /// Lane entries dropped because the link was down.
    pub dropped: Count,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Direction {
    /// Bytes of lane space sent per second, with tags and padding.
    pub bytes_per_s: Option<f64>,
    /// Part of the limit: 1 is full utilisation.
    pub utilisation: Option<f64>,
}

/// A number of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Since the job's start.
    pub total: u64,
    /// Since the reading before.
    pub new: u64,
}

impl Count {
    fn add(&mut self, (total, new): (u64, u64)) {
        self.total += total;
        self.new += new;
    }
}

/// Returns the links of a ring of so many hosts; those with a name in `down` are down.
pub fn of(hosts: u64, changes: &[Change], down: &[String]) -> Vec<LinkLine> {
    // A single host has no links.
    let count = if hosts > 1 { hosts } else { 0 };
    let new = |left: u64| {
        let right = (left + 1) % hosts;
        let link = format!("{left}-{right}");
        let up = !down.contains(&link);
        let (directions, none) = ([Direction::default(); 2], Count::default());
        LinkLine { link, ends: [left, right], up, directions, resent: none, damaged: none, dropped: none }
    };
    let mut lines: Vec<LinkLine> = (0..count).map(new).collect();
    for change in changes {
        let figures = &change.now.figures;
        for (index, link) in figures.links.iter().enumerate() {
            let (left, direction) = match link.side {
                Side::Right => (figures.host, 0),
                Side::Left => (link.to, 1),
            };
            let Some(line) = lines.get_mut(left as usize) else { continue };
            if let Some(rate) = change.link_rate(index) {
                *line.directions[direction].bytes_per_s.get_or_insert(0.0) += rate;
            }
            line.resent.add(change.link_total(index, "resent"));
            line.damaged.add(change.link_total(index, "damaged"));
            line.dropped.add(change.link_total(index, "dropped"));
        }
    }
    lines
}

impl LinkLine {
    /// Computes the utilisation of both directions from a limit in bytes per second.
    pub fn set_utilisation(&mut self, limit: Option<f64>) {
        for direction in &mut self.directions {
            direction.utilisation = limit.and_then(|limit| Some(direction.bytes_per_s? / limit));
        }
    }

    /// Returns the larger utilisation of the two directions.
    pub fn utilisation(&self) -> Option<f64> {
        self.directions.iter().filter_map(|direction| direction.utilisation).reduce(f64::max)
    }
}
