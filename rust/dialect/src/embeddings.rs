//! Embeddings between OpenAI's words and Google's: the request for a provider, and its answer for the caller.
//!
//! OpenAI has one call for one input and for many; Google has `embedContent` for one and `batchEmbedContents` for many. What
//! is kept, left out and refused is in docs/explanation/dialects.md.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_core::json::{self, Kind, MAX_DEPTH};
use fairlead_core::{Error, Units, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{is_neutral, typed, unsupported, wrong, Members};
use crate::openai::request::{broken, check_model, missing, rewrite, ChatRequest};
use crate::text::{Text, Writer};
use crate::Pieces;

/// As in every dialect: a count above this is none.
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// The form of an embeddings call, of its caller or of its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingCall {
    OpenAi,
    /// Google's call for one input.
    One,
    /// Google's call for many.
    Many,
}

/// Of an ordinary text, about: Google does not always tell what it counted.
const BYTES_PER_TOKEN: usize = 4;

/// A request, whoever wrote it.
struct EmbeddingRequest<'a> {
    inputs: Vec<Vec<Text<'a>>>,
    is_list: bool,
    dimensions: Option<&'a str>,
    wants_base64: bool,
}

/// The body for a provider, and the call that it goes to.
#[derive(Debug)]
pub struct ProviderRequest {
    pub form: EmbeddingCall,
    pub body: Pieces,
}

/// A provider's answer, for the caller.
#[derive(Debug)]
pub struct EmbeddingAnswer {
    pub body: Bytes,
    pub usage: Usage,
    pub units: Units,
}

/// Reads what the gateway decides by of a request of Google's, whose address names the model.
pub fn read_gemini(body: &[u8], tail: &str) -> Result<ChatRequest, Error> {
    let model = tail.strip_prefix("models/").unwrap_or(tail);
    check_model(model)?;
    let scan = json::scan_object(body, &["requests", "content"], MAX_DEPTH).map_err(|fault| broken(&fault))?;
    if scan.get("requests").or_else(|| scan.get("content")).is_none() {
        return Err(missing("content"));
    }
    crate::openai::named::of_form(model, false, 1)
}

/// The request for a provider that knows the model as `model`; `to_google` says whose words it speaks.
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

/// Google wants the model's name in each request of a batch again.
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
    let mut asked = EmbeddingRequest { inputs: Vec::new(), is_list: false, dimensions: None, wants_base64: false };
    for (name, value) in members(body)?.0 {
        let raw = value.get();
        match &*name {
            // Who asks is not told on.
            "model" | "user" => {}
            _ if raw == "null" => {}
            "input" if raw.starts_with('"') => asked.inputs.push(vec![typed(value, "input")?]),
            "input" => {
                asked.is_list = true;
                let inputs: Vec<&RawValue> = typed(value, "input")?;
                for (at, one) in inputs.iter().enumerate() {
                    let text = Text::of(one).ok_or_else(|| unsupported(&format!("input[{at}]")))?;
                    asked.inputs.push(vec![text]);
                }
            }
            "dimensions" => asked.dimensions = Some(whole(value, "dimensions")?),
            "encoding_format" if raw == r#""float""# => {}
            "encoding_format" if raw == r#""base64""# => asked.wants_base64 = true,
            "encoding_format" => return Err(wrong("encoding_format", "must be `float` or `base64`")),
            _ if is_neutral(raw) => {}
            _ => return Err(unsupported(&name)),
        }
    }
    if asked.inputs.is_empty() {
        return Err(wrong("input", "must not be empty"));
    }
    Ok(asked)
}

fn whole<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let raw = value.get();
    if raw.parse::<u64>().is_ok_and(|count| count > 0) {
        Ok(raw)
    } else {
        Err(wrong(path, "must be a whole number above 0"))
    }
}

fn read_google(form: EmbeddingCall, body: &[u8]) -> Result<EmbeddingRequest<'_>, Error> {
    let mut asked = EmbeddingRequest {
        inputs: Vec::new(),
        is_list: form == EmbeddingCall::Many,
        dimensions: None,
        wants_base64: false,
    };
    let top = members(body)?;
    if form == EmbeddingCall::One {
        one_of_google(&top, "", &mut asked)?;
        return Ok(asked);
    }
    for (name, value) in top.0 {
        match &*name {
            "requests" => {
                let requests: Vec<&RawValue> = typed(value, "requests")?;
                for (at, one) in requests.iter().enumerate() {
                    let path = format!("requests[{at}].");
                    one_of_google(&typed(one, &path)?, &path, &mut asked)?;
                }
            }
            "model" => {}
            _ if is_neutral(value.get()) => {}
            _ => return Err(unsupported(&name)),
        }
    }
    if asked.inputs.is_empty() {
        return Err(wrong("requests", "must not be empty"));
    }
    Ok(asked)
}

