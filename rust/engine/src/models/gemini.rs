//! `GET /v1beta/models`: the models that the caller may use, in Gemini's words. The same list as `GET /v1/models`, so a key
//! sees here what it sees there.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::Admission;
use crate::models::openai::{join, Cursor, ListDialect};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind};
use fairlead_core::routes::Answer;
use http::header::{self, HeaderValue};
use http::StatusCode;

/// Answers for the list and for one model.
pub fn answer(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let live = shared.live.load();
    let key = admission.principal.key().map(AsRef::as_ref);
    let body = if admission.route.answer == Answer::GeminiModels {
        let page = live.lists.page(key, ListDialect::Gemini, &Cursor::Start, usize::MAX);
        let mut body = br#"{"models":"#.to_vec();
        join(&mut body, page.entries.iter().map(|(_, entry)| *entry));
        body.push(b'}');
        Some(Bytes::from(body))
    } else {
        live.lists.one(&admission.tail, key, ListDialect::Gemini)
    };
    let Some(body) = body else {
        let message = format!("The model `{}` is not known here.", admission.tail);
        let fault = Error::client(Kind::ModelNotFound, message).about("name");
        return answer::refuse(shared, exchange, admission.route.surface, &admission.request_id, &fault);
    };
    let mut headers = base_headers(shared, &admission.request_id);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    exchange.answer(Head { status: StatusCode::OK, headers }, body);
}
