//! `sim tables`: the tables of network managers for several topologies. (`ntbring topo SHAPE` shows one network in
//! full.)

use crate::output::Table;
use anyhow::{Context, Result};
use ntbring_manager::network::Network;
use ntbring_manager::shape::Shape;
use ntbring_manager::survey::Survey;
use ntbring_manager::Rules;
use std::time::Duration;

/// Virtual time in which managers must agree.
const SETTLE_MAX: Duration = Duration::from_secs(10);

const SHAPES: [&str; 10] = [
    "ring:3",
    "ring:4",
    "ring:5",
    "ring:8",
    "ring:16",
    "line:8",
    "broken-ring:5",
    "broken-ring:8",
    "torus:4x4",
    "torus:8x8",
];

/// Returns the table.
pub fn run() -> Result<Vec<Table>> {
    let header =
        ["network", "hosts", "master", "routes", "longest", "with ties", "routes a link", "agreed after", "packets"];
    let mut table = Table::new("what the network managers agree on", &header);
    for name in SHAPES {
        let survey = survey(name)?;
        table.failed.extend(wrong(&survey));
        let longest = survey.routes.iter().map(|route| route.ports.len()).max().unwrap_or(0);
        let (least, most) = survey.load;
        table.rows.push(vec![
            name.into(),
            survey.hosts.len().to_string(),
            survey.hosts[0].master.to_string(),
            survey.routes.len().to_string(),
            format!("{longest} hops"),
            survey.ties.to_string(),
            if least == most { least.to_string() } else { format!("{least} to {most}") },
            format!("{:.0} us", survey.agreed_us),
            survey.packets.to_string(),
        ]);
    }
    table.remarks.push(
        "checked: one master, the smallest id; all routes, all shortest; ties split evenly; no lanes wait in a cycle"
            .into(),
    );
    Ok(vec![table])
}

fn survey(name: &str) -> Result<Survey> {
    let mut network = Network::started(Shape::parse(name)?, Rules::default())?;
    network.settle(SETTLE_MAX).with_context(|| name.to_string())?;
    Ok(Survey::of(&network))
}

/// Returns the properties that are violated.
fn wrong(survey: &Survey) -> Vec<String> {
    let (name, hosts) = (&survey.name, survey.hosts.len());
    let smallest = survey.hosts.iter().map(|host| host.hwid).min();
    let mut wrong = Vec::new();
    let mut check = |right: bool, what: String| wrong.extend((!right).then(|| format!("{name}: {what}")));
    check(
        survey.hosts.iter().all(|host| Some(host.master) == smallest),
        "not all hosts take the one with the smallest id for the master".into(),
    );
    check(survey.routes.len() == hosts * (hosts - 1), format!("{} routes", survey.routes.len()));
    check(survey.detours == 0, format!("{} routes are not the shortest", survey.detours));
    check(survey.cycle.is_none(), "lanes can wait in a cycle".into());
    // A line's links have as many routes as there are pairs of hosts on either side, so nothing can be balanced.
    let (least, most) = survey.load;
    let slack = if hosts > 20 { 2 } else { 1 };
    check(
        name.starts_with("line") || name.starts_with("broken") || most - least <= slack,
        format!("{least} to {most} routes a link"),
    );
    wrong
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_is_as_it_must_be() {
        let tables = super::run().unwrap();
        assert_eq!(tables[0].failed, Vec::<String>::new());
        assert_eq!(tables[0].rows.len(), super::SHAPES.len());
    }
}