fn one_of_google<'a>(members: &Members<'a>, path: &str, asked: &mut EmbeddingRequest<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct ContentIn<'a> {
        #[serde(borrow, default)]
        parts: Vec<Members<'a>>,
    }
    let mut texts = Vec::new();
    let mut dimensions = None;
    for (name, value) in &members.0 {
        let place = format!("{path}{name}");
        match &**name {
            // What the numbers are for is a hint that others have no word for.
            "model" | "taskType" | "task_type" | "title" => {}
            _ if value.get() == "null" => {}
            "content" => {
                let content: ContentIn<'a> = typed(value, &place)?;
                for (at, part) in content.parts.into_iter().enumerate() {
                    for (name, value) in part.0 {
                        let place = format!("{place}.parts[{at}].{name}");
                        if name != "text" {
                            return Err(unsupported(&place));
                        }
                        texts.push(typed(value, &place)?);
                    }
                }
            }
            "outputDimensionality" | "output_dimensionality" => dimensions = Some(whole(value, &place)?),
            _ if is_neutral(value.get()) => {}
            _ => return Err(unsupported(&place)),
        }
    }
    if texts.is_empty() {
        return Err(wrong(&format!("{path}content"), "must have a text"));
    }
    if !asked.inputs.is_empty() && asked.dimensions != dimensions {
        return Err(wrong(&format!("{path}outputDimensionality"), "must be the same in all requests"));
    }
    asked.dimensions = dimensions;
    asked.inputs.push(texts);
    Ok(())
}

fn to_gemini(asked: &EmbeddingRequest<'_>, model: &str) -> ProviderRequest {
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
        if let Some(dimensions) = asked.dimensions {
            out.key("outputDimensionality").raw(dimensions);
        }
        out.close(b'}');
    };
    let form = if asked.is_list { EmbeddingCall::Many } else { EmbeddingCall::One };
    if asked.is_list {
        out.open(b'{').key("requests").open(b'[');
        asked.inputs.iter().for_each(|texts| one(&mut out, texts, true));
        out.close(b']').close(b'}');
    } else {
        asked.inputs.iter().for_each(|texts| one(&mut out, texts, false));
    }
    ProviderRequest { form, body: Pieces::from_iter([Bytes::from(out.take())]) }
}

fn to_openai(asked: &EmbeddingRequest<'_>, model: &str) -> ProviderRequest {
    let mut out = Writer::default();
    out.open(b'{').key("model").str(model).key("input").open(b'[');
    for texts in &asked.inputs {
        let decoded: Vec<_> = texts.iter().map(Text::decode).collect();
        out.str(&decoded.join("\n"));
    }
    out.close(b']').key("encoding_format").str("float");
    if let Some(dimensions) = asked.dimensions {
        out.key("dimensions").raw(dimensions);
    }
    let body = Pieces::from_iter([Bytes::from(out.close(b'}').take())]);
    ProviderRequest { form: EmbeddingCall::OpenAi, body }
}

/// A provider's answer to a letter of this form, as the caller reads it. `asked` is the caller's own body. `None`: it is no
/// such answer.
pub fn answer(
    caller: EmbeddingCall,
    provider: EmbeddingCall,
    body: &Bytes,
    asked: &Bytes,
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
    let counted = usage_of(body).unwrap_or_else(|| asked.len().div_ceil(BYTES_PER_TOKEN) as u64);
    let usage = Usage { input: counted, ..Usage::default() };
    let body =
        if caller == EmbeddingCall::OpenAi { for_openai(&vectors, asked, model, counted)? } else { body.clone() };
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
    let told: AnswerIn<'_> = serde_json::from_slice(body).ok()?;
    let vectors = told.embeddings.or_else(|| Some(vec![told.embedding?]))?;
    vectors.iter().all(|vector| vector.values.get().starts_with('[')).then_some(vectors)
}

