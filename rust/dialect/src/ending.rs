//! The finish reasons of chat completions and of Gemini, in one table each.
//!
//! A reason is a stop or a fault. A fault means that the provider aborted the answer but reports it with a success
//! status. Such an answer must not be returned as complete. An unknown reason is not a fault; `substance` decides
//! whether its answer has content.

use fairlead_core::Dialect;
use memchr::memmem;

use crate::model::Stop;
use crate::openai::error::UpstreamError;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Stop(Stop),
    /// The provider aborted the answer.
    Fault,
    Unknown,
}

/// Maps a finish reason of a chat completion. Vendors use more values than OpenAI does.
pub(crate) fn of_chat(reason: &str) -> Ending {
    match reason {
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" => Ending::Stop(Stop::End),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded" => {
            Ending::Stop(Stop::Length)
        }
        "content_filter" | "sensitive" | "refusal" | "safety" => Ending::Stop(Stop::Refused),
        "tool_calls" | "function_call" | "tool_use" => Ending::Stop(Stop::Tools),
        // Mistral and OpenRouter, GLM, vLLM, DeepSeek.
        "error" | "network_error" | "abort" | "insufficient_system_resource" => Ending::Fault,
        _ => Ending::Unknown,
    }
}

/// Maps a Gemini `finishReason`.
pub(crate) fn of_gemini(reason: &str) -> Ending {
    match reason {
        "STOP" => Ending::Stop(Stop::End),
        "MAX_TOKENS" => Ending::Stop(Stop::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "PUP_LIMITED_DISABLED" => Ending::Stop(Stop::Refused),
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE"
        | "NO_IMAGE"
        | "IMAGE_OTHER" => Ending::Fault,
        _ => Ending::Unknown,
    }
}

/// Returns the fault that a complete answer ended with.
pub(crate) fn fault_in(form: Dialect, body: &[u8]) -> Option<UpstreamError> {
    let (member, of): (&[u8], fn(&str) -> Ending) = match form {
        Dialect::Openai => (b"\"finish_reason\"", of_chat),
        Dialect::Gemini => (b"\"finishReason\"", of_gemini),
        Dialect::Anthropic | Dialect::OpenaiResponses => return None,
    };
    // A member name inside a JSON string has a backslash before its closing quote, so it does not match.
    memmem::find_iter(body, member).find_map(|at| {
        let rest = body.get(at + member.len()..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let value = rest.strip_prefix(b"\"")?;
        let reason = std::str::from_utf8(value.get(..memchr::memchr(b'"', value)?)?).ok()?;
        (of(reason) == Ending::Fault).then(|| fault(reason))
    })
}

/// The error for an answer that ended with a fault.
pub(crate) fn fault(reason: &str) -> UpstreamError {
    UpstreamError {
        message: format!("The provider ended the answer early, with the reason `{reason}`."),
        code: Some(reason.to_owned()),
        ..UpstreamError::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_where_it_stands() {
        let gemini = br#"{"candidates":[{"content":{"parts":[]},"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#;
        let found = fault_in(Dialect::Gemini, gemini).expect("a fault");
        assert_eq!(found.code.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
        let chat =
            br#"{"choices":[{"message":{"content":"so \"finish_reason\":\"error\" f"},"finish_reason":"stop"}]}"#;
        assert_eq!(fault_in(Dialect::Openai, chat), None);
        assert!(fault_in(Dialect::Openai, br#"{"choices":[{"finish_reason":"network_error"}]}"#).is_some());
        assert_eq!(fault_in(Dialect::Openai, br#"{"choices":[{"finish_reason":null}]}"#), None);
    }

    #[test]
    fn a_length_of_another_maker_is_a_length() {
        for reason in ["max_tokens", "model_length", "model_context_window_exceeded"] {
            assert_eq!(of_chat(reason), Ending::Stop(Stop::Length), "{reason}");
        }
        assert_eq!(of_chat("sensitive"), Ending::Stop(Stop::Refused));
        assert_eq!(of_chat("a reason of tomorrow"), Ending::Unknown);
    }
}
