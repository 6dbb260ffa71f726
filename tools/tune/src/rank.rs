//! A measuring process: rank 0 controls the measurement and takes the time, rank 1 follows.

use super::choose::Figures;
use super::control::Line;
use super::error::TuneError;
use super::plan::{ends, is_possible, Effort, Method};
use super::station::{Station, CONTROL_LEN};
use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::unistd::Pid;
use ntbring_endpoint::Endpoint;
use ntbring_endpoint::Settings;
use ntbring_ring::join::{Candidate, Card, JoinError};
use ntbring_ring::Topology;
use ntbring_settings::environment;
use std::collections::BTreeMap;
use std::fs;
use std::io::{stdin, stdout};
use std::time::{Duration, Instant};

/// Number of message pairs in the trial batch from which the length of the other batches is computed.
const TRIAL: u32 = 8;
/// Largest number of message pairs in a batch.
const MOST: f64 = 20_000.0;

/// Description of the next batch.
#[derive(Clone, Copy)]
struct Next {
    way: Method,
    bytes: usize,
    /// Number of message pairs.
    count: u32,
    /// True if the reply must carry the received bytes.
    echo: bool,
}

impl Next {
    fn control(next: Option<Next>) -> [u8; CONTROL_LEN] {
        let mut control = [0; CONTROL_LEN];
        if let Some(Next { way, bytes, count, echo }) = next {
            control[0] = 1 + way as u8;
            control[1] = echo.into();
            control[4..8].copy_from_slice(&count.to_le_bytes());
            control[8..].copy_from_slice(&(bytes as u64).to_le_bytes());
        }
        control
    }

    /// Decodes a control message; returns None at the end of the measurement.
    fn of(control: [u8; CONTROL_LEN]) -> Option<Next> {
        let way = *Method::ALL.get(usize::from(control[0].checked_sub(1)?))?;
        let count = u32::from_le_bytes(control[4..8].try_into().ok()?);
        let bytes = u64::from_le_bytes(control[8..].try_into().ok()?) as usize;
        Some(Next { way, bytes, count, echo: control[1] == 1 })
    }
}

/// Measures as rank 0 or 1, with the settings of the environment except for the thresholds. Communicates with
/// [`super::run`] through standard input and output. Returns when the measurement is complete.
pub fn measure(rank: u32, quick: bool) -> Result<(), TuneError> {
    bind(rank)?;
    let user = Settings::from_vars(environment())?;
    let mut pair = join(rank, &user)?;
    if rank == 1 {
        return follow(&mut pair);
    }
    let figures = lead(&mut pair, &Effort::new(quick))?;
    Line::Figures(figures).write(stdout())
}

/// Binds this process to a core of its own.
fn bind(rank: u32) -> Result<(), TuneError> {
    let system = |what| move |cause: nix::Error| TuneError::System { what, cause: cause.into() };
    let set = sched_getaffinity(Pid::from_raw(0)).map_err(system("cannot determine the available cores"))?;
    let all: Vec<usize> = (0..CpuSet::count()).filter(|&n| set.is_set(n).unwrap_or(false)).collect();
    let Some(core) = core_of(rank, &all, siblings) else { return Err(TuneError::Cores(all.len())) };
    let mut own = CpuSet::new();
    own.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &own))
        .map_err(system("cannot bind a process to a core"))
}

