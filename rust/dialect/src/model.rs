//! The common form of all dialects: a request, an answer, and the events of a streamed answer.
//!
//! A dialect has one reader into this model and one writer out of it, so a new dialect needs two pieces of code instead
//! of two for each existing dialect. Members that the model cannot represent are stored in [`Request::extras`] by name,
//! and the writer decides how to handle them. Nothing is lost silently.

use std::borrow::Cow;

use fairlead_core::{Dialect, Error, ErrorKind, Output, Usage};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::call_form::CallerTool;
use crate::offered::Offered;
use crate::text::Text;

/// A request. Numbers that no rule reads are stored as text.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    /// The request's dialect. Errors name members as in this dialect.
    pub(crate) form: Dialect,
    pub(crate) stream: bool,
    pub(crate) system: Vec<Part<'a>>,
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) tools: Vec<Tool<'a>>,
    /// The only tools that the model may call.
    pub(crate) allowed_tools: Option<Vec<Text<'a>>>,
    /// Those of the tools that have another name or form in the caller's dialect.
    pub(crate) caller_tools: Vec<CallerTool>,
    /// The names of both, filled by dialects that have tools of other forms.
    pub(crate) offered: Offered,
    /// The names of tools that only the caller's own provider runs.
    pub(crate) hosted_tools: Vec<String>,
    pub(crate) choice: Option<Choice<'a>>,
    /// Whether the model may call several tools at once.
    pub(crate) parallel: Option<bool>,
    pub(crate) max_tokens: Option<&'a str>,
    pub(crate) temperature: Option<&'a str>,
    pub(crate) top_p: Option<&'a str>,
    pub(crate) top_k: Option<&'a str>,
    pub(crate) frequency_penalty: Option<&'a str>,
    pub(crate) presence_penalty: Option<&'a str>,
    pub(crate) seed: Option<&'a str>,
    /// The requested log probabilities, with the number of alternatives per token.
    pub(crate) logprobs: Option<&'a str>,
    pub(crate) stop: Vec<Text<'a>>,
    pub(crate) format: Option<Format<'a>>,
    pub(crate) reasoning: Option<Effort>,
    pub(crate) verbosity: Option<&'a str>,
    /// The requested kinds of output. `None` means text, or what the model generates by default.
    pub(crate) outputs: Option<Vec<Output>>,
    /// The voice of generated speech.
    pub(crate) voice: Option<Text<'a>>,
    pub(crate) user: Option<Text<'a>>,
    /// Members with the same name in both OpenAI dialects and in no other: storage and billing at the provider, and
    /// hints to its cache.
    pub(crate) shared: Vec<(Cow<'a, str>, &'a str)>,
    /// Members of the body that the model cannot represent, unchanged.
    pub(crate) extras: Vec<(Cow<'a, str>, &'a str)>,
}

/// The format of the answer's text.
#[derive(Debug)]
pub(crate) enum Format<'a> {
    /// Any JSON object.
    Json,
    Schema {
        schema: Cow<'a, str>,
        name: Option<Text<'a>>,
        description: Option<Text<'a>>,
        strict: Option<bool>,
    },
}

/// The requested reasoning effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Most,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    /// A system message after the first turn.
    System,
}

#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part<'a>>,
}

