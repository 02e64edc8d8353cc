//! Translates embeddings between the OpenAI and Google dialects: the provider's request and the caller's response.
//!
//! OpenAI has one call for any number of inputs. Google has `embedContent` for one input and `batchEmbedContents` for
//! many. docs/explanation/dialects.md lists what is translated, dropped and rejected.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_core::json::{self, Kind, MAX_DEPTH};
use fairlead_core::{Error, Units, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{is_neutral, typed, unsupported, wrong, Members};
use crate::openai::request::{broken, check_model, missing, rewrite, ChatRequest};
use crate::provider_members::{self, Purpose};
use crate::text::{Text, Writer};
use crate::Pieces;

/// A larger count is treated as invalid, as in every dialect.
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// The kind of an embeddings call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingCall {
    OpenAi,
    /// Google's call for one input.
    One,
    /// Google's call for many inputs.
    Many,
}

/// The average of ordinary text, used because Google does not always report usage.
const BYTES_PER_TOKEN: usize = 4;

/// A request in a common form.
struct EmbeddingRequest<'a> {
    inputs: Vec<Vec<Text<'a>>>,
    is_list: bool,
    dimensions: Option<&'a str>,
    wants_base64: bool,
}

/// The provider's request body and the call that it is for.
#[derive(Debug)]
pub struct ProviderRequest {
    pub form: EmbeddingCall,
    pub body: Pieces,
}

/// A provider's response, translated for the caller.
#[derive(Debug)]
pub struct EmbeddingAnswer {
    pub body: Bytes,
    pub usage: Usage,
    pub units: Units,
}

/// Reads the routing data of a Google request. The URL names the model.
pub fn read_gemini(body: &[u8], tail: &str) -> Result<ChatRequest, Error> {
    let model = tail.strip_prefix("models/").unwrap_or(tail);
    check_model(model)?;
    let scan = json::scan_object(body, &["requests", "content"], MAX_DEPTH).map_err(|fault| broken(&fault))?;
    provider_members::check(body, &scan, Purpose::Media)?;
    if scan.get("requests").or_else(|| scan.get("content")).is_none() {
        return Err(missing("content"));
    }
    crate::openai::named::of_form(model, false, 1)
}

/// Writes the request for a provider that calls the model `model`. `to_google` selects the provider's dialect.
pub fn letter(
    caller: EmbeddingCall,
    to_google: bool,
    body: &Bytes,
    read: &ChatRequest,
    model: &str,
) -> Result<ProviderRequest, Error> {
    match (caller, to_google) {
        (EmbeddingCall::OpenAi, false) => Ok(ProviderRequest { form: caller, body: rewrite(body, read, model) }),
        (EmbeddingCall::One | EmbeddingCall::Many, true) => {
            Ok(ProviderRequest { form: caller, body: renamed(body, model)? })
        }
        (EmbeddingCall::OpenAi, true) => Ok(to_gemini(&read_openai(body)?, model)),
        (EmbeddingCall::One | EmbeddingCall::Many, false) => Ok(to_openai(&read_google(caller, body)?, model)),
    }
}

fn members(body: &[u8]) -> Result<Members<'_>, Error> {
    serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))
}

/// Replaces the model name. Google repeats the name in each request of a batch.
fn renamed(body: &[u8], model: &str) -> Result<Pieces, Error> {
    fn object(out: &mut Writer, members: &Members<'_>, model: &str) -> Result<(), Error> {
        out.open(b'{');
        for (name, value) in &members.0 {
            out.name(name);
            match &**name {
                "model" => {
                    let folder = if model.contains('/') { "" } else { "models/" };
                    out.joined(&[folder, model]);
                }
                "requests" => {
                    let requests: Vec<&RawValue> = typed(value, "requests")?;
                    out.open(b'[');
                    for (at, one) in requests.iter().enumerate() {
                        object(out, &typed(one, &format!("requests[{at}]"))?, model)?;
                    }
                    out.close(b']');
                }
                _ => {
                    out.raw(value.get());
                }
            }
        }
        out.close(b'}');
        Ok(())
    }
    let mut out = Writer::with_capacity(body.len() + 64);
    object(&mut out, &members(body)?, model)?;
    Ok(Pieces::from_iter([Bytes::from(out.take())]))
}

fn read_openai(body: &[u8]) -> Result<EmbeddingRequest<'_>, Error> {
    let mut request = EmbeddingRequest { inputs: Vec::new(), is_list: false, dimensions: None, wants_base64: false };
    for (name, value) in members(body)?.0 {
        let raw = value.get();
        match &*name {
            // The user id is not forwarded.
            "model" | "user" => {}
            _ if raw == "null" => {}
            "input" if raw.starts_with('"') => request.inputs.push(vec![typed(value, "input")?]),
            "input" => {
                request.is_list = true;
                let inputs: Vec<&RawValue> = typed(value, "input")?;
                for (at, one) in inputs.iter().enumerate() {
                    let text = Text::of(one).ok_or_else(|| unsupported(&format!("input[{at}]")))?;
                    request.inputs.push(vec![text]);
                }
            }
            "dimensions" => request.dimensions = Some(whole_number(value, "dimensions")?),
            "encoding_format" if raw == r#""float""# => {}
            "encoding_format" if raw == r#""base64""# => request.wants_base64 = true,
            "encoding_format" => return Err(wrong("encoding_format", "must be `float` or `base64`")),
            _ if is_neutral(raw) => {}
            _ => return Err(unsupported(&name)),
        }
    }
    if request.inputs.is_empty() {
        return Err(wrong("input", "must not be empty"));
    }
    Ok(request)
}

