//! Embeddings: Amazon Titan, Cohere at Bedrock, and Google's `predict`.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{count, other, CallFacts, CloudCall, NoContent};
use crate::model::{typed, unsupported, wrong, Members};
use crate::text::{Text, Writer};

/// The average of ordinary text, for answers without a count of tokens.
const BYTES_PER_TOKEN: usize = 4;

/// A request in OpenAI's form.
pub(super) struct EmbeddingRequest<'a> {
    inputs: Vec<Text<'a>>,
    dimensions: Option<u64>,
    is_base64: bool,
}

pub(super) fn read(members: Members<'_>) -> Result<EmbeddingRequest<'_>, Error> {
    let mut request = EmbeddingRequest { inputs: Vec::new(), dimensions: None, is_base64: false };
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            "model" | "user" => {}
            _ if raw == "null" => {}
            "input" if raw.starts_with('"') => request.inputs.push(typed(value, "input")?),
            "input" => {
                let inputs: Vec<&RawValue> = typed(value, "input")?;
                for (at, one) in inputs.into_iter().enumerate() {
                    request.inputs.push(Text::of(one).ok_or_else(|| unsupported(&format!("input[{at}]")))?);
                }
            }
            "dimensions" => request.dimensions = Some(count(value, "dimensions")?),
            "encoding_format" if raw == r#""float""# => {}
            "encoding_format" if raw == r#""base64""# => request.is_base64 = true,
            "encoding_format" => return Err(wrong("encoding_format", "must be `float` or `base64`")),
            _ => other(&name, value)?,
        }
    }
    if request.inputs.is_empty() {
        return Err(wrong("input", "must not be empty"));
    }
    Ok(request)
}

/// Titan embeds one text a call.
pub(super) fn to_titan(request: &EmbeddingRequest<'_>, out: &mut Writer) -> Result<(), Error> {
    let [text] = &request.inputs[..] else {
        return Err(wrong("input", "must be one text: this model embeds one in each call"));
    };
    out.open(b'{').member("inputText", text);
    if let Some(dimensions) = request.dimensions {
        out.key("dimensions").number(dimensions);
    }
    out.close(b'}');
    Ok(())
}

pub(super) fn to_cohere(request: &EmbeddingRequest<'_>, out: &mut Writer) {
    out.open(b'{').key("texts").open(b'[');
    for text in &request.inputs {
        out.text(text);
    }
    // OpenAI's request does not say the use. Documents are the usual one.
    out.close(b']').key("input_type").raw(r#""search_document""#).key("embedding_types").raw(r#"["float"]"#);
    if let Some(dimensions) = request.dimensions {
        out.key("output_dimension").number(dimensions);
    }
    out.close(b'}');
}

pub(super) fn to_vertex(request: &EmbeddingRequest<'_>, out: &mut Writer) {
    out.open(b'{').key("instances").open(b'[');
    for text in &request.inputs {
        out.open(b'{').member("content", text).close(b'}');
    }
    out.close(b']');
    if let Some(dimensions) = request.dimensions {
        out.key("parameters").open(b'{').key("outputDimensionality").number(dimensions).close(b'}');
    }
    out.close(b'}');
}

/// The vectors of an answer, as JSON lists, and its input in tokens.
struct Vectors<'a> {
    values: Vec<&'a RawValue>,
    tokens: Option<u64>,
}

pub(super) fn answer(
    call: CloudCall,
    answer: &[u8],
    request_body: &[u8],
    facts: CallFacts<'_>,
) -> Result<Bytes, NoContent> {
    let found = match call {
        CloudCall::TitanEmbed => titan(answer),
        CloudCall::CohereEmbed => cohere(answer),
        _ => vertex(answer),
    };
    let Vectors { values, tokens } = found.ok_or(NoContent)?;
    let members: Members<'_> = serde_json::from_slice(request_body).map_err(|_| NoContent)?;
    let request = read(members).map_err(|_| NoContent)?;
    if values.len() != request.inputs.len() {
        return Err(NoContent);
    }
    let estimate = || request_body.len().div_ceil(BYTES_PER_TOKEN) as u64;
    let tokens = tokens.or(facts.input_tokens).unwrap_or_else(estimate);
    let mut out = Writer::with_capacity(answer.len() + 128);
    out.open(b'{').key("object").raw(r#""list""#).key("data").open(b'[');
    for (at, vector) in values.iter().enumerate() {
        out.open(b'{').key("object").raw(r#""embedding""#).key("index").number(at as u64).key("embedding");
        if request.is_base64 {
            let numbers: Vec<f32> = serde_json::from_str(vector.get()).map_err(|_| NoContent)?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            out.str(&STANDARD.encode(bytes));
        } else {
            out.raw(vector.get());
        }
        out.close(b'}');
    }
    out.close(b']').key("model").str(facts.model).key("usage").open(b'{');
    out.key("prompt_tokens").number(tokens).key("total_tokens").number(tokens).close(b'}');
    Ok(Bytes::from(out.close(b'}').take()))
}

fn titan(answer: &[u8]) -> Option<Vectors<'_>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AnswerIn<'a> {
        #[serde(borrow)]
        embedding: &'a RawValue,
        #[serde(default)]
        input_text_token_count: Option<u64>,
    }
    let read: AnswerIn<'_> = serde_json::from_slice(answer).ok()?;
    Some(Vectors { values: vec![read.embedding], tokens: read.input_text_token_count })
}

fn cohere(answer: &[u8]) -> Option<Vectors<'_>> {
    #[derive(Deserialize)]
    struct ByType<'a> {
        #[serde(borrow)]
        float: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow)]
        embeddings: &'a RawValue,
    }
    let read: AnswerIn<'_> = serde_json::from_slice(answer).ok()?;
    let text = read.embeddings.get();
    // With `embedding_types` they are under their type, and otherwise a list.
    let values = match serde_json::from_str::<ByType<'_>>(text) {
        Ok(typed) => typed.float,
        Err(_) => serde_json::from_str(text).ok()?,
    };
    Some(Vectors { values, tokens: None })
}

fn vertex(answer: &[u8]) -> Option<Vectors<'_>> {
    #[derive(Deserialize)]
    struct Statistics {
        #[serde(default)]
        token_count: Option<f64>,
    }
    #[derive(Deserialize)]
    struct Embedding<'a> {
        #[serde(borrow)]
        values: &'a RawValue,
        #[serde(default)]
        statistics: Option<Statistics>,
    }
    #[derive(Deserialize)]
    struct Prediction<'a> {
        #[serde(borrow)]
        embeddings: Embedding<'a>,
    }
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow)]
        predictions: Vec<Prediction<'a>>,
    }
    let read: AnswerIn<'_> = serde_json::from_slice(answer).ok()?;
    let count = |one: &Prediction<'_>| one.embeddings.statistics.as_ref()?.token_count;
    let counts: Option<Vec<f64>> = read.predictions.iter().map(count).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion to integers saturates")]
    let tokens = counts.map(|counts| counts.iter().sum::<f64>() as u64);
    let values = read.predictions.into_iter().map(|one| one.embeddings.values).collect();
    Some(Vectors { values, tokens })
}
