//! Reads a provider's limits from the headers of its answers: the amount left in each window and its reset time.
//!
//! The headers are `x-ratelimit-{limit,remaining,reset}[-<what>]` (OpenAI and compatible providers),
//! `anthropic-ratelimit-<what>-{limit,remaining,reset}` and `anthropic-ratelimit-unified-<window>-{utilization,reset}`
//! (Anthropic), and `x-codex-{primary,secondary}-{used-percent,window-minutes,reset-after-seconds,reset-at}` (OpenAI's
//! subscriptions). Values that are not numbers are ignored. Resets are seconds, durations (`6m0s`, `120ms`), timestamps
//! (RFC 3339) or Unix times.

use crate::strategy::QuotaWindow;
use serde::Deserialize;
use smallvec::SmallVec;

/// The number of windows that are read from one answer.
const MAX_WINDOWS: usize = 12;
const SESSION_MS: u64 = 24 * 3_600_000;
const WEEK_MS: u64 = 8 * 24 * 3_600_000;
/// The longest reset time that is accepted.
const MAX_RESET_MS: u64 = 32 * 24 * 3_600_000;
/// A window that resets sooner is a rate limit, which refills while callers wait. Exhausting it does not close the
/// connection.
const QUOTA_FROM_MS: u64 = 10 * 60_000;
/// Numbers above these are Unix times, in seconds and in milliseconds.
const UNIX_SECONDS: f64 = 1e9;
const UNIX_MILLISECONDS: f64 = 1e12;

/// Which part of a quota is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaThresholds {
    /// A connection is blocked until the window resets when no more than this is left of it.
    pub threshold_percent: f32,
    /// An exhausted quota without a reset time is checked again after this time.
    pub recheck_ms: u64,
    /// Whether rate limits that providers report are enforced.
    pub learn_limits: bool,
}

impl Default for QuotaThresholds {
    fn default() -> Self {
        Self { threshold_percent: 2.0, recheck_ms: 5 * 60_000, learn_limits: true }
    }
}

/// A window as an answer reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowReading {
    /// `requests`, `tokens`, `5h`, `7d`, ...
    pub name: String,
    /// The remaining share, from 0 to 1.
    pub remaining: f32,
    /// 0 if unknown.
    pub resets_in_ms: u64,
    /// A quota, and not a rate limit: once it is exhausted, nothing is served until its reset.
    pub is_quota: bool,
    /// The limit and the amount left, if both were reported.
    pub amounts: Option<(u64, u64)>,
}

/// The length of a window, as routing strategies distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaSpan {
    /// Up to a day.
    Session,
    Weekly,
    Monthly,
}

impl WindowReading {
    pub fn span(&self) -> QuotaSpan {
        match self.name.as_str() {
            "5h" => QuotaSpan::Session,
            name if name.starts_with("7d") => QuotaSpan::Weekly,
            _ if self.resets_in_ms <= SESSION_MS => QuotaSpan::Session,
            _ if self.resets_in_ms <= WEEK_MS => QuotaSpan::Weekly,
            _ => QuotaSpan::Monthly,
        }
    }

    pub fn window(&self) -> QuotaWindow {
        QuotaWindow { remaining: self.remaining, resets_in_ms: self.resets_in_ms }
    }
}

#[derive(Debug, Default)]
struct Partial<'a> {
    family: Family,
    name: &'a str,
    limit: Option<f64>,
    remaining: Option<f64>,
    /// From 0 to 1.
    used: Option<f64>,
    resets_in_ms: Option<u64>,
    length_ms: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Family {
    #[default]
    Rates,
    /// The name identifies a quota.
    Quotas,
}

