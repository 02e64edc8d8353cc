//! Reads a generateContent request into the model. Google's JSON accepts each name in camel case and in snake case.

use std::borrow::Cow;

use fairlead_core::{Dialect, Error, Output};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::part::{self, PartIn};
use super::schema::to_json_schema;
use crate::call_ids::CallIds;
use crate::model::{
    is_neutral, owned, typed, typed_at, unsupported, wrong, Choice, Effort, Format, Members, Request, Role, Tool, Turn,
};
use crate::openai::members::{count, number};
use crate::text::Text;

/// A valid content, parsed in one pass.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoodContentIn<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    parts: Vec<PartIn<'a>>,
}

/// A request parsed step by step, so that an error names the location.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentIn<'a> {
    #[serde(default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

/// Reads a body that has been scanned before. `stream` comes from the URL.
pub(crate) fn read(body: &[u8], stream: bool) -> Result<Request<'_>, Error> {
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut request = Request { form: Dialect::Gemini, stream, ..Request::default() };
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            // The model in the URL applies.
            "model" => {}
            _ if raw == "null" => {}
            "contents" => contents(value, &mut request)?,
            "systemInstruction" | "system_instruction" => system(value, &name, &mut request)?,
            "tools" => tools(value, &mut request)?,
            "toolConfig" | "tool_config" => tool_config(value, &name, &mut request)?,
            "generationConfig" | "generation_config" => generation(value, &name, &mut request)?,
            _ if is_neutral(raw) => {}
            "safety_settings" => request.extras.push(("safetySettings".into(), raw)),
            _ => request.extras.push((name, raw)),
        }
    }
    Ok(request)
}

fn contents<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let mut ids = CallIds::default();
    if let Ok(list) = serde_json::from_str::<Vec<GoodContentIn<'a>>>(value.get()) {
        request.turns.reserve(list.len());
        for (at, content) in list.into_iter().enumerate() {
            let role = role(content.role.as_ref().map(Text::decode).as_deref(), at)?;
            let mut parts = Vec::with_capacity(content.parts.len());
            part::take(content.parts, &|| format!("contents[{at}].parts"), &mut ids, &mut parts)?;
            request.turns.push(Turn { role, parts });
        }
        return Ok(());
    }
    let list: Vec<&'a RawValue> = typed(value, "contents")?;
    request.turns.reserve(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        let content: ContentIn<'a> = typed_at(raw, || format!("contents[{at}]"))?;
        let role = role(content.role.as_deref(), at)?;
        let mut parts = Vec::with_capacity(content.parts.len());
        part::read(content.parts, &format!("contents[{at}].parts"), &mut ids, &mut parts)?;
        request.turns.push(Turn { role, parts });
    }
    Ok(())
}

fn role(name: Option<&str>, at: usize) -> Result<Role, Error> {
    match name {
        None | Some("user" | "function") => Ok(Role::User),
        Some("model") => Ok(Role::Assistant),
        Some(_) => Err(unsupported(&format!("contents[{at}].role"))),
    }
}

fn system<'a>(value: &'a RawValue, name: &str, request: &mut Request<'a>) -> Result<(), Error> {
    if let Some(text) = Text::of(value) {
        request.system.push(crate::model::Part::text(text));
        return Ok(());
    }
    let content: ContentIn<'a> = typed(value, name)?;
    part::read(content.parts, &format!("{name}.parts"), &mut CallIds::default(), &mut request.system)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parametersJsonSchema", alias = "parameters_json_schema")]
    json_schema: Option<&'a RawValue>,
    /// The schema of the function's result, which other dialects do not pass to the model.
    #[serde(default, rename = "response")]
    _response: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "responseJsonSchema", alias = "response_json_schema")]
    _response_schema: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "behavior")]
    behavior: Option<Cow<'a, str>>,
}

