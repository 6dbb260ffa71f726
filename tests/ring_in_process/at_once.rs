//! Messages larger than an entry that are sent at once: as a whole if there is room and credit for all of it, or else
//! not at all.

use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::{Arrival, Event};
use ntbring_memory::{ForeignBytes, ForeignRoom};

/// A handler whose messages are charged.
const CHARGED: u16 = 1;

fn streamed() -> Settings {
    settings().with(|s| s.limits.single_copy = SingleCopy::Never)
}

/// Returns the payload of a message; it differs from message to message.
fn payload(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 3 + 7 * number) as u8).collect()
}

/// Calls `send` with message `number`, which is to be sent to rank `dest`.
fn with<T>(dest: u32, number: usize, payload: &[u8], send: impl FnOnce(Message) -> T) -> T {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&(number as u64).to_le_bytes());
    // SAFETY: each test keeps the payload until the library does not need it any more.
    let bytes = unsafe { ForeignBytes::new(payload.as_ptr(), payload.len()) };
    let head = Head { handler: CHARGED };
    send(Message { dest, head, header: &header, payload: Payload::Contiguous(bytes), cookie: number })
}

fn send_now(rank: &mut Rank, dest: u32, number: usize, payload: &[u8]) -> Result<bool, String> {
    with(dest, number, payload, |message| rank.endpoint.send_now(&message)).map_err(|e| e.to_string())
}

fn number(a: &Arrival) -> usize {
    // SAFETY: the header has 16 bytes, which stay readable until the arrival is released.
    unsafe { a.header.0.cast::<u64>().read_unaligned() as usize }
}

/// Receives a message and checks it; the receiver has room for `room` bytes of it, or, without a number, takes it in
/// chunks.
fn receive(rank: &mut Rank, expected: usize, size: usize, room: Option<usize>) -> Result<(), String> {
    let Event::Arrival(a) = rank.event()? else { return Err("no message".into()) };
    let Packet::Begin { total, .. } = a.packet else { return Err("not in chunks".into()) };
    if (number(&a), total) != (expected, size as u64) {
        return Err(format!("message {} of {total} bytes, not {expected} of {size}", number(&a)));
    }
    let mut found = vec![0xaa; size];
    if let Some(room) = room {
        // SAFETY: the buffer stays allocated until the payload is complete.
        rank.endpoint.place_at(a.token, unsafe { ForeignRoom::new(found.as_mut_ptr(), room) });
    }
    rank.endpoint.release(a.token, expected + 100).map_err(|e| e.to_string())?;
    let mut got = 0;
    while got < size {
        match rank.event()? {
            Event::Fetched { cookie } if room.is_some() && cookie == expected + 100 => got = size,
            Event::Arrival(a) if room.is_none() && a.cookie == expected + 100 => {
                let Packet::Chunk { payload, .. } = a.packet else { return Err("not a chunk".into()) };
                // SAFETY: the chunk's bytes stay readable until it is released.
                unsafe { found[got..got + payload].as_mut_ptr().copy_from_nonoverlapping(a.header.0, payload) };
                got += payload;
                if a.last != (got == size) {
                    return Err("another last chunk".into());
                }
                rank.endpoint.release(a.token, 0).map_err(|e| e.to_string())?;
            }
            _ => return Err("something else came".into()),
        }
    }
    let room = room.unwrap_or(size);
    let wanted = payload(expected, size);
    match found[..room] == wanted[..room] && found[room..].iter().all(|&byte| byte == 0xaa) {
        true => Ok(()),
        false => Err(format!("message {expected} of {size} bytes is wrong")),
    }
}

const SIZES: [usize; 6] = [16_369, 16_400, 17_000, 33_000, 65_000, (66 << 10) - 16];

