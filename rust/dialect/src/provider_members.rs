//! Size limits for request members that only the provider reads.
//!
//! The gateway forwards unknown members, so that new provider options work at once. Such members have crashed model
//! servers: a salt of the wrong type, a label of several megabytes. Members with the conversation itself are limited
//! only by the size of the body.

use fairlead_core::json::{self, Kind, Scan, MAX_DEPTH};
use fairlead_core::{Error, ErrorKind};

/// The most members of one body.
const MAX_MEMBERS: usize = 256;
/// The maximum bytes of a name or label, quotes included.
const ID_BYTES: usize = json::LARGE_BYTES;
/// The maximum bytes of a caller's metadata.
const NOTES_BYTES: usize = 64 * 1024;
/// The maximum bytes of a member that the gateway does not know.
const OTHER_BYTES: usize = 64 * 1024;

/// Names and labels.
const IDS: &[&str] = &[
    "cache_salt",
    "cachedContent",
    "cached_content",
    "callback_url",
    "container",
    "idempotency_key",
    "inference_geo",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "request_id",
    "safety_identifier",
    "serviceTier",
    "service_tier",
    "session_id",
    "user",
    "webhook",
    "webhook_url",
];
/// Metadata that a caller adds for itself.
const NOTES: &[&str] = &["labels", "metadata", "trace"];
/// The conversation, its tools and the format of its answer.
const CONTENT: &[&str] = &[
    "chat_template",
    "content",
    "contents",
    "conversation",
    "documents",
    "examples",
    "format",
    "function_call",
    "functions",
    "generationConfig",
    "generation_config",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "input",
    "input_ids",
    "instructions",
    "json_schema",
    "logit_bias",
    "messages",
    "output_config",
    "output_format",
    "prediction",
    "prompt",
    "prompt_embeds",
    "regex",
    "response_format",
    "structured_outputs",
    "suffix",
    "system",
    "systemInstruction",
    "system_instruction",
    "text",
    "toolConfig",
    "tool_choice",
    "tool_config",
    "tools",
];

/// The purpose of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A conversation, whose large members are known.
    Conversation,
    /// Images, audio, video or embeddings, for which providers choose the names of large members freely.
    Media,
}

/// Rejects a body with a member that is too large for its kind. The error names the member.
pub(crate) fn check<const N: usize>(body: &[u8], scan: &Scan<'_, N>, purpose: Purpose) -> Result<(), Error> {
    if scan.object.elements > MAX_MEMBERS {
        return Err(invalid(format!(
            "The body has {} members; at most {MAX_MEMBERS} are allowed.",
            scan.object.elements
        )));
    }
    let mut noted = 0;
    for (name, value) in scan.large(body) {
        noted += 1;
        let most = most_bytes(&name, purpose);
        let bytes = value.end - value.start;
        if bytes > most {
            let shown: String = name.chars().take(64).collect();
            let message = format!("`{shown}` has {bytes} bytes; at most {most} are allowed.");
            return Err(invalid(message).about(shown));
        }
    }
    if noted >= json::MAX_LARGE {
        return Err(invalid(format!("The body has {noted} or more members of over {} bytes.", json::LARGE_BYTES)));
    }
    check_salt(body)
}

fn most_bytes(name: &str, purpose: Purpose) -> usize {
    match name {
        _ if IDS.contains(&name) => ID_BYTES,
        _ if NOTES.contains(&name) => NOTES_BYTES,
        _ if purpose == Purpose::Media || CONTENT.contains(&name) => usize::MAX,
        _ => OTHER_BYTES,
    }
}

/// An empty salt, or one of another type than string, has crashed vLLM servers for all of their callers.
fn check_salt(body: &[u8]) -> Result<(), Error> {
    if !json::may_have(body, b"\"cache_salt\"") {
        return Ok(());
    }
    let Ok(scan) = json::scan_object(body, &["cache_salt"], MAX_DEPTH) else { return Ok(()) };
    let Some(salt) = scan.get("cache_salt").filter(|salt| !salt.is_null()) else { return Ok(()) };
    let bytes = salt.end - salt.start;
    if salt.kind != Kind::String || bytes <= 2 || bytes > ID_BYTES {
        return Err(invalid("`cache_salt` must be a text of 1 to 1,022 bytes.".to_owned()).about("cache_salt"));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::client(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str, purpose: Purpose) -> Option<String> {
        let scan = json::scan_object(body.as_bytes(), &["model", "messages"], MAX_DEPTH).expect("an object");
        check(body.as_bytes(), &scan, purpose).err().map(|fault| fault.param.unwrap_or_default().into_owned())
    }

    fn with(name: &str, bytes: usize) -> String {
        format!(r#"{{"{name}":"{}"}}"#, "x".repeat(bytes - 2))
    }

    #[test]
    fn each_kind_of_member_has_its_bound() {
        for purpose in [Purpose::Conversation, Purpose::Media] {
            for name in IDS {
                assert_eq!(fault(&with(name, ID_BYTES), purpose), None, "{name}");
                assert_eq!(fault(&with(name, ID_BYTES + 1), purpose).as_deref(), Some(*name));
            }
            for name in NOTES {
                assert_eq!(fault(&with(name, NOTES_BYTES), purpose), None, "{name}");
                assert_eq!(fault(&with(name, NOTES_BYTES + 1), purpose).as_deref(), Some(*name));
            }
            for name in CONTENT {
                assert_eq!(fault(&with(name, 10 * OTHER_BYTES), purpose), None, "{name}");
            }
        }
        assert_eq!(fault(&with("new_option", OTHER_BYTES), Purpose::Conversation), None);
        assert_eq!(fault(&with("new_option", OTHER_BYTES + 1), Purpose::Conversation).as_deref(), Some("new_option"));
        assert_eq!(fault(&with("init_image", 10 * OTHER_BYTES), Purpose::Media), None);
        // An escaped name is the same name.
        assert_eq!(fault(&with(r"us\u0065r", 2_000), Purpose::Conversation).as_deref(), Some("user"));
    }

    #[test]
    fn members_are_counted() {
        let body = |count: usize, value: &str| {
            let members: Vec<String> = (0..count).map(|at| format!(r#""m{at}":{value}"#)).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(fault(&body(MAX_MEMBERS, "1"), Purpose::Conversation), None);
        assert!(fault(&body(MAX_MEMBERS + 1, "1"), Purpose::Conversation).is_some());
        let large = format!("\"{}\"", "x".repeat(2_000));
        assert_eq!(fault(&body(json::MAX_LARGE - 1, &large), Purpose::Media), None);
        assert!(fault(&body(json::MAX_LARGE, &large), Purpose::Media).is_some());
    }

    #[test]
    fn a_salt_is_a_short_text() {
        for (salt, is_good) in [
            (r#""a""#, true),
            ("null", true),
            (r#""""#, false),
            ("1", false),
            ("{}", false),
            ("[]", false),
            ("true", false),
        ] {
            for name in ["cache_salt", "cache\\u005fsalt", "\\u0063ache_sal\\u0074"] {
                let body = format!(r#"{{"model":"m","messages":[],"{name}":{salt}}}"#);
                assert_eq!(fault(&body, Purpose::Conversation).is_none(), is_good, "{name} {salt}");
            }
        }
        let inside = r#"{"model":"m","messages":[{"role":"user","content":"\"cache_salt\": 1"}]}"#;
        assert_eq!(fault(inside, Purpose::Conversation), None);
    }
}
