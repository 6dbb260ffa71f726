//! Traffic of each rank, from its counters.

use ntbring_endpoint::Figures;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// Traffic that a rank, or one of its VCIs, has sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Sender {
    pub rank: u64,
    pub vci: u64,
    pub host: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Number of ranks.
    pub size: u64,
    pub peers: Vec<Receiver>,
}

/// A rank to which something was sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Receiver {
    pub rank: u64,
    pub host: u64,
    pub msgs: u64,
    pub bytes: u64,
}

impl From<Figures> for Sender {
    fn from(figures: Figures) -> Sender {
        let Figures { rank, vci, host, hosts, size, peers, .. } = figures;
        let peers =
            peers.into_iter().map(|to| Receiver { rank: to.rank, host: to.host, msgs: to.msgs, bytes: to.bytes });
        Sender { rank, vci, host, hosts, size, peers: peers.collect() }
    }
}

/// Reads the lines of NTBRING_STATS in a file. Fails if the file cannot be read, or if a line is not one of these.
pub fn read(path: &Path) -> Result<Vec<Sender>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Sender>, String> {
    let mut senders = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let wrong = |error| format!("line {number} is not a line of NTBRING_STATS: {error}");
        let value: Value = serde_json::from_str(line).map_err(wrong)?;
        // `ntbring stats --json` prints lines of links, too.
        if value.get("link").is_none() {
            senders.push(serde_json::from_value(value).map_err(wrong)?);
        }
    }
    match senders.is_empty() {
        true => Err("there is no line of NTBRING_STATS in it".into()),
        false => Ok(senders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ranks_are_read_and_lines_of_links_are_left_out() {
        let line = r#"{"rank":1,"vci":0,"host":0,"hosts":1,"size":2,"lane_bytes":4096,"msgs_local":3,"links":[],
            "peers":[{"rank":0,"host":0,"distance":0,"relayed":false,"msgs":3,"bytes":72}]}"#
            .replace('\n', "");
        let senders = parse(&format!("{line}\n\n{{\"job\":7,\"link\":\"0-1\",\"from\":0,\"to\":1}}\n")).unwrap();
        let peers = vec![Receiver { rank: 0, host: 0, msgs: 3, bytes: 72 }];
        assert_eq!(senders, [Sender { rank: 1, vci: 0, host: 0, hosts: 1, size: 2, peers }]);
    }

    #[test]
    fn other_lines_are_named() {
        assert!(parse("").unwrap_err().contains("no line of NTBRING_STATS"));
        assert!(parse("\n{\"rank\":1}\n").unwrap_err().contains("line 2"));
        assert!(parse("rank 1").unwrap_err().contains("line 1"));
    }
}
