//! A limit: so much of something in each period. Requests a minute, dollars a day and tokens a month are one thing.

use crate::model_name;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Requests,
    /// Input and output together, as the provider counts them.
    Tokens,
    UsdMicros,
}

/// When counting starts anew. All in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// Windows of this length, counted from 1970.
    Seconds(u64),
    /// From this minute of the day to the same of the next.
    Day(u16),
    /// From this minute of Monday.
    Week(u16),
    /// From this minute of the first.
    Month(u16),
}

/// To which requests a limit applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    #[default]
    All,
    Model(String),
    Provider(String),
}

/// One limit of one key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Limit {
    /// Its own among the limits of its key.
    pub id: String,
    /// The field that it was set with, for the caller to know it by.
    pub name: String,
    pub unit: Unit,
    pub amount: u64,
    pub period: Period,
    #[serde(default)]
    pub scope: Scope,
}

/// A stretch of time, Unix milliseconds; the end does not belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub starts_ms: u64,
    pub ends_ms: u64,
}

const DAY_MS: u64 = 86_400_000;
const MINUTE_MS: u64 = 60_000;
/// 1970-01-01 was a Thursday.
const FIRST_MONDAY_MS: u64 = 4 * DAY_MS;

/// What serves a request, or may: one model of one provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served<'a> {
    pub provider: &'a str,
    /// The names before the slash under which the provider's models are called.
    pub prefixes: &'a [String],
    /// As the provider knows it.
    pub upstream_model: &'a str,
}

impl Served<'_> {
    /// Whether a limit's name means this model: with any of its prefixes, or without one. Whatever alias or combo led to it,
    /// and in whatever case: a provider may take both for one.
    pub fn is_model(&self, name: &str) -> bool {
        let own = model_name::without_folder(self.upstream_model);
        if own.is_empty() {
            return false;
        }
        let is_prefixed = |prefix: &String| {
            let rest = name.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('/'));
            rest.is_some_and(|rest| model_name::without_folder(rest).eq_ignore_ascii_case(own))
        };
        model_name::without_folder(name).eq_ignore_ascii_case(own) || self.prefixes.iter().any(is_prefixed)
    }
}

impl Limit {
    /// Whether the limit counts the same thing, whatever its amount.
    pub fn counts_like(&self, other: &Limit) -> bool {
        (self.unit, self.period, &self.scope) == (other.unit, other.period, &other.scope)
    }

    /// A request counts when it is let through; under a limit of one provider, once that one has been asked.
    pub fn is_counted_at_once(&self) -> bool {
        self.unit == Unit::Requests && !matches!(self.scope, Scope::Provider(_))
    }

    /// Whether a request for this model, as its caller named it, counts that was served so.
    pub fn applies_to(&self, model: &str, served: &Served<'_>) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Model(name) => name.eq_ignore_ascii_case(model) || served.is_model(name),
            Scope::Provider(name) => name == served.provider,
        }
    }
}

impl Period {
    /// The window that this moment is in.
    pub fn window(self, now_ms: u64) -> Window {
        let every = |length_ms: u64, offset_ms: u64| {
            // Before the first window there is one that is cut off by 1970.
            let starts_ms = match now_ms.checked_sub(offset_ms) {
                Some(since_ms) => now_ms - since_ms % length_ms,
                None => 0,
            };
            let ends_ms = if now_ms < offset_ms { offset_ms } else { starts_ms.saturating_add(length_ms) };
            Window { starts_ms, ends_ms }
        };
        match self {
            Self::Seconds(seconds) => every(seconds.max(1).saturating_mul(1_000), 0),
            Self::Day(minute) => every(DAY_MS, u64::from(minute) * MINUTE_MS),
            Self::Week(minute) => every(7 * DAY_MS, FIRST_MONDAY_MS + u64::from(minute) * MINUTE_MS),
            Self::Month(minute) => month(now_ms, u64::from(minute) * MINUTE_MS),
        }
    }
}

fn month(now_ms: u64, offset_ms: u64) -> Window {
    let shifted = i64::try_from(now_ms.saturating_sub(offset_ms)).unwrap_or(i64::MAX);
    let today = Timestamp::from_millisecond(shifted).unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC).date();
    let start_of = |first: Date| {
        let moment = first.to_zoned(TimeZone::UTC).map_or(0, |zoned| zoned.timestamp().as_millisecond());
        u64::try_from(moment).unwrap_or_default() + offset_ms
    };
    let first = today.first_of_month();
    Window { starts_ms: start_of(first), ends_ms: start_of(first.saturating_add(1.month())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(moment: &str) -> u64 {
        moment.parse::<Timestamp>().expect("a moment").as_millisecond().unsigned_abs()
    }

    #[test]
    fn windows_begin_where_the_calendar_says() {
        for (period, now, starts, ends) in [
            (Period::Seconds(60), "2026-03-04T05:06:07Z", "2026-03-04T05:06:00Z", "2026-03-04T05:07:00Z"),
            (Period::Day(0), "2026-03-04T05:06:07Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"),
            (Period::Day(360), "2026-03-04T05:06:07Z", "2026-03-03T06:00:00Z", "2026-03-04T06:00:00Z"),
            (Period::Week(0), "2026-03-04T05:06:07Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"),
            (Period::Month(0), "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            (Period::Month(60), "2026-03-01T00:30:00Z", "2026-02-01T01:00:00Z", "2026-03-01T01:00:00Z"),
        ] {
            let window = Window { starts_ms: ms(starts), ends_ms: ms(ends) };
            assert_eq!(period.window(ms(now)), window, "{period:?} {now}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_is_in_its_window_and_the_next_begins_where_it_ends(
            now_ms in 0_u64..4_000_000_000_000,
            period in prop_oneof![
                (1_u64..10_000_000).prop_map(Period::Seconds),
                (0_u16..1_440).prop_map(Period::Day),
                (0_u16..1_440).prop_map(Period::Week),
                (0_u16..1_440).prop_map(Period::Month),
            ],
        ) {
            // The first month of all is cut off by 1970.
            prop_assume!(now_ms > 40 * DAY_MS);
            let window = period.window(now_ms);
            prop_assert!(window.starts_ms <= now_ms && now_ms < window.ends_ms);
            prop_assert_eq!(period.window(window.ends_ms).starts_ms, window.ends_ms);
            prop_assert_eq!(period.window(window.ends_ms - 1), window);
        }
    }
}
