//! The traffic between all ranks or hosts.

use super::source::Sender;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// The quantity that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Messages,
    Bytes,
}

impl Unit {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Messages => "messages",
            Unit::Bytes => "bytes",
        }
    }
}

/// The matrix of the traffic between `n` ranks or hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Number of ranks of the job.
    pub ranks: u64,
    /// Number of hosts of the job.
    pub hosts: u64,
    /// The host of each rank, as far as it is known; None in a matrix of hosts.
    pub host_of: Option<Vec<Option<u64>>>,
    /// Ranks without counters.
    pub missing: Vec<u64>,
    /// Messages from the row's rank or host to the column's.
    pub msgs: Vec<Vec<u64>>,
    /// Bytes from the row's rank or host to the column's.
    pub bytes: Vec<Vec<u64>>,
}

fn square(n: usize) -> Vec<Vec<u64>> {
    vec![vec![0; n]; n]
}

impl Matrix {
    /// Creates the matrix of a job's ranks. Fails if the counters are not those of a single job.
    pub fn of(senders: &[Sender]) -> Result<Matrix, String> {
        let first = senders.first().ok_or("there are no counters")?;
        let (ranks, hosts, n) = (first.size, first.hosts, first.size as usize);
        let mut matrix = Matrix {
            ranks,
            hosts,
            host_of: Some(vec![None; n]),
            missing: Vec::new(),
            msgs: square(n),
            bytes: square(n),
        };
        let mut seen = BTreeSet::new();
        for sender in senders {
            if (sender.size, sender.hosts) != (ranks, hosts) || !seen.insert((sender.rank, sender.vci)) {
                let text =
                    "there are the counters of several jobs: remove the file before a job, or keep one job's lines";
                return Err(text.into());
            }
            let known = |rank, host| rank < ranks && host < hosts;
            if !known(sender.rank, sender.host) || !sender.peers.iter().all(|to| known(to.rank, to.host)) {
                return Err(format!("rank {} names a rank or host that the job does not have", sender.rank));
            }
            let row = sender.rank as usize;
            let ends = sender.peers.iter().map(|to| (to.rank, to.host)).chain([(sender.rank, sender.host)]);
            matrix
                .host_of
                .iter_mut()
                .for_each(|of| ends.clone().for_each(|(rank, host)| of[rank as usize] = Some(host)));
            for to in &sender.peers {
                matrix.msgs[row][to.rank as usize] += to.msgs;
                matrix.bytes[row][to.rank as usize] += to.bytes;
            }
        }
        matrix.missing = (0..ranks).filter(|rank| !seen.iter().any(|(seen, _)| seen == rank)).collect();
        Ok(matrix)
    }

    /// Returns the sums for hosts.
    pub fn by_host(&self) -> Matrix {
        let Some(host_of) = &self.host_of else { return self.clone() };
        let n = self.hosts as usize;
        let sums = |of: &[Vec<u64>]| {
            let mut sums = square(n);
            for (row, from) in of.iter().zip(host_of) {
                for (cell, to) in row.iter().zip(host_of) {
                    if let (Some(from), Some(to)) = (*from, *to) {
                        sums[from as usize][to as usize] += cell;
                    }
                }
            }
            sums
        };
        Matrix { host_of: None, msgs: sums(&self.msgs), bytes: sums(&self.bytes), ..self.clone() }
    }

    /// Returns what a row or column is: a rank or a host.
    pub fn kind(&self) -> &'static str {
        if self.host_of.is_some() {
            "rank"
        } else {
            "host"
        }
    }

    /// Returns the number of rows, and of columns.
    pub fn len(&self) -> usize {
        self.msgs.len()
    }

    /// Returns the cells of one quantity.
    pub fn cells(&self, unit: Unit) -> &[Vec<u64>] {
        match unit {
            Unit::Messages => &self.msgs,
            Unit::Bytes => &self.bytes,
        }
    }

    /// Returns the sums of the rows.
    pub fn sent(&self, unit: Unit) -> Vec<u64> {
        self.cells(unit).iter().map(|row| row.iter().sum()).collect()
    }

    /// Returns the sums of the columns.
    pub fn received(&self, unit: Unit) -> Vec<u64> {
        let cells = self.cells(unit);
        (0..cells.len()).map(|column| cells.iter().map(|row| row[column]).sum()).collect()
    }
}

