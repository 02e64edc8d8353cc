//! Embeddings in Ollama's API. `/api/embed` takes one or many texts, and the older `/api/embeddings` takes one prompt.
//! Both are translated to an OpenAI embeddings request, and the response is translated back.

use bytes::Bytes;
use fairlead_core::{json, Error, ErrorKind, Retry};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::AnswerTime;
use crate::model::{owned, typed, wrong, Members};
use crate::openai::request::broken;
use crate::text::{Text, Writer};

/// The two embeddings calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedCall {
    Embed,
    /// The older call, for one prompt.
    Embeddings,
}

/// The data needed to write the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedForm {
    pub call: EmbedCall,
    /// The model name in the request.
    pub model: String,
}

/// A translated request.
#[derive(Debug)]
pub struct EmbedRequest {
    /// The embeddings request in OpenAI's API.
    pub body: Bytes,
    pub form: EmbedForm,
    /// The request has no text. Clients use this to load a model.
    pub is_empty: bool,
}

/// Reads a body.
///
/// Some Ollama clients append `:latest` to every name. The suffix is removed if `is_listed` accepts only the name
/// without it. `options`, `keep_alive` and `truncate` configure the machine that runs the model, so they are ignored.
pub fn read_embed(call: EmbedCall, body: &[u8], is_listed: impl Fn(&str) -> bool) -> Result<EmbedRequest, Error> {
    json::scan_object(body, &[], json::MAX_DEPTH).map_err(|fault| broken(&fault))?;
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let (mut model, mut input, mut dimensions): (Option<Text<'_>>, Option<&RawValue>, Option<u32>) = (None, None, None);
    for (name, value) in members.0 {
        match (&*name, call) {
            _ if value.get() == "null" => {}
            ("model", _) => model = Some(typed(value, "model")?),
            ("input", EmbedCall::Embed) => input = texts(value)?,
            ("prompt", EmbedCall::Embeddings) => {
                typed::<Text<'_>>(value, "prompt")?;
                input = Some(value);
            }
            ("dimensions", EmbedCall::Embed) => dimensions = Some(owned(value, "dimensions")?),
            ("truncate", EmbedCall::Embed) => drop(owned::<bool>(value, "truncate")?),
            ("options" | "keep_alive", _) => {}
            _ => return Err(wrong(&name, "is no member of this request")),
        }
    }
    let model = model.filter(|model| !model.is_empty()).ok_or_else(|| wrong("model", "is required"))?;
    let model = model.decode().into_owned();
    let bare = model.strip_suffix(":latest").filter(|bare| !is_listed(&model) && is_listed(bare));
    let input = input.map_or("[]", RawValue::get);
    let mut out = Writer::with_capacity(input.len() + 128);
    out.open(b'{').key("model").str(bare.unwrap_or(&model)).key("input").raw(input);
    out.key("encoding_format").str("float");
    if let Some(dimensions) = dimensions.filter(|dimensions| *dimensions > 0) {
        out.key("dimensions").raw(&dimensions.to_string());
    }
    let is_empty = matches!(input, "[]" | "\"\"");
    Ok(EmbedRequest { body: Bytes::from(out.close(b'}').take()), form: EmbedForm { call, model }, is_empty })
}

/// Reads one text or a list of texts. Returns `None` for an empty list.
fn texts(value: &RawValue) -> Result<Option<&RawValue>, Error> {
    if Text::of(value).is_some() {
        return Ok(Some(value));
    }
    let list: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|_| wrong("input", "must be a string or a list of strings"))?;
    if let Some(at) = list.iter().position(|one| Text::of(one).is_none()) {
        return Err(wrong(&format!("input[{at}]"), "must be a string"));
    }
    Ok(Some(value).filter(|_| !list.is_empty()))
}

#[derive(Deserialize)]
struct AnswerIn<'a> {
    #[serde(borrow)]
    data: Vec<EmbeddingIn<'a>>,
    #[serde(default)]
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
struct EmbeddingIn<'a> {
    #[serde(default)]
    index: Option<usize>,
    #[serde(borrow)]
    embedding: &'a RawValue,
}

#[derive(Deserialize)]
struct UsageIn {
    #[serde(default)]
    prompt_tokens: Option<u64>,
}

