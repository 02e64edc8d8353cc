//! Decides whether an answer has content: text, a refusal, a tool call, reasoning, or other content of its dialect. An
//! overloaded or misconfigured server can end a turn successfully without content, which is not a valid answer.
//!
//! An answer with an explanation for missing content (length, content filter, stop sequence) is valid.

use fairlead_core::Dialect;
use memchr::memmem;
use serde_json::Value;

use crate::ending::{self, Ending};
use crate::lenient;
use crate::model::Stop;

/// Members of a chat message that are not content.
const ENVELOPE: &[&str] = &["role", "name", "annotations", "provider_specific_fields"];

/// Follows a stream until it has content.
#[derive(Debug)]
pub(crate) struct Watch {
    form: Dialect,
    has_output: bool,
    is_excused: bool,
}

impl Watch {
    pub(crate) fn new(form: Dialect) -> Self {
        Self { form, has_output: false, is_excused: false }
    }

    /// Reads the data of the next event.
    pub(crate) fn read_event(&mut self, data: &[u8]) {
        if self.has_output {
            return;
        }
        if self.form == Dialect::Openai && is_filled(data, b"\"content\"") {
            self.has_output = true;
            return;
        }
        let Some(event) = lenient::value(data) else { return };
        self.has_output = match self.form {
            Dialect::Openai => chat(&event),
            Dialect::OpenaiResponses => responses_event(&event),
            Dialect::Anthropic => messages_event(&event),
            Dialect::Gemini => gemini(&event),
        };
        self.is_excused = self.is_excused || excuses(self.form, &event);
    }

    /// Notes an event that is too long to buffer.
    pub(crate) fn note_long_event(&mut self) {
        self.has_output = true;
    }

    pub(crate) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Returns whether the stream would be empty if it ended here.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_output && !self.is_excused
    }
}

/// Returns whether a complete answer, which is a JSON object, has no content.
pub(crate) fn is_empty(form: Dialect, body: &[u8]) -> bool {
    let marks: &[&[u8]] = match form {
        Dialect::Openai => &[b"\"content\"", b"\"tool_calls\""],
        Dialect::OpenaiResponses | Dialect::Anthropic | Dialect::Gemini => &[b"\"text\""],
    };
    // A quick search finds content in nearly every answer.
    if marks.iter().any(|mark| is_filled(body, mark)) {
        return false;
    }
    let Some(answer) = lenient::value(body) else { return false };
    let has_output = match form {
        Dialect::Openai => chat(&answer),
        Dialect::OpenaiResponses => items(&answer["output"]),
        Dialect::Anthropic => list(&answer["content"]).iter().any(block),
        Dialect::Gemini => gemini(&answer),
    };
    !has_output && !excuses(form, &answer)
}

/// Returns the text of a complete answer's first choice. `None` for an answer that calls tools or is invalid.
pub fn answer_text(form: Dialect, body: &[u8]) -> Option<String> {
    let answer = lenient::value(body)?;
    let of_type = |list: &Value, wanted: &str, member: &str| -> String {
        let parts = self::list(list).iter().filter(|part| part["type"] == wanted);
        parts.filter_map(|part| part[member].as_str()).collect()
    };
    let has_type = |of: &Value, wanted: &str| list(of).iter().any(|one| one["type"] == wanted);
    match form {
        Dialect::Openai => {
            let choice = &answer["choices"][0];
            let message = &choice["message"];
            let calls = has_content(&message["tool_calls"]) || has_content(&message["function_call"]);
            let text = match &message["content"] {
                Value::Array(_) => of_type(&message["content"], "text", "text"),
                content => content.as_str().or(choice["text"].as_str()).unwrap_or_default().to_owned(),
            };
            (!calls).then_some(text)
        }
        Dialect::Anthropic => {
            (!has_type(&answer["content"], "tool_use")).then(|| of_type(&answer["content"], "text", "text"))
        }
        Dialect::OpenaiResponses => {
            let messages = list(&answer["output"]).iter().filter(|item| item["type"] == "message");
            let text = messages.map(|item| of_type(&item["content"], "output_text", "text")).collect();
            (!list(&answer["output"]).iter().any(is_call_item)).then_some(text)
        }
        Dialect::Gemini => {
            let parts = list(&answer["candidates"][0]["content"]["parts"]);
            let calls = parts.iter().any(|part| part["functionCall"].is_object());
            let texts = parts.iter().filter(|part| part["thought"] != true).filter_map(|part| part["text"].as_str());
            (!calls).then(|| texts.collect())
        }
    }
}

/// Returns whether an item of responses is a call that the caller answers.
pub(crate) fn is_call_item(item: &Value) -> bool {
    match item["type"].as_str() {
        Some("tool_search_call") => item["execution"] == "client",
        Some(kind) => {
            matches!(
                kind,
                "function_call"
                    | "custom_tool_call"
                    | "local_shell_call"
                    | "shell_call"
                    | "apply_patch_call"
                    | "computer_call"
            )
        }
        None => false,
    }
}