impl Serialize for Matrix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("of", &format!("{}s", self.kind()))?;
        map.serialize_entry("ranks", &self.ranks)?;
        map.serialize_entry("hosts", &self.hosts)?;
        self.host_of.iter().try_for_each(|of| map.serialize_entry("host_of", of))?;
        map.serialize_entry("missing", &self.missing)?;
        for (unit, suffix) in [(Unit::Messages, "msgs"), (Unit::Bytes, "bytes")] {
            map.serialize_entry(suffix, self.cells(unit))?;
            map.serialize_entry(&format!("sent_{suffix}"), &self.sent(unit))?;
            map.serialize_entry(&format!("received_{suffix}"), &self.received(unit))?;
        }
        map.end()
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::source::Receiver;
    use super::*;

    /// Returns the counters of rank `rank` of four on two hosts.
    pub fn sender(rank: u64, to: &[(u64, u64, u64)]) -> Sender {
        let peers = to.iter().map(|&(rank, msgs, bytes)| Receiver { rank, host: rank / 2, msgs, bytes }).collect();
        Sender { rank, vci: 0, host: rank / 2, hosts: 2, size: 4, peers }
    }

    #[test]
    fn cells_are_what_was_sent_from_row_to_column() {
        let other_vci = Sender { vci: 1, ..sender(0, &[(1, 1, 5)]) };
        let senders = [sender(0, &[(1, 2, 20), (3, 1, 8)]), sender(2, &[(0, 4, 40)]), other_vci];
        let matrix = Matrix::of(&senders).unwrap();
        assert_eq!(matrix.msgs, [[0, 3, 0, 1], [0; 4], [4, 0, 0, 0], [0; 4]]);
        assert_eq!(matrix.bytes[0], [0, 25, 0, 8]);
        assert_eq!((matrix.sent(Unit::Messages), matrix.received(Unit::Bytes)), (vec![4, 0, 4, 0], vec![40, 25, 0, 8]));
        assert_eq!((matrix.missing.as_slice(), matrix.kind()), ([1, 3].as_slice(), "rank"));
        let hosts = matrix.by_host();
        assert_eq!((hosts.msgs.as_slice(), hosts.kind()), ([vec![3, 1], vec![4, 0]].as_slice(), "host"));
        assert_eq!(hosts.by_host(), hosts);
    }

    #[test]
    fn counters_of_several_jobs_are_not_summed() {
        let twice = [sender(0, &[]), sender(0, &[])];
        assert!(Matrix::of(&twice).unwrap_err().contains("several jobs"));
        let other_size = [sender(0, &[]), Sender { size: 8, ..sender(1, &[]) }];
        assert!(Matrix::of(&other_size).unwrap_err().contains("several jobs"));
        assert!(Matrix::of(&[sender(0, &[(4, 1, 1)])]).unwrap_err().contains("does not have"));
        assert!(Matrix::of(&[]).is_err());
    }

    #[test]
    fn sums_are_in_the_json() {
        let json = serde_json::to_value(Matrix::of(&[sender(0, &[(3, 2, 20)])]).unwrap().by_host()).unwrap();
        assert_eq!(json["of"], "hosts");
        assert_eq!(json["bytes"].to_string(), "[[0,20],[0,0]]");
        assert_eq!(
            (json["sent_msgs"].to_string(), json["received_bytes"].to_string()),
            ("[2,0]".into(), "[0,20]".into())
        );
        assert!(json.get("host_of").is_none());
    }
}
