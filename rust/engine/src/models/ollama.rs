//! `/ollama/api/tags`, `/ollama/api/show` and `/ollama/api/version`: the models that a caller may talk to, in Ollama's words. The list is that of
//! `GET /v1/models` without what is no model of conversations or embeddings, so a key sees here what it sees there.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::{Admission, Whole};
use crate::models::listed::ListDialect;
use crate::models::openai::{join, Cursor};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::clock::rfc3339;
use fairlead_core::error::{Error, Kind};
use fairlead_core::json;
use fairlead_core::secret::{hex, SecretHash};
use http::header::{self, HeaderValue};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{json, Value};

/// An entry of OpenAI's list, as far as it is told again.
#[derive(Deserialize)]
struct Entry<'a> {
    id: String,
    created: u64,
    owned_by: String,
    r#type: &'a str,
    #[serde(default)]
    context_length: Option<u64>,
    #[serde(default)]
    capabilities: Vec<String>,
}

impl Entry<'_> {
    fn is_told(&self) -> bool {
        matches!(self.r#type, "chat" | "responses" | "completion" | "embedding")
    }

    /// Files, formats and sizes are nobody's business here: the model runs elsewhere.
    fn details(&self) -> Value {
        json!({
            "parent_model": "", "format": "", "family": self.owned_by, "families": [self.owned_by],
            "parameter_size": "", "quantization_level": "",
        })
    }

    fn abilities(&self) -> Vec<&'static str> {
        if self.r#type == "embedding" {
            return vec!["embedding"];
        }
        let can = |names: &[&str]| self.capabilities.iter().any(|known| names.contains(&known.as_str()));
        let mut abilities = vec!["completion"];
        for (ability, names) in [
            ("tools", &["tools", "function_calling"][..]),
            ("vision", &["vision", "image_input"][..]),
            ("thinking", &["reasoning", "thinking"][..]),
        ] {
            if can(names) {
                abilities.push(ability);
            }
        }
        abilities
    }
}

/// An entry of the list, from what OpenAI's has; empty for what Ollama's has no entry of.
pub(crate) fn entry(listed: &[u8]) -> Bytes {
    let Some(entry) = serde_json::from_slice::<Entry<'_>>(listed).ok().filter(Entry::is_told) else {
        return Bytes::new();
    };
    let told = json!({
        "name": entry.id, "model": entry.id, "modified_at": rfc3339(entry.created.saturating_mul(1_000)), "size": 0,
        "digest": hex(&SecretHash::of(entry.id.as_bytes()).0), "details": entry.details(),
    });
    Bytes::from(told.to_string())
}

/// `GET /ollama/api/tags`.
pub fn tags(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let live = shared.live.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let page = live.lists.page(key, ListDialect::Ollama, &Cursor::Start, usize::MAX);
    let mut body = br#"{"models":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry).filter(|entry| !entry.is_empty()));
    body.push(b'}');
    tell(shared, exchange, admission, Bytes::from(body));
}

/// `GET /ollama/api/version`.
pub fn version(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let version = shared.version.to_str().unwrap_or_default();
    tell(shared, exchange, admission, Bytes::from(json!({ "version": version }).to_string()));
}

/// `POST /ollama/api/show`.
pub fn show(shared: &Shared, whole: &Whole) {
    let admission = &whole.admission;
    match shown(shared, admission, &whole.body) {
        Ok(body) => tell(shared, &whole.exchange, admission, body),
        Err(fault) => {
            shared.metrics.answered(admission.route.endpoint, fault.kind.status());
            answer::refuse(shared, &whole.exchange, admission.route.surface, &admission.request_id, &fault);
        }
    }
}

fn shown(shared: &Shared, admission: &Admission, body: &[u8]) -> Result<Bytes, Error> {
    let model = name(body)?;
    let live = shared.live.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let find = |name: &str| live.lists.one(name, key, ListDialect::OpenAi);
    let listed = find(&model).or_else(|| find(model.strip_suffix(":latest")?));
    let entry = listed.as_deref().and_then(|listed| serde_json::from_slice::<Entry<'_>>(listed).ok());
    let entry = entry.filter(Entry::is_told).ok_or_else(|| {
        Error::client(Kind::ModelNotFound, format!("The model `{model}` is not known here.")).about("model")
    })?;
    let mut info = json!({ "general.architecture": entry.owned_by, "general.basename": entry.id });
    if let Some(length) = entry.context_length {
        info[format!("{}.context_length", entry.owned_by)] = length.into();
    }
    let told = json!({
        "license": "", "modelfile": "", "parameters": "", "template": "", "details": entry.details(),
        "model_info": info, "capabilities": entry.abilities(),
        "modified_at": rfc3339(entry.created.saturating_mul(1_000)),
    });
    Ok(Bytes::from(told.to_string()))
}

/// The model that a body names; `name` is an older name of the member.
fn name(body: &[u8]) -> Result<String, Error> {
    let wrong = |field: &str, rule: &str| {
        Error::client(Kind::InvalidRequest, format!("`{field}` {rule}.")).about(field.to_owned())
    };
    json::scan_object(body, &[], json::MAX_DEPTH).map_err(|_| wrong("body", "must be a JSON object"))?;
    let members: serde_json::Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut model = None;
    for (member, value) in &members {
        match (member.as_str(), value) {
            ("model" | "name", Value::String(text)) if !text.is_empty() => model = Some(text.clone()),
            ("model" | "name", _) => return Err(wrong(member, "must be the name of a model")),
            ("verbose", Value::Bool(_) | Value::Null) => {}
            ("verbose", _) => return Err(wrong(member, "must be a boolean")),
            _ => return Err(wrong(member, "is no member of this request")),
        }
    }
    model.ok_or_else(|| wrong("model", "is required"))
}

fn tell(shared: &Shared, exchange: &Exchange, admission: &Admission, body: Bytes) {
    shared.metrics.answered(admission.route.endpoint, 200);
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    exchange.answer(Head { status: StatusCode::OK, headers }, body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_the_same_in_other_words() {
        let listed = br#"{"id":"p/m","object":"model","created":1700000000,"owned_by":"p","type":"chat"}"#;
        let told: Value = serde_json::from_slice(&entry(listed)).expect("an entry");
        assert_eq!((&told["name"], &told["modified_at"]), (&"p/m".into(), &"2023-11-14T22:13:20Z".into()));
        assert_eq!(told["digest"].as_str().map(str::len), Some(64));
        assert!(entry(br#"{"id":"p/i","object":"model","created":0,"owned_by":"p","type":"image"}"#).is_empty());
    }

    #[test]
    fn a_body_names_a_model() {
        assert_eq!(name(br#"{"model":"p/m","verbose":true}"#).ok().as_deref(), Some("p/m"));
        assert_eq!(name(br#"{"name":"p/m"}"#).ok().as_deref(), Some("p/m"));
        for (body, field) in
            [("[]", "body"), ("{}", "model"), (r#"{"model":1}"#, "model"), (r#"{"model":"m","x":1}"#, "x")]
        {
            let fault = name(body.as_bytes()).expect_err(body);
            assert_eq!(fault.param.as_deref(), Some(field), "{body}");
        }
    }
}
