//! A caller's preferences about the response cache, the choice of a target, and the format of the response.

use crate::gate::headers::value;
use crate::gate::inbound::{CacheHeaders, RouteHeaders};
use fairlead_core::strategy::Pack;
use fairlead_core::{Error, ErrorKind, Inexpressible};
use http::{HeaderMap, HeaderValue};

/// `X-Gateway-Cache-Mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Not sent: a request with temperature 0 is looked up, in all ways that the operator enabled.
    #[default]
    Unsaid,
    /// Looked up regardless of temperature, for an equal request only.
    Exact,
    /// Looked up regardless of temperature, also by similarity if the operator enabled it.
    Vector,
}

/// A caller's preferences about the response cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CachePreference {
    pub is_declined: bool,
    pub mode: CacheMode,
    /// The minimum similarity.
    pub threshold: Option<f32>,
    /// Headers that affect the response, as sent.
    pub shape: Vec<Vec<u8>>,
}

impl CachePreference {
    pub fn read(sheet: &CacheHeaders<'_>) -> Result<Self, Error> {
        let mode = match sheet.mode {
            None => CacheMode::Unsaid,
            Some("exact") => CacheMode::Exact,
            Some("vector") => CacheMode::Vector,
            Some(_) => return Err(wrong("X-Gateway-Cache-Mode", "`exact` or `vector`")),
        };
        let threshold = match sheet.threshold.map(str::parse::<f32>) {
            None => None,
            Some(Ok(number)) if (0.0..=1.0).contains(&number) => Some(number),
            Some(_) => return Err(wrong("X-Gateway-Cache-Threshold", "a number from 0 to 1")),
        };
        let shape = sheet.no_memory.map(<[u8]>::to_vec).into_iter().collect();
        Ok(Self { is_declined: sheet.no_cache, mode, threshold, shape })
    }

    /// Writes the preferences as the headers that they were read from.
    pub fn write(&self, headers: &mut HeaderMap) {
        if self.is_declined {
            headers.insert("x-gateway-no-cache", HeaderValue::from_static("true"));
        }
        let mode = match self.mode {
            CacheMode::Unsaid => None,
            CacheMode::Exact => Some("exact"),
            CacheMode::Vector => Some("vector"),
        };
        if let Some(mode) = mode {
            headers.insert("x-gateway-cache-mode", HeaderValue::from_static(mode));
        }
        if let Some(threshold) = self.threshold {
            headers.insert("x-gateway-cache-threshold", value(threshold.to_string()));
        }
        for shape in self.shape.iter().filter_map(|shape| HeaderValue::from_bytes(shape).ok()) {
            headers.insert("x-gateway-no-memory", shape);
        }
    }
}

fn wrong(name: &'static str, rule: &str) -> Error {
    Error::client(ErrorKind::InvalidRequest, format!("`{name}` must be {rule}.")).about(name)
}

/// A caller's preferences about the choice of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoutePreference {
    /// `X-Gateway-Mode`: the weights for `auto`.
    pub pack: Option<Pack>,
    pub budget: Option<CallBudget>,
    /// `X-Gateway-Inexpressible`: what is done with members that the provider does not accept.
    pub inexpressible: Option<Inexpressible>,
}

/// The maximum cost of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBudget {
    /// `X-Gateway-Budget`.
    pub usd_micros: u64,
    /// `X-Gateway-Budget-Fallback`: if no target fits the budget, use the cheapest instead of failing.
    pub falls_back: bool,
}

/// The highest accepted value; a larger one is assumed to be a mistake.
const MAX_BUDGET_USD: f64 = 1e6;
const BUDGET: &str = "X-Gateway-Budget";
const BUDGET_FALLBACK: &str = "X-Gateway-Budget-Fallback";

impl RoutePreference {
    pub fn read(sheet: &RouteHeaders<'_>) -> Result<Self, Error> {
        let modes = "`balanced`, `fast`, `cheap`, `quality`, `reliable` or `offline`";
        let pack = match sheet.mode {
            None => None,
            Some(mode) => Some(Pack::of_mode(mode).ok_or_else(|| wrong("X-Gateway-Mode", modes))?),
        };
        let falls_back = match sheet.budget_fallback {
            None | Some("strict") => false,
            Some("cheapest") => true,
            Some(_) => return Err(wrong(BUDGET_FALLBACK, "`strict` or `cheapest`")),
        };
        let budget = match sheet.budget.map(str::parse::<f64>) {
            None if sheet.budget_fallback.is_some() => return Err(wrong(BUDGET_FALLBACK, "beside X-Gateway-Budget")),
            None => None,
            Some(Ok(usd)) if (0.0..=MAX_BUDGET_USD).contains(&usd) => {
                Some(CallBudget { usd_micros: (usd * 1e6).round() as u64, falls_back })
            }
            Some(_) => return Err(wrong(BUDGET, "a number of US dollars from 0 to 1000000")),
        };
        let inexpressible = match sheet.inexpressible {
            None => None,
            Some("refuse") => Some(Inexpressible::Refuse),
            Some("drop") => Some(Inexpressible::Drop),
            Some(_) => return Err(wrong("X-Gateway-Inexpressible", "`refuse` or `drop`")),
        };
        Ok(Self { pack, budget, inexpressible })
    }

