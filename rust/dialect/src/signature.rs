//! Reasoning signatures across dialects. A signature is valid only at the provider that created it, and a caller sends
//! it back unchanged. A signature that leaves its dialect is marked with its vendor, and other vendors' signatures are
//! dropped.
//!
//! Anthropic's signatures have no mark, because they were the first to be translated.

use std::borrow::Cow;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::Engine as _;

use crate::text::Text;

/// The vendor that created a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Anthropic,
    Gemini,
    Responses,
}

/// The mark of Anthropic signatures for callers of the responses dialect.
const ANTHROPIC: &str = "anthropic:";
const GEMINI: &str = "gemini:";
const RESPONSES: &str = "responses:";
/// The signature for a call that another vendor's model made. Gemini rejects a call without a signature.
pub(crate) const UNSIGNED: &str = "skip_thought_signature_validator";
/// The mark of Anthropic's redacted reasoning in dialects with a single field for both.
const REDACTED: &str = "redacted:";
/// The start of OpenAI's encrypted reasoning.
const OPENAI_OPENING: &str = "gAAAA";
/// The prefix of a foreign signature inside a Gemini signature, which must be base64.
const WRAPPED: &str = "fl1:";

const LAX: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LAX);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LAX);

pub(crate) fn maker_of(signature: &str) -> Maker {
    if signature.starts_with(GEMINI) {
        Maker::Gemini
    } else if signature.starts_with(RESPONSES) {
        Maker::Responses
    } else {
        Maker::Anthropic
    }
}

/// Reads a signature from a Gemini provider or a Gemini caller.
pub(crate) fn from_gemini(signature: &Text<'_>) -> Text<'static> {
    let signature = signature.decode();
    let bytes = STANDARD.decode(&*signature).or_else(|_| URL_SAFE.decode(&*signature)).unwrap_or_default();
    match std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix(WRAPPED)) {
        Some(foreign) => foreign.to_owned().into(),
        None => format!("{GEMINI}{signature}").into(),
    }
}

/// Writes a signature for a Gemini caller.
pub(crate) fn for_gemini_caller(signature: &str) -> String {
    match signature.strip_prefix(GEMINI) {
        Some(own) => own.to_owned(),
        None => STANDARD.encode([WRAPPED, signature].concat()),
    }
}

/// Returns the signature for a Gemini provider. `None` if another vendor created it.
pub(crate) fn for_gemini(signature: &str) -> Option<&str> {
    signature.strip_prefix(GEMINI)
}

/// Reads encrypted reasoning from a provider of the responses dialect.
pub(crate) fn from_responses(id: &str, encrypted: &str) -> Text<'static> {
    format!("{RESPONSES}{id}:{encrypted}").into()
}

/// Returns the id and the encrypted content for such a provider. `None` if another vendor created them.
pub(crate) fn for_responses(signature: &str) -> Option<(&str, &str)> {
    signature.strip_prefix(RESPONSES)?.split_once(':')
}

/// Writes a signature for a caller of the responses dialect. The mark prevents that it is sent to another vendor.
pub(crate) fn for_responses_caller(signature: &str) -> String {
    if maker_of(signature) == Maker::Anthropic && redacted_in(signature).is_none() {
        format!("{ANTHROPIC}{signature}")
    } else {
        signature.to_owned()
    }
}

/// Returns whether a provider of Anthropic's dialect would reject a signature in a body that passes through.
pub(crate) fn is_foreign_to_messages(signature: &str) -> bool {
    signature.is_empty() || maker_of(signature) != Maker::Anthropic
}

/// Returns whether a provider of the responses dialect would reject this encrypted reasoning.
pub(crate) fn is_foreign_to_responses(encrypted: &str) -> bool {
    [ANTHROPIC, GEMINI, REDACTED].iter().any(|mark| encrypted.starts_with(mark))
}

/// Returns whether a Gemini provider would reject this signature.
pub(crate) fn is_foreign_to_gemini(signature: &str) -> bool {
    let bytes = STANDARD.decode(signature).or_else(|_| URL_SAFE.decode(signature)).unwrap_or_default();
    bytes.starts_with(WRAPPED.as_bytes())
}

/// The reasoning that a caller of the responses dialect sends back: a signature or redacted reasoning.
pub(crate) enum CallerReasoning {
    Signature(Text<'static>),
    Redacted(Text<'static>),
}

pub(crate) fn from_responses_caller(id: &str, encrypted: &str) -> CallerReasoning {
    if let Some(data) = encrypted.strip_prefix(REDACTED) {
        return CallerReasoning::Redacted(data.to_owned().into());
    }
    if encrypted.starts_with(OPENAI_OPENING) {
        return CallerReasoning::Signature(from_responses(id, encrypted));
    }
    CallerReasoning::Signature(encrypted.strip_prefix(ANTHROPIC).unwrap_or(encrypted).to_owned().into())
}

/// Wraps redacted reasoning as the signature of an empty reasoning block.
pub(crate) fn of_redacted(data: &str) -> String {
    format!("{REDACTED}{data}")
}

/// Unwraps redacted reasoning from such a signature.
pub(crate) fn redacted_in(signature: &str) -> Option<&str> {
    signature.strip_prefix(REDACTED)
}

/// Returns whether a provider of Anthropic's dialect accepts the signature.
pub(crate) fn is_anthropics(signature: &Text<'_>) -> bool {
    let signature: Cow<'_, str> = signature.decode();
    maker_of(&signature) == Maker::Anthropic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_comes_back_to_its_maker() {
        let own = from_gemini(&Text::from("CkZ1bg=="));
        assert_eq!(own.decode(), "gemini:CkZ1bg==");
        assert_eq!(for_gemini(&own.decode()), Some("CkZ1bg=="));
        assert!(!is_anthropics(&own));
        let signature = for_gemini_caller("EuYBCk+/=");
        assert_eq!(from_gemini(&signature.into()).decode(), "EuYBCk+/=");
        assert_eq!(for_gemini_caller(&own.decode()), "CkZ1bg==");
        let sealed = from_responses("rs_1", "gAAAAx");
        assert_eq!(for_responses(&sealed.decode()), Some(("rs_1", "gAAAAx")));
        assert_eq!(for_gemini(&sealed.decode()), None);
        let CallerReasoning::Signature(back) = from_responses_caller("rs_1", "gAAAAx") else { panic!("not hidden") };
        assert_eq!(back.decode(), sealed.decode());
        let CallerReasoning::Redacted(data) = from_responses_caller("rs_1", &of_redacted("abc")) else {
            panic!("hidden")
        };
        assert_eq!(data.decode(), "abc");
    }
}
