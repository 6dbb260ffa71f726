//! What a launcher hands on as a rank's address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ntbring_ring::external_peer::ExternalAddress;
use ntbring_ring::join::Card;

fuzz_target!(|data: &[u8]| {
    if let Ok(card) = Card::parse(data) {
        assert_eq!(Card::parse(&card.bytes()), Ok(card));
    }
    if let Some(address) = ExternalAddress::parse(data) {
        assert_eq!(ExternalAddress::parse(&address.bytes()), Some(address));
    }
});
