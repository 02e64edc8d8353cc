//! Reads a request of `/api/chat` or `/api/generate` into the model and writes it as a chat completion.

use std::borrow::Cow;

use bytes::Bytes;
use fairlead_core::{json, Error, ModelFacts};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::image;
use super::{AnswerForm, OllamaCall};
use crate::call_ids::CallIds;
use crate::fit::Destination;
use crate::fit::Fit;
use crate::left_out::LeftOut;
use crate::model::{
    is_neutral, owned, typed, typed_at, unsupported, wrong, Call, Content, Effort, Format, Members, Part, Request,
    Role, Turn,
};
use crate::openai::members::number;
use crate::openai::request::broken;
use crate::openai::request_out;
use crate::openai::tools_in;
use crate::text::Text;

/// Options for the machine that runs the model, and sampling options that no other dialect has. The provider decides
/// both.
const IGNORED_OPTIONS: &[&str] = &[
    "f16_kv",
    "logits_all",
    "low_vram",
    "main_gpu",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_batch",
    "num_ctx",
    "num_gpu",
    "num_gqa",
    "num_keep",
    "num_thread",
    "numa",
    "penalize_newline",
    "repeat_last_n",
    "repeat_penalty",
    "tfs_z",
    "top_k",
    "typical_p",
    "use_mlock",
    "use_mmap",
    "vocab_only",
];
const TOP_LOGPROBS_MAX: u32 = 20;

/// A translated request.
#[derive(Debug)]
pub struct OllamaRequest {
    /// The request as a chat completion.
    pub chat: Bytes,
    pub form: AnswerForm,
    pub stream: bool,
    /// Set if the request has no message and only loads or unloads the model.
    pub load: Option<Load>,
}

/// Whether a request without a message loads or unloads the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub unloads: bool,
}

/// The members of a body that have been read so far.
#[derive(Default)]
struct Body<'a> {
    request: Request<'a>,
    model: Option<Text<'a>>,
    think: Option<bool>,
    /// `keep_alive` is 0.
    unloads: bool,
    logprobs: bool,
    top_logprobs: Option<u32>,
    prompt: Option<Text<'a>>,
    images: Vec<Part<'a>>,
    ids: CallIds,
}

/// Reads a body.
///
/// Some Ollama clients append `:latest` to every name. The suffix is removed if `is_listed` accepts only the name
/// without it.
pub fn read(call: OllamaCall, body: &[u8], is_listed: impl Fn(&str) -> bool) -> Result<OllamaRequest, Error> {
    json::scan_object(body, &[], json::MAX_DEPTH).map_err(|fault| broken(&fault))?;
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut parsed = Body { request: Request { stream: true, ..Request::default() }, ..Body::default() };
    for (name, value) in members.0 {
        if value.get() == "null" || parsed.common(&name, value)? {
            continue;
        }
        let is_known = match call {
            OllamaCall::Chat => parsed.of_chat(&name, value)?,
            OllamaCall::Generate => parsed.of_generate(&name, value)?,
        };
        if !is_known {
            return Err(wrong(&name, "is no member of this request"));
        }
    }
    parsed.finish(call, body.len(), is_listed)
}

