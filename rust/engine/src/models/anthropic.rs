//! `GET /v1/models` for clients that send `anthropic-version`: the model list in Anthropic's format, with pagination.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::Admission;
use crate::models::openai::{join, write_ends, Cursor, Page};
use crate::models::{self, listed::ListDialect};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::routes::{self, Answer, Surface};
use fairlead_core::{Error, ErrorKind};
use http::header::{self, HeaderValue};
use http::StatusCode;

const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 1000;

/// Handles requests for the list and for one model.
pub fn answer(shared: &Shared, exchange: &Exchange, admission: &Admission, query: &[u8]) -> Result<(), Error> {
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let body = if admission.route.answer == Answer::Models {
        let Selection { cursor, limit, has_active } = range(query)?;
        Some(document(&if has_active {
            active.lists.page(key, ListDialect::Anthropic, &cursor, limit)
        } else {
            Page { entries: Vec::new(), has_more: false }
        }))
    } else {
        models::one(&active, &admission.tail, key, ListDialect::Anthropic)
    };
    let Some(body) = body else {
        let message = format!("The model `{}` is not known here.", admission.tail);
        let fault = Error::client(ErrorKind::ModelNotFound, message).about("model");
        shared.metrics.answered(admission.route.endpoint, fault.kind.status());
        answer::refuse(shared, exchange, Surface::Anthropic, &admission.request_id, &fault);
        return Ok(());
    };
    shared.metrics.answered(admission.route.endpoint, 200);
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.append(header::VARY, answer::BY_CLIENT);
    exchange.answer(Head { status: StatusCode::OK, headers }, body);
    Ok(())
}

/// The part of the list that the query selects.
#[derive(Debug, PartialEq, Eq)]
struct Selection {
    cursor: Cursor,
    limit: usize,
    /// The filter includes active models. Every listed model is active.
    has_active: bool,
}

/// Parses `limit`, `after_id`, `before_id` and `lifecycle`. With both cursors, the page lies between them.
fn range(query: &[u8]) -> Result<Selection, Error> {
    let invalid =
        |name: &'static str, message: &str| Error::client(ErrorKind::InvalidRequest, message.to_owned()).about(name);
    let query = std::str::from_utf8(query).map_err(|_| invalid("limit", "The query is not UTF-8."))?;
    let (mut after, mut before) = (None, None);
    let mut limit = LIMIT_DEFAULT;
    let mut stages: Vec<&str> = Vec::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let id = |name| {
            let value = routes::decode(value).filter(|value| !value.is_empty());
            value
                .map(std::borrow::Cow::into_owned)
                .ok_or_else(|| invalid(name, "A cursor is the id of a model: send `first_id` or `last_id` of a page."))
        };
        match name {
            "limit" => {
                let given = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit = given.ok_or_else(|| invalid("limit", "`limit` must be an integer from 1 to 1000."))?;
            }
            "after_id" => after = Some(id("after_id")?),
            "before_id" => before = Some(id("before_id")?),
            "lifecycle" | "lifecycle[]" | "lifecycle%5B%5D" | "lifecycle%5b%5d" => {
                if !["active", "deprecated", "retired"].contains(&value) {
                    return Err(invalid("lifecycle", "`lifecycle` must be `active`, `deprecated` or `retired`."));
                }
                stages.push(value);
            }
            _ => {}
        }
    }
    let cursor = match (after, before) {
        (None, None) => Cursor::Start,
        (Some(after), None) => Cursor::After(after),
        (None, Some(before)) => Cursor::Before(before),
        (Some(after), Some(before)) => Cursor::Between(after, before),
    };
    Ok(Selection { cursor, limit, has_active: stages.is_empty() || stages.contains(&"active") })
}

fn document(page: &Page<'_>) -> Bytes {
    let mut body = br#"{"data":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry));
    write_ends(&mut body, page);
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::entries;
    use fairlead_core::Model;

    #[test]
    fn a_page_says_where_it_ends() {
        let model: Model = serde_json::from_value(serde_json::json!({
            "id": "p/m", "provider": "p", "created": 1_700_000_000, "context_length": 8, "name": "The \"m\""
        }))
        .expect("a model");
        let entry = entries::anthropic(&model).expect("an entry");
        let page = Page { entries: vec![("p/m", &entry)], has_more: true };
        let page_document: serde_json::Value = serde_json::from_slice(&document(&page)).expect("JSON");
        assert_eq!(
            page_document,
            serde_json::json!({
                "data": [{"type": "model", "id": "p/m", "display_name": "The \"m\"",
                          "created_at": "2023-11-14T22:13:20Z", "lifecycle": "active", "max_input_tokens": 8}],
                "has_more": true, "first_id": "p/m", "last_id": "p/m",
            })
        );
        let none: serde_json::Value =
            serde_json::from_slice(&document(&Page { entries: Vec::new(), has_more: false })).expect("JSON");
        assert_eq!(none, serde_json::json!({"data": [], "has_more": false, "first_id": null, "last_id": null}));
        let unknown: Model =
            serde_json::from_value(serde_json::json!({"id": "m", "provider": "p", "created": u64::MAX}))
                .expect("a model");
        let page_document: serde_json::Value =
            serde_json::from_slice(&entries::anthropic(&unknown).expect("an entry")).expect("JSON");
        assert_eq!(
            (&page_document["created_at"], &page_document["display_name"]),
            (&"1970-01-01T00:00:00Z".into(), &"m".into())
        );
    }

    #[test]
    fn a_range_is_read_or_refused_with_its_rule() {
        let selection = |cursor, limit| Some(Selection { cursor, limit, has_active: true });
        assert_eq!(range(b"").ok(), selection(Cursor::Start, 20));
        assert_eq!(
            range(b"limit=1000&after_id=a%2Fb&beta=true").ok(),
            selection(Cursor::After("a/b".to_owned()), 1000)
        );
        assert_eq!(range(b"before_id=x").ok(), selection(Cursor::Before("x".to_owned()), 20));
        let both = Cursor::Between("a".to_owned(), "b".to_owned());
        assert_eq!(range(b"before_id=b&after_id=a&limit=1&lifecycle%5B%5D=active").ok(), selection(both, 1));
        assert_eq!(range(b"lifecycle[]=retired&lifecycle[]=active").ok(), selection(Cursor::Start, 20));
        assert!(!range(b"lifecycle=retired").expect("a range").has_active);
        for wrong in
            ["limit=0", "limit=1001", "limit=-1", "limit=", "limit=x", "after_id=", "after_id=%zz", "lifecycle[]=gone"]
        {
            let fault = range(wrong.as_bytes()).expect_err(wrong);
            assert_eq!(fault.kind, ErrorKind::InvalidRequest, "{wrong}");
        }
    }
}
