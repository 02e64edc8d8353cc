//! `GET /v1beta/models`, and `GET /v1/models` for Google clients: the models that the caller may use, in Gemini's
//! format, whole or in pages. The list has the same models as the list in OpenAI's format.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::Admission;
use crate::models::openai::{join, Cursor, Page};
use crate::models::{self, listed::ListDialect};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::routes::{self, Answer, Surface};
use fairlead_core::{Error, ErrorKind};
use http::header::{self, HeaderValue};
use http::StatusCode;

/// Google's API caps larger page sizes at this number.
const PAGE_SIZE_MAX: usize = 1_000;

/// Handles requests for the list and for one model.
pub fn answer(shared: &Shared, exchange: &Exchange, admission: &Admission, query: &[u8]) -> Result<(), Error> {
    let active = shared.active.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let body = if matches!(admission.route.answer, Answer::GeminiModels | Answer::Models) {
        let (cursor, limit) = range(query)?;
        Some(document(&active.lists.page(key, ListDialect::Gemini, &cursor, limit)))
    } else {
        models::one(&active, &admission.tail, key, ListDialect::Gemini)
    };
    let Some(body) = body else {
        let message = format!("The model `{}` is not known here.", admission.tail);
        let fault = Error::client(ErrorKind::ModelNotFound, message).about("name");
        shared.metrics.answered(admission.route.endpoint, fault.kind.status());
        answer::refuse(shared, exchange, Surface::Gemini, &admission.request_id, &fault);
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

/// Parses `pageSize` and `pageToken`. Without both, the whole list is selected.
fn range(query: &[u8]) -> Result<(Cursor, usize), Error> {
    let invalid =
        |name: &'static str, message: &str| Error::client(ErrorKind::InvalidRequest, message.to_owned()).about(name);
    let query = std::str::from_utf8(query).map_err(|_| invalid("pageSize", "The query is not UTF-8."))?;
    let (mut cursor, mut limit) = (Cursor::Start, usize::MAX);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "pageSize" => {
                let given = value.parse::<usize>().ok().filter(|size| *size > 0);
                let given = given.ok_or_else(|| invalid("pageSize", "`pageSize` must be an integer of at least 1."))?;
                limit = given.min(PAGE_SIZE_MAX);
            }
            // Clients send an empty token for the first page.
            "pageToken" if !value.is_empty() => {
                let id = routes::decode(value)
                    .ok_or_else(|| invalid("pageToken", "`pageToken` must be `nextPageToken` of the page before."))?;
                cursor = Cursor::After(id.into_owned());
            }
            _ => {}
        }
    }
    Ok((cursor, limit))
}

/// Writes a page. The token of the next page is the last id of this page.
fn document(page: &Page<'_>) -> Bytes {
    let mut body = br#"{"models":"#.to_vec();
    join(&mut body, page.entries.iter().map(|(_, entry)| *entry));
    if let (true, Some((last, _))) = (page.has_more, page.entries.last()) {
        body.extend_from_slice(br#","nextPageToken":"#);
        body.extend_from_slice(serde_json::Value::from(*last).to_string().as_bytes());
    }
    body.push(b'}');
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_the_next_one() {
        let entry = Bytes::from_static(b"{}");
        let page = |has_more| Page { entries: vec![("p/m", &entry)], has_more };
        assert_eq!(document(&page(true)), r#"{"models":[{}],"nextPageToken":"p/m"}"#);
        assert_eq!(document(&page(false)), r#"{"models":[{}]}"#);
    }

    #[test]
    fn a_query_says_which_page() {
        assert_eq!(range(b"").ok(), Some((Cursor::Start, usize::MAX)));
        assert_eq!(range(b"pageSize=5&pageToken=").ok(), Some((Cursor::Start, 5)));
        assert_eq!(range(b"pageToken=p%2Fm&pageSize=5000").ok(), Some((Cursor::After("p/m".into()), 1_000)));
        for wrong in ["pageSize=0", "pageSize=-1", "pageSize=x", "pageToken=%zz"] {
            assert!(range(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
