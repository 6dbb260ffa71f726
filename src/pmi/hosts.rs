//! The hosts of the ranks of a job.

use crate::PmiError;
use std::collections::BTreeMap;

/// Some hosts with consecutive numbers, and the same number of consecutive ranks on each.
#[derive(Clone, Copy)]
struct Block {
    first: u32,
    hosts: u32,
    ranks: u32,
}

/// Parses `PMI_process_mapping`, for example `(vector,(0,4,2),(4,1,3))`: two ranks on each of the hosts 0 to 3, and
/// three on host 4. Returns the host of each of `size` ranks, with the numbers of the process manager.
///
/// If there are more ranks, the list begins again, at the first block of host 0 once there was one. This is what MPICH
/// does, for jobs that MPI_Comm_spawn starts on other hosts than the first.
pub fn parse_mapping(text: &str, size: usize) -> Result<Vec<u32>, PmiError> {
    let error = |reason| PmiError::Mapping { text: text.chars().take(200).collect(), reason };
    let blocks = Parser(text.trim()).blocks().map_err(error)?;
    let again = &blocks[blocks.iter().position(|block| block.first == 0).unwrap_or(0)..];
    let has_room = again.iter().any(|block| block.hosts > 0 && block.ranks > 0);
    let again = if has_room { again } else { &[] };
    let mut host_of = Vec::with_capacity(size);
    let rounds = blocks.iter().chain(again.iter().cycle());
    for block in rounds {
        for host in (0..if block.ranks == 0 { 0 } else { block.hosts }).map(|host| block.first.checked_add(host)) {
            let host = host.ok_or_else(|| error("the number of a host is too large"))?;
            let ranks = (block.ranks as usize).min(size - host_of.len());
            host_of.extend(std::iter::repeat_n(host, ranks));
            if host_of.len() == size {
                return Ok(host_of);
            }
        }
    }
    Err(error("it has no place for a rank"))
}

/// The rest of the text.
struct Parser<'a>(&'a str);

impl Parser<'_> {
    fn blocks(&mut self) -> Result<Vec<Block>, &'static str> {
        self.skip("(")?;
        self.skip("vector")?;
        let mut blocks = Vec::new();
        while self.skip(",").is_ok() {
            self.skip("(")?;
            let first = self.number()?;
            self.skip(",")?;
            let hosts = self.number()?;
            self.skip(",")?;
            let ranks = self.number()?;
            self.skip(")")?;
            blocks.push(Block { first, hosts, ranks });
        }
        self.skip(")")?;
        match self.0.is_empty() && !blocks.is_empty() {
            true => Ok(blocks),
            false => Err("it does not have the form (vector,(FIRST,HOSTS,RANKS),...)"),
        }
    }

    fn skip(&mut self, expected: &str) -> Result<(), &'static str> {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.ok_or("it does not have the form (vector,(FIRST,HOSTS,RANKS),...)")?.trim_start();
        Ok(())
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        digits.parse::<i32>().map(|number| number as u32).map_err(|_| "a number is missing or too large")
    }
}

/// The split of hosts by MPICH's variables, for experiments on a single machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// They do not.
    None,
    /// Every rank is a host.
    Ranks,
    /// If there is one host, it becomes this many, which get ranks in turn.
    InTurn(usize),
    /// If there is one host, it becomes this many, which get consecutive ranks.
    InBlocks(usize),
}

impl Split {
    /// Reads MPICH's variables.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Split {
        let set = |names: &[&str]| {
            names.iter().find_map(|name| {
                let value = lookup(&format!("MPIR_CVAR_{name}"));
                value.or_else(|| lookup(&format!("MPIR_PARAM_{name}"))).or_else(|| lookup(&format!("MPICH_{name}")))
            })
        };
        let on = |names: &[&str]| {
            set(names).is_some_and(|value| {
                let yes = ["1", "on", "yes", "true"];
                yes.iter().any(|yes| value.eq_ignore_ascii_case(yes)) || value.parse().is_ok_and(|n: i64| n != 0)
            })
        };
        if on(&["NOLOCAL", "NO_LOCAL"]) {
            return Split::Ranks;
        }
        let cliques = set(&["NUM_CLIQUES"]).and_then(|value| value.trim().parse().ok()).unwrap_or(1);
        match (cliques, on(&["CLIQUES_BY_BLOCK"])) {
            (0 | 1, _) if !on(&["ODD_EVEN_CLIQUES", "EVEN_ODD_CLIQUES"]) => Split::None,
            (0 | 1, by_block) if by_block => Split::InBlocks(2),
            (0 | 1, _) => Split::InTurn(2),
            (number, true) => Split::InBlocks(number),
            (number, false) => Split::InTurn(number),
        }
    }

    /// Numbers hosts without gaps in the order of their numbers, and splits them. Returns the host of each rank, and
    /// the number of hosts.
    pub fn apply(self, mut host_of: Vec<u32>) -> (Vec<u32>, u32) {
        let size = host_of.len();
        let mut numbers: BTreeMap<u32, u32> = host_of.iter().map(|&host| (host, 0)).collect();
        (0..).zip(numbers.values_mut()).for_each(|(number, place)| *place = number);
        host_of.iter_mut().for_each(|host| *host = numbers[host]);
        let hosts = numbers.len();
        match self {
            Split::Ranks => ((0..size as u32).collect(), size as u32),
            Split::InTurn(number) if hosts == 1 => {
                let number = number.min(size);
                ((0..size).map(|rank| (rank % number) as u32).collect(), number as u32)
            }
            Split::InBlocks(number) if hosts == 1 => {
                let number = number.min(size);
                let (block, larger) = (size / number, size % number);
                let middle = (block + 1) * larger;
                let host = |rank| if rank < middle { rank / (block + 1) } else { (rank - larger) / block };
                ((0..size).map(|rank| host(rank) as u32).collect(), number as u32)
            }
            _ => (host_of, hosts as u32),
        }
    }
}
