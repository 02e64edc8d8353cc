//! Reads a chat completion request into the model.

use std::borrow::Cow;

use fairlead_core::json::Name;
use fairlead_core::{Error, Output};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::tools_in;
use crate::caller_tools::text_arguments;
use crate::media::chat_images;
use crate::model::{is_neutral, shape, typed, unsupported, wrong, Call, Content, Format, Part, Request, Role, Turn};
use crate::openai::members::{arguments, count, effort, number, read_shared, SchemaIn};
use crate::openai::part::{inline_source, read_parts, source, AudioIn, PartShape};
use crate::openai::reasoning_in::{reasoning_details, thinking_blocks};
use crate::text::Text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    image_url: Option<ImageIn<'a>>,
    #[serde(borrow, default)]
    input_audio: Option<AudioIn<'a>>,
    #[serde(borrow, default)]
    file: Option<FileIn<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageIn<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    /// The resolution for images; a hint.
    #[serde(default, rename = "detail")]
    _detail: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileIn<'a> {
    #[serde(borrow, default)]
    file_data: Option<Text<'a>>,
    #[serde(borrow, default)]
    filename: Option<Text<'a>>,
    #[serde(borrow, default)]
    file_id: Option<Text<'a>>,
}

/// A call of an earlier answer. Unknown members (`index`, `extra_content`) are ignored.
#[derive(Deserialize)]
struct CallIn<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(default)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<FunctionIn<'a>>,
    #[serde(borrow, default)]
    custom: Option<CustomCallIn<'a>>,
}

/// A call to a tool that takes a text.
#[derive(Deserialize)]
struct CustomCallIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    input: Text<'a>,
}

#[derive(Deserialize)]
struct FunctionIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

/// Reads a body that has been scanned before. Messages are most of a long request, so they are parsed in a single pass.
pub(crate) fn read(body: &[u8]) -> Result<Request<'_>, Error> {
    let broken = || wrong("body", "must be a JSON object");
    let text = std::str::from_utf8(body).map_err(|_| broken())?;
    let (mut request, mut fault) = (Request::default(), None);
    let walk = Body { request: &mut request, fault: &mut fault };
    let walked = walk.deserialize(&mut serde_json::Deserializer::from_str(text));
    match (fault, walked) {
        (Some(fault), _) => Err(fault),
        (None, Ok(())) => Ok(request),
        (None, Err(_)) => Err(broken()),
    }
}

/// Visits the members of the body. Errors are stored in `fault`, because serde's own errors are only text.
struct Body<'r, 'a> {
    request: &'r mut Request<'a>,
    fault: &'r mut Option<Error>,
}

/// Visits the messages.
struct Messages<'r, 'a>(Body<'r, 'a>);

/// Visits one message.
struct Walk<'r, 'a> {
    at: usize,
    message: Message<'a>,
    body: Body<'r, 'a>,
}

fn keep_fault<T, E: serde::de::Error>(fault: &mut Option<Error>, outcome: Result<T, Error>) -> Result<T, E> {
    outcome.map_err(|error| {
        *fault = Some(error);
        E::custom("")
    })
}

impl<'de> DeserializeSeed<'de> for Body<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body<'_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            if name == "messages" {
                map.next_value_seed(Messages(Body { request: self.request, fault: self.fault }))?;
                continue;
            }
            let value = map.next_value()?;
            keep_fault(self.fault, member(name, value, self.request))?;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Messages<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Body { request, fault } = self.0;
        for at in 0.. {
            let body = Body { request, fault };
            match seq.next_element_seed(Walk { at, message: Message::default(), body }) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) => {
                    fault.get_or_insert_with(|| shape(&format!("messages[{at}]"), &error));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Body { request, fault } = self.body;
        while let Some(Name(name)) = map.next_key()? {
            let value: &'de RawValue = map.next_value()?;
            // Every message has these two members, and most have no others.
            match (&*name, Text::of(value)) {
                ("role", _) => self.message.role = value.get(),
                ("content", Some(text)) => self.message.parts.push(Part::text(text)),
                _ => keep_fault(fault, message_member(&name, value, self.at, &mut self.message))?,
            }
        }
        keep_fault(fault, turn(self.message, self.at, request))
    }
}

