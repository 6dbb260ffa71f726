//! Opens the backend that `NTBRING_DEVICE` names. Only this crate depends on all backends.

use ntbring_agent::AgentBackend;
use ntbring_emu::Emulated;
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::loopback::Loopback;
use ntbring_ntb::settings::Device;
use ntbring_ntb::NtbError;
use std::path::Path;
use std::sync::Arc;

/// Returns the backend of a device. Emulated windows are allocated in `shm_dir`. Fails if it cannot
/// be used on this host.
pub fn open(device: &Device, shm_dir: &Path) -> Result<Arc<dyn Backend>, NtbError> {
    match device {
        Device::Emulated => Ok(Arc::new(Emulated::new(shm_dir))),
        Device::Shared(dir) => Ok(Arc::new(Emulated::with_shared_dir(shm_dir, dir))),
        Device::Loopback => Ok(Arc::new(Loopback)),
        Device::Pci(socket) => Ok(Arc::new(AgentBackend::connect(socket)?)),
    }
}
