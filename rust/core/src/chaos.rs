//! Injected faults for the calls of a key, so that developers can test how their program behaves when a provider fails.

use crate::error::{Error, ErrorKind};
use crate::strategy::Random;
use serde::Deserialize;

/// The `Retry-After` of injected failures, in seconds.
const RETRY_AFTER_S: u64 = 1;

/// A fault that can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// 502, as if the provider had failed.
    Error,
    /// 503 with `Retry-After`, as if the provider were overloaded.
    Overload,
    /// 429 with `Retry-After`, as if the provider had limited the account.
    RateLimit,
    /// 504 after the latency, as if the provider did not answer.
    Timeout,
    /// The answer is delayed by the latency.
    Latency,
}

impl Fault {
    pub const ALL: &'static [Fault] = &[Self::Error, Self::Overload, Self::RateLimit, Self::Timeout, Self::Latency];

    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Overload => "overload",
            Self::RateLimit => "rate-limit",
            Self::Timeout => "timeout",
            Self::Latency => "latency",
        }
    }

    /// Whether the fault delays the call.
    pub fn waits(self) -> bool {
        matches!(self, Self::Timeout | Self::Latency)
    }

    /// The error to return to the caller; `None` if the call proceeds.
    pub fn error(self) -> Option<Error> {
        let kind = match self {
            Self::Error => ErrorKind::UpstreamStatus,
            Self::Overload => ErrorKind::UpstreamOverloaded,
            Self::RateLimit => ErrorKind::UpstreamRateLimited,
            Self::Timeout => ErrorKind::UpstreamTimeout,
            Self::Latency => return None,
        };
        let message = format!(
            "A fault of the kind `{}` that this key's `chaosModeEnabled` asks for; no provider was asked.",
            self.name()
        );
        // The origin is the gateway, so the fault does not affect the provider's health.
        let mut error = Error::gateway(kind, message);
        if matches!(self, Self::Overload | Self::RateLimit) {
            error.retry_after_s = Some(RETRY_AFTER_S);
        }
        Some(error)
    }
}

/// The fault injection settings of one key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Chaos {
    /// The share of calls that get a fault, from 0 to 1.
    pub rate: f64,
    /// The faults to choose from, with equal probability.
    pub faults: Vec<Fault>,
    /// The delay of `Timeout` and `Latency`.
    pub latency_ms: u64,
}

impl Chaos {
    /// Draws the fault of one call, if it gets one.
    pub fn draw(&self, random: &mut Random) -> Option<Fault> {
        if self.faults.is_empty() || random.unit() >= self.rate {
            return None;
        }
        self.faults.get(random.below(self.faults.len())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chaos(rate: f64, faults: &[Fault]) -> Chaos {
        Chaos { rate, faults: faults.to_vec(), latency_ms: 5 }
    }

    #[test]
    fn faults_come_at_the_rate_and_each_as_often() {
        let mut random = Random::seeded(11);
        assert!((0..1_000).all(|_| chaos(0.0, Fault::ALL).draw(&mut random).is_none()));
        assert!((0..1_000).all(|_| chaos(1.0, &[]).draw(&mut random).is_none()));
        let one = chaos(1.0, &[Fault::Timeout]);
        assert!((0..1_000).all(|_| one.draw(&mut random) == Some(Fault::Timeout)));
        let drawn: Vec<Fault> = (0..20_000).filter_map(|_| chaos(0.25, Fault::ALL).draw(&mut random)).collect();
        assert!((4_700..5_300).contains(&drawn.len()), "{}", drawn.len());
        for fault in Fault::ALL {
            let count = drawn.iter().filter(|each| *each == fault).count();
            assert!((850..1_150).contains(&count), "{fault:?} {count}");
        }
    }

    #[test]
    fn faults_have_the_names_that_they_are_read_by() {
        for fault in Fault::ALL {
            let read: Fault = serde_json::from_value(fault.name().into()).expect("a fault");
            assert_eq!(read, *fault);
            assert_eq!(fault.error().is_none(), *fault == Fault::Latency);
        }
    }
}
