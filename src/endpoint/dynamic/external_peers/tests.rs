//! Two processes that are external peers of each other; both are this process.

use super::*;
use ntbring_host::{machine, Place};
use ntbring_ntb::fabric::{Backend, Fabric, FabricAddress, Windows};
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
        unreachable!("an external peer has no windows")
    }

    fn attach(&self, _: &FabricAddress, _: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        unreachable!("an external peer has no windows")
    }

    fn bells(&self, _: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Ok(Arc::new(Quiet))
    }
}

struct Process {
    external_peers: ExternalPeers,
    address: ExternalAddress,
}

/// Creates a process that is rank 0 of a job of `ranks`.
fn process(dir: &Path, ranks: usize) -> Process {
    let (mailbox, file) = Mailbox::create(dir, 0).unwrap();
    let host = FabricAddress([0; FabricAddress::LEN]);
    let address = ExternalAddress {
        mailbox: file,
        place: Place { job: file.token, machine: machine(), host_name: 0 },
        host,
        doorbell: 0,
    };
    Process { external_peers: ExternalPeers::new(mailbox, 0, ranks), address }
}

impl Process {
    fn know(&mut self, other: &ExternalAddress, is_awaited: impl Fn(u32) -> bool) -> usize {
        self.external_peers.know(other, &reach(&self.address), is_awaited)
    }

    fn call(&mut self, other: &Process, dir: &Path) -> usize {
        let i = self.know(&other.address, |_| false);
        assert!(matches!(self.external_peers.call(i, &reach(&self.address), dir, LANE), Ok(Called::Lane(..))));
        i
    }

    fn next_call(&mut self) -> Option<usize> {
        self.external_peers.next_call(&reach(&self.address), |_| false).unwrap().map(|(i, _, _)| i)
    }
}

/// Returns the surroundings of a process whose job has no ring.
fn reach(me: &ExternalAddress) -> Reach<'_> {
    Reach { me, ranks: std::slice::from_ref(me), gateway: None, backend: &Quiet }
}

#[test]
fn a_external_peer_that_leaves_is_forgotten_at_the_second_look_and_its_number_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut here, mut there) = (process(dir, 4), process(dir, 2));
    let i = here.call(&there, dir);
    let peer = here.external_peers.peer(i);
    assert_eq!((peer, here.know(&there.address, |_| false)), (4, i));
    assert!(matches!(here.external_peers.call(i, &reach(&here.address), dir, LANE), Ok(Called::Before)));
    // The other one has to open the lane if something was sent.
    assert!(!here.external_peers.has_reached_all(|_| 64) && here.external_peers.has_reached_all(|_| 0));
    assert!(there.external_peers.has_news());
    let j = there.next_call().unwrap();
    assert_eq!(there.external_peers.address(there.external_peers.peer(j)), Some(here.address));
    assert!(there.next_call().is_none());
    assert!(here.external_peers.has_reached_all(|_| 64));

    assert!(here.external_peers.look(true).is_none() && here.external_peers.settle().is_empty());
    there.external_peers.take_leave();
    assert!(here.external_peers.look(false).is_none());
    // It may have sent something before it left.
    assert!(here.external_peers.settle().is_empty() && here.external_peers.loss_of(peer).is_none());
    let over = here.external_peers.settle();
    let pid = std::process::id();
    assert_eq!(over.as_slice(), [(i, PeerLoss::ExternalPeerLeft { peer, pid })]);
    here.external_peers.forget(i, over[0].1);
    assert!(here.external_peers.settle().is_empty());
    // The loss is reported again: the application may have begun to wait.
    assert_eq!(here.external_peers.look(true), Some(over[0].1));
    assert!(matches!(here.external_peers.call(i, &reach(&here.address), dir, LANE), Ok(Called::Before)));

    assert!(here.external_peers.drop_peer(peer) && !here.external_peers.drop_peer(peer));
    let other = process(dir, 1);
    // A connection message of the lost peer is still awaited.
    assert_eq!(here.know(&other.address, |awaited| awaited == peer), i + 1);
    let third = process(dir, 1);
    assert_eq!(here.know(&third.address, |_| false), i);
    assert!(here.external_peers.is_here(i) && here.external_peers.loss_of(peer).is_none());
}

#[test]
fn an_announcement_without_sense_is_dropped_and_the_next_one_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut here, mut there) = (process(dir, 4), process(dir, 2));
    assert!(Mailbox::open(&there.address.mailbox).unwrap().post(NoteReader::Process, b"nonsense"));
    here.call(&there, dir);
    assert!(there.next_call().is_some());
    let mut elsewhere = process(dir, 1).address;
    elsewhere.place.machine += 1;
    let i = here.know(&elsewhere, |_| false);
    let called = here.external_peers.call(i, &reach(&here.address), dir, LANE).unwrap();
    assert!(matches!(called, Called::Lost(PeerLoss::ExternalPeerUnreachable { .. })));
}