impl<'a> Body<'a> {
    /// Reads the members that both calls have.
    fn common(&mut self, name: &str, value: &'a RawValue) -> Result<bool, Error> {
        let request = &mut self.request;
        match name {
            "model" => self.model = Some(typed(value, name)?),
            "stream" => request.stream = owned(value, name)?,
            "format" => request.format = format(value)?,
            "options" => options(value, request)?,
            "think" => {
                let (thinks, effort) = think(value)?;
                (self.think, request.reasoning) = (Some(thinks), effort);
            }
            "keep_alive" => self.unloads = unloads(value)?,
            "logprobs" => self.logprobs = owned(value, name)?,
            "top_logprobs" => {
                let count: u32 = owned(value, name)?;
                if count > TOP_LOGPROBS_MAX {
                    return Err(wrong(name, "must be a whole number from 0 to 20"));
                }
                self.top_logprobs = Some(count);
            }
            // How a too long text is truncated. The gateway has its own setting for this.
            "truncate" | "shift" => {
                owned::<bool>(value, name)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn of_chat(&mut self, name: &str, value: &'a RawValue) -> Result<bool, Error> {
        match name {
            "messages" => {
                let list: Vec<&'a RawValue> = typed(value, name)?;
                list.into_iter().enumerate().try_for_each(|(at, raw)| self.message(at, raw))?;
            }
            "tools" => tools_in::read(value, &mut self.request)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn of_generate(&mut self, name: &str, value: &'a RawValue) -> Result<bool, Error> {
        match name {
            "prompt" => self.prompt = Some(typed(value, name)?),
            "system" => self.request.system.push(Part::text(typed(value, name)?)),
            "images" => self.images = images(&typed::<Vec<Text<'a>>>(value, name)?, name)?,
            // Infill text, a custom template and the tokens of an earlier answer have no equivalent in a chat request.
            "suffix" | "template" if value.get() == "\"\"" => {}
            "raw" | "context" if is_neutral(value.get()) => {}
            "suffix" | "template" | "raw" | "context" => return Err(unsupported(name)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn message(&mut self, at: usize, raw: &'a RawValue) -> Result<(), Error> {
        let message: MessageIn<'a> = typed_at(raw, || format!("messages[{at}]"))?;
        let mut parts = Vec::new();
        if let Some(text) = message.content.filter(|text| !text.is_empty()) {
            parts.push(Part::text(text));
        }
        parts.extend(images(&message.images.unwrap_or_default(), &format!("messages[{at}].images"))?);
        match &*message.role {
            "system" => self.request.push_system(parts),
            "user" => self.request.turns.push(Turn { role: Role::User, parts }),
            "assistant" => {
                for (number, call) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
                    let path = format!("messages[{at}].tool_calls[{number}]");
                    parts.push(Part::new(path.clone(), Content::Call(self.call(call, &path)?)));
                }
                self.request.turns.push(Turn { role: Role::Assistant, parts });
            }
            "tool" => {
                let id = match (message.tool_call_id, message.tool_name.or(message.name)) {
                    (Some(id), name) => self.ids.of_result(Some(id), &name.unwrap_or_else(|| "".into())),
                    (None, Some(name)) => self.ids.of_result(None, &name),
                    (None, None) => self.ids.of_next(),
                };
                let path = format!("messages[{at}]");
                let id = id.ok_or_else(|| wrong(&format!("{path}.tool_name"), "must be that of a call before it"))?;
                let content = Content::Result { id, parts, is_error: false };
                self.request.turns.push(Turn { role: Role::User, parts: vec![Part::new(path, content)] });
            }
            _ => return Err(wrong(&format!("messages[{at}].role"), "must be system, user, assistant or tool")),
        }
        Ok(())
    }

    fn call(&mut self, call: CallIn<'a>, path: &str) -> Result<Call<'a>, Error> {
        let arguments = call.function.arguments.map_or("{}", RawValue::get);
        if !arguments.starts_with('{') {
            return Err(wrong(&format!("{path}.function.arguments"), "must be an object"));
        }
        let id = self.ids.of_call(call.id, &call.function.name);
        Ok(Call { id, name: call.function.name, arguments: arguments.into() })
    }

    fn finish(
        mut self,
        call: OllamaCall,
        size: usize,
        is_listed: impl Fn(&str) -> bool,
    ) -> Result<OllamaRequest, Error> {
        let model = self.model.filter(|model| !model.is_empty()).ok_or_else(|| wrong("model", "is required"))?;
        let model = model.decode().into_owned();
        let mut request = self.request;
        if call == OllamaCall::Generate {
            let mut parts = Vec::new();
            parts.extend(self.prompt.filter(|prompt| !prompt.is_empty()).map(Part::text));
            parts.append(&mut self.images);
            if !parts.is_empty() {
                request.turns.push(Turn { role: Role::User, parts });
            }
        }
        let top = self.top_logprobs.filter(|_| self.logprobs).map(|count| count.to_string());
        request.logprobs = if self.logprobs { Some(top.as_deref().unwrap_or("0")) } else { None };
        let is_silent = request.turns.is_empty() && (call == OllamaCall::Generate || request.system.is_empty());
        let load = is_silent.then_some(Load { unloads: self.unloads });
        let bare = model.strip_suffix(":latest").filter(|bare| !is_listed(&model) && is_listed(bare));
        // The provider is selected later.
        let to = Destination { model: bare.unwrap_or(&model), fit: &Fit::default(), facts: &ModelFacts::default() };
        let chat = request_out::write(&request, to, size, &mut LeftOut::default())?;
        let form = AnswerForm { call, model, shows_thinking: self.think != Some(false) };
        Ok(OllamaRequest { chat: Bytes::from(chat), form, stream: request.stream, load })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageIn<'a> {
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    /// A chat request does not accept reasoning of earlier turns.
    #[serde(default, rename = "thinking")]
    _thinking: Option<serde::de::IgnoredAny>,
    #[serde(borrow, default)]
    images: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallIn<'a>>>,
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
    /// An older name of `tool_name`.
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallIn<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(default, rename = "type")]
    _kind: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    function: FunctionIn<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(default, rename = "index")]
    _index: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "description")]
    _description: Option<serde::de::IgnoredAny>,
}

fn images<'a>(list: &[Text<'a>], path: &str) -> Result<Vec<Part<'a>>, Error> {
    let each = list.iter().enumerate().map(|(at, text)| {
        let path = format!("{path}[{at}]");
        Ok(Part::new(path.clone(), Content::Image(image::source(text, &path)?)))
    });
    each.collect()
}

/// Reads `json` or a schema.
fn format(value: &RawValue) -> Result<Option<Format<'_>>, Error> {
    match value.get() {
        "\"\"" => Ok(None),
        "\"json\"" => Ok(Some(Format::Json)),
        // Ollama accepts any schema, but the strict mode of other dialects only some.
        raw if raw.starts_with('{') => {
            Ok(Some(Format::Schema { schema: raw.into(), name: None, description: None, strict: Some(false) }))
        }
        _ => Err(wrong("format", "must be json or a JSON schema")),
    }
}

/// Reads whether to reason and the level. `true` without a level means medium.
fn think(value: &RawValue) -> Result<(bool, Option<Effort>), Error> {
    Ok(match value.get() {
        "true" | "\"medium\"" => (true, Some(Effort::Medium)),
        "false" => (false, Some(Effort::Off)),
        "\"low\"" => (true, Some(Effort::Low)),
        "\"high\"" => (true, Some(Effort::High)),
        _ => return Err(wrong("think", "must be true, false, low, medium or high")),
    })
}

/// Reads how long the model stays in memory. Only 0 has a meaning here: unload now.
fn unloads(value: &RawValue) -> Result<bool, Error> {
    let raw = value.get();
    if raw.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit()) {
        let number = raw.trim_matches('"').trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        return Ok(number.parse::<f64>().is_ok_and(|length| length == 0.0));
    }
    Err(wrong("keep_alive", "must be a duration such as 5m, or a number of seconds"))
}

fn options<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let members: Members<'a> = typed(value, "options")?;
    for (name, value) in members.0 {
        let (raw, path) = (value.get(), format!("options.{name}"));
        match &*name {
            _ if raw == "null" => {}
            // A negative number means no limit.
            "num_predict" => {
                let most: i64 = owned(value, &path)?;
                request.max_tokens = match most {
                    1..=4_294_967_295 => Some(raw),
                    i64::MIN..=-1 => None,
                    _ => return Err(wrong(&path, "must be a whole number of at least 1, or below 0 for no limit")),
                };
            }
            "temperature" => request.temperature = Some(number(value, &path)?),
            "top_p" => request.top_p = Some(number(value, &path)?),
            "seed" => {
                owned::<i64>(value, &path)?;
                request.seed = Some(raw);
            }
            "stop" => {
                request.stop = match Text::of(value) {
                    Some(text) => vec![text],
                    None => typed(value, &path)?,
                };
            }
            "presence_penalty" => request.presence_penalty = Some(number(value, &path)?).filter(|it| !is_neutral(it)),
            "frequency_penalty" => request.frequency_penalty = Some(number(value, &path)?).filter(|it| !is_neutral(it)),
            known if IGNORED_OPTIONS.contains(&known) => {}
            _ => return Err(wrong(&path, "is no option of this request")),
        }
    }
    Ok(())
}
