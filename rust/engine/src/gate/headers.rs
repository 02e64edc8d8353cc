//! The gateway's response headers, and functions to create their values.

use http::header::{HeaderName, HeaderValue};
use std::fmt::Write as _;

pub const VERSION: HeaderName = HeaderName::from_static("x-gateway-version");
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-gateway-request-id");
pub const SESSION_ID: HeaderName = HeaderName::from_static("x-gateway-session-id");
pub const DECISION: HeaderName = HeaderName::from_static("x-gateway-decision");
pub const PROVIDER: HeaderName = HeaderName::from_static("x-gateway-provider");
pub const MODEL: HeaderName = HeaderName::from_static("x-gateway-model");
pub const TOKENS_IN: HeaderName = HeaderName::from_static("x-gateway-tokens-in");
pub const TOKENS_OUT: HeaderName = HeaderName::from_static("x-gateway-tokens-out");
pub const RESPONSE_COST: HeaderName = HeaderName::from_static("x-gateway-response-cost");
pub const UNPRICED: HeaderName = HeaderName::from_static("x-gateway-unpriced");
pub const LATENCY_MS: HeaderName = HeaderName::from_static("x-gateway-latency-ms");
pub const RESPONSE_LATENCY: HeaderName = HeaderName::from_static("x-gateway-response-latency");
pub const IDEMPOTENT: HeaderName = HeaderName::from_static("x-gateway-idempotent");
pub const PROGRESS: HeaderName = HeaderName::from_static("x-gateway-progress");
pub const CACHE: HeaderName = HeaderName::from_static("x-gateway-cache");
pub const CACHE_TIER: HeaderName = HeaderName::from_static("x-gateway-cache-tier");
pub const CACHE_LATENCY: HeaderName = HeaderName::from_static("x-gateway-cache-latency");
pub const COST_SAVED: HeaderName = HeaderName::from_static("x-gateway-cost-saved");
pub const GUARDRAILS: HeaderName = HeaderName::from_static("x-gateway-guardrails");
pub const COMPRESSION: HeaderName = HeaderName::from_static("x-gateway-compression");
pub const CHAOS: HeaderName = HeaderName::from_static("x-gateway-chaos");
pub const LEFT_OUT: HeaderName = HeaderName::from_static("x-gateway-left-out");
pub const FALLBACK_ATTEMPTS: HeaderName = HeaderName::from_static("x-gateway-fallback-attempts");

/// Creates a value from text that should be visible ASCII. Other text gives an empty value instead of an error.
pub fn value(text: impl Into<String>) -> HeaderValue {
    HeaderValue::try_from(text.into()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Creates a value from a number without a temporary string.
pub fn number(value: u64) -> HeaderValue {
    HeaderValue::from(value)
}

/// Creates a value from text of a caller or an operator. Visible ASCII is kept, everything else is percent-encoded.
pub fn encoded(text: &str) -> HeaderValue {
    if let Ok(value) = HeaderValue::from_str(text) {
        if text.is_ascii() {
            return value;
        }
    }
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if (0x20..0x7f).contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    value(out)
}
