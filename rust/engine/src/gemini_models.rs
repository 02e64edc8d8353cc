//! `GET /v1beta/models`: the models that the caller may use, in Gemini's words. The same list as `GET /v1/models`, so a key
//! sees here what it sees there.

use crate::admission::Admission;
use crate::answer::{self, base_headers};
use crate::exchange::{Exchange, Head};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind};
use fairlead_core::routes::Answer;
use http::header::{self, HeaderValue};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What of an entry of the list is told again.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default)]
    context_length: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    data: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    name: String,
    display_name: &'a str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_token_limit: Option<u64>,
    supported_generation_methods: [&'static str; 2],
}

impl<'a> From<&'a Entry<'_>> for Told<'a> {
    fn from(entry: &'a Entry<'_>) -> Self {
        Self {
            name: format!("models/{}", entry.id),
            display_name: &entry.id,
            version: "",
            input_token_limit: entry.context_length,
            output_token_limit: entry.max_output_tokens,
            supported_generation_methods: ["generateContent", "countTokens"],
        }
    }
}

/// Answers for the list and for one model.
pub fn answer(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let live = shared.live.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let told = if admission.route.answer == Answer::GeminiModels {
        all(&live.lists.for_key(key).body)
    } else {
        live.lists.one(&admission.tail, key).and_then(|entry| one(&entry))
    };
    let Some(body) = told else {
        let message = format!("The model `{}` is not known here.", admission.tail);
        let fault = Error::client(Kind::ModelNotFound, message).about("name");
        return answer::refuse(shared, exchange, admission.route.surface, &admission.request_id, &fault);
    };
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    exchange.answer(Head { status: StatusCode::OK, headers }, Bytes::from(body));
}

fn all(list: &[u8]) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Models<'a> {
        models: Vec<Told<'a>>,
    }
    let list: List<'_> = serde_json::from_slice(list).ok()?;
    serde_json::to_vec(&Models { models: list.data.iter().map(Told::from).collect() }).ok()
}

fn one(entry: &[u8]) -> Option<Vec<u8>> {
    let entry: Entry<'_> = serde_json::from_slice(entry).ok()?;
    serde_json::to_vec(&Told::from(&entry)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_the_same_in_other_words() {
        let list = br#"{"object":"list","data":[{"id":"g/pro","object":"model","context_length":10,"max_output_tokens":4},{"id":"fast"}]}"#;
        let told: serde_json::Value = serde_json::from_slice(&all(list).expect("a list")).expect("JSON");
        assert_eq!(told["models"][0]["name"], "models/g/pro");
        assert_eq!(told["models"][0]["inputTokenLimit"], 10);
        assert_eq!(told["models"][0]["supportedGenerationMethods"][0], "generateContent");
        assert_eq!(told["models"][1].get("inputTokenLimit"), None);
        assert!(one(br#"{"id":"fast"}"#).is_some());
    }
}
