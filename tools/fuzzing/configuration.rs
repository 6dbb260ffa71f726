//! Any text as the agent's configuration, and as addresses of adapters, faults and link models.

use crate::config::Config;
use ntbring_ntb::fault::Faults;
use ntbring_pci::PciAddress;

/// Runs one input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Config::parse(&text) {
        Ok(config) => assert_ne!(config.window, Some(0)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(address) = PciAddress::parse(&text) {
        assert_eq!(PciAddress::parse(&address.to_string()), Some(address));
    }
    if let Err(error) = Faults::parse(&text) {
        assert!(!error.to_string().is_empty());
    }
}
