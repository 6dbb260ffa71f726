//! Asynchronous copies into an outgoing window: the interface of copy engines, such as the DMA engine of an adapter.
//!
//! The processor is the engine of every window: [`OutWindow::write`] is complete when it returns. A device's engine is
//! worth its overhead for large copies only, so it is used beside the processor and never instead of it. Linux's
//! `ntb_transport` decides in the same way: it copies by DMA above a threshold, copies by processor if the engine has
//! no room, and writes a packet's flag when the copy has completed.

use super::bytes::ForeignBytes;
use super::window::{InWindow, OutWindow};

/// Number of a submitted copy, unique for its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyTicket(pub u64);

/// Source of an asynchronous copy. It keeps the mapping of its bytes, if they are in a window. Bytes of the application
/// are kept by the application until the operation that they belong to reports its end.
pub struct CopySource {
    at: usize,
    len: usize,
    memory: Memory,
}

enum Memory {
    Application(ForeignBytes<'static>),
    #[cfg_attr(loom, allow(dead_code))]
    Window(InWindow),
}

impl CopySource {
    /// Returns the source that consists of the `len` bytes at `offset` of a window. Panics if they reach beyond the
    /// end.
    #[cfg(not(loom))]
    pub fn of_window(window: &InWindow, offset: usize, len: usize) -> CopySource {
        window.foreign(offset, len);
        CopySource { at: offset, len, memory: Memory::Window(window.clone()) }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> ForeignBytes<'_> {
        match &self.memory {
            Memory::Application(bytes) => *bytes,
            #[cfg(not(loom))]
            Memory::Window(window) => window.foreign(self.at, self.len),
            #[cfg(loom)]
            Memory::Window(_) => ForeignBytes::EMPTY,
        }
    }
}

impl From<ForeignBytes<'static>> for CopySource {
    fn from(bytes: ForeignBytes<'static>) -> Self {
        CopySource { at: 0, len: bytes.len(), memory: Memory::Application(bytes) }
    }
}

/// An engine that copies into one outgoing window while the processor does other work. Several lanes may use it.
///
/// Copies may complete in any order. Every copy completes within bounded time, also if the link has gone down; its
/// bytes are lost then, like those of any write.
pub trait CopyEngine: Send + Sync {
    /// Starts to copy `from` to `offset` of the window, and drops `from` when the copy has completed. Returns `from` if
    /// too many copies are in flight; the caller then copies by processor. The range at `offset` is inside the window,
    /// and is not written otherwise before the copy has completed. Earlier writes of the caller to it, before the
    /// latest fence, arrive before the copy.
    fn submit(&self, from: CopySource, offset: usize) -> Result<CopyTicket, CopySource>;

    /// Returns true if a copy has completed: its source is not read any more, and its bytes become visible to the
    /// neighbour before any word that the caller writes after the next fence. Called until it returns true, once for
    /// each copy.
    fn is_complete(&self, copy: CopyTicket) -> bool;
}

impl OutWindow {
    /// Starts to copy `from` to `offset` by an engine of the port's whole window, of which this is a part. Returns
    /// `from` if the engine does not take it. Panics if the bytes reach beyond the end.
    pub fn submit(&self, engine: &dyn CopyEngine, offset: usize, from: CopySource) -> Result<CopyTicket, CopySource> {
        self.region.check(offset, from.len());
        engine.submit(from, self.start() + offset)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Region;

    #[test]
    fn a_source_keeps_the_mapping_of_its_window() {
        struct Flag(std::sync::Arc<std::sync::atomic::AtomicBool>, Box<[u64]>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let unmapped = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let mut owner = Flag(unmapped.clone(), vec![0x0101_0101_0101_0101; 8].into_boxed_slice());
        let base = owner.1.as_mut_ptr().cast();
        // SAFETY: the owner keeps the words, and nothing else refers to them from here on.
        let window = InWindow::new(unsafe { Region::new(base, 64, std::sync::Arc::new(owner)) });
        let source = CopySource::of_window(&window, 8, 16);
        drop(window);
        assert!(!unmapped.load(std::sync::atomic::Ordering::Relaxed));
        let copy = Region::anonymous(64);
        OutWindow::new(copy.clone()).write(0, source.bytes());
        assert_eq!(InWindow::new(copy).load(8), 0x0101_0101_0101_0101);
        drop(source);
        assert!(unmapped.load(std::sync::atomic::Ordering::Relaxed));
    }
}
