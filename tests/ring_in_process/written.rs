//! Segments of ranks on neighbouring hosts that can be written through the links, but not mapped.

use super::common::models::{Model, ModelRing};
use super::common::ring::{try_run_over, Backends};
use super::served::Client;
use super::*;
use ntbring_host::SegmentAddress;
use ntbring_memory::ForeignBytes;
use ntbring_ntb::Shortcuts;
use ntbring_queue::Reliability;
use ntbring_ring::Writer;
use ntbring_rma::Action;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// Size of a segment, and the part of it that is backed at first, bytes.
const SIZE: u64 = 64 << 10;
const BACKED: u64 = 5000;

/// Bytes in each half of a segment that one rank writes.
const PART: u64 = 1000;

fn settings_of(layout: &Layout) -> Settings {
    tiny(layout).with(|s| s.links.shortcuts = Shortcuts::NONE)
}

/// Opens a writer to a rank's segment.
fn open(rank: &Rank, dest: u32, addresses: &[SegmentAddress]) -> Result<Option<Writer>, String> {
    rank.endpoint.writer(dest, &addresses[dest as usize]).map_err(|error| error.to_string())
}

/// Writes random bytes of one rank into its part of another's segment, from `start` on, each followed by a request that
/// must find them.
fn write(client: &mut Client, writer: &Writer, start: u64, rng: &mut fastrand::Rng) -> Result<(), String> {
    for _ in 0..40 {
        let len = rng.u64(1..100);
        let at = start + rng.u64(..PART - len);
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        writer.write(at, ForeignBytes::from(&bytes[..]));
        if client.ask(Action::Get, at, len, &[])? != bytes {
            return Err(format!("a request does not find {len} bytes at {at} that were written before it"));
        }
    }
    Ok(())
}

/// All ranks write into segments of their neighbours, which grow meanwhile. Returns the number of writers.
fn all_write(layout: &Layout, settings: &Settings, backends: Option<Backends>) -> usize {
    let (places, writers) = (Mutex::new(HashMap::new()), AtomicUsize::new(0));
    let body = |rank: &mut Rank| {
        let created = rank.endpoint.create_growing_segment(SIZE, BACKED).map_err(|error| error.to_string())?;
        let (own, address) = created;
        places.lock().unwrap().insert(rank.rank, address);
        rank.barrier()?;
        let addresses: Vec<SegmentAddress> =
            (0..layout.size() as u32).map(|rank| places.lock().unwrap()[&rank]).collect();
        let mut rng = fastrand::Rng::with_seed(rank.rank.into());
        let mut opened = Vec::new();
        for dest in (0..layout.size() as u32).filter(|&dest| rank.endpoint.is_writable(dest)) {
            opened.extend(open(rank, dest, &addresses)?.map(|writer| (dest, writer)));
        }
        let start = |half: u64, rank: u32| half * SIZE / 2 + PART * u64::from(rank);
        for half in 0..2 {
            for (dest, writer) in &opened {
                if !writer.has(start(half, rank.rank), PART) || writer.has(SIZE - 1, 2) {
                    return Err(format!("{} bytes of a segment of {SIZE} can be written", writer.reach()));
                }
                let segment = addresses[*dest as usize].file.token;
                let start = start(half, rank.rank);
                write(&mut Client { rank, dest: *dest, segment }, writer, start, &mut rng)?;
            }
            rank.barrier()?;
            own.grow(BACKED, SIZE - BACKED).map_err(|error| error.to_string())?;
            rank.barrier()?;
        }
        writers.fetch_add(opened.len(), Ordering::Relaxed);
        rank.endpoint.withdraw_segment(&own).map_err(|error| error.to_string())
    };
    let results = try_run_over(layout, backends, |_| settings.clone(), body);
    assert_eq!(results.into_iter().filter_map(Result::err).collect::<Vec<_>>(), [""; 0], "{layout:?}");
    writers.into_inner()
}

#[test]
fn requests_find_what_was_written_before_them() {
    for (ranks, writers) in [(&[1, 1][..], 2), (&[1, 1, 1], 6), (&[1, 2, 1, 1], 12)] {
        let layout = Layout::blocks(ranks);
        assert_eq!(all_write(&layout, &settings_of(&layout), None), writers, "{ranks:?}");
    }
}

#[test]
fn requests_find_it_over_adapters_of_every_chip() {
    for model in Model::ALL {
        let ring = ModelRing::new(model, 3, 1 << 20);
        let (layout, free) = (Layout::blocks(&[1, 2, 1]), ring.free());
        let writers = all_write(&layout, &settings_of(&layout), Some(&|host| ring.backend(host)));
        // Memory that machines share is all that such a device reaches.
        assert_eq!(writers, if model == Model::Ivshmem { 0 } else { 10 }, "{model:?}");
        let start = Instant::now();
        while ring.free() != free {
            assert!(start.elapsed() < Duration::from_secs(10), "{model:?}: the windows are not free");
            std::thread::sleep(Duration::from_millis(5));
        }
        ring.check();
    }
}

#[test]
fn nothing_is_written_over_circuits_and_over_checked_or_modelled_links() {
    let layout = Layout::blocks(&[1, 1, 1]);
    let chain = ModelRing::cabled(Model::Skx, 3, 1 << 20, &[[(0, 1), (1, 0)], [(1, 1), (2, 0)]]);
    let writers = all_write(&layout, &settings_of(&layout), Some(&|host| chain.backend(host)));
    assert_eq!(writers, 4, "agents forward between the ends of the chain");
    for change in [
        (|s: &mut Settings| s.ring.reliability = Reliability::Detect) as fn(&mut Settings),
        |s| s.links.no_direct_stores = true,
        |s| s.links.weak = Some(3),
        |s| s.links.model = ntbring_ntb::timing::Model::parse("gen3x8").unwrap(),
        |s| s.links.shortcuts = Shortcuts::ALL,
    ] {
        assert_eq!(all_write(&layout, &settings_of(&layout).with(change), None), 0);
    }
}

#[test]
fn a_writer_knows_that_its_link_was_down() {
    let (layout, places) = (Layout::blocks(&[1, 1]), Mutex::new(HashMap::new()));
    let ring = ModelRing::new(Model::Skx, 2, 1 << 20);
    let (knows, settings) = (AtomicBool::new(false), settings_of(&layout));
    let body = |rank: &mut Rank| {
        let (_own, address) = rank.endpoint.create_growing_segment(SIZE, SIZE).map_err(|error| error.to_string())?;
        places.lock().unwrap().insert(rank.rank, address);
        rank.barrier()?;
        if rank.rank == 0 {
            let addresses = [0, 1].map(|rank| places.lock().unwrap()[&rank]);
            let writer = open(rank, 1, &addresses)?.ok_or("there is no writer")?;
            writer.write(8, ForeignBytes::from(&[1; 8][..]));
            let before = writer.is_intact();
            ring.cables.iter().for_each(|cable| cable.lock().set_cable(false));
            ring.cables.iter().for_each(|cable| cable.lock().set_cable(true));
            let start = Instant::now();
            while writer.is_intact() && start.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(5));
            }
            knows.store(before && !writer.is_intact(), Ordering::Relaxed);
        }
        rank.barrier()
    };
    // The ranks cannot leave the ring in order any more.
    drop(try_run_over(&layout, Some(&|host| ring.backend(host)), |_| settings.clone(), body));
    assert!(knows.into_inner());
}