fn whole_number<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let raw = value.get();
    if raw.parse::<u64>().is_ok_and(|count| count > 0) {
        Ok(raw)
    } else {
        Err(wrong(path, "must be a whole number above 0"))
    }
}

fn read_google(form: EmbeddingCall, body: &[u8]) -> Result<EmbeddingRequest<'_>, Error> {
    let mut request = EmbeddingRequest {
        inputs: Vec::new(),
        is_list: form == EmbeddingCall::Many,
        dimensions: None,
        wants_base64: false,
    };
    let top = members(body)?;
    if form == EmbeddingCall::One {
        one_of_google(&top, "", &mut request)?;
        return Ok(request);
    }
    for (name, value) in top.0 {
        match &*name {
            "requests" => {
                let requests: Vec<&RawValue> = typed(value, "requests")?;
                for (at, one) in requests.iter().enumerate() {
                    let path = format!("requests[{at}].");
                    one_of_google(&typed(one, &path)?, &path, &mut request)?;
                }
            }
            "model" => {}
            _ if is_neutral(value.get()) => {}
            _ => return Err(unsupported(&name)),
        }
    }
    if request.inputs.is_empty() {
        return Err(wrong("requests", "must not be empty"));
    }
    Ok(request)
}

fn one_of_google<'a>(members: &Members<'a>, path: &str, request: &mut EmbeddingRequest<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct ContentIn<'a> {
        #[serde(borrow, default)]
        parts: Vec<Members<'a>>,
    }
    let mut texts = Vec::new();
    let mut dimensions = None;
    for (name, value) in &members.0 {
        let param = format!("{path}{name}");
        match &**name {
            // The intended use is a hint that OpenAI's dialect cannot express.
            "model" | "taskType" | "task_type" | "title" => {}
            _ if value.get() == "null" => {}
            "content" => {
                let content: ContentIn<'a> = typed(value, &param)?;
                for (at, part) in content.parts.into_iter().enumerate() {
                    for (name, value) in part.0 {
                        let param = format!("{param}.parts[{at}].{name}");
                        if name != "text" {
                            return Err(unsupported(&param));
                        }
                        texts.push(typed(value, &param)?);
                    }
                }
            }
            "outputDimensionality" | "output_dimensionality" => dimensions = Some(whole_number(value, &param)?),
            _ if is_neutral(value.get()) => {}
            _ => return Err(unsupported(&param)),
        }
    }
    if texts.is_empty() {
        return Err(wrong(&format!("{path}content"), "must have a text"));
    }
    if !request.inputs.is_empty() && request.dimensions != dimensions {
        return Err(wrong(&format!("{path}outputDimensionality"), "must be the same in all requests"));
    }
    request.dimensions = dimensions;
    request.inputs.push(texts);
    Ok(())
}

fn to_gemini(request: &EmbeddingRequest<'_>, model: &str) -> ProviderRequest {
    let mut out = Writer::default();
    let one = |out: &mut Writer, texts: &[Text<'_>], is_named: bool| {
        out.open(b'{');
        if is_named {
            out.key("model").joined(&["models/", model]);
        }
        out.key("content").open(b'{').key("parts").open(b'[');
        for text in texts {
            out.open(b'{').member("text", text).close(b'}');
        }
        out.close(b']').close(b'}');
        if let Some(dimensions) = request.dimensions {
            out.key("outputDimensionality").raw(dimensions);
        }
        out.close(b'}');
    };
    let form = if request.is_list { EmbeddingCall::Many } else { EmbeddingCall::One };
    if request.is_list {
        out.open(b'{').key("requests").open(b'[');
        request.inputs.iter().for_each(|texts| one(&mut out, texts, true));
        out.close(b']').close(b'}');
    } else {
        request.inputs.iter().for_each(|texts| one(&mut out, texts, false));
    }
    ProviderRequest { form, body: Pieces::from_iter([Bytes::from(out.take())]) }
}

fn to_openai(request: &EmbeddingRequest<'_>, model: &str) -> ProviderRequest {
    let mut out = Writer::default();
    out.open(b'{').key("model").str(model).key("input").open(b'[');
    for texts in &request.inputs {
        let decoded: Vec<_> = texts.iter().map(Text::decode).collect();
        out.str(&decoded.join("\n"));
    }
    out.close(b']').key("encoding_format").str("float");
    if let Some(dimensions) = request.dimensions {
        out.key("dimensions").raw(dimensions);
    }
    let body = Pieces::from_iter([Bytes::from(out.close(b'}').take())]);
    ProviderRequest { form: EmbeddingCall::OpenAi, body }
}

