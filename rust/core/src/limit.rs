//! Limits: a maximum amount per period. Requests per minute, dollars per day and tokens per month are all limits.

use crate::model_name;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The unit that a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    Requests,
    /// Input and output together, as the provider counts them.
    Tokens,
    UsdMicros,
}

/// The period after which counting restarts. Days, weeks and months follow the limit's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPeriod {
    /// Windows of this length in seconds, counted from 1970.
    Seconds(u64),
    /// From this minute of the day to the same minute of the next day.
    Day(u16),
    /// From this minute of Monday.
    Week(u16),
    /// From this minute of the first day of the month.
    Month(u16),
}

/// Which requests a limit applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    #[default]
    All,
    Model(String),
    Provider(String),
}

/// The group that a limit belongs to.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    pub id: String,
    pub name: String,
}

/// A limit of one key, or of all keys of a group together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Limit {
    /// The id of the limit, unique among the limits of a key and its groups.
    pub id: String,
    /// The field that set the limit, for messages to the caller.
    pub name: String,
    pub unit: LimitUnit,
    pub amount: u64,
    pub period: LimitPeriod,
    #[serde(default)]
    pub scope: LimitScope,
    #[serde(default)]
    pub zone: Zone,
    /// Absent for a limit of the key itself.
    #[serde(skip)]
    pub group: Option<Arc<Holder>>,
}

/// The time zone of a limit's days, weeks and months.
///
/// Zones come from the built-in IANA database. An unknown zone counts as UTC, so that the limit still applies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl From<String> for Zone {
    fn from(name: String) -> Self {
        Self::find(&name).unwrap_or_default()
    }
}

impl Zone {
    /// Finds the zone with this IANA name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        if name == "UTC" {
            return Some(Self::default());
        }
        TimeZone::get(name).ok().map(Self)
    }
}

/// A time span in Unix milliseconds. The end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub starts_ms: u64,
    pub ends_ms: u64,
}

/// One model of one provider that serves a request or could serve it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served<'a> {
    pub provider: &'a str,
    /// The prefixes, before the slash, under which the provider's models can be called.
    pub prefixes: &'a [String],
    /// The provider's own name of the model.
    pub upstream_model: &'a str,
}

impl Served<'_> {
    /// Whether a limit's name means this model, with any of its prefixes or without one. The alias or combo that the
    /// caller used does not matter. Case is ignored, because a provider may ignore it.
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
    /// Whether both limits count the same requests, whatever their amounts.
    pub fn counts_like(&self, other: &Limit) -> bool {
        (self.unit, self.period, &self.scope, &self.zone) == (other.unit, other.period, &other.scope, &other.zone)
    }

    /// The window that contains this time.
    pub fn window(&self, now_ms: u64) -> Window {
        self.period.window(&self.zone, now_ms)
    }

    /// Whether a request counts as soon as it is admitted. A limit on one provider counts it only after that provider
    /// was asked.
    pub fn is_counted_at_once(&self) -> bool {
        self.unit == LimitUnit::Requests && !matches!(self.scope, LimitScope::Provider(_))
    }

    /// Whether the limit applies to a request for `model`, the caller's name for it, that was served this way.
    pub fn applies_to(&self, model: &str, served: &Served<'_>) -> bool {
        match &self.scope {
            LimitScope::All => true,
            scope @ LimitScope::Model(name) => scope.is_model(model) || served.is_model(name),
            LimitScope::Provider(name) => name == served.provider,
        }
    }
}

impl LimitScope {
    /// Whether this is a limit on the model that the caller named. Case is ignored.
    pub fn is_model(&self, named: &str) -> bool {
        matches!(self, Self::Model(name) if name.eq_ignore_ascii_case(named))
    }
}

impl LimitPeriod {
    /// The window that contains this time.
    pub fn window(self, zone: &Zone, now_ms: u64) -> Window {
        match self {
            Self::Seconds(seconds) => {
                let length_ms = seconds.max(1).saturating_mul(1_000);
                let starts_ms = now_ms - now_ms % length_ms;
                Window { starts_ms, ends_ms: starts_ms.saturating_add(length_ms) }
            }
            Self::Day(minute) | Self::Week(minute) | Self::Month(minute) => self.calendar_window(zone, minute, now_ms),
        }
    }

    /// The window from `minute` of the first day of a calendar period to that of the next period, in local time. If the
    /// clocks skip that minute, the period begins at the first minute after it. If they repeat it, the period begins at
    /// the earlier one.
    fn calendar_window(self, zone: &Zone, minute: u16, now_ms: u64) -> Window {
        let starts_of = |first: Date| {
            let minute_of_hour = i8::try_from(minute % 60).unwrap_or_default();
            let hour = i8::try_from(minute / 60 % 24).unwrap_or_default();
            let moment = first.at(hour, minute_of_hour, 0, 0).to_zoned(zone.0.clone());
            let unix_ms = moment.map_or(i64::MAX, |zoned| zoned.timestamp().as_millisecond());
            u64::try_from(unix_ms).unwrap_or_default()
        };
        let now = i64::try_from(now_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let today = now.unwrap_or(Timestamp::MAX).to_zoned(zone.0.clone()).date();
        let mut first = self.first_day(today);
        if starts_of(first) > now_ms {
            first = self.first_day(first.saturating_sub(1.day()));
        }
        let mut next = self.next_first_day(first);
        // When clocks are set back over midnight, the previous day appears again, but its window has already ended.
        if starts_of(next) <= now_ms {
            (first, next) = (next, self.next_first_day(next));
        }
        Window { starts_ms: starts_of(first), ends_ms: starts_of(next) }
    }

    fn first_day(self, day: Date) -> Date {
        match self {
            Self::Week(_) => day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days()),
            Self::Month(_) => day.first_of_month(),
            Self::Seconds(_) | Self::Day(_) => day,
        }
    }

