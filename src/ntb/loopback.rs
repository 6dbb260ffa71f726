//! The loopback backend, whose hosts are threads of one process: for tests and examples. It opens no files, maps no
//! shared memory and leaves nothing behind.

use crate::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, PortAddress, Windows as Wanted};
use crate::software::{Registers, SoftEnd, SoftPort, SoftVector, WindowMemory, PAGE};
use crate::{LinkState, NtbError, PortIndex, PortList, Shortcuts, Vector};
use ntbring_host::FileTag;
use ntbring_memory::Region;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Memory of the windows of one host, and of the windows' accounts.
struct Windows {
    ports: PortList,
    window: u64,
    bytes: Region,
    accounts: Region,
}

impl Windows {
    fn part(&self, of: &Region, offset: u64, len: u64) -> Result<Region, NtbError> {
        let size = self.ports.ports().len() as u64 * self.window;
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

    fn window_offset(&self, port: PortIndex) -> Option<u64> {
        Some(self.ports.position(port)? as u64 * self.window)
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
    /// Creates a host that uses the ports 0 and 1, with incoming windows of `window` bytes each. Panics unless that is
    /// a multiple of 64.
    pub fn new(window: usize) -> LoopbackHost {
        LoopbackHost::with_ports(window, PortList::default())
    }

    /// As [`LoopbackHost::new`], with other ports.
    pub fn with_ports(window: usize, ports: PortList) -> LoopbackHost {
        assert_eq!(window % 64, 0, "a window is a multiple of 64 bytes");
        let memory = || Region::anonymous(ports.ports().len() * window);
        let windows = Windows { ports, window: window as u64, bytes: memory(), accounts: memory() };
        let registers = Registers::create(Region::anonymous(PAGE), ports);
        registers.attend();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        LoopbackHost { windows: Arc::new(windows), registers, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Opens a port of the host, cabled to a port of another host. Fails if one of the hosts does not use its port.
    pub fn port(&self, port: PortIndex, opposite: (&LoopbackHost, PortIndex)) -> Result<SoftPort, NtbError> {
        let end = |(host, port): (&LoopbackHost, PortIndex)| -> SoftEnd {
            (host.windows.clone(), host.registers.clone(), port)
        };
        SoftPort::new(Shortcuts::ALL, end((self, port)), end(opposite))
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

    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError> {
        Ok(OpenPort::Software(LoopbackHost::port(self, port, (&find(&opposite.host)?, opposite.port))?))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn set_link(&self, port: PortIndex, state: LinkState) {
        self.registers.bank(port).into_iter().for_each(|bank| self.registers.set_link(bank, state));
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
        let host = LoopbackHost::with_ports(windows.bytes as usize, windows.ports);
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
