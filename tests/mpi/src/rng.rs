//! Random numbers that are the same on every rank for the same seed.

/// A small seeded generator (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns a generator for `seed`; adjacent seeds give unrelated sequences.
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit.max(1)
    }

    /// Returns a message size from 0 to 2^`bits`, with every order of magnitude equally likely.
    pub fn size(&mut self, bits: u32) -> usize {
        let magnitude = self.below(u64::from(bits) + 1);
        self.below((1 << magnitude) + 1) as usize
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}
