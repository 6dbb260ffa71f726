//! The programs of `benches/shmem`, where their PEs run, and the rows that they measure.

/// The programs; each row of a program over OpenSHMEM has the same name in the one over MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// One-sided operations of two PEs.
    Pair,
    /// Collectives.
    Coll,
    /// All PEs put to the next at once; only over OpenSHMEM.
    Ring,
}

impl Program {
    /// Returns the name of its executables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Coll => "coll",
            Self::Ring => "ring",
        }
    }

    /// Returns its sources over OpenSHMEM, or over MPI, below `benches/`.
    pub fn sources(self, over_mpi: bool) -> Vec<String> {
        let own = if over_mpi { format!("shmem/{}_mpi.c", self.name()) } else { format!("shmem/{}.c", self.name()) };
        let sync = (!over_mpi).then(|| "shmem/sync.c".to_string());
        let shared = ["shmem/engine.c", "mpi/common.c"].map(str::to_string);
        [own].into_iter().chain(sync).chain(shared).collect()
    }
}

/// The place of the PEs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// This many hosts of one PE, whose memory is mapped where hosts are neighbours.
    Hosts(usize),
    /// Opposite hosts of a ring of four: requests pass a host between.
    Opposite,
    /// Two hosts without shortcuts, as between machines: puts are stores, everything else are requests.
    Apart,
}

impl Placement {
    /// Returns the number of PEs.
    pub fn pes(self) -> usize {
        match self {
            Self::Hosts(count) => count,
            Self::Opposite => 4,
            Self::Apart => 2,
        }
    }

    /// Returns the PE that PE 0 works with.
    pub fn peer(self) -> usize {
        if self == Self::Opposite {
            2
        } else {
            1
        }
    }

    /// Returns true if PEs are reached over links, which only exists on a ring.
    pub fn is_far(self) -> bool {
        !matches!(self, Self::Hosts(_))
    }

    /// Returns the settings of such a run.
    pub fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Apart => &[("NTBRING_SHORTCUTS", "none")],
            _ => &[],
        }
    }
}

/// A program on a placement, with the rows that are wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The program.
    pub program: Program,
    /// Its PEs.
    pub placement: Placement,
    /// Names of the rows in the program.
    pub rows: Vec<&'static str>,
}

impl Group {
    /// Returns the name of a row in the tables.
    pub fn shown(&self, row: &str) -> String {
        match (self.program, self.placement) {
            (Program::Pair, Placement::Opposite) => format!("far_opposite_{row}"),
            (Program::Pair, Placement::Apart) => format!("far_apart_{row}"),
            (Program::Pair, _) => format!("near_{row}"),
            (_, placement) => format!("{row}_{}pes", placement.pes()),
        }
    }

    /// Returns a description for the line of a round.
    pub fn describe(&self) -> String {
        match self.placement {
            Placement::Hosts(count) => format!("{}, {count} hosts", self.program.name()),
            Placement::Opposite => format!("{}, opposite hosts of 4", self.program.name()),
            Placement::Apart => format!("{}, no shortcuts", self.program.name()),
        }
    }
}

/// Rows of a pair that are measured near and far.
const PAIR: [&str; 12] = [
    "put_8B",
    "put_global_8B",
    "get_8B",
    "put_rate",
    "put_nbi_rate",
    "put_quiet_rate",
    "fetch_add",
    "fetch_add_rate",
    "fetch_add_nbi_rate",
    "add_rate",
    "fetch_add_contended",
    "pingpong",
];

/// Bandwidths.
const BANDWIDTHS: [&str; 12] = [
    "put_bw_4KiB",
    "put_bw_16KiB",
    "put_bw_64KiB",
    "put_bw_256KiB",
    "put_bw_1MiB",
    "put_bw_4MiB",
    "get_bw_4KiB",
    "get_bw_16KiB",
    "get_bw_64KiB",
    "get_bw_256KiB",
    "get_bw_1MiB",
    "get_bw_4MiB",
];

const COLLECTIVES: [&str; 7] =
    ["barrier", "bcast_8B", "bcast_64KiB", "reduce_8B", "reduce_64KiB", "fcollect_8B", "fcollect_64KiB"];

/// Returns the groups that have a row whose shown name contains `only`, with these rows.
pub fn groups(only: Option<&str>) -> Vec<Group> {
    let pair = |placement| Group { program: Program::Pair, placement, rows: [&PAIR[..], &BANDWIDTHS[..]].concat() };
    let coll = |pes| Group { program: Program::Coll, placement: Placement::Hosts(pes), rows: COLLECTIVES.to_vec() };
    let all = [pair(Placement::Hosts(2)), pair(Placement::Opposite), pair(Placement::Apart), coll(2), coll(4), coll(8)];
    let chosen = |mut group: Group| {
        let names: Vec<&str> = group.rows.clone();
        group.rows = names.into_iter().filter(|row| only.is_none_or(|only| group.shown(row).contains(only))).collect();
        (!group.rows.is_empty()).then_some(group)
    };
    all.into_iter().filter_map(chosen).collect()
}

/// Returns true if smaller values of this unit are better.
pub fn lower_is_better(unit: &str) -> bool {
    matches!(unit, "us" | "ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_the_names_that_are_shown() {
        assert_eq!(groups(None).len(), 6);
        let far = groups(Some("far_apart_put_rate"));
        assert_eq!((far.len(), far[0].rows.as_slice()), (1, &["put_rate"][..]));
        assert_eq!(far[0].placement.env(), [("NTBRING_SHORTCUTS", "none")]);
        let barriers = groups(Some("barrier"));
        let names: Vec<String> = barriers.iter().map(|group| group.shown(group.rows[0])).collect();
        assert_eq!(names, ["barrier_2pes", "barrier_4pes", "barrier_8pes"]);
        assert!(groups(Some("nonsense")).is_empty());
    }

    #[test]
    fn sources_exist() {
        let root = crate::paths::root().join("benches");
        let over = [(Program::Pair, true), (Program::Coll, true), (Program::Pair, false), (Program::Ring, false)];
        for (program, over_mpi) in over {
            assert!(program.sources(over_mpi).iter().all(|source| root.join(source).exists()));
        }
    }
}
