//! Signed thinking on its way between dialects. A signature is worth something only to the provider that made it, and a
//! caller sends it back as it came; so one that leaves its dialect says whose it is, and others' are left out.
//!
//! Anthropic's carry no mark: they are the oldest that travel.

use std::borrow::Cow;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::Engine as _;

use crate::text::Text;

/// Whose a signature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Anthropic,
    Gemini,
    Responses,
}

/// Before Anthropic's signatures at callers of responses, whose form has no mark of its own.
const ANTHROPIC: &str = "anthropic:";
const GEMINI: &str = "gemini:";
const RESPONSES: &str = "responses:";
/// The signature of a call that another maker's model made: Gemini refuses a call without one.
pub(crate) const UNSIGNED: &str = "skip_thought_signature_validator";
/// Hidden thinking of Anthropic's, where a form has one place for both.
const REDACTED: &str = "redacted:";
/// How OpenAI's own encrypted reasoning begins.
const OPENAI_OPENING: &str = "gAAAA";
/// The prefix of a foreign signature inside a Gemini one, which must be base64.
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

/// A signature of a Gemini provider's, or of a caller who speaks its form.
pub(crate) fn from_gemini(signature: &Text<'_>) -> Text<'static> {
    let signature = signature.decode();
    let bytes = STANDARD.decode(&*signature).or_else(|_| URL_SAFE.decode(&*signature)).unwrap_or_default();
    match std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix(WRAPPED)) {
        Some(foreign) => foreign.to_owned().into(),
        None => format!("{GEMINI}{signature}").into(),
    }
}

/// As a caller of Gemini's form keeps it.
pub(crate) fn for_gemini_caller(signature: &str) -> String {
    match signature.strip_prefix(GEMINI) {
        Some(own) => own.to_owned(),
        None => STANDARD.encode([WRAPPED, signature].concat()),
    }
}

/// For a Gemini provider, if it made it.
pub(crate) fn for_gemini(signature: &str) -> Option<&str> {
    signature.strip_prefix(GEMINI)
}

/// Encrypted reasoning of a provider's that speaks responses.
pub(crate) fn from_responses(id: &str, encrypted: &str) -> Text<'static> {
    format!("{RESPONSES}{id}:{encrypted}").into()
}

/// The id and the encrypted content for such a provider, if it made it.
pub(crate) fn for_responses(signature: &str) -> Option<(&str, &str)> {
    signature.strip_prefix(RESPONSES)?.split_once(':')
}

/// As a caller of responses keeps it: encrypted reasoning says whose it is, so that it goes to no other maker.
pub(crate) fn for_responses_caller(signature: &str) -> String {
    if maker_of(signature) == Maker::Anthropic && redacted_in(signature).is_none() {
        format!("{ANTHROPIC}{signature}")
    } else {
        signature.to_owned()
    }
}

/// Whether a provider of Anthropic's dialect refuses a signature in a body that passes.
pub(crate) fn is_foreign_to_messages(signature: &str) -> bool {
    signature.is_empty() || maker_of(signature) != Maker::Anthropic
}

/// Whether a provider of responses refuses such encrypted reasoning.
pub(crate) fn is_foreign_to_responses(encrypted: &str) -> bool {
    [ANTHROPIC, GEMINI, REDACTED].iter().any(|mark| encrypted.starts_with(mark))
}

/// Whether a Gemini provider refuses such a signature.
pub(crate) fn is_foreign_to_gemini(signature: &str) -> bool {
    let bytes = STANDARD.decode(signature).or_else(|_| URL_SAFE.decode(signature)).unwrap_or_default();
    bytes.starts_with(WRAPPED.as_bytes())
}

/// What a caller who speaks responses sends back: a signature, or hidden thinking.
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

/// Hidden thinking as the signature of thinking that says nothing.
pub(crate) fn of_redacted(data: &str) -> String {
    format!("{REDACTED}{data}")
}

/// The hidden thinking in such a signature.
pub(crate) fn redacted_in(signature: &str) -> Option<&str> {
    signature.strip_prefix(REDACTED)
}

/// Whether a provider of Anthropic's dialect takes it.
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
