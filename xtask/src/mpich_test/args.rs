//! The command-line options of a run of MPICH's suite.

use std::path::PathBuf;

use clap::Args;

use super::testlist;
use crate::setup::{Profile, SetupArgs};
use crate::variants::VariantArgs;

/// Default number of hosts of the ring.
pub const DEFAULT_HOSTS: u8 = 4;

/// Numbers of hosts with --all: a ring on which all hosts are neighbours, one with two routes of equal length between
/// opposite hosts, and one without.
const ALL_HOSTS: &[u8] = &[2, 4, 5];

/// Number of tests to run at once in CI: often one waits while another computes.
const CI_JOBS: u8 = 2;

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct MpichTestArgs {
    /// Hosts of the ring; with several numbers, one ring after the other [default: 4; with --all 2,4,5]
    #[arg(long, value_name = "H", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) hosts: Vec<u8>,

    /// Run all directories that the profile builds, and write docs/conformance.md
    #[arg(long, conflicts_with_all = ["ci", "list", "patterns", "extremes", "memcheck"])]
    pub(super) all: bool,

    /// With --all: continue an earlier run of the same command that was stopped, without repeating the rings and
    /// directories that it has finished
    #[arg(long, requires = "all")]
    pub(super) resume: bool,

    /// Omit tests that declare how many gigabytes of memory they need, since it depends on the free memory if they are
    /// run
    #[arg(long)]
    pub(super) small: bool,

    /// Place ranks on hosts at random, from this seed, instead of evenly
    #[arg(long, value_name = "SEED")]
    pub(super) placement: Option<u64>,

    /// Ranks on each host; more for a test that needs more ranks than all hosts then have
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) per_host: u8,

    /// Run only the part that tests/mpich/ci.txt selects
    #[arg(long)]
    pub(super) ci: bool,

    /// Tests to run at once
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) jobs: u8,

    /// Lists of the suite to run, separated by commas [default: all three]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = testlist::LISTS.to_vec())]
    pub(super) lists: Vec<String>,

    /// Run with the MPICH installed in DIR (with DIR/bin/mpicc) instead of ntbring's, to see if a failure comes from
    /// ntbring
    #[arg(long, value_name = "DIR")]
    pub(super) with_mpi: Option<PathBuf>,

    /// Run the tests under valgrind; any error that it finds is a failure
    #[arg(long)]
    pub(super) memcheck: bool,

    /// List the tests that would be run
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
    /// Returns the options with which CI runs.
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

    /// Returns the same options on these rings and under these settings.
    pub fn on(self, hosts: &[u8], variants: VariantArgs) -> Self {
        Self { hosts: hosts.to_vec(), variants, ..self }
    }

    /// Returns the options that run all directories on these rings and continue an earlier run that was stopped.
    pub fn whole(setup: SetupArgs, hosts: &[u8]) -> Self {
        Self { all: true, resume: true, ci: false, jobs: 1, hosts: hosts.to_vec(), ..Self::ci(setup) }
    }

    /// Returns the options for `bench compare --suites`: the plain list of a directory, with one rank on each host
    /// where that suffices, and with ntbring's MPICH or another one.
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

    /// Returns the numbers of hosts of the rings to run on.
    pub fn rings(&self) -> Vec<u8> {
        match (&self.hosts[..], self.all) {
            ([], true) => ALL_HOSTS.to_vec(),
            ([], false) => vec![DEFAULT_HOSTS],
            (hosts, _) => hosts.to_vec(),
        }
    }

    /// Returns the head of the column for a ring, which distinguishes runs of all directories under different options.
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

    /// Returns the command, as it is shown on the page.
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
