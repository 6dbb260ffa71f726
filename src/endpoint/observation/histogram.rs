//! Histograms of a rank: sizes of the messages that it has sent, and times that its operations took.

use serde::{Serialize, Serializer};
use std::ops::AddAssign;
use std::time::Duration;

/// Number of classes of a histogram.
pub const CLASSES: usize = 64;

/// A histogram with a class for each power of two: class i counts numbers above 2^(i-1) and up to 2^i, class 0 ones,
/// and the last class zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram(pub [u64; CLASSES]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; CLASSES])
    }
}

impl Histogram {
    /// Counts a number below 2^62.
    #[inline(always)]
    pub fn count(&mut self, number: u64) {
        self.0[Histogram::class(number)] += 1;
    }

    /// Counts a time, in microseconds, rounded up.
    pub fn count_time(&mut self, time: Duration) {
        self.0[Histogram::time_class(time)] += 1;
    }

    /// Returns the class of a number below 2^62.
    #[inline(always)]
    fn class(number: u64) -> usize {
        // The number 2n-1 is odd, so two instructions find the class; of 0 it is u64::MAX.
        let odd = (number << 1).wrapping_sub(1);
        63 ^ (odd.leading_zeros() as usize & (CLASSES - 1))
    }

    /// Returns the class of a time.
    pub fn time_class(time: Duration) -> usize {
        Histogram::class(time.as_nanos().div_ceil(1000).min(1 << 61) as u64)
    }

    /// Returns how many numbers were counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the largest number of a class.
    pub fn upto(class: usize) -> u64 {
        if class == CLASSES - 1 {
            0
        } else {
            1 << class
        }
    }

    /// Returns all classes in the order of their numbers.
    pub fn classes() -> impl DoubleEndedIterator<Item = usize> {
        [CLASSES - 1].into_iter().chain(0..CLASSES - 1)
    }
}

impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// Sizes in bytes, without headers, of the messages that a rank has sent, by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Messages that were one entry of a lane.
    pub packed: Histogram,
    /// Messages that were sent as a header and chunks.
    pub chunked: Histogram,
    /// Messages whose payload the receiver fetched.
    pub rendezvous: Histogram,
}

/// A class of message sizes.
#[derive(Serialize)]
struct SizeClass {
    upto: u64,
    packed: u64,
    chunked: u64,
    rendezvous: u64,
}

impl Sizes {
    /// Returns the three histograms.
    pub fn each(&self) -> [&Histogram; 3] {
        [&self.packed, &self.chunked, &self.rendezvous]
    }

    fn each_mut(&mut self) -> [&mut Histogram; 3] {
        [&mut self.packed, &mut self.chunked, &mut self.rendezvous]
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let class = |i: usize| {
            let [packed, chunked, rendezvous] = self.each().map(|histogram| histogram.0[i]);
            SizeClass { upto: Histogram::upto(i), packed, chunked, rendezvous }
        };
        let some = |class: &SizeClass| class.packed + class.chunked + class.rendezvous > 0;
        serializer.collect_seq(Histogram::classes().map(class).filter(some))
    }
}

/// A time that a rank measures.
pub struct TimeKind {
    /// Name, as in the line of NTBRING_STATS.
    pub name: &'static str,
    /// Description of the measured time.
    pub meaning: &'static str,
}

/// The times that a rank measures, in the order of [`Times`].
pub const TIMES: [TimeKind; 4] = [
    TimeKind {
        name: "wait",
        meaning:
            "waits in MPI that outlasted the spinning (NTBRING_SPIN), from its end until there was something to do",
    },
    TimeKind {
        name: "send_rendezvous",
        meaning: "from the offer of a large message until its payload had left: the receiver's delay and the transfer",
    },
    TimeKind {
        name: "receive_rendezvous",
        meaning: "from the match of a large message with its receive until its payload had arrived: the transfer",
    },
    TimeKind { name: "credit", meaning: "time for which a message was held until the receiver gave credit" },
];

