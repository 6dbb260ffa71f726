//! The experiments of the papers that ntbring stands on, repeated: see docs/experiments.md.

pub mod ablation;
pub mod efficiency;

use crate::bench::contestants::{ours, Contestant, Role};
use crate::setup::Installed;

/// One way of running ntbring.
pub struct Column {
    /// Of the contestant.
    pub name: &'static str,
    /// For the head of a table.
    pub head: &'static str,
    /// What is set for it.
    env: &'static [(&'static str, &'static str)],
    what: &'static str,
}

/// All ways of running ntbring that only the experiments need.
pub fn contestants(installed: &Installed) -> Vec<Contestant> {
    let of = |role: Role, columns: &'static [Column]| {
        columns.iter().map(move |column| {
            let mut one = ours(installed, column.name, 1, role, column.what);
            one.env.extend(column.env.iter().map(|(name, value)| (name.to_string(), value.to_string())));
            one
        })
    };
    let ablation = ablation::LINKS.iter().flat_map(|link| of(Role::Ablation, link.columns));
    ablation.chain(of(Role::Efficiency, efficiency::COLUMNS)).collect()
}

/// Whether a contestant belongs to an experiment, so that general tables leave it out.
pub fn is_of_experiment(name: &str) -> bool {
    let links = ablation::LINKS.iter().flat_map(|link| link.columns);
    links.chain(efficiency::COLUMNS).any(|column| column.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestants::OURS;

    #[test]
    fn names_are_told_from_those_of_others() {
        let columns = || ablation::LINKS.iter().flat_map(|link| link.columns).chain(efficiency::COLUMNS);
        let names: std::collections::BTreeSet<_> = columns().map(|column| column.name).collect();
        assert_eq!(names.len(), columns().count());
        assert!(is_of_experiment("paper-1") && !is_of_experiment(OURS) && !is_of_experiment("ntbring-gen3x8"));
    }
}