    /// Writes the preferences as the headers that they were read from.
    pub fn write(&self, headers: &mut HeaderMap) {
        if let Some(pack) = self.pack {
            headers.insert("x-gateway-mode", HeaderValue::from_static(pack.name()));
        }
        if let Some(budget) = self.budget {
            headers.insert("x-gateway-budget", value(dollars(budget.usd_micros)));
            let fallback = if budget.falls_back { "cheapest" } else { "strict" };
            headers.insert("x-gateway-budget-fallback", HeaderValue::from_static(fallback));
        }
        if let Some(inexpressible) = self.inexpressible {
            headers.insert("x-gateway-inexpressible", HeaderValue::from_static(inexpressible.name()));
        }
    }
}

/// Formats micro-dollars as dollars.
pub fn dollars(usd_micros: u64) -> String {
    format!("{}.{:06}", usd_micros / 1_000_000, usd_micros % 1_000_000)
}

/// Whether `Accept` contains `text/event-stream`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accepts {
    #[default]
    No,
    /// Among other types.
    Among,
    Only,
}

impl Accepts {
    pub fn read(accept: Option<&[u8]>) -> Self {
        let named = accept.unwrap_or_default().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let (mut is_named, mut others) = (false, false);
        for one in named.filter(|one| !one.is_empty()) {
            let essence = one.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            if essence.eq_ignore_ascii_case(b"text/event-stream") {
                is_named = true;
            } else {
                others = true;
            }
        }
        match (is_named, others) {
            (false, _) => Self::No,
            (true, true) => Self::Among,
            (true, false) => Self::Only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_or_refused() {
        let read =
            |mode, threshold| CachePreference::read(&CacheHeaders { mode, threshold, ..CacheHeaders::default() });
        assert_eq!(read(None, None).map(|wish| wish.mode).ok(), Some(CacheMode::Unsaid));
        assert_eq!(read(Some("vector"), Some("0.95")).map(|wish| wish.threshold).ok(), Some(Some(0.95)));
        for (mode, threshold) in [(Some("semantic"), None), (None, Some("2")), (None, Some("NaN")), (None, Some(""))] {
            assert!(read(mode, threshold).is_err(), "{mode:?} {threshold:?}");
        }
    }

    #[test]
    fn a_wish_about_members_is_read_or_refused_and_written_as_it_was_read() {
        let read = |text| RoutePreference::read(&RouteHeaders { inexpressible: text, ..RouteHeaders::default() });
        for (text, expected) in [("refuse", Inexpressible::Refuse), ("drop", Inexpressible::Drop)] {
            let wish = read(Some(text)).expect("a wish");
            assert_eq!(wish.inexpressible, Some(expected));
            let mut headers = HeaderMap::new();
            wish.write(&mut headers);
            assert_eq!(headers.get("x-gateway-inexpressible").and_then(|value| value.to_str().ok()), Some(text));
        }
        let fault = read(Some("ignore")).expect_err("no such wish");
        assert_eq!(fault.param.as_deref(), Some("X-Gateway-Inexpressible"));
    }

    #[test]
    fn a_wish_for_a_target_is_read_or_refused_and_written_as_it_was_read() {
        fn read(
            mode: Option<&str>,
            budget: Option<&str>,
            budget_fallback: Option<&str>,
        ) -> Result<RoutePreference, Error> {
            RoutePreference::read(&RouteHeaders { mode, budget, budget_fallback, ..RouteHeaders::default() })
        }
        let budget = |usd_micros, falls_back| Some(CallBudget { usd_micros, falls_back });
        assert_eq!(read(None, None, None), Ok(RoutePreference::default()));
        assert_eq!(read(Some("cheap"), None, None).map(|wish| wish.pack), Ok(Some(Pack::CostSaver)));
        assert_eq!(read(Some("ship-fast"), None, None).map(|wish| wish.pack), Ok(Some(Pack::ShipFast)));
        assert_eq!(read(None, Some("0.000003"), None).map(|wish| wish.budget), Ok(budget(3, false)));
        assert_eq!(read(None, Some("2"), Some("cheapest")).map(|wish| wish.budget), Ok(budget(2_000_000, true)));
        for (mode, sum, fallback) in [
            (Some("best"), None, None),
            (Some(""), None, None),
            (None, Some("-1"), None),
            (None, Some("NaN"), None),
            (None, Some("inf"), None),
            (None, Some("$1"), None),
            (None, Some("1"), Some("dearest")),
            (None, None, Some("strict")),
        ] {
            let fault = read(mode, sum, fallback).expect_err("no such wish");
            assert_eq!(fault.kind, ErrorKind::InvalidRequest, "{mode:?} {sum:?} {fallback:?}");
        }
        for pack in Pack::ALL {
            let wish =
                RoutePreference { pack: Some(*pack), budget: budget(1_250_000, true), ..RoutePreference::default() };
            let mut headers = HeaderMap::new();
            wish.write(&mut headers);
            let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            let [mode, sum, fallback] = ["x-gateway-mode", "x-gateway-budget", "x-gateway-budget-fallback"].map(text);
            assert_eq!(read(mode, sum, fallback), Ok(wish));
        }
    }

    #[test]
    fn accept_is_read_as_a_list() {
        for (accept, expected) in [
            ("", Accepts::No),
            ("*/*", Accepts::No),
            ("application/json", Accepts::No),
            ("text/event-stream", Accepts::Only),
            (" Text/Event-Stream;q=0.9 ,", Accepts::Only),
            ("application/json, text/event-stream", Accepts::Among),
            ("text/event-streams", Accepts::No),
        ] {
            assert_eq!(Accepts::read(Some(accept.as_bytes())), expected, "{accept}");
        }
        assert_eq!(Accepts::read(None), Accepts::No);
    }
}
