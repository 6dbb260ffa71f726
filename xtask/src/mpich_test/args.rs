//! What can be chosen about a run of MPICH's suite.

use std::path::PathBuf;

use clap::Args;

use super::testlist;
use crate::setup::{Profile, SetupArgs};
use crate::variants::VariantArgs;

/// Hosts of the ring, if nothing else is said.
pub const DEFAULT_HOSTS: u8 = 4;

/// Rings of neighbours only, with one way that is as long as the other, and with none.
const ALL_HOSTS: &[u8] = &[2, 4, 5];

/// Tests at once in CI: one often waits while the other computes.
const CI_JOBS: u8 = 2;

/// What can be chosen.
#[derive(Args, Clone, Debug)]
pub struct MpichTestArgs {
    /// Hosts of the ring; with several, one after the other [default: 4; with --all 2,4,5]
    #[arg(long, value_name = "H", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) hosts: Vec<u8>,

    /// Run all directories that the profile builds, and write docs/conformance.md
    #[arg(long, conflicts_with_all = ["ci", "list", "patterns", "extremes", "memcheck"])]
    pub(super) all: bool,

    /// With --all: go on where an earlier run of the same command was stopped: rings and directories that it has
    /// finished are not run again
    #[arg(long, requires = "all")]
    pub(super) resume: bool,

    /// Leave out tests that say how many gigabytes of memory they need: whether they are run depends on what is free
    #[arg(long)]
    pub(super) small: bool,

    /// Place ranks on hosts by chance, from this seed, instead of evenly
    #[arg(long, value_name = "SEED")]
    pub(super) placement: Option<u64>,

    /// Ranks on a host; more where a test wants more than all hosts then have
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) per_host: u8,

    /// Run only the part that tests/mpich/ci.txt chooses
    #[arg(long)]
    pub(super) ci: bool,

    /// Tests to run at once
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) jobs: u8,

    /// Which of the suite's lists to run, separated by commas [default: all three]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = testlist::LISTS.to_vec())]
    pub(super) lists: Vec<String>,

    /// Run with the MPICH installed in DIR (with DIR/bin/mpicc) instead of ours: does a failure come from us?
    #[arg(long, value_name = "DIR")]
    pub(super) with_mpi: Option<PathBuf>,

    /// Run the tests under valgrind; what it finds is a failure
    #[arg(long)]
    pub(super) memcheck: bool,

    /// Show what would be run
    #[arg(long)]
    pub(super) list: bool,

    /// Directories of the suite, or tests: "coll", "coll/allred", "coll/allred 4"
    #[arg(value_name = "DIR")]
    pub(super) patterns: Vec<String>,

    #[command(flatten)]
    pub(super) variants: VariantArgs,

    #[command(flatten)]
    pub(super) setup: SetupArgs,
}

impl MpichTestArgs {
    /// What CI runs.
    pub fn ci(setup: SetupArgs) -> Self {
        Self {
            hosts: Vec::new(),
            all: false,
            resume: false,
            small: false,
            placement: None,
            per_host: 1,
            ci: true,
            jobs: CI_JOBS,
            lists: Vec::new(),
            with_mpi: None,
            memcheck: false,
            list: false,
            patterns: Vec::new(),
            variants: VariantArgs::default(),
            setup,
        }
    }

    /// On these rings, under these settings.
    pub fn on(self, hosts: &[u8], variants: VariantArgs) -> Self {
        Self { hosts: hosts.to_vec(), variants, ..self }
    }

    /// Everything, on these rings; a later call goes on where this one was stopped.
    pub fn whole(setup: SetupArgs, hosts: &[u8]) -> Self {
        Self { all: true, resume: true, ci: false, jobs: 1, hosts: hosts.to_vec(), ..Self::ci(setup) }
    }

    /// What `bench compare --suites` times: the plain list of a directory, one rank a host where that
    /// suffices; with our MPICH or another one.
    pub fn timed(setup: SetupArgs, dir: &str, with_mpi: Option<PathBuf>, env: Vec<(String, String)>) -> Self {
        Self {
            ci: false,
            small: true,
            jobs: 1,
            lists: vec!["testlist".to_string()],
            with_mpi,
            patterns: vec![dir.to_string()],
            variants: VariantArgs::of(env),
            ..Self::ci(setup)
        }
    }

    /// The rings to be run on.
    pub fn rings(&self) -> Vec<u8> {
        match (&self.hosts[..], self.all) {
            ([], true) => ALL_HOSTS.to_vec(),
            ([], false) => vec![DEFAULT_HOSTS],
            (hosts, _) => hosts.to_vec(),
        }
    }

    /// What tells one run of everything from another.
    pub fn column(&self, hosts: u8) -> String {
        let mut name = format!("{hosts} hosts");
        if self.per_host > 1 {
            name.push_str(&format!(" of {}", self.per_host));
        }
        if let Some(seed) = self.placement {
            name.push_str(&format!(", seed {seed}"));
        }
        if self.jobs > 1 {
            name.push_str(&format!(", {} tests at once", self.jobs));
        }
        if self.small {
            name.push_str(", small");
        }
        self.lists.iter().for_each(|list| name.push_str(&format!(", {list}")));
        match &self.with_mpi {
            Some(dir) => name.push_str(&format!(", MPI in {}", dir.display())),
            None if self.setup.profile != Profile::Full => name.push_str(&format!(", {}", self.setup.profile)),
            None => {}
        }
        self.variants.settings().for_each(|setting| name.push_str(&format!(", {setting}")));
        name
    }

    /// The command, for the page that it writes.
    pub fn shown(&self, hosts: u8) -> String {
        let mut text = format!("cargo xtask mpich-test --all --profile {}", self.setup.profile);
        let mut list = |name: &str, items: Vec<String>| {
            if !items.is_empty() {
                text.push_str(&format!(" --{name} {}", items.join(",")));
            }
        };
        list("hosts", vec![hosts.to_string()]);
        list("per-host", if self.per_host > 1 { vec![self.per_host.to_string()] } else { Vec::new() });
        list("jobs", if self.jobs > 1 { vec![self.jobs.to_string()] } else { Vec::new() });
        list("placement", self.placement.iter().map(ToString::to_string).collect());
        list("lists", self.lists.clone());
        list("with-mpi", self.with_mpi.iter().map(|dir| dir.display().to_string()).collect());
        if self.small {
            text.push_str(" --small");
        }
        self.variants.settings().for_each(|setting| text.push_str(&format!(" --env {setting}")));
        text
    }
}
