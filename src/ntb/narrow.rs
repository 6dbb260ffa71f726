//! A backend with few capabilities, for tests: [`Loopback`] with a limited number of scratchpads and doorbells, and
//! limited sizes of windows. It panics where the protocol exceeds these limits.

use crate::delegate::left_to_inner;
use crate::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use crate::loopback::Loopback;
use crate::{LinkState, NtbError, Port, PortCaps, PortIndex, Vector};
use ntbring_host::FileTag;
use ntbring_memory::OutWindow;
use std::sync::Arc;

/// A backend of loopback adapters with these capabilities.
pub struct Narrow(pub PortCaps);

impl Backend for Narrow {
    fn caps(&self) -> PortCaps {
        self.0
    }

    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        let PortCaps { window_size_align, window_max, .. } = self.0;
        assert!(windows.bytes.is_multiple_of(window_size_align), "windows of {} bytes", windows.bytes);
        assert!(windows.bytes <= window_max, "windows of {} bytes", windows.bytes);
        Ok(Box::new(NarrowFabric { inner: Loopback.create(windows)?, caps: self.0 }))
    }

    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(NarrowFabric { inner: Loopback.attach(address, windows)?, caps: self.0 }))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Loopback.bells(address)
    }
}

struct NarrowFabric {
    inner: Box<dyn Fabric>,
    caps: PortCaps,
}

impl Bells for NarrowFabric {
    fn ring(&self, doorbell: usize) {
        assert!(doorbell < self.caps.doorbells, "no doorbell {doorbell}");
        self.inner.ring(doorbell);
    }
}

impl Fabric for NarrowFabric {
    fn address(&self) -> FabricAddress {
        self.inner.address()
    }

    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError> {
        let inner: Arc<dyn Port> = match self.inner.port(port, opposite)? {
            OpenPort::Software(port) => Arc::new(port),
            OpenPort::Adapter(port) => port,
        };
        Ok(OpenPort::Adapter(Arc::new(NarrowPort { inner, caps: self.caps })))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        assert!(doorbell < self.caps.doorbells, "no doorbell {doorbell}");
        self.inner.vector(doorbell)
    }

    fn set_link(&self, port: PortIndex, state: LinkState) {
        self.inner.set_link(port, state);
    }

    fn introduce(&self, is: FileTag) -> Result<(), NtbError> {
        self.inner.introduce(is)
    }
}

struct NarrowPort {
    inner: Arc<dyn Port>,
    caps: PortCaps,
}

impl NarrowPort {
    fn check_bell(&self, doorbell: usize) {
        assert!(doorbell < self.caps.doorbells, "no doorbell {doorbell}");
    }

    fn check_register(&self, register: usize) {
        assert!(register < self.caps.scratchpads, "no scratchpad {register}");
    }
}

impl Port for NarrowPort {
    left_to_inner! {
        index shortcuts incoming incoming_offset doorbells clear_doorbells link outages descriptors lose_rather_than_wait
    }

    fn caps(&self) -> PortCaps {
        self.caps
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let PortCaps { window_align, window_size_align, window_max, .. } = self.caps;
        let fits = offset.is_multiple_of(window_align) && len.is_multiple_of(window_size_align) && len <= window_max;
        assert!(fits, "a window of {len} bytes at {offset}");
        self.inner.outgoing(offset, len)
    }

    fn scratchpad(&self, register: usize) -> u32 {
        self.check_register(register);
        self.inner.scratchpad(register)
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        self.check_register(register);
        self.inner.peer_scratchpad(register, value);
    }

    fn ring(&self, doorbell: usize) {
        self.check_bell(doorbell);
        self.inner.ring(doorbell);
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        self.check_bell(doorbell);
        self.inner.vector(doorbell)
    }
}