/// A part of a turn, and its position in the body.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// Empty for text, which every dialect supports.
    pub(crate) path: String,
    pub(crate) content: Content<'a>,
    /// The `cache_control` object.
    pub(crate) cache: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum Content<'a> {
    Text(Text<'a>),
    Refusal(Text<'a>),
    Image(Source<'a>),
    Audio {
        /// For example `audio/wav`.
        media_type: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    Document {
        source: Source<'a>,
        title: Option<Text<'a>>,
    },
    /// A plain text document.
    Note {
        text: Text<'a>,
        title: Option<Text<'a>>,
    },
    Thinking {
        text: Text<'a>,
        signature: Option<Text<'a>>,
    },
    Redacted(Text<'a>),
    Call(Call<'a>),
    Result {
        id: Text<'a>,
        parts: Vec<Part<'a>>,
        is_error: bool,
    },
}

/// Inline bytes or a URL.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    Base64 { media_type: Cow<'a, str>, data: Cow<'a, str> },
    Url(Text<'a>),
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: Text<'a>,
    pub(crate) name: Text<'a>,
    /// A JSON object. In a parsed answer, the model's unchecked output.
    pub(crate) arguments: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) description: Option<Text<'a>>,
    pub(crate) schema: Option<Cow<'a, str>>,
    pub(crate) strict: Option<bool>,
    pub(crate) cache: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum Choice<'a> {
    Auto,
    Any,
    Never,
    One(Text<'a>),
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Length,
    Sequence,
    Tools,
    Refused,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) id: Text<'a>,
    pub(crate) model: Text<'a>,
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
    /// The list of token log probabilities, in the format that both OpenAI dialects share.
    pub(crate) logprobs: Option<&'a str>,
}

/// An event of a streamed answer, in order. Call arguments belong to the call that started last.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Start {
        id: Option<Text<'a>>,
        model: Option<Text<'a>>,
    },
    /// The log probabilities of the tokens in the following text.
    Logprobs(&'a str),
    Text(Text<'a>),
    Refusal(Text<'a>),
    Thinking(Text<'a>),
    /// Ends a reasoning block.
    Signature(Text<'a>),
    Redacted(Text<'a>),
    Call {
        id: Text<'a>,
        name: Text<'a>,
    },
    /// A fragment of the text of a JSON object.
    Arguments(Text<'a>),
    /// A complete image or file, or a piece of audio. It forms a separate block.
    Media(Content<'a>),
    /// The end of a block. The next event starts another block, even one of the same kind.
    BlockEnd,
}

impl Request<'_> {
    /// The name in the caller's dialect of a member whose name differs between dialects.
    pub(crate) fn name_of(&self, member: Member) -> &'static str {
        use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};
        match (member, self.form) {
            (Member::Temperature, Gemini) => "generationConfig.temperature",
            (Member::Temperature, _) => "temperature",
            (Member::TopP, Gemini) => "generationConfig.topP",
            (Member::TopP, _) => "top_p",
            (Member::Seed, Gemini) => "generationConfig.seed",
            (Member::Seed, _) => "seed",
            (Member::Verbosity, OpenaiResponses) => "text.verbosity",
            (Member::Verbosity, _) => "verbosity",
            (Member::User, Anthropic) => "metadata.user_id",
            (Member::User, _) => "user",
            (Member::Reasoning, Openai) => "reasoning_effort",
            (Member::Reasoning, OpenaiResponses) => "reasoning.effort",
            (Member::Reasoning, Anthropic) => "thinking",
            (Member::Reasoning, Gemini) => "generationConfig.thinkingConfig",
            (Member::ToolChoice, Gemini) => "toolConfig",
            (Member::ToolChoice, _) => "tool_choice",
            (Member::TopK, Gemini) => "generationConfig.topK",
            (Member::TopK, _) => "top_k",
            (Member::Stop, Gemini) => "generationConfig.stopSequences",
            (Member::Stop, Anthropic) => "stop_sequences",
            (Member::Stop, Openai | OpenaiResponses) => "stop",
            (Member::Parallel, Anthropic) => "tool_choice.disable_parallel_tool_use",
            (Member::Parallel, _) => "parallel_tool_calls",
            (Member::FrequencyPenalty, Gemini) => "generationConfig.frequencyPenalty",
            (Member::FrequencyPenalty, _) => "frequency_penalty",
            (Member::PresencePenalty, Gemini) => "generationConfig.presencePenalty",
            (Member::PresencePenalty, _) => "presence_penalty",
            (Member::Outputs, Gemini) => "generationConfig.responseModalities",
            (Member::Outputs, _) => "modalities",
            (Member::Logprobs, OpenaiResponses) => "top_logprobs",
            (Member::Logprobs, _) => "logprobs",
        }
    }
}

/// Members that only some dialects have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Member {
    Temperature,
    TopP,
    TopK,
    Seed,
    Verbosity,
    User,
    Reasoning,
    Stop,
    ToolChoice,
    Parallel,
    FrequencyPenalty,
    PresencePenalty,
    Logprobs,
    Outputs,
}

impl Member {
    /// Returns whether the answer still meets the request without the member.
    pub(crate) fn is_hint(self) -> bool {
        !matches!(self, Self::Stop | Self::ToolChoice | Self::Parallel | Self::Logprobs | Self::Outputs)
    }
}

impl<'a> Part<'a> {
    pub(crate) fn text(text: Text<'a>) -> Self {
        Self::new(String::new(), Content::Text(text))
    }

    pub(crate) fn new(path: impl Into<String>, content: Content<'a>) -> Self {
        Self { path: path.into(), content, cache: None }
    }
}

/// The members of an object in order.
#[derive(Debug)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some((name, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((name.decode(), value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Walk)
    }
}

/// Parses a value of the caller's body. The error names `path` and does not repeat the value.
pub(crate) fn typed<'a, T: Deserialize<'a>>(raw: &'a RawValue, path: &str) -> Result<T, Error> {
    serde_json::from_str(raw.get()).map_err(|error| shape(path, &error))
}

/// Like [`typed`], for frequent paths: the path is built only for an error.
pub(crate) fn typed_at<'a, T: Deserialize<'a>>(raw: &'a RawValue, path: impl Fn() -> String) -> Result<T, Error> {
    serde_json::from_str(raw.get()).map_err(|error| shape(&path(), &error))
}

/// Like [`typed`], for types that borrow nothing.
pub(crate) fn owned<T: DeserializeOwned>(raw: &RawValue, path: &str) -> Result<T, Error> {
    typed(raw, path)
}

/// The error for a value of the wrong type: serde's message without the value.
pub(crate) fn shape(path: &str, error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    // The name of an unknown or missing member is safe to repeat. Any other message could contain the value.
    if let Some(name) = text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        return unsupported(&format!("{path}.{name}"));
    }
    if let Some(name) = text.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        return wrong(&format!("{path}.{name}"), "is required");
    }
    if let Some(name) = text.strip_prefix("duplicate field `").and_then(|rest| rest.split('`').next()) {
        return wrong(&format!("{path}.{name}"), "comes twice");
    }
    let expected = match text.find("expected ").and_then(|at| text.get(at..)) {
        // The names of internal types mean nothing to a caller.
        Some(words) if words.starts_with("expected struct ") || words == "expected a map" => "expected an object",
        Some("expected a sequence") => "expected a list",
        Some(words) => words,
        None => "it has the wrong type",
    };
    wrong(path, &format!("is not as it must be: {expected}"))
}

/// The error for a request member that violates a rule.
pub(crate) fn wrong(field: &str, rule: &str) -> Error {
    Error::client(ErrorKind::InvalidRequest, format!("`{field}` {rule}.")).about(field.to_owned())
}

/// The error for a request member that the provider's dialect cannot express.
pub(crate) fn unsupported(field: &str) -> Error {
    wrong(field, "cannot be expressed in the dialect of this model's provider; leave it out or choose another model")
}

/// Returns whether a value has no effect: null or a default.
pub(crate) fn is_neutral(value: &str) -> bool {
    matches!(value, "null" | "false" | "0" | "0.0" | "[]" | "{}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Picture {
        #[serde(rename = "url")]
        _url: String,
    }

    fn message_of(value: &str) -> String {
        let raw: &RawValue = serde_json::from_str(value).expect("JSON");
        owned::<Picture>(raw, "picture").expect_err("another shape").message.into_owned()
    }

    #[test]
    fn a_wrong_shape_is_told_in_words_of_json() {
        assert_eq!(message_of("5"), "`picture` is not as it must be: expected an object.");
        assert_eq!(message_of(r#"{"url": 5}"#), "`picture` is not as it must be: expected a string.");
        assert_eq!(message_of(r#"{"url": "a", "url": "b"}"#), "`picture.url` comes twice.");
        assert_eq!(message_of("{}"), "`picture.url` is required.");
    }
}
