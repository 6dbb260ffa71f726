//! The addresses of window files, and opening them: through the process that has created a file, or by its name in a
//! directory that hosts share.

use bytes::{Buf, BufMut};
use ntbring_host::{machine, FileAddress, FileName, MemoryFile};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_ntb::NtbError;
use std::path::Path;

/// Value that replaces the number of the machine and process namespace in the address of a file with a name.
const ANYWHERE: u64 = 0;

/// Returns the address of the windows in a file without a name. It includes the number of the machine and process
/// namespace ([`machine`]), outside of which the file cannot be found.
pub fn address_of(file: FileAddress) -> FabricAddress {
    address(file, machine())
}

/// Returns the address of the windows in a file with a name.
pub(crate) fn shared_address_of(file: FileAddress) -> FabricAddress {
    address(file, ANYWHERE)
}

fn address(file: FileAddress, place: u64) -> FabricAddress {
    let mut address = FabricAddress([0; FabricAddress::LEN]);
    let mut to = &mut address.0[..];
    file.put(&mut to);
    to.put_u64_le(place);
    address
}

/// Returns the file without a name at an address; fails if the address is of another machine or process namespace.
pub fn file_of(address: &FabricAddress) -> Result<FileAddress, NtbError> {
    let (file, at) = parse(address);
    if at == machine() {
        Ok(file)
    } else {
        Err(NtbError::Elsewhere)
    }
}

fn parse(address: &FabricAddress) -> (FileAddress, u64) {
    let mut from = &address.0[..];
    (FileAddress::get(&mut from), from.get_u64_le())
}

/// Opens the file at an address. `shared`: the directory of files with names, if this process knows one.
pub(crate) fn open(address: &FabricAddress, shared: Option<&Path>) -> Result<MemoryFile, NtbError> {
    match (parse(address), shared) {
        ((file, ANYWHERE), Some(dir)) => Ok(FileName::open(dir, &file)?),
        _ => Ok(MemoryFile::open(&file_of(address)?)?),
    }
}
