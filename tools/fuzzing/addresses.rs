//! The address of a rank that a launcher hands on.

use ntbring_ring::external_peer::ExternalAddress;
use ntbring_ring::join::Card;

/// Runs one input.
pub fn run(data: &[u8]) {
    if let Ok(card) = Card::parse(data) {
        assert_eq!(Card::parse(&card.bytes()), Ok(card));
    }
    if let Some(address) = ExternalAddress::parse(data) {
        assert_eq!(ExternalAddress::parse(&address.bytes()), Some(address));
    }
}