/// Returns whether a member with this name has a text or a list that is not empty. Names inside JSON strings have a
/// backslash before the closing quote, so they do not match.
fn is_filled(body: &[u8], name: &[u8]) -> bool {
    memmem::find_iter(body, name).any(|at| {
        let rest = body.get(at + name.len()..).unwrap_or_default().trim_ascii_start();
        let Some((b':', value)) = rest.split_first().map(|(first, rest)| (*first, rest.trim_ascii_start())) else {
            return false;
        };
        match value {
            [b'"', next, ..] => *next != b'"',
            [b'[', inside @ ..] => inside.trim_ascii_start().first() == Some(&b'{'),
            _ => false,
        }
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    }
}

/// A chat completion or a chunk of one.
fn chat(answer: &Value) -> bool {
    list(&answer["choices"]).iter().any(|choice| {
        let has_member = |of: &str| {
            let members = choice[of].as_object().into_iter().flatten();
            members.into_iter().any(|(name, value)| !ENVELOPE.contains(&name.as_str()) && has_content(value))
        };
        has_member("message") || has_member("delta") || has_content(&choice["text"])
    })
}

/// A block of a message, complete or at its start.
fn block(block: &Value) -> bool {
    match block["type"].as_str() {
        Some("text") => has_content(&block["text"]),
        Some("thinking") => has_content(&block["thinking"]),
        Some(_) => true,
        None => false,
    }
}

fn messages_event(event: &Value) -> bool {
    match event["type"].as_str() {
        Some("content_block_start") => block(&event["content_block"]),
        Some("content_block_delta") => {
            let members = event["delta"].as_object().into_iter().flatten();
            members.into_iter().any(|(name, value)| name != "type" && has_content(value))
        }
        _ => false,
    }
}

/// The output items of a response.
fn items(output: &Value) -> bool {
    list(output).iter().any(|item| match item["type"].as_str() {
        Some("message") => list(&item["content"]).iter().any(|part| match part["type"].as_str() {
            Some("output_text" | "text") => has_content(&part["text"]),
            Some(_) => true,
            None => false,
        }),
        Some("reasoning") => {
            has_content(&item["summary"]) || has_content(&item["content"]) || has_content(&item["encrypted_content"])
        }
        Some(_) => true,
        None => false,
    })
}

fn responses_event(event: &Value) -> bool {
    match event["type"].as_str() {
        Some("response.output_item.added") => {
            !matches!(event["item"]["type"].as_str(), None | Some("message" | "reasoning"))
        }
        Some("response.completed") => items(&event["response"]["output"]),
        Some(kind) => kind.strip_suffix(".delta").is_some() && has_content(&event["delta"]),
        None => false,
    }
}

/// A Gemini answer or a chunk of one.
fn gemini(answer: &Value) -> bool {
    list(&answer["candidates"]).iter().flat_map(|candidate| list(&candidate["content"]["parts"])).any(|part| {
        let members = part.as_object().into_iter().flatten();
        members.into_iter().any(|(name, value)| name != "thoughtSignature" && has_content(value))
    })
}

/// Returns whether the answer explains its missing content.
fn excuses(form: Dialect, answer: &Value) -> bool {
    match form {
        Dialect::Openai => list(&answer["choices"])
            .iter()
            .filter_map(|choice| choice["finish_reason"].as_str())
            .any(|reason| matches!(ending::of_chat(reason), Ending::Stop(Stop::Length | Stop::Refused))),
        Dialect::Anthropic => {
            let reason = answer["stop_reason"].as_str().or(answer["delta"]["stop_reason"].as_str());
            matches!(
                reason,
                Some("max_tokens" | "model_context_window_exceeded" | "stop_sequence" | "refusal" | "pause_turn")
            )
        }
        Dialect::OpenaiResponses => {
            let whole = if answer["response"].is_object() { &answer["response"] } else { answer };
            let is_event = answer["type"].is_string();
            let status = whole["status"].as_str();
            // In a stream, every event from the first on includes the response's status.
            let is_last = !is_event || answer["type"] == "response.incomplete";
            is_last && matches!(status, Some(status) if status != "completed")
        }
        Dialect::Gemini => {
            let is_told = |candidate: &Value| {
                let reason = candidate["finishReason"].as_str();
                reason.is_some_and(|reason| {
                    matches!(ending::of_gemini(reason), Ending::Stop(Stop::Length | Stop::Refused))
                })
            };
            has_content(&answer["promptFeedback"]["blockReason"]) || list(&answer["candidates"]).iter().any(is_told)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

    #[test]
    fn whole_answers_that_say_nothing_are_empty() {
        for (form, body) in [
            (Openai, r#"{"choices":[]}"#),
            (Openai, r#"{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}"#),
            (Openai, r#"{"choices":[{"message":{"role":"assistant","content" : "","tool_calls":[],"refusal":null}}]}"#),
            (Openai, r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#),
            (Openai, r#"{"choices":[{"message":{"content":null},"finish_reason":"tool_calls"}]}"#),
            (Anthropic, r#"{"content":[],"stop_reason":"end_turn"}"#),
            (Anthropic, r#"{"content":[{"type":"text","text":""}],"stop_reason":"end_turn"}"#),
            (OpenaiResponses, r#"{"output":[],"status":"completed"}"#),
            (
                OpenaiResponses,
                r#"{"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":""}]}]}"#,
            ),
            (Gemini, r#"{"candidates":[]}"#),
            (Gemini, r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#),
        ] {
            assert!(is_empty(form, body.as_bytes()), "{form:?} {body}");
        }
    }

    #[test]
    fn whole_answers_that_say_anything_or_why_not_are_answers() {
        for (form, body) in [
            (Openai, r#"{"choices":[{"message":{"content":"hi"}}]}"#),
            (Openai, r#"{"choices":[{"text":"hi"}]}"#),
            (Openai, r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c"}]}}]}"#),
            (Openai, r#"{"choices":[{"message":{"content":"","reasoning_content":"so"}}]}"#),
            (Openai, r#"{"choices":[{"message":{"refusal":"no"}}]}"#),
            (Openai, r#"{"choices":[{"message":{"audio":{"id":"a"}}}]}"#),
            (Openai, r#"{"choices":[{"message":{"content":""}},{"message":{"content":"hi"}}]}"#),
            (Openai, r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#),
            (Anthropic, r#"{"content":[{"type":"tool_use","id":"t"}]}"#),
            (Anthropic, r#"{"content":[{"type":"redacted_thinking","data":"x"}]}"#),
            (Anthropic, r#"{"content":[],"stop_reason":"refusal"}"#),
            (OpenaiResponses, r#"{"output":[{"type":"function_call"}]}"#),
            (OpenaiResponses, r#"{"output":[{"type":"reasoning","encrypted_content":"x"}]}"#),
            (OpenaiResponses, r#"{"output":[],"status":"incomplete"}"#),
            (Gemini, r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#),
            (Gemini, r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#),
            (Gemini, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#),
        ] {
            assert!(!is_empty(form, body.as_bytes()), "{form:?} {body}");
        }
    }

    #[test]
    fn the_text_of_an_answer_is_that_of_its_first_choice() {
        for (form, body, expected) in [
            (Openai, r#"{"choices":[{"message":{"content":"hi"}},{"message":{"content":"ho"}}]}"#, Some("hi")),
            (Openai, r#"{"choices":[{"message":{"content":"hi","tool_calls":[{"id":"c"}]}}]}"#, None),
            (
                Openai,
                r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"h"},{"type":"text","text":"i"}]}}]}"#,
                Some("hi"),
            ),
            (Gemini, r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]}}]}"#, Some("\u{fffd}")),
            (Anthropic, r#"{"content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"hi"}]}"#, Some("hi")),
            (Anthropic, r#"{"content":[{"type":"tool_use"}]}"#, None),
            (OpenaiResponses, r#"{"output":[{"type":"custom_tool_call"}]}"#, None),
            (OpenaiResponses, r#"{"output":[{"type":"tool_search_call","execution":"server"}]}"#, Some("")),
            (
                OpenaiResponses,
                r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#,
                Some("hi"),
            ),
            (
                Gemini,
                r#"{"candidates":[{"content":{"parts":[{"text":"x","thought":true},{"text":"hi"}]}}]}"#,
                Some("hi"),
            ),
        ] {
            assert_eq!(answer_text(form, body.as_bytes()).as_deref(), expected, "{form:?} {body}");
        }
    }

    /// Returns the number of events after which the stream had content, and whether it is empty at its end.
    fn watched(form: Dialect, events: &[&str]) -> (Option<usize>, bool) {
        let mut watch = Watch::new(form);
        let mut first_at = None;
        for (at, event) in events.iter().enumerate() {
            watch.read_event(event.as_bytes());
            if watch.has_output() && first_at.is_none() {
                first_at = Some(at);
            }
        }
        (first_at, watch.is_empty())
    }

    #[test]
    fn a_stream_says_something_with_its_first_words() {
        let opening = r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#;
        let words = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
        let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
        assert_eq!(watched(Openai, &[opening, words, stop]), (Some(1), false));
        assert_eq!(watched(Openai, &[opening, stop]), (None, true));
        let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
        assert_eq!(watched(Openai, &[opening, length]), (None, false));

        let start = r#"{"type":"message_start","message":{"id":"m"}}"#;
        let block = r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#;
        let delta = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}}"#;
        let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
        assert_eq!(watched(Anthropic, &[start, block, delta, end]), (Some(2), false));
        assert_eq!(watched(Anthropic, &[start, block, end]), (None, true));

        let created = r#"{"type":"response.created","response":{"status":"in_progress","output":[]}}"#;
        let done = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
        let words = r#"{"type":"response.output_text.delta","delta":"hi"}"#;
        assert_eq!(watched(OpenaiResponses, &[created, words, done]), (Some(1), false));
        assert_eq!(watched(OpenaiResponses, &[created, done]), (None, true));

        let nothing = r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#;
        assert_eq!(watched(Gemini, &[nothing]), (None, true));
    }
}
