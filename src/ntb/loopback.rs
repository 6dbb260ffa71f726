//! The loopback backend, whose hosts are threads of one process: for tests and examples. It opens no files, maps no
//! shared memory and leaves nothing behind.

use crate::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, Windows as Wanted};
use crate::software::{Registers, SoftPort, SoftVector, WindowMemory, PAGE};
use crate::{LinkState, NtbError, Shortcuts, Side, Vector};
use ntbring_host::FileTag;
use ntbring_memory::Region;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Memory of the windows of one host, and of the windows' accounts.
struct Windows {
    window: u64,
    bytes: Region,
    accounts: Region,
}

impl Windows {
    fn part(&self, of: &Region, offset: u64, len: u64) -> Result<Region, NtbError> {
        let size = 2 * self.window;
        if offset > size || len > size - offset {
            return Err(NtbError::Aperture { offset, len, size });
        }
        Ok(of.part(offset as usize, len as usize))
    }
}

impl WindowMemory for Windows {
    fn window(&self) -> u64 {
        self.window
    }

    fn window_offset(&self, side: Side) -> u64 {
        side as u64 * self.window
    }

    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.part(&self.bytes, offset, len)
    }

    fn accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.part(&self.accounts, offset, len)
    }
}

/// A host of a ring within one process.
#[derive(Clone)]
pub struct LoopbackHost {
    windows: Arc<Windows>,
    registers: Registers,
    id: u64,
}

impl LoopbackHost {
    /// Creates a host with two incoming windows of `window` bytes each. Panics unless that is a multiple of 64.
    pub fn new(window: usize) -> LoopbackHost {
        assert_eq!(window % 64, 0, "a window is a multiple of 64 bytes");
        let memory = || Region::anonymous(2 * window);
        let windows = Windows { window: window as u64, bytes: memory(), accounts: memory() };
        let registers = Registers::new(Region::anonymous(PAGE));
        registers.attend();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        LoopbackHost { windows: Arc::new(windows), registers, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Opens the host's port on `side`, cabled to the opposite port of `neighbour`.
    pub fn port(&self, side: Side, neighbour: &LoopbackHost) -> Result<SoftPort, NtbError> {
        let end = |host: &LoopbackHost| (host.windows.clone() as Arc<dyn WindowMemory>, host.registers.clone());
        SoftPort::new(side, Shortcuts::ALL, end(self), end(neighbour))
    }
}

impl Bells for LoopbackHost {
    fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}

impl Fabric for LoopbackHost {
    fn address(&self) -> FabricAddress {
        let mut address = FabricAddress([0; FabricAddress::LEN]);
        address.0[..8].copy_from_slice(&self.id.to_le_bytes());
        address
    }

    fn port(&self, side: Side, neighbour: &FabricAddress) -> Result<OpenPort, NtbError> {
        Ok(OpenPort::Software(LoopbackHost::port(self, side, &find(neighbour)?)?))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }

    fn introduce(&self, _is: FileTag) -> Result<(), NtbError> {
        Ok(())
    }
}

/// Hosts by id: their windows while these exist, and their registers.
type Hosts = HashMap<u64, (Weak<Windows>, Registers)>;

/// The hosts of this process by their ids, for [`find`]; windows are dropped with their last host handle.
static HOSTS: LazyLock<Mutex<Hosts>> = LazyLock::new(Mutex::default);

fn hosts() -> MutexGuard<'static, Hosts> {
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the host of this process at an address.
fn find(address: &FabricAddress) -> Result<LoopbackHost, NtbError> {
    let mut id = [0; 8];
    id.copy_from_slice(&address.0[..8]);
    let id = u64::from_le_bytes(id);
    let found = hosts().get(&id).and_then(|(windows, registers)| Some((windows.upgrade()?, registers.clone())));
    let problem = "the address does not belong to a host of this process".to_string();
    let (windows, registers) = found.ok_or(NtbError::Device { device: "loopback".into(), problem })?;
    Ok(LoopbackHost { windows, registers, id })
}

/// The backend whose hosts are threads of one process.
pub struct Loopback;

impl Backend for Loopback {
    fn create(&self, windows: Wanted) -> Result<Box<dyn Fabric>, NtbError> {
        let host = LoopbackHost::new(windows.bytes as usize);
        let mut hosts = hosts();
        hosts.retain(|_, (windows, _)| windows.strong_count() > 0);
        hosts.insert(host.id, (Arc::downgrade(&host.windows), host.registers.clone()));
        Ok(Box::new(host))
    }

    fn attach(&self, address: &FabricAddress, _windows: Wanted) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(find(address)?))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Ok(Arc::new(find(address)?))
    }
}
