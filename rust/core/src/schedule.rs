//! When a key may be used: hours of the day on days of the week, in the schedule's time zone.
//!
//! Zones come from the built-in IANA database, so that all machines agree.

use jiff::tz::TimeZone;
use jiff::Timestamp;
use serde::Deserialize;

const MINUTES_A_DAY: u16 = 24 * 60;

/// Open from `from` until `until` on `days`. If `until` is earlier, the schedule ends on the next day, and `days` names
/// the day on which it starts.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Wire")]
pub struct Schedule {
    from_minute: u16,
    until_minute: u16,
    /// Sunday first.
    days: [bool; 7],
    /// `None` if the zone is unknown, so that the schedule cannot be evaluated.
    zone: Option<TimeZone>,
    text: String,
}

#[derive(Deserialize)]
struct Wire {
    from: String,
    until: String,
    days: Vec<u8>,
    tz: String,
}

impl TryFrom<Wire> for Schedule {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let minute = |text: &str| -> Option<u16> {
            let (hours, minutes) = text.split_once(':')?;
            let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let bounds = minute(&wire.from).zip(minute(&wire.until));
        let (from_minute, until_minute) = bounds.ok_or("a time is written HH:MM")?;
        let mut days = [false; 7];
        for day in wire.days {
            *days.get_mut(usize::from(day)).ok_or("a day is 0 (Sunday) to 6")? = true;
        }
        let zone = TimeZone::get(&wire.tz).ok();
        Ok(Self { from_minute, until_minute, days, zone, text: format!("{}-{} {}", wire.from, wire.until, wire.tz) })
    }
}

impl Schedule {
    /// Whether the schedule is open at this time. With an unknown zone it never is, because a rule that cannot be
    /// evaluated must not grant access.
    pub fn is_open(&self, unix_ms: u64) -> bool {
        let Some(zone) = &self.zone else { return false };
        let Some(now) = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()) else {
            return false;
        };
        let local = now.to_zoned(zone.clone());
        let minute = u16::from(local.hour().unsigned_abs()) * 60 + u16::from(local.minute().unsigned_abs());
        let today = local.weekday().to_sunday_zero_offset().unsigned_abs() as usize % 7;
        let yesterday = (today + 6) % 7;
        if self.from_minute < self.until_minute {
            return self.days[today] && (self.from_minute..self.until_minute).contains(&minute);
        }
        (self.days[today] && (self.from_minute..MINUTES_A_DAY).contains(&minute))
            || (self.days[yesterday] && minute < self.until_minute)
    }

    /// The text for the caller: `09:00-17:00 Europe/Vienna`.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(json: &str) -> Schedule {
        serde_json::from_str(json).expect("a schedule")
    }

    fn at(moment: &str) -> u64 {
        moment.parse::<Timestamp>().expect("a moment").as_millisecond().unsigned_abs()
    }

    #[test]
    fn hours_are_those_of_the_zone_through_the_change_to_summer_time() {
        let office =
            schedule(r#"{"enabled":true,"from":"09:00","until":"17:00","days":[1,2,3,4,5],"tz":"Europe/Vienna"}"#);
        for (moment, open) in [
            ("2026-01-05T07:59:59Z", false), // Monday 08:59 in winter
            ("2026-01-05T08:00:00Z", true),
            ("2026-01-05T15:59:59Z", true),
            ("2026-01-05T16:00:00Z", false),
            ("2026-07-06T07:00:00Z", true), // Monday 09:00 in summer
            ("2026-07-06T15:00:00Z", false),
            ("2026-01-04T10:00:00Z", false), // Sunday
        ] {
            assert_eq!(office.is_open(at(moment)), open, "{moment}");
        }
        assert_eq!(office.text(), "09:00-17:00 Europe/Vienna");
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let night = schedule(r#"{"from":"22:00","until":"06:00","days":[5],"tz":"UTC"}"#); // Friday
        for (moment, open) in [
            ("2026-01-02T21:59:00Z", false),
            ("2026-01-02T22:00:00Z", true), // Friday
            ("2026-01-03T05:59:00Z", true), // Saturday morning
            ("2026-01-03T06:00:00Z", false),
            ("2026-01-03T22:30:00Z", false), // Saturday night
            ("2026-01-02T03:00:00Z", false), // Friday morning belongs to Thursday night
        ] {
            assert_eq!(night.is_open(at(moment)), open, "{moment}");
        }
    }

    #[test]
    fn what_cannot_be_read_opens_nothing() {
        let unknown = schedule(r#"{"from":"00:00","until":"23:59","days":[0,1,2,3,4,5,6],"tz":"Mars/Olympus"}"#);
        assert!(!unknown.is_open(at("2026-01-02T12:00:00Z")));
        for bad in [
            r#"{"from":"24:00","until":"06:00","days":[5],"tz":"UTC"}"#,
            r#"{"from":"2200","until":"06:00","days":[5],"tz":"UTC"}"#,
            r#"{"from":"22:00","until":"06:00","days":[7],"tz":"UTC"}"#,
        ] {
            assert!(serde_json::from_str::<Schedule>(bad).is_err(), "{bad}");
        }
    }
}