/// Histograms of times in microseconds: those of [`TIMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times(pub [Histogram; TIMES.len()]);

/// A class of times.
#[derive(Serialize)]
struct TimeClass {
    upto_us: u64,
    count: u64,
}

struct TimeClasses<'a>(&'a Histogram);

impl Serialize for TimeClasses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let class = |i: usize| TimeClass { upto_us: Histogram::upto(i), count: self.0 .0[i] };
        serializer.collect_seq(Histogram::classes().map(class).filter(|class| class.count > 0))
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(TIMES.iter().map(|kind| kind.name).zip(self.0.iter().map(TimeClasses)))
    }
}

/// Number of words of all histograms.
pub(super) const WORDS: usize = (3 + TIMES.len()) * CLASSES;

/// Appends the histograms to the words of a stats page.
pub(super) fn write(sizes: &Sizes, times: &Times, words: &mut Vec<u64>) {
    sizes.each().into_iter().chain(&times.0).for_each(|histogram| words.extend(histogram.0));
}

/// Takes the histograms from the words of a stats page. Returns None if they are not complete.
pub(super) fn read(words: &mut &[u64]) -> Option<(Sizes, Times)> {
    let (of, rest) = words.split_at_checked(WORDS)?;
    *words = rest;
    let (mut sizes, mut times) = (Sizes::default(), Times::default());
    let all = sizes.each_mut().into_iter().chain(&mut times.0);
    all.zip(of.chunks_exact(CLASSES)).for_each(|(histogram, of)| histogram.0.copy_from_slice(of));
    Some((sizes, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_into_the_class_of_the_power_of_two_that_they_do_not_exceed() {
        let class = |number| {
            let mut histogram = Histogram::default();
            histogram.count(number);
            assert_eq!(histogram.total(), 1);
            Histogram::upto(histogram.0.iter().position(|count| *count == 1).unwrap())
        };
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(class), [0, 1, 2, 4, 4, 8, 8, 16]);
        assert_eq!([1 << 20, (1 << 20) + 1, 1 << 61].map(class), [1 << 20, 1 << 21, 1 << 61]);
        let uptos: Vec<u64> = Histogram::classes().map(Histogram::upto).collect();
        assert!(uptos.is_sorted() && uptos.len() == CLASSES);
    }

    #[test]
    fn times_are_counted_in_microseconds() {
        let mut histogram = Histogram::default();
        [0, 1, 1000, 1001, 5000].into_iter().for_each(|ns| histogram.count_time(Duration::from_nanos(ns)));
        histogram.count_time(Duration::MAX);
        assert_eq!((histogram.0[63], histogram.0[0], histogram.0[1], histogram.0[3]), (1, 2, 1, 1));
        assert_eq!(histogram.0[61], 1);
        let sum = &mut histogram.clone();
        *sum += &histogram;
        assert_eq!(sum.total(), 12);
    }

    #[test]
    fn histograms_survive_their_words_and_name_their_classes() {
        let (mut sizes, mut times) = (Sizes::default(), Times::default());
        sizes.packed.count(0);
        sizes.packed.count(8);
        sizes.rendezvous.count(8);
        times.0[1].count_time(Duration::from_micros(3));
        let mut words = Vec::new();
        write(&sizes, &times, &mut words);
        assert_eq!(words.len(), WORDS);
        assert_eq!(read(&mut words.as_slice()), Some((sizes, times)));
        assert_eq!(read(&mut &words[1..]), None);
        assert_eq!(
            serde_json::to_string(&sizes).unwrap(),
            r#"[{"upto":0,"packed":1,"chunked":0,"rendezvous":0},{"upto":8,"packed":1,"chunked":0,"rendezvous":1}]"#
        );
        let line = serde_json::to_value(times).unwrap();
        assert_eq!(line["send_rendezvous"].to_string(), r#"[{"count":1,"upto_us":4}]"#);
        assert_eq!(line["wait"].to_string(), "[]");
    }
}