fn usage_of(body: &[u8]) -> Option<u64> {
    let scan = json::scan_object(body, &["usageMetadata"], MAX_DEPTH).ok()?;
    let used = body.get(scan.get("usageMetadata").filter(|used| used.kind == Kind::Object)?.span())?;
    let inner = json::scan_object(used, &["promptTokenCount"], MAX_DEPTH).ok()?;
    json::as_u64(used, inner.get("promptTokenCount")?).filter(|count| *count <= MAX_TOKENS)
}

fn for_openai(vectors: &[Vector<'_>], asked: &[u8], model: &str, tokens: u64) -> Option<Bytes> {
    let scan = json::scan_object(asked, &["encoding_format"], MAX_DEPTH).ok()?;
    let is_packed =
        scan.get("encoding_format").and_then(|value| json::as_str(asked, value)).is_some_and(|told| told == "base64");
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
    let mut told: AnswerIn<'_> = serde_json::from_slice(body).ok()?;
    told.data.sort_by_key(|one| one.index);
    let mut out = Writer::default();
    let write = |out: &mut Writer, one: &One<'_>| {
        out.open(b'{').key("values").raw(one.embedding.get()).close(b'}');
    };
    out.open(b'{');
    if caller == EmbeddingCall::One {
        out.key("embedding");
        write(&mut out, told.data.first()?);
    } else {
        out.key("embeddings").open(b'[');
        told.data.iter().for_each(|one| write(&mut out, one));
        out.close(b']');
    }
    out.key("usageMetadata").open(b'{').key("promptTokenCount").number(usage.input).close(b'}');
    Some(Bytes::from(out.close(b'}').take()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn requested(caller: EmbeddingCall, to_google: bool, body: &Value) -> Result<(EmbeddingCall, Value), Error> {
        let body = Bytes::from(body.to_string());
        let read = match caller {
            EmbeddingCall::OpenAi => crate::openai::named::of_form("x", false, 1)?,
            _ => read_gemini(&body, "models/x")?,
        };
        let letter = letter(caller, to_google, &body, &read, "m")?;
        Ok((letter.form, serde_json::from_slice(&letter.body.concat()).expect("JSON")))
    }

    #[test]
    fn a_request_is_said_in_googles_words() {
        let one = json!({"model": "x", "input": "a\n", "dimensions": 3, "user": "u", "encoding_format": "base64"});
        let expected = json!({"content": {"parts": [{"text": "a\n"}]}, "outputDimensionality": 3});
        assert_eq!(requested(EmbeddingCall::OpenAi, true, &one).expect("said"), (EmbeddingCall::One, expected));
        let many = json!({"model": "x", "input": ["a", "b"]});
        let each = |text: &str| json!({"model": "models/m", "content": {"parts": [{"text": text}]}});
        let expected = json!({"requests": [each("a"), each("b")]});
        assert_eq!(requested(EmbeddingCall::OpenAi, true, &many).expect("said"), (EmbeddingCall::Many, expected));
    }

    #[test]
    fn a_request_of_googles_is_said_in_openais_words() {
        let one =
            json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "taskType": "RETRIEVAL_QUERY", "title": "t"});
        let expected = json!({"model": "m", "input": ["a\nb"], "encoding_format": "float"});
        assert_eq!(requested(EmbeddingCall::One, false, &one).expect("said"), (EmbeddingCall::OpenAi, expected));
        let each = |text: &str| json!({"model": "models/x", "content": {"parts": [{"text": text}]}, "outputDimensionality": 2});
        let many = json!({"requests": [each("a"), each("b")]});
        let expected = json!({"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2});
        assert_eq!(requested(EmbeddingCall::Many, false, &many).expect("said"), (EmbeddingCall::OpenAi, expected));
    }

    #[test]
    fn a_request_of_googles_to_google_gets_the_models_name_alone() {
        let each = |model: &str| json!({"model": model, "content": {"parts": [{"text": "a"}]}, "more": [1.0]});
        let many = json!({"requests": [each("models/x"), each("models/y")]});
        let expected = json!({"requests": [each("models/m"), each("models/m")]});
        assert_eq!(requested(EmbeddingCall::Many, true, &many).expect("said"), (EmbeddingCall::Many, expected));
        let one = json!({"content": {"parts": []}});
        assert_eq!(requested(EmbeddingCall::One, true, &one).expect("said"), (EmbeddingCall::One, one));
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        for (caller, body, param) in [
            (EmbeddingCall::OpenAi, json!({"input": [1, 2]}), "input[0]"),
            (EmbeddingCall::OpenAi, json!({"input": [[1]]}), "input[0]"),
            (EmbeddingCall::OpenAi, json!({"input": []}), "input"),
            (EmbeddingCall::OpenAi, json!({"input": 7}), "input"),
            (EmbeddingCall::OpenAi, json!({"input": "a", "dimensions": "3"}), "dimensions"),
            (EmbeddingCall::OpenAi, json!({"input": "a", "encoding_format": "int8"}), "encoding_format"),
            (EmbeddingCall::OpenAi, json!({"input": "a", "later": 1}), "later"),
        ] {
            let fault = requested(caller, true, &body).expect_err("refused");
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
        let image = json!({"content": {"parts": [{"inlineData": {"data": ""}}]}});
        let dimensions = |count: u64| json!({"content": {"parts": [{"text": "a"}]}, "outputDimensionality": count});
        for (caller, body, param) in [
            (EmbeddingCall::One, image, "content.parts[0].inlineData"),
            (EmbeddingCall::One, json!({"content": {"parts": []}}), "content"),
            (EmbeddingCall::One, json!({"contents": []}), "content"),
            (
                EmbeddingCall::Many,
                json!({"requests": [dimensions(1), dimensions(2)]}),
                "requests[1].outputDimensionality",
            ),
            (EmbeddingCall::Many, json!({"requests": []}), "requests"),
        ] {
            let fault = requested(caller, false, &body).expect_err("refused");
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
    }

    fn answered(caller: EmbeddingCall, provider: EmbeddingCall, body: &Value, asked: &Value) -> (Value, u64) {
        let (body, asked) = (Bytes::from(body.to_string()), Bytes::from(asked.to_string()));
        let told = answer(caller, provider, &body, &asked, "p/x").expect("an answer");
        (serde_json::from_slice(&told.body).expect("JSON"), told.usage.input)
    }

    #[test]
    fn an_answer_is_told_in_the_callers_words() {
        let google =
            json!({"embeddings": [{"values": [0.5, 1]}, {"values": [2]}], "usageMetadata": {"promptTokenCount": 9}});
        let (body, tokens) =
            answered(EmbeddingCall::OpenAi, EmbeddingCall::Many, &google, &json!({"input": ["a", "b"]}));
        assert_eq!(tokens, 9);
        assert_eq!(body["data"][1], json!({"object": "embedding", "index": 1, "embedding": [2]}));
        assert_eq!((&body["model"], &body["usage"]["total_tokens"]), (&json!("p/x"), &json!(9)));

        let one = json!({"embedding": {"values": [0.5, -1.0]}});
        let (body, tokens) = answered(
            EmbeddingCall::OpenAi,
            EmbeddingCall::One,
            &one,
            &json!({"input": "a", "encoding_format": "base64"}),
        );
        let packed = STANDARD.decode(body["data"][0]["embedding"].as_str().expect("text")).expect("base64");
        assert_eq!(packed, [0.5_f32.to_le_bytes(), (-1.0_f32).to_le_bytes()].concat());
        assert!(tokens > 0, "what is not told is estimated");

        let openai = json!({
            "data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}],
            "usage": {"prompt_tokens": 4},
        });
        let (body, tokens) = answered(EmbeddingCall::Many, EmbeddingCall::OpenAi, &openai, &json!({}));
        assert_eq!((&body["embeddings"], tokens), (&json!([{"values": [1]}, {"values": [2]}]), 4));
        assert_eq!(
            answered(EmbeddingCall::One, EmbeddingCall::OpenAi, &openai, &json!({})).0["embedding"],
            json!({"values": [1]})
        );
        assert_eq!(answered(EmbeddingCall::Many, EmbeddingCall::Many, &google, &json!({})).0, google);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for (provider, body) in [
            (EmbeddingCall::One, r#"{"error":{"message":"no"}}"#),
            (EmbeddingCall::Many, r#"{"embeddings":[{"values":7}]}"#),
            (EmbeddingCall::Many, "<html>"),
            (EmbeddingCall::OpenAi, r#"{"object":"list"}"#),
            (EmbeddingCall::OpenAi, r#"{"data":[],"error":{"message":"no"}}"#),
        ] {
            assert!(
                answer(EmbeddingCall::OpenAi, provider, &Bytes::from(body), &Bytes::from("{}"), "m").is_none(),
                "{body}"
            );
        }
    }
}
