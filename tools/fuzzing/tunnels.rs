//! Packets of tunnels between gateways.

/// Runs one input.
pub fn run(data: &[u8]) {
    ntbring_ring::fuzzing::tunnels(data);
}
