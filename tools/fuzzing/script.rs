//! Inputs as scripts: values are taken from the bytes one after the other, and zeros follow the last byte.

/// The rest of an input.
pub struct Script<'a>(pub &'a [u8]);

impl Script<'_> {
    /// Returns true if no byte is left.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a number of bytes; those that are missing are zero.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut bytes = [0; N];
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    /// Takes two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    /// Takes four bytes.
    pub fn int(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// Takes eight bytes.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// Takes a byte that is less than `below`.
    pub fn below(&mut self, below: u8) -> u8 {
        self.byte() % below
    }

    /// Takes one of these values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.byte()) % values.len()]
    }

    /// Takes at most `most` bytes, as many as a byte says.
    pub fn some(&mut self, most: usize) -> Vec<u8> {
        let len = (usize::from(self.byte()) * most / 255).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken.to_vec()
    }
}