fn member<'a>(name: Cow<'a, str>, value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let raw = value.get();
    match &*name {
        name if read_shared(name, value, request)? => {}
        "tools" => tools_in::read(value, request)?,
        "tool_choice" => tools_in::read_choice(value, request)?,
        // OpenAI itself searches.
        "web_search_options" => request.hosted_tools.push(name.into_owned()),
        "max_completion_tokens" => request.max_tokens = Some(count(value, "max_completion_tokens")?),
        "max_tokens" => {
            let most = count(value, "max_tokens")?;
            request.max_tokens.get_or_insert(most);
        }
        "stop" => request.stop = stop(value)?,
        "response_format" => request.format = response_format(value)?,
        "reasoning_effort" => request.reasoning = Some(effort(value, "reasoning_effort")?),
        "verbosity" => request.verbosity = Some(raw),
        "seed" => request.seed = Some(number(value, "seed")?),
        "frequency_penalty" if !is_neutral(raw) => {
            request.frequency_penalty = Some(number(value, "frequency_penalty")?);
        }
        "presence_penalty" if !is_neutral(raw) => {
            request.presence_penalty = Some(number(value, "presence_penalty")?);
        }
        "logprobs" if raw == "true" => request.logprobs = request.logprobs.or(Some("0")),
        "top_logprobs" if !is_neutral(raw) => request.logprobs = Some(number(value, "top_logprobs")?),
        "n" if raw == "1" => {}
        "modalities" => match outputs(value) {
            Some(outputs) => request.outputs = Some(outputs).filter(|all| all.iter().any(|it| *it != Output::Text)),
            None => request.extras.push((name, raw)),
        },
        "audio" if raw != "null" => request.voice = Some(voice(value)?),
        "n" | "logprobs" | "top_logprobs" | "frequency_penalty" | "presence_penalty" | "logit_bias"
            if is_neutral(raw) => {}
        _ => request.extras.push((name, raw)),
    }
    Ok(())
}

/// Returns `None` for a kind of output that no other dialect has.
fn outputs(value: &RawValue) -> Option<Vec<Output>> {
    serde_json::from_str(value.get()).ok()
}

/// Reads the settings of generated speech. Other providers return raw samples only.
fn voice(value: &RawValue) -> Result<Text<'_>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct AudioIn<'a> {
        #[serde(borrow)]
        voice: Text<'a>,
        format: Cow<'a, str>,
    }
    let audio: AudioIn<'_> = typed(value, "audio")?;
    if audio.format != "pcm16" {
        return Err(unsupported("audio.format"));
    }
    Ok(audio.voice)
}

fn stop(value: &RawValue) -> Result<Vec<Text<'_>>, Error> {
    match Text::of(value) {
        Some(text) => Ok(vec![text]),
        None => typed(value, "stop"),
    }
}

fn response_format(value: &RawValue) -> Result<Option<Format<'_>>, Error> {
    #[derive(Deserialize)]
    struct FormatIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(borrow, default)]
        json_schema: Option<SchemaIn<'a>>,
    }
    let format: FormatIn<'_> = typed(value, "response_format")?;
    match (&*format.r#type, format.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => Ok(Some(Format::Json)),
        ("json_schema", Some(named)) => named.into_format("response_format.json_schema").map(Some),
        ("json_schema", None) => Err(wrong("response_format.json_schema.schema", "is required")),
        _ => Err(unsupported("response_format.type")),
    }
}

/// The members of a message that have been read so far.
#[derive(Default)]
struct Message<'a> {
    role: &'a str,
    parts: Vec<Part<'a>>,
    thinking: Vec<Part<'a>>,
    reasoning: Option<Text<'a>>,
    /// The images of an earlier answer.
    images: Vec<Part<'a>>,
    calls: Vec<Part<'a>>,
    call_id: Option<Text<'a>>,
    cache: Option<&'a str>,
    /// The path of an unknown member. Assistant messages are earlier answers and have many.
    unknown: Option<String>,
}

fn message_member<'a>(name: &str, value: &'a RawValue, at: usize, message: &mut Message<'a>) -> Result<(), Error> {
    let field = || format!("messages[{at}].{name}");
    match name {
        // The name of a speaker. Dropped; see docs/explanation/dialects.md.
        "name" => {}
        _ if value.get() == "null" => {}
        "content" => read_parts::<PartIn<'a>>(value, field, &mut message.parts)?,
        "refusal" => message.parts.push(Part::new(field(), Content::Refusal(typed(value, &field())?))),
        "tool_calls" => message.calls = tool_calls(value, &field())?,
        "tool_call_id" => message.call_id = Some(typed(value, &field())?),
        "reasoning_content" | "reasoning" => message.reasoning = Some(typed(value, &field())?),
        "thinking_blocks" => message.thinking = thinking_blocks(value, &field())?,
        "cache_control" => message.cache = Some(value.get()),
        "images" => {
            message.unknown = Some(field());
            message.images = chat_images(value).into_iter().map(|image| Part::new(field(), image)).collect();
        }
        "reasoning_details" => {
            // Some vendors repeat the reasoning in two members, with signatures only in this one.
            if let Ok(mut details) = reasoning_details(value, &field()) {
                message.thinking.append(&mut details);
            }
        }
        _ if is_neutral(value.get()) => {}
        _ => message.unknown = Some(field()),
    }
    Ok(())
}

