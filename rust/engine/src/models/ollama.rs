//! `/ollama/api/tags`, `/ollama/api/show` and `/ollama/api/version`: the models that the caller may use, in Ollama's
//! format. The list contains the chat and embedding models of `GET /v1/models`.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::{Admission, BufferedRequest};
use crate::models::ollama_entry::OllamaEntry;
use crate::models::openai::{join, Cursor};
use crate::models::{self, listed::ListDialect};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::{json, rfc3339, Error, ErrorKind};
use http::header::{self, HeaderValue};
use http::StatusCode;
use serde_json::{json, Value};

/// `GET /ollama/api/tags`.
pub fn tags(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let page = active.lists.page(key, ListDialect::Ollama, &Cursor::Start, usize::MAX);
    let mut body = br#"{"models":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry).filter(|entry| !entry.is_empty()));
    body.push(b'}');
    give(shared, exchange, admission, Bytes::from(body));
}

/// `GET /ollama/api/version`.
pub fn version(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let version = shared.version.to_str().unwrap_or_default();
    give(shared, exchange, admission, Bytes::from(json!({ "version": version }).to_string()));
}

/// `POST /ollama/api/show`.
pub fn show(shared: &Shared, incoming: &BufferedRequest) {
    let admission = &incoming.admission;
    match shown(shared, admission, &incoming.body) {
        Ok(body) => give(shared, &incoming.exchange, admission, body),
        Err(fault) => {
            shared.metrics.answered(admission.route.endpoint, fault.kind.status());
            answer::refuse(shared, &incoming.exchange, admission.route.surface, &admission.request_id, &fault);
        }
    }
}

fn shown(shared: &Shared, admission: &Admission, body: &[u8]) -> Result<Bytes, Error> {
    let model = name(body)?;
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let find = |name: &str| models::one(&active, name, key, ListDialect::OpenAi);
    let listed = find(&model).or_else(|| find(model.strip_suffix(":latest")?));
    let entry = listed.as_deref().and_then(|listed| serde_json::from_slice::<OllamaEntry<'_>>(listed).ok());
    let entry = entry.filter(OllamaEntry::has_details).ok_or_else(|| {
        Error::client(ErrorKind::ModelNotFound, format!("The model `{model}` is not known here.")).about("model")
    })?;
    let mut info = json!({ "general.architecture": entry.owned_by, "general.basename": entry.id });
    if let Some(length) = entry.context_length {
        info[format!("{}.context_length", entry.owned_by)] = length.into();
    }
    let shown = json!({
        "license": "", "modelfile": "", "parameters": "", "template": "", "details": entry.details(),
        "model_info": info, "capabilities": entry.abilities(),
        "modified_at": rfc3339(entry.created.saturating_mul(1_000)),
    });
    Ok(Bytes::from(shown.to_string()))
}

/// Returns the model named in the body. `name` is an older name of the member.
fn name(body: &[u8]) -> Result<String, Error> {
    let wrong = |field: &str, rule: &str| {
        Error::client(ErrorKind::InvalidRequest, format!("`{field}` {rule}.")).about(field.to_owned())
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

fn give(shared: &Shared, exchange: &Exchange, admission: &Admission, body: Bytes) {
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
