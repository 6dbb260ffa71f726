//! All contestants that are installed, and the jobs in which each takes part.

use std::process::Command;

use anyhow::Result;

use crate::bench::contestants::{debian_mpich, debian_openmpi, on_path, ours, Contestant, Role, OURS};
use crate::bench::jobs::Who;
use crate::bench::papers;
use crate::bench::peers::{self, Source};
use crate::process;
use crate::setup::Installed;

/// Returns all contestants that are installed and those of `more`, and a note for each that is missing.
pub fn all(installed: &Installed, more: Option<Source>) -> Result<(Vec<Contestant>, Vec<String>)> {
    let mut all = vec![
        ours(installed, OURS, 1, Role::Ours, "neighbours on an emulated ring; one rank a host"),
        ours(installed, "ntbring-d2", 2, Role::Distance, "opposite hosts on an emulated ring of 4"),
        ours(installed, "ntbring-d3", 3, Role::Distance, "opposite hosts on an emulated ring of 6"),
    ];
    all.extend(papers::models());
    let mut missing = Vec::new();
    if knows_link_models(installed) {
        let mut model = |name, distance, what| {
            let one = ours(installed, name, distance, Role::Model, what);
            all.push(one.with_env(&[("NTBRING_LINK_MODEL", "gen3x8")]));
        };
        model("ntbring-gen3x8", 1, "neighbours on a ring of 2 under the link model gen3x8");
        model("ntbring-gen3x8-d2", 2, "opposite hosts on a ring of 4 under the link model gen3x8");
        all.extend(papers::contestants(installed));
    } else {
        missing.push("link models: this ntbring has no NTBRING_LINK_MODEL: skipped".to_string());
    }
    match (on_path("mpicc.mpich"), on_path("mpiexec.mpich")) {
        (Some(mpicc), Some(mpiexec)) => all.extend(debian_mpich(&mpicc, &mpiexec)),
        _ => {
            missing.push("mpich: no mpicc.mpich and mpiexec.mpich: skipped (apt-get install mpich libmpich-dev)".into())
        }
    }
    match (on_path("mpicc.openmpi"), on_path("mpiexec.openmpi")) {
        (Some(mpicc), Some(mpiexec)) => all.extend(debian_openmpi(&mpicc, &mpiexec)),
        _ => missing.push(
            "openmpi: no mpicc.openmpi and mpiexec.openmpi: skipped (apt-get install openmpi-bin libopenmpi-dev)"
                .into(),
        ),
    }
    if let Some(source) = more {
        all.extend(peers::of(source, &mut missing)?);
    }
    Ok((all, missing))
}

/// Returns true if a contestant runs the jobs of this group of contestants.
pub fn takes_part(one: &Contestant, who: Who) -> bool {
    match who {
        Who::Main => matches!(one.role, Role::Ours | Role::Peer),
        Who::Distances => matches!(one.role, Role::Ours | Role::Distance | Role::Peer),
        Who::Model => one.role == Role::Model,
        Who::Ablation => one.role == Role::Ablation,
        Who::QueueManagement => papers::ablation::MODELS_2_AND_1.contains(&one.name),
        Who::Efficiency => one.role == Role::Efficiency,
        Who::Machine | Who::RawWindow => false,
    }
}

fn knows_link_models(installed: &Installed) -> bool {
    let mut info = Command::new(installed.mpi.prefix().join("bin/ntbring"));
    process::output(info.args(["info", "--config"])).is_ok_and(|text| text.contains("NTBRING_LINK_MODEL"))
}
