//! Two processes that are guests of each other; both are this process.

use super::*;
use ntbring_ntb::fabric::{Bells, Fabric, FabricAddress, Windows};
use std::sync::Arc;

/// Size of a lane in bytes.
const LANE: u64 = 64 << 10;

/// A machine whose doorbells do nothing.
struct Quiet;

impl Bells for Quiet {
    fn ring(&self, _: usize) {}
}

impl Backend for Quiet {
    fn create(&self, _: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        unreachable!("a guest has no windows")
    }

    fn attach(&self, _: &FabricAddress, _: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        unreachable!("a guest has no windows")
    }

    fn bells(&self, _: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Ok(Arc::new(Quiet))
    }
}

struct Process {
    guests: Guests,
    address: GuestAddress,
}

/// Creates a process that is rank 0 of a job of `ranks`.
fn process(dir: &Path, ranks: usize) -> Process {
    let (mailbox, file) = Mailbox::create(dir, 0).unwrap();
    let host = FabricAddress([0; FabricAddress::LEN]);
    let address = GuestAddress { mailbox: file, place: place(), host, doorbell: 0 };
    Process { guests: Guests::new(mailbox, 0, ranks), address }
}

impl Process {
    fn call(&mut self, other: &Process, dir: &Path) -> usize {
        let i = self.guests.know(&other.address, &Quiet, |_| false).unwrap();
        assert!(matches!(self.guests.call(i, &self.address, dir, LANE), Ok(Called::Lane(..))));
        i
    }
}

#[test]
fn a_guest_that_leaves_is_forgotten_at_the_second_look_and_its_number_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut here, mut there) = (process(dir, 4), process(dir, 2));
    let i = here.call(&there, dir);
    let peer = here.guests.peer(i);
    assert_eq!((peer, here.guests.know(&there.address, &Quiet, |_| false).unwrap()), (4, i));
    assert!(matches!(here.guests.call(i, &here.address, dir, LANE), Ok(Called::Before)));
    // The other one has to open the lane if something was sent.
    assert!(!here.guests.has_reached_all(|_| true) && here.guests.has_reached_all(|_| false));
    assert!(there.guests.has_news());
    let (j, _, _) = there.guests.next_call(&Quiet, |_| false).unwrap().unwrap();
    assert_eq!(there.guests.address(there.guests.peer(j)), Some(here.address));
    assert!(there.guests.next_call(&Quiet, |_| false).unwrap().is_none());
    assert!(here.guests.has_reached_all(|_| true));

    assert!(here.guests.look(true).is_none() && here.guests.settle().is_empty());
    there.guests.take_leave();
    assert!(here.guests.look(false).is_none());
    // It may have sent something before it left.
    assert!(here.guests.settle().is_empty() && here.guests.loss_of(peer).is_none());
    let over = here.guests.settle();
    let pid = std::process::id();
    assert_eq!(over.as_slice(), [(i, Loss::GuestLeft { peer, pid })]);
    here.guests.forget(i, over[0].1);
    assert!(here.guests.settle().is_empty());
    // The loss is reported again: the application may have begun to wait.
    assert_eq!(here.guests.look(true), Some(over[0].1));
    assert!(matches!(here.guests.call(i, &here.address, dir, LANE), Ok(Called::Before)));

    assert!(here.guests.drop_peer(peer) && !here.guests.drop_peer(peer));
    let other = process(dir, 1);
    // A greeting of the lost peer is still awaited.
    assert_eq!(here.guests.know(&other.address, &Quiet, |awaited| awaited == peer).unwrap(), i + 1);
    let third = process(dir, 1);
    assert_eq!(here.guests.know(&third.address, &Quiet, |_| false).unwrap(), i);
    assert!(here.guests.is_here(i) && here.guests.loss_of(peer).is_none());
}

#[test]
fn an_announcement_without_sense_is_dropped_and_the_next_one_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut here, mut there) = (process(dir, 4), process(dir, 2));
    assert!(Mailbox::open(&there.address.mailbox).unwrap().post(b"nonsense"));
    here.call(&there, dir);
    assert!(there.guests.next_call(&Quiet, |_| false).unwrap().is_some());
    let elsewhere = GuestAddress { place: place() + 1, ..process(dir, 1).address };
    assert!(matches!(here.guests.know(&elsewhere, &Quiet, |_| false), Err(NtbError::GuestElsewhere { .. })));
}