/// Translates a provider's response for the caller. `provider` is the kind of call that was sent, and `request_body` is
/// the caller's body. Returns `None` if the body is not a response to that call.
pub fn answer(
    caller: EmbeddingCall,
    provider: EmbeddingCall,
    body: &Bytes,
    request_body: &Bytes,
    model: &str,
) -> Option<EmbeddingAnswer> {
    if provider == EmbeddingCall::OpenAi {
        let seen =
            crate::openai::metered::inspect(body, "data").ok().filter(|seen| seen.error.is_none() && seen.is_answer)?;
        let usage = seen.usage.unwrap_or_default();
        let body = if caller == provider { body.clone() } else { for_google(caller, body, usage)? };
        return Some(EmbeddingAnswer { body, usage, units: seen.units });
    }
    let vectors = vectors_of(body)?;
    let counted = usage_of(body).unwrap_or_else(|| request_body.len().div_ceil(BYTES_PER_TOKEN) as u64);
    let usage = Usage { input: counted, ..Usage::default() };
    let body = if caller == EmbeddingCall::OpenAi {
        for_openai(&vectors, request_body, model, counted)?
    } else {
        body.clone()
    };
    Some(EmbeddingAnswer { body, usage, units: Units::default() })
}

#[derive(Deserialize)]
struct Vector<'a> {
    #[serde(borrow)]
    values: &'a RawValue,
}

fn vectors_of(body: &[u8]) -> Option<Vec<Vector<'_>>> {
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow, default)]
        embedding: Option<Vector<'a>>,
        #[serde(borrow, default)]
        embeddings: Option<Vec<Vector<'a>>>,
    }
    let answer: AnswerIn<'_> = serde_json::from_slice(body).ok()?;
    let vectors = answer.embeddings.or_else(|| Some(vec![answer.embedding?]))?;
    vectors.iter().all(|vector| vector.values.get().starts_with('[')).then_some(vectors)
}

fn usage_of(body: &[u8]) -> Option<u64> {
    let scan = json::scan_object(body, &["usageMetadata"], MAX_DEPTH).ok()?;
    let used = body.get(scan.get("usageMetadata").filter(|used| used.kind == Kind::Object)?.span())?;
    let inner = json::scan_object(used, &["promptTokenCount"], MAX_DEPTH).ok()?;
    json::as_u64(used, inner.get("promptTokenCount")?).filter(|count| *count <= MAX_TOKENS)
}

fn for_openai(vectors: &[Vector<'_>], request_body: &[u8], model: &str, tokens: u64) -> Option<Bytes> {
    let scan = json::scan_object(request_body, &["encoding_format"], MAX_DEPTH).ok()?;
    let is_packed = scan
        .get("encoding_format")
        .and_then(|value| json::as_str(request_body, value))
        .is_some_and(|encoding| encoding == "base64");
    let mut out = Writer::default();
    out.open(b'{').key("object").str("list").key("data").open(b'[');
    for (at, vector) in vectors.iter().enumerate() {
        out.open(b'{').key("object").str("embedding").key("index").number(at as u64).key("embedding");
        if is_packed {
            let numbers: Vec<f32> = serde_json::from_str(vector.values.get()).ok()?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            out.str(&STANDARD.encode(bytes));
        } else {
            out.raw(vector.values.get());
        }
        out.close(b'}');
    }
    out.close(b']').key("model").str(model).key("usage").open(b'{');
    out.key("prompt_tokens").number(tokens).key("total_tokens").number(tokens).close(b'}');
    Some(Bytes::from(out.close(b'}').take()))
}

fn for_google(caller: EmbeddingCall, body: &[u8], usage: Usage) -> Option<Bytes> {
    #[derive(Deserialize)]
    struct One<'a> {
        index: usize,
        #[serde(borrow)]
        embedding: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow)]
        data: Vec<One<'a>>,
    }
    let mut answer: AnswerIn<'_> = serde_json::from_slice(body).ok()?;
    answer.data.sort_by_key(|one| one.index);
    let mut out = Writer::default();
    let write = |out: &mut Writer, one: &One<'_>| {
        out.open(b'{').key("values").raw(one.embedding.get()).close(b'}');
    };
    out.open(b'{');
    if caller == EmbeddingCall::One {
        out.key("embedding");
        write(&mut out, answer.data.first()?);
    } else {
        out.key("embeddings").open(b'[');
        answer.data.iter().for_each(|one| write(&mut out, one));
        out.close(b']');
    }
    out.key("usageMetadata").open(b'{').key("promptTokenCount").number(usage.input).close(b'}');
    Some(Bytes::from(out.close(b'}').take()))
}

#[cfg(test)]
#[path = "embeddings_tests.rs"]
mod tests;
