//! Registers of AMD's function, behind BAR 0.

/// Blocks of registers: this host's and the neighbour's.
pub const OWN: u64 = 0;
pub const PEER: u64 = 0x400;

/// Control (32 bits); its bits let either side's driver in.
pub const CONTROL: u64 = 0x200;
pub const CONTROL_ENABLE: u32 = 0b11 << 20;
/// Scratchpads (32 bits each): eight of the primary side, then eight of the secondary one. Both hosts see all of them.
pub const SCRATCHPAD: u64 = 0x210;
/// Side of the host, and its READY bit (32 bits).
pub const SIDE_INFO: u64 = 0x408;
pub const SIDE_SECONDARY: u32 = 1 << 0;
pub const SIDE_READY: u32 = 1 << 1;
/// Sizes and translations of the memory ranges 2/3 and 4/5, where writes of the block's host enter (64 bits each).
pub const LIMIT: [u64; 2] = [0x418, 0x420];
pub const TRANSLATION: [u64; 2] = [0x438, 0x440];
/// Rings doorbells of the neighbour, a bit each (16 bits).
pub const DOORBELL_REQUEST: u64 = 0x454;
/// Masked and pending doorbells (16 bits each).
pub const DOORBELL_MASK: u64 = 0x45c;
pub const DOORBELL_STATUS: u64 = 0x460;
/// Masked and pending events, and their acknowledgement (32 bits each).
pub const EVENT_MASK: u64 = 0x470;
pub const EVENT_STATUS: u64 = 0x474;
pub const EVENT_ACKNOWLEDGE: u64 = 0x4a0;
pub const EVENT_FLUSH: u32 = 1 << 0;
pub const EVENT_LINK_UP: u32 = 1 << 5;
pub const EVENT_LINK_DOWN: u32 = 1 << 6;
pub const ALL_EVENTS: u32 = 0x7f;

/// Capability PCI Express of the configuration space, and the offset of the link's control and status in it.
pub const PCI_EXPRESS: u8 = 0x10;
pub const LINK_CONTROL: u64 = 0x10;