/// Translates a response of OpenAI's API for the caller.
pub fn answer_embed(form: &EmbedForm, answer: &[u8], at: AnswerTime) -> Result<Bytes, Error> {
    let invalid = || {
        let message = "The provider's answer cannot be written in Ollama's form.";
        Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message)
    };
    let mut answer: AnswerIn<'_> = serde_json::from_slice(answer).map_err(|_| invalid())?;
    if answer.data.iter().any(|one| !one.embedding.get().starts_with('[')) {
        return Err(invalid());
    }
    // The sort is stable, so embeddings without an index keep their order.
    answer.data.sort_by_key(|one| one.index.unwrap_or_default());
    let embeddings = answer.data.iter().map(|one| one.embedding.get());
    let tokens = answer.usage.and_then(|usage| usage.prompt_tokens).unwrap_or_default();
    Ok(write(form, embeddings, tokens, at))
}

/// The response to a request without a text.
pub fn no_embeddings(form: &EmbedForm, at: AnswerTime) -> Bytes {
    write(form, std::iter::empty(), 0, at)
}

fn write<'a>(form: &EmbedForm, mut embeddings: impl Iterator<Item = &'a str>, tokens: u64, at: AnswerTime) -> Bytes {
    let mut out = Writer::with_capacity(1024);
    out.open(b'{');
    match form.call {
        EmbedCall::Embeddings => {
            out.key("embedding").raw(embeddings.next().unwrap_or("[]"));
        }
        EmbedCall::Embed => {
            out.key("model").str(&form.model).key("embeddings").open(b'[');
            for embedding in embeddings {
                out.raw(embedding);
            }
            out.close(b']').key("total_duration").raw(&at.since_start_ns.to_string());
            out.key("load_duration").raw("0").key("prompt_eval_count").raw(&tokens.to_string());
        }
    }
    Bytes::from(out.close(b'}').take())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn read(call: EmbedCall, body: &str) -> Result<EmbedRequest, Error> {
        read_embed(call, body.as_bytes(), |model| model == "p/m")
    }

    #[test]
    fn a_request_becomes_one_of_openai() {
        let body = r#"{"model":"p/m:latest","input":["a","b"],"truncate":true,"dimensions":8,"options":{"num_ctx":1},"keep_alive":"5m"}"#;
        let read = read(EmbedCall::Embed, body).expect("a request");
        let sent: Value = serde_json::from_slice(&read.body).expect("JSON");
        assert_eq!(sent, json!({"model": "p/m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 8}));
        assert_eq!(read.form, EmbedForm { call: EmbedCall::Embed, model: "p/m:latest".to_owned() });
        assert!(!read.is_empty);
    }

    #[test]
    fn a_request_without_a_text_is_told_apart() {
        for body in [r#"{"model":"p/m"}"#, r#"{"model":"p/m","input":""}"#, r#"{"model":"p/m","input":[ ]}"#] {
            assert!(read(EmbedCall::Embed, body).expect("a request").is_empty, "{body}");
        }
        assert!(!read(EmbedCall::Embeddings, r#"{"model":"p/m","prompt":"a"}"#).expect("a request").is_empty);
    }

    #[test]
    fn a_wrong_member_is_named() {
        for (body, param) in [
            (r#"{"input":"a"}"#, "model"),
            (r#"{"model":"p/m","input":[1]}"#, "input[0]"),
            (r#"{"model":"p/m","input":1}"#, "input"),
            (r#"{"model":"p/m","prompt":"a"}"#, "prompt"),
        ] {
            let fault = read(EmbedCall::Embed, body).expect_err("a fault");
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
    }

    #[test]
    fn an_answer_has_its_embeddings_in_the_order_of_the_texts() {
        let answer =
            br#"{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":7}}"#;
        let form = EmbedForm { call: EmbedCall::Embed, model: "p/m".to_owned() };
        let at = AnswerTime { since_start_ns: 5, ..AnswerTime::default() };
        let written = answer_embed(&form, answer, at).expect("an answer");
        assert_eq!(
            written,
            &br#"{"model":"p/m","embeddings":[[1,2],[3,4]],"total_duration":5,"load_duration":0,"prompt_eval_count":7}"#[..]
        );
        let form = EmbedForm { call: EmbedCall::Embeddings, ..form };
        assert_eq!(answer_embed(&form, answer, at).expect("an answer"), &br#"{"embedding":[1,2]}"#[..]);
        assert!(answer_embed(&form, br#"{"data":[{"embedding":"AAAA"}]}"#, at).is_err());
    }
}
