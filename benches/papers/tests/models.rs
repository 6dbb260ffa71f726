//! Each model carries all messages: of all sizes, with many wraps of the lane, and with a slow receiver.

use ntbring_ntb::weak::disorder;
use ntbring_papers::end::{End, Watch, CHUNK};
use ntbring_papers::lane::CONTROL;
use ntbring_papers::link::{self, Joined};
use ntbring_papers::measure::{figure, Order, Test};
use ntbring_papers::model::{Model, MODELS};
use ntbring_papers::Error;
use std::time::{Duration, Instant};

/// Bytes of the memory for receives.
const MEMORY: usize = 256 << 10;

/// Returns a watch that ends a test which would hang.
fn time_limit() -> Watch {
    let start = Instant::now();
    Box::new(move || {
        std::thread::yield_now();
        match start.elapsed() < Duration::from_secs(60) {
            true => Ok(()),
            false => Err(Error::Gone("nothing for a minute".into())),
        }
    })
}

/// The decorators around the windows.
#[derive(Clone, Copy, Debug)]
enum Dress {
    Plain,
    /// Writes arrive in any order between fences.
    Weak,
    Modelled(&'static str),
}

/// Returns two ends, and the hosts to which their windows belong.
fn connect(model: Model, lane: usize, dress: Dress) -> ([End; 2], [Joined; 2]) {
    let link = link::model(if let Dress::Modelled(link) = dress { link } else { "none" }).unwrap();
    let hosts = link::pair(CONTROL + lane + MEMORY, link).unwrap();
    let end = |host: &Joined, seed| {
        let peer = host.peer.clone();
        let peer = if matches!(dress, Dress::Weak) { disorder(peer, seed) } else { peer };
        End::new(model, host.own.clone(), peer, lane, time_limit())
    };
    ([end(&hosts[0], 1), end(&hosts[1], 2)], hosts)
}

fn content(number: usize, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(number as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

fn send_all(end: &mut End, sizes: &[usize]) {
    for (number, len) in sizes.iter().enumerate() {
        end.send(&content(number, *len)).unwrap();
    }
}

/// Receives all messages, with `ahead` posted receives at a time, and checks them. Returns the number of placed
/// payloads.
fn receive_all(end: &mut End, sizes: &[usize], ahead: usize, nap: Option<Duration>) -> usize {
    let room = MEMORY / ahead / 64 * 64;
    let post = |end: &mut End, number: usize| {
        if number < sizes.len() {
            end.post(number % ahead * room, room);
        }
    };
    (0..ahead).for_each(|number| post(end, number));
    let mut placed = 0;
    for (number, len) in sizes.iter().enumerate() {
        if let Some(nap) = nap.filter(|_| number % 50 == 10) {
            std::thread::sleep(nap);
        }
        let received = end.receive().unwrap();
        assert_eq!(received.len, *len, "message {number}");
        let mut found = vec![0; *len];
        end.read(&received, &mut found);
        assert!(found == content(number, *len), "message {number} of {len} bytes: {received:?}");
        placed += usize::from(received.placed);
        post(end, number + ahead);
    }
    placed
}

/// Runs both ends in threads of their own: one sends, the other receives.
fn carry(model: Model, lane: usize, dress: Dress, sizes: &[usize], ahead: usize, nap: Option<Duration>) -> usize {
    let ([mut a, mut b], _hosts) = connect(model, lane, dress);
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&mut a, sizes));
        receive_all(&mut b, sizes, ahead, nap)
    })
}

const SMALL: usize = 2 << 10;

fn sizes() -> Vec<usize> {
    let edges = [0, 1, 7, 8, 9, 39, 40, 41, 48, 63, 64, 65, 1000, 4096, 8192, 8193, CHUNK - 1, CHUNK, CHUNK + 1];
    let mut rng = fastrand::Rng::with_seed(5);
    let random = (0..60).map(|_| rng.usize(..60_000)).collect();
    [edges.to_vec(), vec![3 * CHUNK, 100_000, MEMORY / 2], random].concat()
}

#[test]
fn every_model_carries_every_size() {
    for model in MODELS {
        for dress in [Dress::Plain, Dress::Weak, Dress::Modelled("gen3x8"), Dress::Modelled("pex8733,transfer=1K")] {
            carry(model, 256 << 10, dress, &sizes(), 2, None);
        }
    }
}