fn tools<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ToolIn<'a> {
        #[serde(borrow, default, rename = "functionDeclarations", alias = "function_declarations")]
        declarations: Vec<FunctionIn<'a>>,
        // Server tools of Google. An answer is useful without them.
        #[serde(default, rename = "googleSearch", alias = "google_search")]
        search: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "googleSearchRetrieval", alias = "google_search_retrieval")]
        retrieval: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "urlContext", alias = "url_context")]
        url_context: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "codeExecution", alias = "code_execution")]
        code_execution: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "googleMaps", alias = "google_maps")]
        maps: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "fileSearch", alias = "file_search")]
        file_search: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "enterpriseWebSearch", alias = "enterprise_web_search")]
        enterprise: Option<serde::de::IgnoredAny>,
    }
    let list: Vec<&'a RawValue> = typed(value, "tools")?;
    for (at, raw) in list.into_iter().enumerate() {
        let tool: ToolIn<'a> = typed_at(raw, || format!("tools[{at}]"))?;
        for (name, is_set) in [
            ("googleSearch", tool.search.is_some()),
            ("googleSearchRetrieval", tool.retrieval.is_some()),
            ("urlContext", tool.url_context.is_some()),
            ("codeExecution", tool.code_execution.is_some()),
            ("googleMaps", tool.maps.is_some()),
            ("fileSearch", tool.file_search.is_some()),
            ("enterpriseWebSearch", tool.enterprise.is_some()),
        ] {
            if is_set {
                request.hosted_tools.push(name.to_owned());
            }
        }
        for (number, function) in tool.declarations.into_iter().enumerate() {
            if function.behavior.is_some_and(|behavior| behavior != "BLOCKING") {
                return Err(unsupported(&format!("tools[{at}].functionDeclarations[{number}].behavior")));
            }
            let own = function.parameters.map(|schema| to_json_schema(schema.get()));
            let schema = function.json_schema.map(|schema| Cow::Borrowed(schema.get())).or(own);
            let (name, description) = (function.name, function.description);
            request.tools.push(Tool { name, description, schema, strict: None, cache: None });
        }
    }
    Ok(())
}

fn tool_config<'a>(value: &'a RawValue, name: &str, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ConfigIn<'a> {
        #[serde(borrow, default, rename = "functionCallingConfig", alias = "function_calling_config")]
        calling: Option<CallingIn<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CallingIn<'a> {
        #[serde(default)]
        mode: Option<Cow<'a, str>>,
        #[serde(borrow, default, rename = "allowedFunctionNames", alias = "allowed_function_names")]
        allowed: Vec<Text<'a>>,
    }
    let config: ConfigIn<'a> = typed(value, name)?;
    let Some(CallingIn { mode, allowed }) = config.calling else { return Ok(()) };
    let path = format!("{name}.functionCallingConfig");
    request.choice = match (mode.as_deref(), allowed.as_slice()) {
        (None | Some("MODE_UNSPECIFIED"), []) => None,
        (Some("AUTO"), []) => Some(Choice::Auto),
        (Some("NONE"), _) => Some(Choice::Never),
        (Some("ANY"), []) => Some(Choice::Any),
        (Some("ANY"), [one]) => Some(Choice::One(one.clone())),
        (Some("ANY"), _) => {
            request.allowed_tools = Some(allowed);
            Some(Choice::Any)
        }
        (Some("AUTO" | "MODE_UNSPECIFIED") | None, [_, ..]) => {
            return Err(unsupported(&format!("{path}.allowedFunctionNames")))
        }
        _ => return Err(unsupported(&format!("{path}.mode"))),
    };
    Ok(())
}

