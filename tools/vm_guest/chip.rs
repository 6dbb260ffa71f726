//! Drives one adapter through VFIO with ntbring's own driver of its chip, by commands on standard input: for tests
//! against another driver at the other end of the link. Each command is a line, and so is its answer.

use anyhow::{bail, Context, Result};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_pci::memory::SharedMemory;
use ntbring_pci::{identify, vfio, Chip, LinkStatus, PciAddress};
use std::io::{self, BufRead, Write};
use std::sync::Arc;

/// Largest size of the window that the neighbour writes, bytes: the drivers of other systems have no more memory.
const SIZE_MAX: u64 = 4 << 20;

/// An adapter that is in use.
struct Driven {
    chip: Arc<dyn Chip>,
    memory: SharedMemory,
    iova: u64,
    window: OutWindow,
}

/// Takes the adapter at an address into use, and executes commands until the input ends.
pub fn control(address: &str) -> Result<()> {
    let address = PciAddress::parse(address).context("an address of a PCI function is needed")?;
    let function = vfio::open(&[address])?.pop().context("there is no such function")?;
    let chip = identify(function)?;
    let (function, limits) = (chip.function(), chip.limits());
    let size = limits.incoming.min(limits.aperture.size).min(SIZE_MAX);
    let memory = SharedMemory::allocate(size)?;
    let iova = function.reserve_addresses(limits.incoming, limits.iova_align, limits.iova_below);
    let iova = iova.context("no free bus addresses")?;
    chip.initialize()?;
    function.map_memory(memory.region(), iova)?;
    let _interrupts = function.interrupts(limits.vectors, limits.least_vectors)?;
    function.set_bus_master(true);
    let window = function.window(limits.aperture.bar, limits.aperture.offset, size)?;
    let driven = Driven { chip: chip.clone(), memory, iova, window };
    driven.prepare()?;
    chip.enable_link()?;
    println!("ready {}", chip.name());
    for line in io::stdin().lock().lines() {
        let line = line?;
        match driven.execute(&line) {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error: {error:#}"),
        }
        io::stdout().flush()?;
    }
    Ok(())
}

impl Driven {
    /// Sets what the loss of the link may have destroyed.
    fn prepare(&self) -> Result<()> {
        self.chip.initialize()?;
        self.chip.set_translation(self.iova, self.memory.region().len() as u64)?;
        self.chip.enable_interrupts(((1u64 << self.chip.limits().doorbells) - 1) as u32);
        Ok(())
    }

    fn execute(&self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["prepare"] => self.prepare()?,
            ["link"] => {
                return Ok(match self.chip.link()? {
                    LinkStatus::Up { generation, width } => format!("up gen{generation} x{width}"),
                    LinkStatus::Down => "down".into(),
                })
            }
            ["enable"] => self.chip.enable_link()?,
            ["disable"] => self.chip.disable_link(),
            ["scratchpad", register] => return Ok(format!("{:#x}", self.chip.scratchpad(register.parse()?)?)),
            ["set-peer-scratchpad", register, value] => {
                self.chip.set_peer_scratchpad(register.parse()?, number(value)? as u32);
            }
            ["ring", doorbell] => self.chip.ring(doorbell.parse()?),
            ["events"] => {
                let events = self.chip.take_events()?;
                return Ok(format!("doorbells={:#x} link_changed={}", events.doorbells, events.link_changed));
            }
            ["write", offset, text] => {
                self.window.write_bytes(number(offset)? as usize, text.as_bytes());
                self.window.fence();
            }
            ["read", offset, len] => {
                let mut bytes = vec![0; number(len)? as usize];
                InWindow::new(self.memory.region().clone()).read(number(offset)? as usize, &mut bytes);
                return Ok(String::from_utf8_lossy(&bytes).replace('\0', "."));
            }
            _ => bail!("no command: {line:?}"),
        }
        Ok("ok".into())
    }
}

/// Parses a number, which is hexadecimal if it begins with `0x`.
fn number(text: &str) -> Result<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => Ok(u64::from_str_radix(digits, 16)?),
        None => Ok(text.parse()?),
    }
}