    fn next_first_day(self, first: Date) -> Date {
        match self {
            Self::Week(_) => first.saturating_add(1.week()),
            Self::Month(_) => first.saturating_add(1.month()),
            Self::Seconds(_) | Self::Day(_) => first.saturating_add(1.day()),
        }
    }
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
            (LimitPeriod::Seconds(60), "2026-03-04T05:06:07Z", "2026-03-04T05:06:00Z", "2026-03-04T05:07:00Z"),
            (LimitPeriod::Day(0), "2026-03-04T05:06:07Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"),
            (LimitPeriod::Day(360), "2026-03-04T05:06:07Z", "2026-03-03T06:00:00Z", "2026-03-04T06:00:00Z"),
            (LimitPeriod::Week(0), "2026-03-04T05:06:07Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"),
            (LimitPeriod::Month(0), "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            (LimitPeriod::Month(60), "2026-03-01T00:30:00Z", "2026-02-01T01:00:00Z", "2026-03-01T01:00:00Z"),
        ] {
            let window = Window { starts_ms: ms(starts), ends_ms: ms(ends) };
            assert_eq!(period.window(&Zone::default(), ms(now)), window, "{period:?} {now}");
        }
    }

    #[test]
    fn days_and_months_are_those_of_the_zone_through_changes_of_its_clocks() {
        for (zone, period, now, starts, ends) in [
            // Days of 23 and 25 hours.
            (
                "Europe/Vienna",
                LimitPeriod::Day(0),
                "2026-03-29T12:00:00Z",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                "Europe/Vienna",
                LimitPeriod::Day(0),
                "2026-10-25T12:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                "Europe/Vienna",
                LimitPeriod::Month(0),
                "2026-03-31T21:59:59Z",
                "2026-02-28T23:00:00Z",
                "2026-03-31T22:00:00Z",
            ),
            (
                "America/New_York",
                LimitPeriod::Week(0),
                "2026-03-08T12:00:00Z",
                "2026-03-02T05:00:00Z",
                "2026-03-09T04:00:00Z",
            ),
            (
                "Asia/Kathmandu",
                LimitPeriod::Day(0),
                "2026-01-01T18:14:59Z",
                "2025-12-31T18:15:00Z",
                "2026-01-01T18:15:00Z",
            ),
            // A midnight that the clocks skip, a minute of a new day that they repeat, and a day that never existed.
            (
                "America/Sao_Paulo",
                LimitPeriod::Day(0),
                "2018-11-04T12:00:00Z",
                "2018-11-04T03:00:00Z",
                "2018-11-05T02:00:00Z",
            ),
            (
                "America/St_Johns",
                LimitPeriod::Day(0),
                "2006-10-29T03:00:00Z",
                "2006-10-29T02:30:00Z",
                "2006-10-30T03:30:00Z",
            ),
            (
                "Pacific/Apia",
                LimitPeriod::Day(0),
                "2011-12-30T09:59:59Z",
                "2011-12-29T10:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
        ] {
            let window = Window { starts_ms: ms(starts), ends_ms: ms(ends) };
            assert_eq!(period.window(&Zone::find(zone).expect("a zone"), ms(now)), window, "{zone} {period:?} {now}");
        }
    }

    #[test]
    fn a_zone_that_is_not_known_counts_as_utc() {
        assert_eq!(Zone::find("Mars/Olympus"), None);
        assert_eq!(Zone::from("Mars/Olympus".to_owned()), Zone::default());
    }

    proptest! {
        #[test]
        fn every_moment_is_in_its_window_and_the_next_begins_where_it_ends(
            now_ms in 0_u64..4_000_000_000_000,
            period in prop_oneof![
                (1_u64..10_000_000).prop_map(LimitPeriod::Seconds),
                (0_u16..1_440).prop_map(LimitPeriod::Day),
                (0_u16..1_440).prop_map(LimitPeriod::Week),
                (0_u16..1_440).prop_map(LimitPeriod::Month),
            ],
            zone in prop::sample::select(vec![
                "UTC", "Europe/Vienna", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
                "Asia/Kathmandu", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
            ]),
        ) {
            // 1970 cuts off the first month.
            prop_assume!(now_ms > 40 * 86_400_000);
            let zone = Zone::find(zone).expect("a zone");
            let window = period.window(&zone, now_ms);
            prop_assert!(window.starts_ms <= now_ms && now_ms < window.ends_ms);
            prop_assert_eq!(period.window(&zone, window.ends_ms).starts_ms, window.ends_ms);
            prop_assert_eq!(period.window(&zone, window.ends_ms - 1), window);
        }
    }
}
