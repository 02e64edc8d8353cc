//! Reranking at Bedrock: Cohere's and Amazon's models by `InvokeModel`.

use bytes::Bytes;
use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{count, other, CallFacts, NoContent};
use crate::model::{typed, unsupported, wrong, Members};
use crate::text::{Text, Writer};

/// A request in the form that the gateway's callers use.
#[derive(Default)]
pub(super) struct RerankRequest<'a> {
    query: Option<Text<'a>>,
    documents: Vec<Text<'a>>,
    top_n: Option<u64>,
    returns_documents: bool,
}

pub(super) fn read(members: Members<'_>) -> Result<RerankRequest<'_>, Error> {
    let mut request = RerankRequest::default();
    for (name, value) in members.0 {
        match &*name {
            "model" | "user" => {}
            _ if value.get() == "null" => {}
            "query" => request.query = Some(typed(value, "query")?),
            "documents" => {
                let documents: Vec<&RawValue> = typed(value, "documents")?;
                for (at, one) in documents.into_iter().enumerate() {
                    request.documents.push(document(one, at)?);
                }
            }
            "top_n" => request.top_n = Some(count(value, "top_n")?),
            "return_documents" => request.returns_documents = typed(value, "return_documents")?,
            _ => other(&name, value)?,
        }
    }
    if request.query.is_none() {
        return Err(wrong("query", "is required"));
    }
    if request.documents.is_empty() {
        return Err(wrong("documents", "must not be empty"));
    }
    Ok(request)
}

/// A document is a text, or an object with one.
fn document(value: &RawValue, at: usize) -> Result<Text<'_>, Error> {
    #[derive(Deserialize)]
    struct DocumentIn<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }
    if let Some(text) = Text::of(value) {
        return Ok(text);
    }
    let path = format!("documents[{at}]");
    let read: Result<DocumentIn<'_>, _> = serde_json::from_str(value.get());
    read.map(|document| document.text).map_err(|_| unsupported(&path))
}

pub(super) fn to_bedrock(request: &RerankRequest<'_>, model: &str, out: &mut Writer) {
    out.open(b'{');
    if let Some(query) = &request.query {
        out.member("query", query);
    }
    out.key("documents").open(b'[');
    for text in &request.documents {
        out.text(text);
    }
    out.close(b']');
    if let Some(top_n) = request.top_n {
        out.key("top_n").number(top_n);
    }
    if model.contains("cohere.") {
        out.key("api_version").raw("2");
    }
    out.close(b'}');
}

pub(super) fn answer(answer: &[u8], request_body: &[u8], facts: CallFacts<'_>) -> Result<Bytes, NoContent> {
    #[derive(Deserialize)]
    struct ResultIn<'a> {
        index: usize,
        #[serde(borrow)]
        relevance_score: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow)]
        results: Vec<ResultIn<'a>>,
    }
    let found: AnswerIn<'_> = serde_json::from_slice(answer).map_err(|_| NoContent)?;
    let members: Members<'_> = serde_json::from_slice(request_body).map_err(|_| NoContent)?;
    let request = read(members).map_err(|_| NoContent)?;
    let mut out = Writer::with_capacity(answer.len() + 64);
    out.open(b'{').key("model").str(facts.model).key("results").open(b'[');
    for result in &found.results {
        let text = request.documents.get(result.index).ok_or(NoContent)?;
        out.open(b'{').key("index").number(result.index as u64);
        out.key("relevance_score").raw(result.relevance_score.get());
        if request.returns_documents {
            out.key("document").open(b'{').member("text", text).close(b'}');
        }
        out.close(b'}');
    }
    // Bedrock charges a query.
    out.close(b']').key("meta").raw(r#"{"billed_units":{"search_units":1}}"#);
    Ok(Bytes::from(out.close(b'}').take()))
}