/// Returns the core of a rank: the first core for rank 0; for rank 1 the next one that is not a hardware thread of
/// the same core, if there is one.
fn core_of(rank: u32, all: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Option<usize> {
    let (&first, others) = all.split_first()?;
    let of_first = siblings(first);
    let other = others.iter().find(|core| !of_first.contains(core)).or(others.first()).copied()?;
    Some(if rank == 0 { first } else { other })
}

/// Returns the hardware threads of a core.
fn siblings(core: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let list = fs::read_to_string(file).unwrap_or_default();
    let range = |text: &str| -> Option<Vec<usize>> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        Some((from.parse().ok()?..=to.parse().ok()?).collect())
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// Joins one ring for each group of methods.
fn join(rank: u32, user: &Settings) -> Result<Vec<Station>, TuneError> {
    let settings = ends(user);
    let mut candidates = Vec::new();
    for settings in &settings {
        let topology = Topology::new(2, &[0, 1]).map_err(JoinError::from)?;
        candidates.push(Candidate::new(topology, rank, settings.clone())?);
    }
    Line::Addresses(vec![candidates.iter().map(|c| c.card().bytes().to_vec()).collect()]).write(stdout())?;
    let wrong = |problem: String| TuneError::Rank { rank: rank as usize, problem };
    let Line::Addresses(cards) = Line::read(rank as usize, &mut stdin().lock())? else {
        return Err(wrong("did not receive the addresses of both ranks".into()));
    };
    let mut pair = Vec::new();
    for (i, (candidate, settings)) in candidates.into_iter().zip(settings).enumerate() {
        let of_ring = cards.iter().map(|own| Card::parse(own.get(i).map_or(&[], Vec::as_slice)));
        let of_ring = of_ring.collect::<Result<Vec<Card>, String>>().map_err(wrong)?;
        pair.push(Station::new(Endpoint::new(candidate.join(&of_ring)?, settings)?, 1 - rank));
    }
    Ok(pair)
}

/// Index of the ring that carries control messages.
const CONTROL_END: usize = 1;

fn follow(pair: &mut [Station]) -> Result<(), TuneError> {
    while let Some(Next { way, bytes, count, echo }) = Next::of(pair[CONTROL_END].hear()?) {
        let end = &mut pair[way.end()];
        for _ in 0..count {
            end.receive(way, bytes)?;
            if echo {
                let received = end.received(bytes);
                end.load(&received);
            }
            end.send(way, bytes)?;
        }
    }
    Ok(())
}

/// Exchanges a batch of messages in both directions; returns its duration.
fn batch(pair: &mut [Station], next: Next) -> Result<Duration, TuneError> {
    pair[CONTROL_END].say(Next::control(Some(next)))?;
    let end = &mut pair[next.way.end()];
    let start = Instant::now();
    for _ in 0..next.count {
        end.send_and_receive(next.way, next.bytes)?;
    }
    Ok(start.elapsed())
}

/// Sends known bytes to the other rank and back, and compares them.
fn check(pair: &mut [Station], way: Method, bytes: usize) -> Result<(), TuneError> {
    let seed = (bytes * 8 + way as usize) as u64;
    let mut rng = fastrand::Rng::with_seed(seed);
    let known: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(bytes).collect();
    pair[way.end()].load(&known);
    batch(pair, Next { way, bytes, count: 1, echo: true })?;
    match pair[way.end()].received(bytes) == known {
        true => Ok(()),
        false => Err(TuneError::Wrong { bytes, way }),
    }
}

fn lead(pair: &mut [Station], effort: &Effort) -> Result<Figures, TuneError> {
    let packed_max = pair[Method::Packed.end()].packed_max();
    let reached = pair[Method::Single.end()].is_reached();
    // Methods that are compared with each other are measured close together in time.
    let mut plan = Vec::new();
    for &bytes in effort.sizes {
        for way in Method::ALL.into_iter().filter(|&way| is_possible(way, bytes, packed_max, reached)) {
            check(pair, way, bytes)?;
            let trial = batch(pair, Next { way, bytes, count: TRIAL, echo: false })?;
            let count = f64::from(TRIAL) * effort.batch.as_secs_f64() / trial.as_secs_f64();
            plan.push(Next { way, bytes, count: count.clamp(2.0, MOST) as u32, echo: false });
        }
    }
    let mut times: BTreeMap<(usize, Method), Vec<f64>> = BTreeMap::new();
    for round in 1..=effort.rounds {
        for &next in &plan {
            for _ in 0..effort.batches {
                let time = batch(pair, next)?.as_secs_f64() * 1e6 / f64::from(2 * next.count);
                times.entry((next.bytes, next.way)).or_default().push(time);
            }
        }
        Line::Round(round, effort.rounds).write(stdout())?;
    }
    pair[CONTROL_END].say(Next::control(None))?;
    let mut figures = Figures { packed_max, reached, ..Figures::default() };
    let (mut batches, mut disturbed) = (0, 0);
    for ((bytes, way), times) in times {
        batches += times.len();
        let (time, longer) = typical(times);
        disturbed += longer;
        figures.add(bytes, way, time);
    }
    figures.disturbed = disturbed as f64 / batches.max(1) as f64;
    Ok(figures)
}

/// Returns the lower decile, which is the time of a batch while no other process uses the cores, and the number of
/// batches that took more than twice as long.
fn typical(mut times: Vec<f64>) -> (f64, usize) {
    times.sort_by(f64::total_cmp);
    let typical = times.get(times.len() / 10).copied().unwrap_or(f64::NAN);
    (typical, times.iter().filter(|&&time| time > 2.0 * typical).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_is_understood() {
        let next = Next { way: Method::Both, bytes: 1 << 20, count: 77, echo: true };
        let again = Next::of(Next::control(Some(next))).unwrap();
        assert_eq!((again.way, again.bytes, again.count, again.echo), (Method::Both, 1 << 20, 77, true));
        assert!(Next::of(Next::control(None)).is_none());
        assert!(Next::of([200; CONTROL_LEN]).is_none());
    }

    #[test]
    fn ranks_have_cores_of_their_own() {
        let paired = |core: usize| vec![core & !1, core | 1];
        assert_eq!([0, 1].map(|rank| core_of(rank, &[2, 3, 6], paired)), [Some(2), Some(6)]);
        assert_eq!([0, 1].map(|rank| core_of(rank, &[2, 3], paired)), [Some(2), Some(3)]);
        assert_eq!(core_of(0, &[5], paired), None);
    }

    #[test]
    fn disturbed_batches_do_not_count() {
        assert_eq!(typical(vec![900.0, 1.0, 1.5, 800.0, 1.2]), (1.0, 2));
        assert!(typical(Vec::new()).0.is_nan());
    }
}
