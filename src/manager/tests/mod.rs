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

/// Longer than any network takes to agree, whatever is lost.
const LONG: Duration = Duration::from_secs(5);

/// The weight of a cable with a link model, for lists of links: fast or slow.
fn weigh(model: &str) -> Result<u32, String> {
    match model {
        "fast" => Ok(5),
        "slow" => Ok(9),
        _ => Err(format!("{model:?} is unknown")),
    }
}

/// The number of the host with this hardware id.
fn host(network: &Network, hwid: u64) -> usize {
    network.shape().hosts.iter().position(|host| *host == Hwid(hwid)).unwrap()
}

/// A network of this shape that has come to rest.
fn settled(shape: Shape, rules: Rules) -> Network {
    let mut network = Network::started(shape, rules).unwrap();
    network.settle(LONG).unwrap_or_else(|error| panic!("{}: {error}", network.shape().name));
    network
}

/// What there is to know about it.
fn survey(shape: &str) -> Survey {
    Survey::of(&settled(Shape::parse(shape).unwrap(), Rules::default()))
}
