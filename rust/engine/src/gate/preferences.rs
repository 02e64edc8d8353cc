//! A caller's preferences: about the response cache, and about the form of the answer.

use crate::gate::headers::value;
use crate::gate::inbound::CacheHeaders;
use fairlead_core::{Error, ErrorKind};
use http::{HeaderMap, HeaderValue};

/// `X-Gateway-Cache-Mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Not sent: a request of temperature 0 is looked up, in every way that the operator wants.
    #[default]
    Unsaid,
    /// Looked up whatever its temperature, and answered from an equal request only.
    Exact,
    /// Looked up whatever its temperature, and by meaning where the operator allows it.
    Vector,
}

/// A caller's wishes about the response cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CachePreference {
    pub is_declined: bool,
    pub mode: CacheMode,
    /// No less than this is near.
    pub threshold: Option<f32>,
    /// Headers that change the answer, as they came.
    pub shape: Vec<Vec<u8>>,
}

impl CachePreference {
    pub fn read(sheet: &CacheHeaders<'_>) -> Result<Self, Error> {
        let wrong = |name: &'static str, rule: &str| {
            Error::client(ErrorKind::InvalidRequest, format!("`{name}` must be {rule}.")).about(name)
        };
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

    /// Writes them as the headers that they were read from.
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
        for said in self.shape.iter().filter_map(|said| HeaderValue::from_bytes(said).ok()) {
            headers.insert("x-gateway-no-memory", said);
        }
    }
}

/// Whether `Accept` names `text/event-stream`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accepts {
    #[default]
    No,
    /// Beside other things.
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