#[test]
fn a_message_with_room_leaves_as_a_whole() {
    // With `weak` memory and with a link model the fast path of lanes does not apply.
    let weak = streamed().with(|s| s.links.weak = Some(7));
    for settings in [streamed(), streamed().with(|s| s.ring.chunk = Some(5000)), weak] {
        run(&Layout::blocks(&[1, 1]), &settings, |rank| {
            for lap in 0..30 {
                for (i, size) in SIZES.into_iter().enumerate() {
                    let number = lap * SIZES.len() + i;
                    if rank.rank == 0 {
                        let bytes = payload(number, size);
                        if !send_now(rank, 1, number, &bytes)? {
                            return Err(format!("message {number} of {size} bytes was not sent"));
                        }
                    } else {
                        receive(rank, number, size, [None, Some(size), Some(size / 3), Some(0)][number % 4])?;
                    }
                    rank.barrier()?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_message_without_room_for_all_of_it_is_not_sent_at_once() {
    const SIZE: usize = 60_000;
    run(&Layout::blocks(&[1, 1]), &streamed().with(|s| s.ring.window = Some(1 << 20)), |rank| {
        let mut count = 0;
        if rank.rank == 0 {
            while send_now(rank, 1, count, &payload(count, SIZE))? {
                count += 1;
            }
            assert!((2..10).contains(&count), "{count} messages of {SIZE} bytes in a lane of less than 256 KiB");
            // A part of it may find room; nothing can pass it, even if there is room.
            let mut queued = payload(count, SIZE);
            while with(1, count, &queued, |message| rank.endpoint.send(message)).map_err(|e| e.to_string())?
                == Sent::Done
            {
                count += 1;
                queued = payload(count, SIZE);
            }
            assert!(!send_now(rank, 1, count + 1, &payload(count + 1, 20_000))?);
            rank.barrier()?;
            assert!(matches!(rank.event()?, Event::Sent { cookie, .. } if cookie == count));
            assert!(send_now(rank, 1, count + 1, &payload(count + 1, 20_000))?);
            return rank.barrier();
        }
        rank.barrier()?;
        // The receiver does not know the number; it is the first message of another size.
        for n in 0.. {
            match receive(rank, n, SIZE, (n % 2 == 0).then_some(SIZE)) {
                Err(e) if e.contains("of 20000 bytes") => break,
                result => result?,
            }
        }
        rank.barrier()
    });
}

#[test]
fn a_message_without_credit_is_not_sent_at_once() {
    const SIZE: usize = 65_000;
    run(&Layout::blocks(&[1, 1]), &streamed().with(|s| s.endpoint.unexpected = Some(1 << 20)), |rank| {
        rank.endpoint.charge(1 << CHARGED);
        let most = (1 << 20) / rank.endpoint.cost(CHARGED, SIZE as u64) as usize;
        // The receiver takes each message out of the lane, but keeps it.
        for n in 0..=most {
            match rank.rank {
                0 => assert_eq!(send_now(rank, 1, n, &payload(n, SIZE))?, n < most),
                _ if n < most => receive(rank, n, SIZE, None)?,
                _ => {}
            }
            rank.barrier()?;
        }
        if rank.rank == 1 {
            let cost = rank.endpoint.cost(CHARGED, SIZE as u64);
            (0..most).try_for_each(|_| rank.endpoint.discharge(0, cost)).map_err(|e| e.to_string())?;
        }
        rank.barrier()?;
        if rank.rank == 0 {
            assert!(rank.poll()?.is_none());
            assert!(send_now(rank, 1, most, &payload(most, SIZE))?);
        } else {
            receive(rank, most, SIZE, Some(SIZE))?;
        }
        rank.barrier()
    });
}

#[test]
fn a_message_to_a_host_further_away_is_not_sent_at_once() {
    run(&Layout::blocks(&[1; 4]), &streamed(), |rank| {
        let bytes = payload(0, 30_000);
        let dest = (rank.rank + 2) % 4;
        assert!(!send_now(rank, dest, 0, &bytes)?);
        with(dest, 0, &bytes, |message| rank.endpoint.send(message)).map_err(|e| e.to_string())?;
        receive(rank, 0, 30_000, Some(30_000))?;
        rank.barrier()
    });
}
