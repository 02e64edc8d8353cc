//! The present, as a wall clock and a clock that only goes forward have it together. That a wall clock was put back is
//! found out by comparing the two, never from what a request says of its own time.

/// One look at both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// UTC, milliseconds since 1970.
    pub unix_ms: u64,
    /// Milliseconds of a clock that nobody sets.
    pub monotonic_ms: u64,
}

/// A time in milliseconds since 1970 as RFC 3339 has it; the epoch where it is no time.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let at = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// Clocks are set by less than this all the time.
const STEP_MS: u64 = 2_000;

/// The present according to all looks so far.
#[derive(Debug, Default)]
pub struct Present {
    last: Option<Moment>,
    /// How far the wall clock is ahead of the other one.
    lead_ms: u64,
}

impl Present {
    /// Takes one look, and says what time it is and whether the wall clock was put back since the looks before. Looks are taken
    /// on many threads: one that is older than another that was taken in already changes nothing.
    pub fn read(&mut self, look: Moment) -> (u64, bool) {
        // The clock that counts from the start of this process is always the smaller one, unless the wall clock is before 1970.
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
