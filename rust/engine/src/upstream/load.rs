//! How busy a connection is, and its recent success rate.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Rates are stored in parts per million, so that an atomic integer can hold them.
const WHOLE: u64 = 1_000_000;

/// The number of open and total attempts of a connection, and its success rate.
#[derive(Debug, Default)]
pub struct Load {
    in_flight: AtomicU32,
    used: AtomicU64,
    /// Exponentially weighted success rate, above zero; zero until known.
    success_ppm: AtomicU64,
}

impl Load {
    /// Counts the start of an attempt.
    pub fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.used.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of an attempt, whatever its result.
    pub fn leave(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of open attempts.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The number of attempts since the connection was added.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The success rate, 0 to 1.
    pub fn success_rate(&self) -> Option<f32> {
        match self.success_ppm.load(Ordering::Relaxed) {
            0 => None,
            ppm => Some(ppm as f32 / WHOLE as f32),
        }
    }

    /// Adds a sample with a weight of one tenth. A sample that is lost to a race has little effect.
    pub fn observe(&self, is_success: bool) {
        let sample = if is_success { WHOLE } else { 0 };
        let new = match self.success_ppm.load(Ordering::Relaxed) {
            0 => sample,
            old => (old * 9 + sample) / 10,
        };
        self.success_ppm.store(new.max(1), Ordering::Relaxed);
    }
}
