//! Repeats the experiments of the papers that ntbring is based on: see docs/experiments.md.

pub mod ablation;
pub mod efficiency;

use crate::bench::contestants::{model, ours, Contestant, Role};
use crate::setup::Installed;

/// Returns the models of `benches/papers`.
pub fn models() -> Vec<Contestant> {
    let columns = ablation::LINKS.iter().flat_map(|link| &link.columns);
    columns.map(|column| model(column.name, column.what, column.model, column.link)).collect()
}

/// Returns all ways of running ntbring that only the experiments need.
pub fn contestants(installed: &Installed) -> Vec<Contestant> {
    let one = |column: &'static efficiency::Column| {
        ours(installed, column.name, 1, Role::Efficiency, column.what).with_env(column.env)
    };
    efficiency::COLUMNS.iter().map(one).collect()
}

/// Returns true if a contestant belongs to an experiment, so that general tables omit it.
pub fn is_of_experiment(name: &str) -> bool {
    names().any(|known| known == name)
}

fn names() -> impl Iterator<Item = &'static str> {
    let models = ablation::LINKS.iter().flat_map(|link| &link.columns).map(|column| column.name);
    models.chain(efficiency::COLUMNS.iter().map(|column| column.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestants::OURS;

    #[test]
    fn names_are_told_from_those_of_others() {
        let different: std::collections::BTreeSet<_> = names().collect();
        assert_eq!(different.len(), names().count());
        assert!(is_of_experiment("paper-1") && !is_of_experiment(OURS) && !is_of_experiment("ntbring-gen3x8"));
    }
}