fn generation<'a>(value: &'a RawValue, name: &str, request: &mut Request<'a>) -> Result<(), Error> {
    let members: Members<'a> = typed(value, name)?;
    let mut is_json = false;
    let mut schema = None;
    for (inner, value) in members.0 {
        let raw = value.get();
        let path = format!("{name}.{inner}");
        match &*inner {
            _ if raw == "null" => {}
            "temperature" => request.temperature = Some(number(value, &path)?),
            "topP" | "top_p" => request.top_p = Some(number(value, &path)?),
            // An integer, written the way Google writes floats.
            "topK" | "top_k" => request.top_k = Some(number(value, &path)?.trim_end_matches(".0")),
            "maxOutputTokens" | "max_output_tokens" => request.max_tokens = Some(count(value, &path)?),
            "stopSequences" | "stop_sequences" => request.stop = typed(value, &path)?,
            "seed" => request.seed = Some(number(value, &path)?),
            "candidateCount" | "candidate_count" if raw == "1" => {}
            "presencePenalty" | "presence_penalty" if !is_neutral(raw) => {
                request.presence_penalty = Some(number(value, &path)?);
            }
            "frequencyPenalty" | "frequency_penalty" if !is_neutral(raw) => {
                request.frequency_penalty = Some(number(value, &path)?);
            }
            "responseMimeType" | "response_mime_type" => match raw {
                r#""text/plain""# => {}
                r#""application/json""# => is_json = true,
                _ => return Err(unsupported(&path)),
            },
            "responseSchema" | "response_schema" => schema = schema.or(Some(to_json_schema(raw))),
            "responseJsonSchema" | "response_json_schema" => schema = Some(Cow::Borrowed(raw)),
            "responseModalities" | "response_modalities" => {
                let all: Vec<Cow<'_, str>> = typed(value, &path)?;
                request.outputs = outputs(&all, &path)?;
            }
            "speechConfig" | "speech_config" => request.voice = Some(voice(value, &path)?),
            "thinkingConfig" | "thinking_config" => request.reasoning = thinking(value, &path)?,
            // The resolution for media; a hint.
            "mediaResolution" | "media_resolution" => {}
            _ if is_neutral(raw) => {}
            _ => return Err(unsupported(&path)),
        }
    }
    request.format = match schema {
        Some(schema) => Some(Format::Schema { schema, name: None, description: None, strict: None }),
        None => is_json.then_some(Format::Json),
    };
    Ok(())
}

fn outputs(names: &[Cow<'_, str>], path: &str) -> Result<Option<Vec<Output>>, Error> {
    let each = names.iter().map(|name| match name.to_ascii_uppercase().as_str() {
        "TEXT" => Ok(Output::Text),
        "IMAGE" => Ok(Output::Image),
        "AUDIO" => Ok(Output::Audio),
        _ => Err(unsupported(path)),
    });
    let outputs: Vec<Output> = each.collect::<Result<_, _>>()?;
    Ok(Some(outputs).filter(|outputs| outputs.iter().any(|output| *output != Output::Text)))
}

/// Reads the voice of speech by one speaker, which is all that other dialects have.
fn voice<'a>(value: &'a RawValue, path: &str) -> Result<Text<'a>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SpeechIn<'a> {
        #[serde(borrow, rename = "voiceConfig", alias = "voice_config")]
        voice: VoiceIn<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct VoiceIn<'a> {
        #[serde(borrow, rename = "prebuiltVoiceConfig", alias = "prebuilt_voice_config")]
        prebuilt: NameIn<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NameIn<'a> {
        #[serde(borrow, rename = "voiceName", alias = "voice_name")]
        name: Text<'a>,
    }
    typed::<SpeechIn<'a>>(value, path).map(|speech| speech.voice.prebuilt.name)
}

fn thinking(value: &RawValue, path: &str) -> Result<Option<Effort>, Error> {
    let members: Members<'_> = typed(value, path)?;
    let mut effort = None;
    for (inner, value) in members.0 {
        let path = format!("{path}.{inner}");
        match &*inner {
            // Reasoning is always included if there is any.
            "includeThoughts" | "include_thoughts" => {}
            "thinkingBudget" | "thinking_budget" => {
                effort = effort.or(match owned::<i64>(value, &path)? {
                    i64::MIN..=-1 => None,
                    0 => Some(Effort::Off),
                    1..=2048 => Some(Effort::Low),
                    2049..=12_288 => Some(Effort::Medium),
                    _ => Some(Effort::High),
                });
            }
            "thinkingLevel" | "thinking_level" => {
                let level: Cow<'_, str> = typed(value, &path)?;
                effort = Some(match level.to_ascii_uppercase().as_str() {
                    "THINKING_LEVEL_UNSPECIFIED" => continue,
                    "MINIMAL" => Effort::Minimal,
                    "LOW" => Effort::Low,
                    "MEDIUM" => Effort::Medium,
                    "HIGH" => Effort::High,
                    "XHIGH" => Effort::Most,
                    _ => return Err(wrong(&path, "must be MINIMAL, LOW, MEDIUM, HIGH or XHIGH")),
                });
            }
            _ => return Err(unsupported(&path)),
        }
    }
    Ok(effort)
}
