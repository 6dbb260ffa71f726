//! Requester ids whose accesses pass an interface.
//!
//! An access of a requester that has no entry is dropped without a trace. At the other end it carries the number of the
//! entry as its device number. There an IOMMU may know only device 0 of the bus, so the processors' writes must match
//! entry 0: most carry the id 0:0.0, others that of the processors' reads.

use super::identity::Side;
use super::page::{Page, LUT_LINK, LUT_VIRTUAL, READER};

/// Entry, 16 bits: bus and device in the bits 15:3.
const ENABLE: u32 = 1;

/// Entries for DMA engines of processors (devices 0:4, 40:4, 80:4 and C0:4), in the second and the third dword.
const ENGINES: [u32; 2] = [0x4021_0021, 0xc021_8021];

/// Lets accesses of this host pass its own interface. `reader_first` puts the id that reads carry into entry 0.
pub(super) fn fill_own(page: &Page, side: Side, reader_first: bool) {
    let lut = match side {
        Side::Virtual => LUT_VIRTUAL,
        Side::Link => LUT_LINK,
    };
    let (root, reader) = (ENABLE, page.read(READER) & 0xfff8 | ENABLE);
    let [first, second] = if reader_first { [reader, root] } else { [root, reader] };
    page.write(lut, second << 16 | first);
    for (dword, value) in (1..).zip(ENGINES) {
        page.write(lut + 4 * dword, value);
    }
}

/// Lets all accesses that come over the cable of two switches pass: they are of the devices 0 to 31 of bus 0, and keep
/// their device numbers.
pub(super) fn fill_cable(page: &Page) {
    for device in (0..32u32).step_by(2) {
        let entry = |device: u32| device << 3 | ENABLE;
        page.write(LUT_LINK + 2 * u64::from(device), entry(device + 1) << 16 | entry(device));
    }
}
