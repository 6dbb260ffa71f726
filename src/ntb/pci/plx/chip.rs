//! The driver.

use super::identity::{PlxIdentity, Side, NAME};
use super::lut;
use super::page::*;
use super::setup::{Mode, Setup};
use crate::chip::{Chip, Events, Limits, LinkStatus};
use crate::error::PciError;
use crate::function::Function;
use crate::registers::{Block, Space};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const DOORBELLS: usize = 16;
const DOORBELLS_ALL: u32 = 0xffff;
const SCRATCHPADS: usize = 8;
/// From NTB to root port both hosts share the scratchpads: the host of the Virtual interface has the first half.
const SCRATCHPADS_SHARED: usize = 4;
/// Most times that events are read in a row. A neighbour that rings all the time would else stop the agent.
const ROUNDS: usize = 64;

/// The driver of one function.
pub struct Plx {
    function: Arc<dyn Function>,
    identity: PlxIdentity,
    setup: Setup,
    has_alut: bool,
    /// Number of the port that leads to the neighbour.
    port: u64,
    /// True if entry 0 of the requester ids has the id that reads of the processors carry.
    reader_first: AtomicBool,
}

impl Plx {
    /// Returns the driver. Fails if the chip has no NTB, or if it is not set up for one.
    pub fn new(function: Arc<dyn Function>) -> Result<Plx, PciError> {
        let identity = PlxIdentity::read(&*function)?;
        let straps = Page::new(&*function, 0).read(STRAPS);
        if straps == u32::MAX {
            return Err(PciError::Gone { identity: function.identity() });
        }
        let setup = {
            let other = Page::new(&*function, offset(identity.nt, identity.side.other()));
            Setup::find(&*function, &identity, &other)?
        };
        let alut = straps >> 30;
        let has_alut = identity.may_have_alut && (alut == 3 || alut >> identity.nt & 1 == 1);
        let port = u64::from(straps >> (8 + 8 * identity.nt) & 0x1f);
        Ok(Plx { function, identity, setup, has_alut, port, reader_first: AtomicBool::new(false) })
    }

    /// Returns the page of the own interface.
    fn own(&self) -> Page<'_> {
        Page::new(&*self.function, offset(self.identity.nt, self.identity.side))
    }

    /// Returns the page of the other interface of the same switch.
    fn other(&self) -> Page<'_> {
        Page::new(&*self.function, offset(self.identity.nt, self.identity.side.other()))
    }

    fn gone(&self) -> PciError {
        PciError::Gone { identity: self.function.identity() }
    }

    /// Returns an error unless the function answers. VFIO answers reads of ids in the configuration space itself.
    fn check(&self) -> Result<(), PciError> {
        match self.own().read(ID) {
            u32::MAX => Err(self.gone()),
            _ => Ok(()),
        }
    }

    fn is_virtual(&self) -> bool {
        self.identity.side == Side::Virtual
    }

    /// Returns the first scratchpad that the neighbour writes, and the first that it reads.
    fn scratchpads(&self) -> [u64; 2] {
        let [first, second] = [SCRATCHPAD, SCRATCHPAD + 4 * SCRATCHPADS_SHARED as u64];
        match (self.setup.mode, self.identity.side) {
            (Mode::BackToBack { .. }, _) => [first, first],
            (Mode::RootPort, Side::Virtual) => [first, second],
            (Mode::RootPort, Side::Link) => [second, first],
        }
    }

    /// Writes a register that the neighbour reads: one of its own switch back to back, and else one of the common switch.
    fn write_peer(&self, register: u64, value: u32) {
        match self.setup.mode {
            Mode::BackToBack { registers } => {
                let page = offset(self.identity.nt, Side::Virtual);
                Block::new(&*self.function, Space::Bar(registers)).write32(page + register, value);
            }
            Mode::RootPort => self.own().write(register, value),
        }
    }

    /// Returns the register that disables ports, and the bit of the port that leads to the neighbour.
    fn port_disable(&self) -> (Page<'_>, u32) {
        (Page::new(&*self.function, (self.port & !7) * PAGE), 1 << (self.port & 7))
    }

    /// Reads and clears the events that are pending.
    fn pending(&self) -> Result<(u32, u32), PciError> {
        let (own, bells) = (self.own(), doorbells(self.identity.side));
        let rung = own.read(bells.set);
        if rung == u32::MAX {
            return Err(self.gone());
        }
        if rung != 0 {
            own.write(bells.clear, rung);
        }
        let events = if self.is_virtual() { own.read(LINK_EVENTS) & LINK_EVENTS_ALL } else { 0 };
        if events != 0 {
            own.write(LINK_EVENTS, events);
        }
        Ok((rung, events))
    }
}

