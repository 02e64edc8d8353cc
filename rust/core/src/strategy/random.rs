//! A small seeded random source (`SplitMix64`). It is fair enough to spread load, and reproducible from its seed.

/// A small seeded random source (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below `bound`, all equally likely; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of a multiplication by 2^-64 is far too small to be measurable.
        ((u128::from(self.draw()) * bound as u128) >> 64) as usize
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Shuffles the items; every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// Mixes the bits of a number, so that each affects all others.
pub fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
