//! Callers that the gate refused: how many in each minute, by address, route and reason. Control stores the counts, so that an
//! operator sees a caller whose key is wrong; such a request has no record of usage.
//!
//! Counts are reported with each poll of the link, for as long as the last minutes are held here. A count replaces the one that
//! control had of the same minute, so a report that is sent twice counts once.

use fairlead_core::routes::Route;
use fairlead_core::Error;
use parking_lot::Mutex;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;

const MINUTE_MS: u64 = 60_000;
/// Control may be away for so long before counts are lost.
const MINUTES: usize = 5;
/// Addresses and paths that are counted separately in one minute. All others are counted together.
const PLACES: usize = 64;
/// Bytes of the reason.
const MESSAGE_BYTES: usize = 300;

/// The refusals of one minute, address, route and reason. The ones that exceed `PLACES` have no address and no route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedCallers {
    minute_ms: u64,
    address: Option<IpAddr>,
    method: &'static str,
    path: &'static str,
    status: u16,
    kind: &'static str,
    message: Cow<'static, str>,
    requests: u64,
}

impl RefusedCallers {
    fn is_same(&self, other: &Self) -> bool {
        self.minute_ms == other.minute_ms
            && self.address == other.address
            && self.method == other.method
            && self.path == other.path
            && self.kind == other.kind
            && self.message == other.message
    }
}

/// The counts of the last minutes, the oldest first.
#[derive(Debug, Default)]
pub struct RefusalCounts(Mutex<VecDeque<RefusedCallers>>);

impl RefusalCounts {
    /// Counts a refusal at this moment. `route` is absent where the request was refused before it had one.
    pub fn note(&self, at_ms: u64, address: Option<IpAddr>, route: Option<&'static Route>, fault: &Error) {
        let message = &fault.message;
        let end = (0..=MESSAGE_BYTES.min(message.len())).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        let (method, path) = route.map_or(("", ""), |route| (route.method, route.path));
        let one = RefusedCallers {
            minute_ms: at_ms - at_ms % MINUTE_MS,
            address,
            method,
            path,
            status: fault.kind.status(),
            kind: fault.kind.code(),
            message: Cow::Owned(message[..end].to_owned()),
            requests: 1,
        };
        self.add(one);
    }

    fn add(&self, one: RefusedCallers) {
        let mut counts = self.0.lock();
        let oldest_ms = one.minute_ms.saturating_sub((MINUTES as u64 - 1) * MINUTE_MS);
        while counts.front().is_some_and(|first| first.minute_ms < oldest_ms) {
            counts.pop_front();
        }
        if let Some(known) = counts.iter_mut().rev().find(|known| known.is_same(&one)) {
            known.requests += 1;
            return;
        }
        let of_minute = counts.iter().rev().take_while(|known| known.minute_ms == one.minute_ms).count();
        if of_minute < PLACES {
            counts.push_back(one);
            return;
        }
        let rest = RefusedCallers { address: None, method: "", path: "", message: Cow::Borrowed(""), ..one };
        match counts.iter_mut().rev().find(|known| known.is_same(&rest)) {
            Some(known) => known.requests += 1,
            None => counts.push_back(rest),
        }
    }

    /// The counts to report.
    pub fn report(&self) -> Vec<RefusedCallers> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::ErrorKind;

    fn unknown_key() -> Error {
        Error::client(ErrorKind::Unauthenticated, "The API key is not known here.")
    }

    fn address(last: u16) -> IpAddr {
        IpAddr::from([192, 0, (last >> 8) as u8, last as u8])
    }

    #[test]
    fn equal_refusals_of_a_minute_are_one_count() {
        let counts = RefusalCounts::default();
        for at_ms in [60_000, 60_001, 119_999, 120_000] {
            counts.note(at_ms, Some(address(1)), None, &unknown_key());
        }
        counts.note(120_001, Some(address(2)), None, &unknown_key());
        let found: Vec<_> =
            counts.report().iter().map(|one| (one.minute_ms, one.address, one.requests, one.status)).collect();
        let expected = vec![
            (60_000, Some(address(1)), 3, 401),
            (120_000, Some(address(1)), 1, 401),
            (120_000, Some(address(2)), 1, 401),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn many_addresses_are_counted_together_and_nothing_is_lost() {
        let counts = RefusalCounts::default();
        for last in 0..1_000 {
            counts.note(60_000, Some(address(last)), None, &unknown_key());
        }
        let found = counts.report();
        assert_eq!(found.len(), PLACES + 1);
        assert_eq!(found.iter().map(|one| one.requests).sum::<u64>(), 1_000);
        assert_eq!(found.last().map(|one| (one.address, one.requests)), Some((None, 1_000 - PLACES as u64)));
    }

    #[test]
    fn minutes_that_are_over_are_forgotten() {
        let counts = RefusalCounts::default();
        for minute in 0..20 {
            counts.note(minute * MINUTE_MS, Some(address(1)), None, &unknown_key());
        }
        assert_eq!(counts.report().len(), MINUTES);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let counts = RefusalCounts::default();
        let fault = Error::client(ErrorKind::Forbidden, "ä".repeat(MESSAGE_BYTES));
        counts.note(0, None, None, &fault);
        assert_eq!(counts.report()[0].message, "ä".repeat(MESSAGE_BYTES / 2));
    }
}
