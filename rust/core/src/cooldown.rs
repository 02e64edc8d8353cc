//! How long a connection cools down after a failure.
//!
//! A provider's own time (`Retry-After`) is used, up to a maximum. A failure without one starts a cooldown of a base
//! time that doubles with each consecutive failure. A cooldown of the second kind only makes other connections
//! preferred. When no other is left the connection is tried anyway, because for an operator with one connection an
//! attempt is better than a refusal.

use crate::error::ErrorKind;
use serde::Deserialize;

const MAX_LEVEL: u32 = 5;
/// The longest `Retry-After` that an operator can choose to accept.
pub const MAX_RETRY_AFTER_MS: u64 = 24 * 3_600_000;
/// The default maximum. When the provider asked for longer, the connection is tried after this time, which costs one
/// refused attempt.
const RETRY_AFTER_MS: u64 = 3_600_000;

/// The lengths of cooldowns, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CooldownLimits {
    /// After the first failure. Each consecutive failure doubles it.
    pub base_ms: u64,
    pub max_ms: u64,
    /// After a refused credential.
    pub refused_ms: u64,
    /// After a rate limit without a reset time.
    pub limited_ms: u64,
    /// The longest `Retry-After` that is accepted.
    pub max_retry_after_ms: u64,
}

impl Default for CooldownLimits {
    fn default() -> Self {
        Self {
            base_ms: 3_000,
            max_ms: 120_000,
            refused_ms: 120_000,
            limited_ms: 5_000,
            max_retry_after_ms: RETRY_AFTER_MS,
        }
    }
}

/// The cooldown of one connection. Times are milliseconds of a monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cooldown {
    until_ms: u64,
    failed_at_ms: u64,
    level: u32,
    /// The provider itself set the time.
    is_binding: bool,
}

impl Cooldown {
    pub fn is_cooling(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Whether the connection must not be tried at all.
    pub fn is_closed(&self, now_ms: u64) -> bool {
        self.is_binding && self.is_cooling(now_ms)
    }

    /// Whether the provider itself set the length of the last cooldown, even if it is over.
    pub fn is_binding(&self) -> bool {
        self.is_binding
    }

    /// Whether the connection has failed since it last succeeded.
    pub fn has_failed(&self) -> bool {
        self.level > 0
    }

    pub fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.until_ms.saturating_sub(now_ms)
    }

    /// Ends the cooldown and resets the failure count. A success of an attempt that started before the last failure
    /// says nothing about the connection's current state and is ignored.
    pub fn succeed(&mut self, started_ms: u64) {
        if self.level == 0 || started_ms > self.failed_at_ms {
            *self = Self::default();
        }
    }

    /// Records a failure. Failures that arrive during a cooldown belong to the same event and do not raise the level,
    /// so ten concurrent requests that fail together count once.
    pub fn fail(&mut self, cooldowns: &CooldownLimits, kind: ErrorKind, hint_ms: Option<u64>, now_ms: u64) {
        let was_cooling = self.is_cooling(now_ms);
        self.failed_at_ms = now_ms;
        if was_cooling && hint_ms.is_none() && kind != ErrorKind::UpstreamRateLimited {
            return;
        }
        let (cooldown_ms, is_binding) = match (kind, hint_ms) {
            (_, Some(hint_ms)) => (hint_ms.min(cooldowns.max_retry_after_ms).min(MAX_RETRY_AFTER_MS), true),
            (ErrorKind::UpstreamRateLimited, None) => {
                (cooldowns.limited_ms.max(backoff_ms(cooldowns, self.level)), true)
            }
            (ErrorKind::UpstreamAuth, None) => (cooldowns.refused_ms, false),
            _ => (backoff_ms(cooldowns, self.level), false),
        };
        if !was_cooling {
            self.level = (self.level + 1).min(MAX_LEVEL);
        }
        let until_ms = now_ms.saturating_add(cooldown_ms);
        if until_ms > self.until_ms {
            self.until_ms = until_ms;
            self.is_binding = is_binding || (self.is_binding && was_cooling);
        }
    }

    /// Adopts a cooldown of another worker, which has `left_ms` left. A cooldown of this worker that lasts longer is
    /// kept.
    pub fn adopt_cooldown(&mut self, cooldowns: &CooldownLimits, left_ms: u64, is_binding: bool, now_ms: u64) {
        let longest_ms =
            if is_binding { cooldowns.max_retry_after_ms } else { cooldowns.max_ms.max(cooldowns.refused_ms) };
        let until_ms = now_ms.saturating_add(left_ms.min(longest_ms).min(MAX_RETRY_AFTER_MS));
        if until_ms > self.until_ms.max(now_ms) {
            let was_cooling = self.is_cooling(now_ms);
            self.is_binding = is_binding || (self.is_binding && was_cooling);
            self.until_ms = until_ms;
            self.failed_at_ms = now_ms;
            self.level = self.level.max(1);
        }
    }
}