#[test]
fn every_model_goes_round_a_small_lane() {
    let mut rng = fastrand::Rng::with_seed(9);
    let few: Vec<usize> = (0..1500).map(|_| rng.usize(..600)).collect();
    for model in MODELS {
        for dress in [Dress::Plain, Dress::Weak] {
            carry(model, SMALL, dress, &few, 16, None);
        }
        // Chunks are as large as the lane allows.
        carry(model, SMALL, Dress::Plain, &[20_000, 3, 50_000, 0, 9000], 2, None);
    }
}

#[test]
fn senders_wait_for_a_slow_receiver() {
    for model in MODELS {
        let sizes = vec![300; 500];
        let start = Instant::now();
        carry(model, SMALL, Dress::Plain, &sizes, 4, Some(Duration::from_millis(5)));
        assert!(start.elapsed() >= Duration::from_millis(50), "{model:?}");
    }
}

/// Neither end receives before the other has sent all messages for which there is room: then neither continues unless
/// it also takes arriving messages.
#[test]
fn both_may_send_at_once() {
    for model in MODELS {
        let ([mut a, mut b], _hosts) = connect(model, SMALL, Dress::Plain);
        let sizes: Vec<usize> = (0..100).map(|i| i * 37 % 1500).collect();
        let both = |end: &mut End| {
            let room = 2048;
            (0..sizes.len()).for_each(|number| end.post(number * room, room));
            send_all(end, &sizes);
            for (number, len) in sizes.iter().enumerate() {
                let received = end.receive().unwrap();
                let mut found = vec![0; *len];
                end.read(&received, &mut found);
                assert!(found == content(number, *len), "{model:?}, message {number}");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| both(&mut a));
            both(&mut b);
        });
    }
}

/// Receives are posted before any message is sent: every payload is placed that the model can place, and no other.
#[test]
fn payloads_are_placed_by_the_models_that_say_so() {
    let sizes = [0, 1, 100, 8192, 8193, 16383, 16384, 30_000];
    for (model, expected) in [(Model::Plain, 0), (Model::Queue, 0), (Model::ZeroCopySend, 0)]
        .into_iter()
        .chain([(Model::ZeroCopyReceive, sizes.len() - 1), (Model::All, 4)])
    {
        let ([mut a, mut b], _hosts) = connect(model, 256 << 10, Dress::Plain);
        let posted = std::sync::Barrier::new(2);
        let placed = std::thread::scope(|scope| {
            scope.spawn(|| {
                posted.wait();
                send_all(&mut a, &sizes);
            });
            let room = MEMORY / sizes.len();
            (0..sizes.len()).for_each(|number| b.post(number * room, room));
            posted.wait();
            let received: Vec<_> = sizes.iter().map(|_| b.receive().unwrap()).collect();
            received.iter().enumerate().for_each(|(number, received)| {
                let mut found = vec![0; received.len];
                b.read(received, &mut found);
                assert!(found == content(number, sizes[number]), "{model:?}, message {number}");
            });
            received.iter().filter(|received| received.placed).count()
        });
        assert_eq!(placed, expected, "{model:?}");
        assert_eq!(a.placed(), (expected as u64, sizes.len() as u64));
    }
}

/// A message that leaves before its receive was posted is copied, and those after it are placed again.
#[test]
fn a_post_that_comes_too_late_is_not_used() {
    let ([mut a, mut b], _hosts) = connect(Model::ZeroCopyReceive, 256 << 10, Dress::Plain);
    for number in 0..10 {
        let (late, len) = (number % 3 == 0, 5000 + number);
        if !late {
            b.post(0, 8192);
        }
        a.send(&content(number, len)).unwrap();
        if late {
            b.post(0, 8192);
        }
        let received = b.receive().unwrap();
        assert_eq!(received.placed, !late, "message {number}");
        let mut found = vec![0; len];
        b.read(&received, &mut found);
        assert!(found == content(number, len));
    }
}

/// Checks that both measurements end and return a figure.
#[test]
fn figures_are_positive() {
    for model in MODELS {
        let ([mut a, mut b], _hosts) = connect(model, 64 << 10, Dress::Plain);
        let (to, orders) = std::sync::mpsc::channel::<Order>();
        std::thread::scope(|scope| {
            scope.spawn(move || orders.iter().try_for_each(|order| order.follow(&mut b)).unwrap());
            for (test, len) in [(Test::Latency, 8), (Test::Bandwidth, 20_000)] {
                let order = |order| to.send(order).map_err(|_| Error::Gone("the other thread".into()));
                let value = figure(&mut a, test, len, 0.01, order).unwrap();
                assert!(value.is_finite() && value > 0.0, "{model:?} {test:?}: {value}");
            }
            drop(to);
        });
    }
}