fn turn<'a>(message: Message<'a>, at: usize, request: &mut Request<'a>) -> Result<(), Error> {
    let Message { role, mut parts, mut thinking, reasoning, mut images, mut calls, call_id, cache, unknown } = message;
    if let Some(unknown) = unknown.filter(|_| role != "\"assistant\"") {
        return Err(unsupported(&unknown));
    }
    let path = || format!("messages[{at}]");
    if let (true, Some(text)) = (thinking.is_empty(), reasoning) {
        thinking.push(Part::new(path(), Content::Thinking { text, signature: None }));
    }
    if let Some(last) = parts.last_mut().filter(|_| cache.is_some()) {
        last.cache = cache;
    }
    match role {
        "\"system\"" | "\"developer\"" => request.push_system(parts),
        "\"user\"" => request.turns.push(Turn { role: Role::User, parts }),
        "\"assistant\"" => {
            thinking.append(&mut parts);
            thinking.append(&mut images);
            thinking.append(&mut calls);
            request.turns.push(Turn { role: Role::Assistant, parts: thinking });
        }
        "\"tool\"" => {
            let id = call_id.ok_or_else(|| wrong(&format!("{}.tool_call_id", path()), "is required"))?;
            let content = Content::Result { id, parts, is_error: false };
            request.turns.push(Turn { role: Role::User, parts: vec![Part { path: path(), content, cache }] });
        }
        "" => return Err(wrong(&format!("{}.role", path()), "is required")),
        _ => return Err(unsupported(&format!("{}.role", path()))),
    }
    Ok(())
}

fn content<'a>(part: PartIn<'a>, path: &str) -> Result<Content<'a>, Error> {
    let missing = |name: &str| wrong(&format!("{path}.{name}"), "is required");
    Ok(match &*part.r#type {
        "text" => Content::Text(part.text.ok_or_else(|| missing("text"))?),
        "refusal" => Content::Refusal(part.refusal.ok_or_else(|| missing("refusal"))?),
        "image_url" => {
            let url = part.image_url.ok_or_else(|| missing("image_url"))?.url;
            Content::Image(source(url, &format!("{path}.image_url.url"))?)
        }
        "input_audio" => part.input_audio.ok_or_else(|| missing("input_audio"))?.into_content(),
        "file" => file(part.file.ok_or_else(|| missing("file"))?, path)?,
        _ => return Err(unsupported(&format!("{path}.type"))),
    })
}

impl<'a> PartShape<'a> for PartIn<'a> {
    fn cache_control(&self) -> Option<&'a RawValue> {
        self.cache_control
    }

    fn into_content(self, path: &str) -> Result<Content<'a>, Error> {
        content(self, path)
    }
}

fn file<'a>(file: FileIn<'a>, path: &str) -> Result<Content<'a>, Error> {
    if file.file_id.is_some() {
        return Err(unsupported(&format!("{path}.file.file_id")));
    }
    let data = file.file_data.ok_or_else(|| wrong(&format!("{path}.file.file_data"), "is required"))?;
    let source = inline_source(data, &format!("{path}.file.file_data"))?;
    Ok(Content::Document { source, title: file.filename })
}

/// Reads the calls of a message.
fn tool_calls<'a>(value: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, Error> {
    let list: Vec<&'a RawValue> = typed(value, path)?;
    let each = list.into_iter().enumerate().map(|(at, raw)| {
        let path = format!("{path}[{at}]");
        let call: CallIn<'a> = typed(raw, &path)?;
        let (name, arguments) = match (call.r#type.as_deref(), call.function, call.custom) {
            (None | Some("function"), Some(function), _) => {
                (function.name, arguments(&function.arguments, &format!("{path}.function.arguments"))?)
            }
            (Some("custom"), _, Some(custom)) => (custom.name, Cow::Owned(text_arguments(&custom.input))),
            (None | Some("function"), None, _) => return Err(wrong(&format!("{path}.function"), "is required")),
            (Some("custom"), ..) => return Err(wrong(&format!("{path}.custom"), "is required")),
            _ => return Err(unsupported(&format!("{path}.type"))),
        };
        Ok(Part::new(path, Content::Call(Call { id: call.id, name, arguments })))
    });
    each.collect()
}