fn backoff_ms(cooldowns: &CooldownLimits, level: u32) -> u64 {
    cooldowns.base_ms.saturating_mul(1 << level.min(MAX_LEVEL)).min(cooldowns.max_ms)
}

/// Parses `Retry-After`, whole seconds or an HTTP date, into milliseconds from now. Invalid values and times in the
/// past give `None`.
pub fn parse_retry_after(value: &str, now_unix_s: u64) -> Option<u64> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = value.parse::<u64>().unwrap_or(u64::MAX);
        return (seconds > 0).then(|| seconds.saturating_mul(1_000).min(MAX_RETRY_AFTER_MS));
    }
    let at_s = parse_http_date(value)?;
    at_s.checked_sub(now_unix_s)
        .filter(|&seconds| seconds > 0)
        .map(|seconds| seconds.saturating_mul(1_000).min(MAX_RETRY_AFTER_MS))
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7) into seconds since 1970.
fn parse_http_date(text: &str) -> Option<u64> {
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: u64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|&month| month == name)? as u64 + 1;
    let year: u64 = parts.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut time = parts.next()?.split(':');
    let mut number = |limit: u64| time.next()?.parse::<u64>().ok().filter(|&value| value < limit);
    let (hour, minute, second) = (number(24)?, number(60)?, number(61)?);
    if parts.next() != Some("GMT") {
        return None;
    }
    // Counts days since 1970 with years that begin in March, so that the leap day is the last day of its year.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_double_the_rest_up_to_the_cap() {
        let mut state = Cooldown::default();
        let mut now_ms = 1_000;
        let mut cooldowns = Vec::new();
        for _ in 0..7 {
            state.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, now_ms);
            cooldowns.push(state.remaining_ms(now_ms));
            assert!(!state.is_closed(now_ms));
            now_ms += cooldowns[cooldowns.len() - 1];
        }
        assert_eq!(cooldowns, [3_000, 6_000, 12_000, 24_000, 48_000, 96_000, 96_000]);
        state.succeed(now_ms + 1);
        assert!(!state.is_cooling(now_ms));
    }

    #[test]
    fn failures_that_arrive_together_count_once() {
        let mut state = Cooldown::default();
        for _ in 0..10 {
            state.fail(&CooldownLimits::default(), ErrorKind::UpstreamReset, None, 1_000);
        }
        assert_eq!(state.remaining_ms(1_000), CooldownLimits::default().base_ms);
    }

    #[test]
    fn an_attempt_from_before_the_failure_ends_no_rest() {
        let mut state = Cooldown::default();
        state.fail(&CooldownLimits::default(), ErrorKind::UpstreamRateLimited, Some(60_000), 5_000);
        state.succeed(4_000);
        assert!(state.is_closed(6_000));
        state.succeed(5_001);
        assert!(!state.is_cooling(6_000));
    }

    #[test]
    fn a_hint_binds_and_is_capped() {
        let mut state = Cooldown::default();
        state.fail(&CooldownLimits::default(), ErrorKind::UpstreamRateLimited, Some(u64::MAX), 0);
        assert_eq!(state.remaining_ms(0), RETRY_AFTER_MS);
        assert!(state.is_closed(1));
        let patient = CooldownLimits { max_retry_after_ms: u64::MAX, ..CooldownLimits::default() };
        state.fail(&patient, ErrorKind::UpstreamRateLimited, Some(u64::MAX), 0);
        assert_eq!(state.remaining_ms(0), MAX_RETRY_AFTER_MS);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        const NOW_S: u64 = 784_111_777;
        for (text, expected) in [
            ("3", Some(3_000)),
            (" 3 ", Some(3_000)),
            ("0", None),
            ("-5", None),
            ("1e3", None),
            ("soon", None),
            ("", None),
            ("1000000000", Some(MAX_RETRY_AFTER_MS)),
            ("99999999999999999999999", Some(MAX_RETRY_AFTER_MS)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", None),
            ("Sun, 06 Foo 1994 08:49:47 GMT", None),
        ] {
            assert_eq!(parse_retry_after(text, NOW_S), expected, "{text}");
        }
    }
}