/// Reads the windows from these headers. Names are in lower case.
pub fn read_quota_headers<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    now_unix_ms: u64,
) -> SmallVec<[WindowReading; 4]> {
    let mut parts: SmallVec<[Partial<'a>; 4]> = SmallVec::new();
    for (name, value) in headers {
        let Some((family, window, field)) = parse_header(name) else { continue };
        let at = match parts.iter().position(|part| part.family == family && part.name == window) {
            Some(at) => at,
            None if parts.len() < MAX_WINDOWS => {
                parts.push(Partial { family, name: window, ..Partial::default() });
                parts.len() - 1
            }
            None => continue,
        };
        let part = &mut parts[at];
        let number = || value.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match field {
            "limit" => part.limit = number(),
            "remaining" => part.remaining = number(),
            "utilization" => part.used = number(),
            "used-percent" => part.used = number().map(|percent| percent / 100.0),
            "window-minutes" => part.length_ms = number().map(|minutes| (minutes * 60_000.0) as u64),
            "reset-after-seconds" => part.resets_in_ms = number().map(|seconds| (seconds * 1_000.0) as u64),
            "reset" | "reset-at" => part.resets_in_ms = parse_reset(value.trim(), now_unix_ms),
            _ => {}
        }
    }
    parts.iter().filter_map(Partial::reading).collect()
}

/// The family, window and field of a header name.
fn parse_header(name: &str) -> Option<(Family, &str, &str)> {
    if let Some(rest) = name.strip_prefix("x-ratelimit-") {
        let (field, window) = rest.split_once('-').unwrap_or((rest, "requests"));
        return matches!(field, "limit" | "remaining" | "reset").then_some((Family::Rates, window, field));
    }
    if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
        let (window, field) = rest.rsplit_once('-')?;
        return match window.strip_prefix("unified-") {
            Some(window) => matches!(field, "utilization" | "reset").then_some((Family::Quotas, window, field)),
            None if window == "unified" => None,
            None => matches!(field, "limit" | "remaining" | "reset").then_some((Family::Rates, window, field)),
        };
    }
    let rest = name.strip_prefix("x-codex-")?;
    let (window, field) = rest.split_once('-')?;
    matches!(window, "primary" | "secondary").then_some((Family::Quotas, window, field))
}

impl Partial<'_> {
    fn reading(&self) -> Option<WindowReading> {
        let remaining = match (self.used, self.remaining, self.limit) {
            (Some(used), _, _) => 1.0 - used,
            (None, Some(remaining), Some(limit)) if limit > 0.0 => remaining / limit,
            // The limit is unknown, but nothing is left.
            (None, Some(0.0), _) => 0.0,
            _ => return None,
        };
        let resets_in_ms = self.resets_in_ms.unwrap_or(0).min(MAX_RESET_MS);
        let name = match self.length_ms {
            Some(ms) if ms > 0 && ms <= SESSION_MS => format!("{}h", ms.div_ceil(3_600_000)),
            Some(ms) if ms > 0 => format!("{}d", ms.div_ceil(24 * 3_600_000)),
            _ => self.name.chars().take(40).collect(),
        };
        Some(WindowReading {
            name,
            remaining: remaining.clamp(0.0, 1.0) as f32,
            resets_in_ms,
            is_quota: self.family == Family::Quotas || resets_in_ms >= QUOTA_FROM_MS,
            amounts: self
                .limit
                .zip(self.remaining)
                .map(|(limit, left)| (limit as u64, (left as u64).min(limit as u64))),
        })
    }
}

/// Milliseconds from now. Times in the past give 0, and invalid values give `None`.
fn parse_reset(text: &str, now_unix_ms: u64) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        if !number.is_finite() || number < 0.0 {
            return None;
        }
        let now = now_unix_ms as f64;
        let in_ms = if number >= UNIX_MILLISECONDS {
            number - now
        } else if number >= UNIX_SECONDS {
            number * 1_000.0 - now
        } else {
            number * 1_000.0
        };
        return Some(in_ms.max(0.0) as u64);
    }
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        let at_ms = u64::try_from(moment.as_millisecond()).unwrap_or(0);
        return Some(at_ms.saturating_sub(now_unix_ms));
    }
    duration(text)
}

