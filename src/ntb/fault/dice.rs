//! Reproducible random decisions: the fault of a write depends only on the seed, the host, the process, the port and
//! the sequence number of the write.

use super::description::{Faults, Rate};
use super::links::Place;
use crate::Side;
use fastrand::Rng;

/// Salt of the random numbers for rings, which makes them independent of those for writes.
const RINGS: u64 = 0x5bd1_e995_9d1c_4e2b;
/// Odd multiplier of the sequence number (2^64 divided by the golden ratio): adjacent numbers get unrelated random
/// seeds.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The faults of one write or ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// True if the write or ring is lost.
    pub lost: bool,
    /// Index of the bit that is inverted; None: no bit.
    pub flip: Option<usize>,
    /// True if it arrives twice.
    pub double: bool,
    /// True if it arrives late.
    pub late: bool,
}

impl Fate {
    /// Returns true if it arrives without any fault.
    pub fn is_clean(&self) -> bool {
        *self == Fate::default()
    }
}

/// The random decisions for one port of one process.
pub struct Dice {
    key: u64,
    flip: Rate,
    drop: Rate,
    double: Rate,
    delay: Rate,
    bell: Rate,
}

impl Dice {
    /// Returns the decisions for the port on `side` of the process at `place`.
    pub fn new(faults: &Faults, place: &Place, side: Side) -> Dice {
        let whose = [place.host as u64, place.process as u64, side as u64];
        let key = whose.into_iter().fold(faults.seed, |key, part| Rng::with_seed(key ^ (part + 1)).u64(..));
        let Faults { flip, drop, double, delay, bell, .. } = *faults;
        Dice { key, flip, drop, double, delay, bell }
    }

    fn roll(&self, salt: u64, number: u64) -> Rng {
        Rng::with_seed((self.key ^ salt).wrapping_add(number.wrapping_mul(STRIDE)))
    }

    /// Returns the faults of the write with sequence number `number`, which has `bits` bits.
    pub fn write(&self, number: u64, bits: usize) -> Fate {
        let mut rng = self.roll(0, number);
        // A random number is drawn for every kind, so that changing one rate does not change the other kinds'
        // decisions.
        let [lost, flip, double, late] =
            [self.drop, self.flip, self.double, self.delay].map(|rate| rng.f64() < rate.get());
        let flip = (flip && bits > 0).then(|| rng.usize(..bits));
        Fate { lost, flip, double, late }
    }

    /// Returns the faults of the ring with sequence number `number`.
    pub fn ring(&self, number: u64) -> Fate {
        let mut rng = self.roll(RINGS, number);
        let [lost, late] = [self.bell, self.delay].map(|rate| rng.f64() < rate.get());
        Fate { lost, late, ..Fate::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(text: &str, host: usize, process: usize, side: Side) -> Dice {
        let faults = Faults::parse(text).unwrap().unwrap();
        Dice::new(&faults, &Place { host, process, neighbours: [1, 1] }, side)
    }

    fn fates(dice: &Dice) -> Vec<Fate> {
        (0..10_000).map(|n| dice.write(n, 512)).collect()
    }

    #[test]
    fn the_same_number_has_the_same_fate_and_nobody_elses() {
        let text = "flip=0.1,drop=0.1,double=0.1,delay=0.1:1us";
        let all = fates(&dice(text, 0, 0, Side::Left));
        assert_eq!(all, fates(&dice(text, 0, 0, Side::Left)));
        for (host, process, side) in [(1, 0, Side::Left), (0, 1, Side::Left), (0, 0, Side::Right)] {
            assert_ne!(all, fates(&dice(text, host, process, side)));
        }
        assert_ne!(all, fates(&dice("flip=0.1,drop=0.1,double=0.1,delay=0.1:1us,seed=2", 0, 0, Side::Left)));
        // Losses do not depend on the rates of other faults.
        let lost = |fates: Vec<Fate>| fates.into_iter().map(|fate| fate.lost).collect::<Vec<_>>();
        assert_eq!(lost(all), lost(fates(&dice("drop=0.1", 0, 0, Side::Left))));
    }

    #[test]
    fn faults_are_as_frequent_as_is_said() {
        let dice = dice("flip=0.2,drop=0.05,double=1,bell=0.5", 3, 1, Side::Right);
        let share = |of: fn(&Fate) -> bool| fates(&dice).iter().filter(|f| of(f)).count() as f64 / 1e4;
        let near = |share: f64, rate: f64| (share - rate).abs() < 0.02;
        assert!(near(share(|f| f.flip.is_some()), 0.2) && near(share(|f| f.lost), 0.05));
        // The kinds of faults are independent.
        assert!(near(share(|f| f.lost && f.flip.is_some()), 0.01));
        assert!(share(|f| f.double) == 1.0 && share(|f| f.late) == 0.0 && share(|f| f.is_clean()) == 0.0);
        let rings = (0..10_000).filter(|&n| dice.ring(n).lost).count();
        assert!(near(rings as f64 / 1e4, 0.5));
        let mut bits = [0; 512];
        fates(&dice).iter().filter_map(|f| f.flip).for_each(|bit| bits[bit] += 1);
        assert!(bits.iter().filter(|&&n| n == 0).count() < 40, "bits that are never flipped");
    }
}
