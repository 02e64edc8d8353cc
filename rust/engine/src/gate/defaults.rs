//! Defaults of a key for its requests: `stream` if the request does not set it (`streamDefaultMode` and the caller's
//! `Accept`), and the service tier (`toolServiceMode`).

use crate::gate::preferences::Accepts;
use crate::gate::request::Admission;
use bytes::{Bytes, BytesMut};
use fairlead_core::routes::Surface;
use fairlead_core::{json, Dialect, ModelFacts, ServiceMode, StreamDefaultMode};

/// Returns the body with `stream` added if the request does not set it and the caller expects a stream.
pub fn with_stream(admission: &Admission, body: &Bytes) -> Option<Bytes> {
    let mode = admission.principal.key().map_or(StreamDefaultMode::Legacy, |key| key.stream_default_mode);
    let wants = match admission.accepts_events {
        Accepts::No => false,
        Accepts::Among => mode == StreamDefaultMode::Legacy,
        Accepts::Only => true,
    };
    if !wants || !matches!(admission.route.surface, Surface::OpenAi | Surface::Anthropic) {
        return None;
    }
    add_stream(body)
}

fn add_stream(body: &Bytes) -> Option<Bytes> {
    // The next parser of the body reports what is wrong with it.
    let scan = json::scan_object(body, &["stream"], json::MAX_DEPTH).ok()?;
    if scan.get("stream").is_some() {
        return None;
    }
    insert_first(body, br#""stream":true"#)
}

/// The service tier of a key, for a provider.
#[derive(Debug, Clone, Copy)]
pub struct Tier<'f> {
    pub mode: ServiceMode,
    pub dialect: Dialect,
    pub facts: &'f ModelFacts,
}

impl Tier<'_> {
    /// The provider's name of the tier; `None` if the key leaves it to the caller, or the provider has no such tier.
    fn name(self) -> Option<&'static str> {
        let name = match (self.dialect, self.mode) {
            (Dialect::Openai | Dialect::OpenaiResponses, mode) => chat_tier(mode)?,
            (Dialect::Anthropic, ServiceMode::Default) => "standard_only",
            (Dialect::Anthropic, ServiceMode::Priority) => "auto",
            // Anthropic's dialect has no cheaper tier.
            (Dialect::Anthropic | Dialect::Gemini, _) => return None,
        };
        self.facts.has_service_tier(name).then_some(name)
    }

    /// Returns the body with the tier; `None` if nothing changes.
    pub fn added_to(self, body: &Bytes) -> Option<Bytes> {
        let tier = self.name()?;
        let scan = json::scan_object(body, &["service_tier"], json::MAX_DEPTH).ok()?;
        let Some(own) = scan.get("service_tier") else {
            return insert_first(body, format!(r#""service_tier":"{tier}""#).as_bytes());
        };
        let (before, after) = (body.get(..own.span().start)?, body.get(own.span().end..)?);
        Some(Bytes::from([before, format!(r#""{tier}""#).as_bytes(), after].concat()))
    }
}

/// The tier's name in OpenAI's dialects; `None` if the caller chooses the tier.
pub fn chat_tier(mode: ServiceMode) -> Option<&'static str> {
    match mode {
        ServiceMode::Inherit => None,
        ServiceMode::Default => Some("default"),
        ServiceMode::Priority => Some("priority"),
        ServiceMode::Flex => Some("flex"),
    }
}

/// Inserts a member at the start of an object.
fn insert_first(body: &Bytes, member: &[u8]) -> Option<Bytes> {
    let brace = body.iter().position(|&byte| byte == b'{')?;
    let rest = &body[brace + 1..];
    let is_empty = rest.trim_ascii_start().first() == Some(&b'}');
    let mut grown = BytesMut::with_capacity(body.len() + member.len() + 1);
    grown.extend_from_slice(&body[..=brace]);
    grown.extend_from_slice(member);
    if !is_empty {
        grown.extend_from_slice(b",");
    }
    grown.extend_from_slice(rest);
    Some(grown.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_put_in_once() {
        let added = |body: &'static str| {
            add_stream(&Bytes::from_static(body.as_bytes())).map(|body| String::from_utf8(body.to_vec()).expect("text"))
        };
        assert_eq!(added(r#" {"model":"m"}"#).as_deref(), Some(r#" {"stream":true,"model":"m"}"#));
        assert_eq!(added("{ }").as_deref(), Some(r#"{"stream":true }"#));
        for body in [r#"{"stream":false}"#, r#"{"stream":null}"#, r#"{"a":1,"stream":true}"#, "[]", "{"] {
            assert_eq!(added(body), None, "{body}");
        }
    }

    #[test]
    fn the_tier_of_the_key_goes_before_the_callers() {
        let tiered = |mode, dialect, body: &'static str| {
            Tier { mode, dialect, facts: &ModelFacts::default() }
                .added_to(&Bytes::from_static(body.as_bytes()))
                .map(|body| String::from_utf8(body.to_vec()).expect("text"))
        };
        let (flex, priority) = (ServiceMode::Flex, ServiceMode::Priority);
        assert_eq!(tiered(ServiceMode::Inherit, Dialect::Openai, "{}"), None);
        let added = tiered(flex, Dialect::Openai, r#"{"model":"m"}"#);
        assert_eq!(added.as_deref(), Some(r#"{"service_tier":"flex","model":"m"}"#));
        let replaced = tiered(priority, Dialect::OpenaiResponses, r#"{"a":1,"service_tier": null,"b":2}"#);
        assert_eq!(replaced.as_deref(), Some(r#"{"a":1,"service_tier": "priority","b":2}"#));
        assert_eq!(tiered(priority, Dialect::Anthropic, "{}").as_deref(), Some(r#"{"service_tier":"auto"}"#));
        let standard = tiered(ServiceMode::Default, Dialect::Anthropic, r#"{"service_tier":"auto"}"#);
        assert_eq!(standard.as_deref(), Some(r#"{"service_tier":"standard_only"}"#));
        assert_eq!(tiered(flex, Dialect::Anthropic, "{}"), None);
        assert_eq!(tiered(flex, Dialect::Gemini, "{}"), None);
        assert_eq!(tiered(flex, Dialect::Openai, "[]"), None);
        let tiers = |names: &str| {
            serde_json::from_str::<ModelFacts>(&format!(r#"{{"service_tiers":{names}}}"#)).expect("facts")
        };
        for (names, is_added) in [("[]", false), (r#"["auto"]"#, false), (r#"["auto","flex"]"#, true)] {
            let tier = Tier { mode: flex, dialect: Dialect::Openai, facts: &tiers(names) };
            assert_eq!(tier.added_to(&Bytes::from_static(b"{}")).is_some(), is_added, "{names}");
        }
    }
}
