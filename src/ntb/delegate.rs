//! Delegation for decorators: implementations of those methods of `Port` that a decorator forwards to the port in
//! its field `inner`.

/// Implements the named methods of `Port` by calls of the same methods of `self.inner`.
macro_rules! left_to_inner {
    ($($method:ident)*) => { $($crate::delegate::left_to_inner!(@ $method);)* };
    (@ index) => { fn index(&self) -> $crate::PortIndex { self.inner.index() } };
    (@ caps) => { fn caps(&self) -> $crate::PortCaps { self.inner.caps() } };
    (@ shortcuts) => { fn shortcuts(&self) -> $crate::Shortcuts { self.inner.shortcuts() } };
    (@ incoming) => { fn incoming(&self) -> ntbring_memory::InWindow { self.inner.incoming() } };
    (@ copy_engine) => {
        fn copy_engine(
            &self,
            window: &ntbring_memory::OutWindow,
        ) -> Option<std::sync::Arc<dyn ntbring_memory::CopyEngine>> {
            self.inner.copy_engine(window)
        }
    };
    (@ segment) => {
        fn segment(
            &self,
            address: &ntbring_host::SegmentAddress,
        ) -> Result<Option<ntbring_memory::OutWindow>, $crate::NtbError> {
            self.inner.segment(address)
        }
    };
    (@ incoming_offset) => { fn incoming_offset(&self) -> u64 { self.inner.incoming_offset() } };
    (@ scratchpad) => { fn scratchpad(&self, register: usize) -> u32 { self.inner.scratchpad(register) } };
    (@ peer_scratchpad) => {
        fn peer_scratchpad(&self, register: usize, value: u32) { self.inner.peer_scratchpad(register, value) }
    };
    (@ ring) => { fn ring(&self, doorbell: usize) { self.inner.ring(doorbell) } };
    (@ doorbells) => { fn doorbells(&self) -> u16 { self.inner.doorbells() } };
    (@ clear_doorbells) => { fn clear_doorbells(&self, bits: u16) { self.inner.clear_doorbells(bits) } };
    (@ vector) => {
        fn vector(&self, doorbell: usize) -> std::sync::Arc<dyn $crate::Vector> { self.inner.vector(doorbell) }
    };
    (@ link) => { fn link(&self) -> $crate::LinkState { self.inner.link() } };
    (@ lose_rather_than_wait) => { fn lose_rather_than_wait(&self) { self.inner.lose_rather_than_wait() } };
    (@ descriptors) => { fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> { self.inner.descriptors() } };
    (@ outages) => { fn outages(&self) -> u64 { self.inner.outages() } };
}

pub(super) use left_to_inner;
