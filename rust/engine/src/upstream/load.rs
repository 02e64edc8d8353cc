//! How busy a connection is, and how well it has served of late.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Parts per million, so that an atomic integer holds them.
const WHOLE: u64 = 1_000_000;

/// How many attempts a connection has open and has had, and what share of them succeeded.
#[derive(Debug, Default)]
pub struct Load {
    in_flight: AtomicU32,
    used: AtomicU64,
    /// Exponentially weighted share of attempts that succeeded, above zero; zero until known.
    success_ppm: AtomicU64,
}

impl Load {
    /// An attempt begins.
    pub fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.used.fetch_add(1, Ordering::Relaxed);
    }

    /// An attempt has ended, however it did.
    pub fn leave(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Attempts that are open now.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Attempts since the connection is known.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// 0 to 1.
    pub fn success_rate(&self) -> Option<f32> {
        match self.success_ppm.load(Ordering::Relaxed) {
            0 => None,
            ppm => Some(ppm as f32 / WHOLE as f32),
        }
    }

    /// A new sample counts a tenth. What is lost to a race is one sample of many.
    pub fn observe(&self, is_success: bool) {
        let sample = if is_success { WHOLE } else { 0 };
        let new = match self.success_ppm.load(Ordering::Relaxed) {
            0 => sample,
            old => (old * 9 + sample) / 10,
        };
        self.success_ppm.store(new.max(1), Ordering::Relaxed);
    }
}
