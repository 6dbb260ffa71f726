//! Tests of the managers of whole networks.

mod explorer;
mod healing;
mod hostile;
mod paper;
mod shapes;

use super::network::Network;
use super::shape::Shape;
use super::survey::Survey;
use super::{Hwid, Rules};
use std::time::Duration;

/// More time than any network takes to agree, with any losses.
const LONG: Duration = Duration::from_secs(5);

/// Weight of a cable for a link model in a list of links: fast or slow.
fn weigh(model: &str) -> Result<u32, String> {
    match model {
        "fast" => Ok(5),
        "slow" => Ok(9),
        _ => Err(format!("{model:?} is unknown")),
    }
}

/// Returns the index of the host with this hardware id.
fn host(network: &Network, hwid: u64) -> usize {
    network.shape().hosts.iter().position(|host| *host == Hwid(hwid)).unwrap()
}

/// Returns a network of this shape whose managers have agreed.
fn settled(shape: Shape, rules: Rules) -> Network {
    let mut network = Network::started(shape, rules).unwrap();
    network.settle(LONG).unwrap_or_else(|error| panic!("{}: {error}", network.shape().name));
    network
}

/// Returns the statistics of a network.
fn survey(shape: &str) -> Survey {
    Survey::of(&settled(Shape::parse(shape).unwrap(), Rules::default()))
}