impl Chip for Plx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn function(&self) -> &dyn Function {
        &*self.function
    }

    fn limits(&self) -> Limits {
        let is_shared = self.setup.mode == Mode::RootPort;
        Limits {
            doorbells: DOORBELLS,
            scratchpads: if is_shared { SCRATCHPADS_SHARED } else { SCRATCHPADS },
            vectors: 1,
            least_vectors: 1,
            aperture: self.setup.aperture,
            incoming: self.setup.incoming,
            memory: None,
            iova_align: self.setup.incoming,
            iova_below: None,
            is_whole: true,
        }
    }

    fn initialize(&self) -> Result<(), PciError> {
        self.check()?;
        let (own, other) = (self.own(), self.other());
        if self.setup.mode != Mode::RootPort && self.setup.is_enumerated(&other) {
            let problem = "an operating system has enumerated the other side of the NTB, but did so after this host \
                           had taken the adapter into use"
                .into();
            let help = "Start ntbringd on this host again while the other host is up";
            return Err(PciError::Unusable { chip: NAME, identity: self.function.identity(), problem, help });
        }
        own.write(doorbells(self.identity.side).mask, DOORBELLS_ALL);
        if self.is_virtual() {
            // Events that are pending stay so: the link may be lost again right now.
            own.write(LINK_EVENTS_MASK, LINK_EVENTS_ALL);
        }
        self.setup.close(&other);
        for register in 0..self.limits().scratchpads as u64 {
            own.write(self.scratchpads()[0] + 4 * register, 0);
        }
        if self.has_alut {
            own.write(ALUT, 0);
            other.write(ALUT, 0);
        }
        lut::fill_own(&own, self.identity.side, self.reader_first.load(Ordering::Relaxed));
        if self.setup.mode != Mode::RootPort {
            lut::fill_cable(&other);
        }
        self.setup.join(&own, &other);
        Ok(())
    }

    fn set_translation(&self, iova: u64, size: u64) -> Result<(), PciError> {
        let incoming = self.setup.incoming;
        assert!(iova.is_multiple_of(incoming) && size <= incoming, "a translation of {size} bytes to {iova:#x}");
        self.setup.translate(&self.other(), iova, size).map_err(|(register, found, written)| {
            self.clear_translation();
            let help = "The switch has another set-up than its registers say";
            PciError::ReadBack { chip: NAME, identity: self.function.identity(), register, written, found, help }
        })
    }

    fn translated(&self, size: u64) -> u64 {
        self.setup.translated(size)
    }

    fn clear_translation(&self) {
        self.setup.close(&self.other());
    }

    fn enable_link(&self) -> Result<(), PciError> {
        self.check()?;
        let (station, bit) = self.port_disable();
        let disabled = if self.is_virtual() { station.read(PORT_DISABLE) } else { 0 };
        if disabled & bit != 0 {
            station.write(PORT_DISABLE, disabled & !bit);
        }
        Ok(())
    }

    /// Does nothing from NTB to root port: the other host's function would vanish.
    fn disable_link(&self) {
        if self.setup.mode != Mode::RootPort {
            let (station, bit) = self.port_disable();
            station.write(PORT_DISABLE, station.read(PORT_DISABLE) | bit);
        }
    }

    fn link(&self) -> Result<LinkStatus, PciError> {
        match (self.own().read(LINK) >> 16) as u16 {
            u16::MAX => Err(self.gone()),
            word => match word >> 4 & 0x3f {
                0 => Ok(LinkStatus::Down),
                width => Ok(LinkStatus::Up { generation: (word & 0xf) as u8, width: width as u8 }),
            },
        }
    }

    fn vanishes(&self) -> bool {
        !self.is_virtual()
    }

    fn enable_interrupts(&self, enabled: u32) {
        let (own, bells) = (self.own(), doorbells(self.identity.side));
        own.write(bells.mask, !enabled & DOORBELLS_ALL);
        own.write(bells.unmask, enabled & DOORBELLS_ALL);
        if self.is_virtual() {
            own.write(LINK_EVENTS_MASK, 0);
        }
    }

    fn take_events(&self) -> Result<Events, PciError> {
        let mut events = Events::default();
        for _ in 0..ROUNDS {
            let (rung, link) = self.pending()?;
            events.doorbells |= rung & DOORBELLS_ALL;
            events.link_changed |= link & LINK_DOWN != 0;
            if (rung, link) == (0, 0) {
                break;
            }
        }
        Ok(events)
    }

    fn scratchpad(&self, register: usize) -> Result<u32, PciError> {
        assert!(register < self.limits().scratchpads, "no scratchpad {register}");
        let value = self.own().read(self.scratchpads()[0] + 4 * register as u64);
        if value == u32::MAX {
            self.check()?;
        }
        Ok(value)
    }

    fn set_peer_scratchpad(&self, register: usize, value: u32) {
        assert!(register < self.limits().scratchpads, "no scratchpad {register}");
        self.write_peer(self.scratchpads()[1] + 4 * register as u64, value);
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        let towards = match self.setup.mode {
            Mode::BackToBack { .. } => Side::Virtual,
            Mode::RootPort => self.identity.side.other(),
        };
        self.write_peer(doorbells(towards).set, 1 << doorbell);
    }

    fn retry_outgoing(&self) -> bool {
        let reader_first = !self.reader_first.fetch_xor(true, Ordering::Relaxed);
        lut::fill_own(&self.own(), self.identity.side, reader_first);
        true
    }

    fn causes_of_silence(&self) -> &'static str {
        "the two switches have different memory ranges, or one uses its NTB 0 and the other its NTB 1; the processors' \
         writes carry a requester id that is not in the table of the switch; bus mastering is off; the IOMMU of the \
         receiving host refuses the writes (its kernel log says so; Linux before 5.5 does not know the ids behind the \
         switch); another driver is bound to one of the functions"
    }
}
