//! The current time, from a wall clock and a monotonic clock read together. Comparing the two detects a wall clock that
//! was set back. Times in requests are never trusted for this.

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// UTC, milliseconds since 1970.
    pub unix_ms: u64,
    /// Milliseconds of a monotonic clock.
    pub monotonic_ms: u64,
}

/// Formats milliseconds since 1970 as RFC 3339. Values out of range give the epoch.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let at = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// Smaller steps are ignored, because clocks are adjusted by less than this all the time.
const STEP_MS: u64 = 2_000;

/// The current time according to all readings so far.
#[derive(Debug, Default)]
pub struct Present {
    last: Option<Moment>,
    /// How far the wall clock is ahead of the monotonic clock.
    lead_ms: u64,
}

impl Present {
    /// Takes a reading and returns the time, and whether the wall clock was set back since the previous readings.
    /// Threads take readings concurrently, so a reading that is older than one already processed changes nothing.
    pub fn read(&mut self, look: Moment) -> (u64, bool) {
        // The monotonic clock counts from the start of this process, so it is always smaller unless the wall clock is
        // before 1970.
        let lead_ms = look.unix_ms.saturating_sub(look.monotonic_ms);
        match self.last {
            Some(last) if look.monotonic_ms < last.monotonic_ms => return (last.unix_ms, false),
            Some(_) => {}
            None => self.lead_ms = lead_ms,
        }
        self.last = Some(look);
        let is_put_back = lead_ms.saturating_add(STEP_MS) < self.lead_ms;
        if is_put_back || lead_ms > self.lead_ms {
            self.lead_ms = lead_ms;
        }
        (look.unix_ms, is_put_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(looks: &[(u64, u64)]) -> Vec<(u64, bool)> {
        let mut present = Present::default();
        looks.iter().map(|&(unix_ms, monotonic_ms)| present.read(Moment { unix_ms, monotonic_ms })).collect()
    }

    #[test]
    fn a_late_look_moves_nothing() {
        assert_eq!(
            readings(&[(100_000, 10), (160_000, 60_010), (100_000, 10), (160_001, 60_011)]),
            [(100_000, false), (160_000, false), (160_000, false), (160_001, false)]
        );
    }

    #[test]
    fn a_clock_that_is_put_back_is_noticed_once() {
        assert_eq!(
            readings(&[(900_000, 10), (500_000, 20), (500_010, 30), (900_000, 40), (899_000, 50), (600_000, 60)]),
            [(900_000, false), (500_000, true), (500_010, false), (900_000, false), (899_000, false), (600_000, true)]
        );
    }

    #[test]
    fn many_small_steps_back_are_one() {
        let found = readings(&[(900_000, 0), (899_000, 1), (898_000, 2), (897_000, 3), (896_990, 4)]);
        assert_eq!(
            found.iter().map(|(_, is_put_back)| *is_put_back).collect::<Vec<_>>(),
            [false, false, true, false, false]
        );
    }
}
