//! Time: monotonic inside the engine, UTC at its edges.

use fairlead_core::Moment;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the engine first read the clock. Never decreases.
pub fn monotonic_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// UTC milliseconds since 1970.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Reads both clocks at once, to detect changes of the wall clock.
pub fn moment() -> Moment {
    Moment { monotonic_ms: monotonic_ms(), unix_ms: unix_ms() }
}

/// UTC seconds since 1970.
pub fn unix_s() -> i64 {
    i64::try_from(unix_ms() / 1_000).unwrap_or(i64::MAX)
}