/// `1h2m3.5s`, `120ms`.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total_ms = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| end + at);
        total_ms += number
            * match &rest[end..unit_end] {
                "d" => 86_400_000.0,
                "h" => 3_600_000.0,
                "m" => 60_000.0,
                "s" => 1_000.0,
                "ms" => 1.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(total_ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    fn readings(headers: &[(&str, &str)]) -> Vec<(String, f32, u64, bool)> {
        let read = read_quota_headers(headers.iter().copied(), NOW_MS);
        read.into_iter().map(|one| (one.name, one.remaining, one.resets_in_ms, one.is_quota)).collect()
    }

    #[test]
    fn the_headers_of_each_family_are_read() {
        let openai = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "15"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("x-request-id", "1"),
        ];
        let read = readings(&openai);
        assert_eq!(read[0], ("requests".into(), 0.25, 1_000, false));
        assert_eq!((read[1].2, read[1].3, read.len()), (360_000, false, 2));
        let anthropic = [
            ("anthropic-ratelimit-unified-5h-utilization", "0.75"),
            ("anthropic-ratelimit-unified-5h-reset", "1700000060"),
            ("anthropic-ratelimit-unified-status", "allowed"),
            ("anthropic-ratelimit-input-tokens-limit", "100"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:13:30Z"),
        ];
        assert_eq!(
            readings(&anthropic),
            [("5h".into(), 0.25, 60_000, true), ("input-tokens".into(), 0.0, 10_000, false)]
        );
        let codex = [
            ("x-codex-primary-used-percent", "12.5"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-after-seconds", "90"),
            ("x-codex-secondary-used-percent", "100"),
            ("x-codex-secondary-window-minutes", "10080"),
        ];
        assert_eq!(readings(&codex), [("5h".into(), 0.875, 90_000, true), ("7d".into(), 0.0, 0, true)]);
    }

    #[test]
    fn a_window_of_hours_is_a_quota_and_nonsense_is_nothing() {
        let day = [
            ("x-ratelimit-limit-requests", "1000"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "2h59m56.5s"),
        ];
        assert_eq!(readings(&day), [("requests".into(), 0.0, 10_796_500, true)]);
        for (limit, remaining, reset) in [("0", "5", "x"), ("-1", "NaN", "-3"), ("", "", ""), ("inf", "inf", "1e400")] {
            let headers =
                [("x-ratelimit-limit", limit), ("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset)];
            assert_eq!(readings(&headers), [], "{limit} {remaining} {reset}");
        }
        assert_eq!(readings(&[("x-ratelimit-remaining", "0")]), [("requests".into(), 0.0, 0, false)]);
    }

    #[test]
    fn spans_tell_windows_apart() {
        let span = |name: &str, resets_in_ms| {
            let (name, amounts) = (name.into(), None);
            WindowReading { name, remaining: 0.5, resets_in_ms, is_quota: true, amounts }.span()
        };
        assert_eq!(span("5h", 0), QuotaSpan::Session);
        assert_eq!(span("7d_sonnet", 1), QuotaSpan::Weekly);
        assert_eq!(span("requests", 60_000), QuotaSpan::Session);
        assert_eq!(span("tokens", 3 * SESSION_MS), QuotaSpan::Weekly);
        assert_eq!(span("tokens", 20 * SESSION_MS), QuotaSpan::Monthly);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_shares_and_times_stay_within_bounds(
            values in proptest::collection::vec("[ -~]{0,24}", 6),
            reset in "[0-9hms.:TZ-]{0,20}",
        ) {
            let headers = [
                ("x-ratelimit-limit-requests", values[0].as_str()),
                ("x-ratelimit-remaining-requests", values[1].as_str()),
                ("x-ratelimit-reset-requests", reset.as_str()),
                ("anthropic-ratelimit-unified-5h-utilization", values[2].as_str()),
                ("x-codex-primary-used-percent", values[3].as_str()),
                ("x-codex-primary-window-minutes", values[4].as_str()),
                ("x-codex-primary-reset-at", values[5].as_str()),
            ];
            for one in read_quota_headers(headers.into_iter(), NOW_MS) {
                prop_assert!((0.0..=1.0).contains(&one.remaining) && one.resets_in_ms <= MAX_RESET_MS);
            }
        }
    }
}
