//! A responses request in background mode is forwarded to control unchanged. Control stores it, later sends it to the
//! relay in its owner's name, and reports the result (`docs/explanation/contracts.md`).

use crate::call::idempotency::Part;
use crate::clock;
use crate::control::{forward, repeats};
use crate::gate::answer::EndGuard;
use crate::gate::headers;
use crate::gate::limits;
use crate::gate::request::{BufferedRequest, Forward};
use crate::shared::Shared;
use fairlead_core::guardrail::Guardrail;
use fairlead_core::routes::{Answer, Route};
use fairlead_core::{json, Accepted, Error, Served, Subject};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::Method;
use std::future::Future;
use std::sync::Arc;

const PATH: &str = "/internal/responses/background";
const CONNECTION: HeaderName = HeaderName::from_static("x-gateway-connection");
const SESSION_TAG: HeaderName = HeaderName::from_static("x-gateway-session-id");
const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const GUARDRAILS: HeaderName = HeaderName::from_static("x-gateway-disabled-guardrails");
/// The request was counted under its key's limits. Control includes this header in its later call for the work.
const COUNTED: HeaderName = HeaderName::from_static("x-fairlead-counted");
const MODEL: HeaderName = HeaderName::from_static("x-route-model");

/// Whether the request asks for background mode. A text search rules out most bodies.
pub(crate) fn is_asked(answer: Answer, body: &[u8]) -> bool {
    if answer != Answer::Responses || !json::may_have(body, b"\"background\"") {
        return false;
    }
    let wanted = ["background"];
    json::scan_object(body, &wanted, json::MAX_DEPTH)
        .is_ok_and(|scan| scan.get("background").and_then(|value| value.as_bool()) == Some(true))
}

/// Routes that start work which continues after their answer.
const JOBS: [&str; 12] = [
    "/v1beta/interactions",
    "/v1/interactions",
    "/api/crawl",
    "/api/scrape/async",
    "/api/batch/scrape",
    "/api/llmstxt",
    "/api/extract",
    "/api/agent",
    "/api/browser/sessions",
    "/v2/crawl",
    "/v2/batch/scrape",
    "/v2/extract",
];

/// Whether the route starts work that control performs later for the caller: it counts against the key's limits when it is
/// accepted. A batch does not, because each of its lines counts as a request, and a video makes its own reservation.
pub(crate) fn is_job(route: &Route) -> bool {
    route.method == "POST" && JOBS.contains(&route.path)
}

/// Counts the request under its key's limits and tells control, so that the later call for the same work is not counted
/// again. Returns the count, which is given back if control refuses the request. Returns an error if the key has no
/// capacity; nothing is stored then.
async fn accept(shared: &Shared, incoming: &mut BufferedRequest) -> Result<Accepted, Error> {
    let admission = &incoming.admission;
    let Some(key) = admission.principal.key().filter(|key| key.has_limits()) else { return Ok(Accepted::default()) };
    // A body that control would not get is not counted.
    let wanted = ["model"];
    let scan = if incoming.body.is_empty() { None } else { Some(forward::scan_body(&incoming.body, &wanted)?) };
    let named = scan.and_then(|scan| json::as_str(&incoming.body, scan.get("model")?)).unwrap_or_default();
    let model = admission.route_model.as_deref().unwrap_or(&named);
    let subject = Subject { model, served: Served::default() };
    let accepted =
        limits::retry_until_limits_known(shared, || shared.ledger.accept(key, subject, clock::moment())).await?;
    shared.wake_lease_keeper();
    if let Some(forward) = &mut incoming.forward {
        forward.headers.insert(COUNTED, HeaderValue::from_static("true"));
    }
    Ok(accepted)
}

/// Forwards an accepted request to control.
async fn begin(shared: Arc<Shared>, mut incoming: Box<BufferedRequest>) {
    match accept(&shared, &mut incoming).await {
        Ok(accepted) => {
            let (ledger, key) = (Arc::clone(&shared), incoming.admission.principal.key().cloned());
            let give_back = move || {
                if let Some(key) = key {
                    ledger.ledger.give_back(key.as_ref(), accepted, clock::moment());
                    ledger.wake_lease_keeper();
                }
            };
            forward::serve_noting(shared, incoming, give_back).await;
        }
        Err(fault) => repeats::refuse(&shared, &incoming, &fault),
    }
}

/// Asks control to start a job for the caller.
pub(crate) fn serve_job(shared: Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    repeats::serve_forwarded(shared, incoming, begin)
}

/// Asks control to start the work. A request that repeats another under its idempotency key receives that response, and
/// nothing is started.
pub(crate) fn serve(shared: Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    let end = EndGuard::new(&shared, &incoming.exchange, &incoming.admission);
    let part = Part::of(&shared, &incoming.exchange, &incoming.admission, &incoming.body);
    async move {
        repeats::serve(shared, incoming, part, |shared, incoming| begin(shared, forwarded(incoming))).await;
        drop(end);
    }
}

/// The request for control, with the relevant headers of its caller.
fn forwarded(mut incoming: Box<BufferedRequest>) -> Box<BufferedRequest> {
    let admission = &incoming.admission;
    let headers_of_job = [
        (CONNECTION, &admission.pin),
        (SESSION_TAG, &admission.session_tag),
        (SESSION, &admission.session_id),
        (MODEL, &admission.route_model),
        (headers::COMPRESSION, &admission.compression),
    ];
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, text) in headers_of_job {
        if let Some(text) = text {
            headers.insert(name, headers::value(text.as_str()));
        }
    }
    let disabled = Guardrail::ALL.into_iter().filter(|each| admission.disabled_guardrails.contains(*each));
    let disabled = disabled.map(Guardrail::name).collect::<Vec<_>>().join(",");
    if !disabled.is_empty() {
        headers.insert(GUARDRAILS, headers::value(disabled));
    }
    admission.cache.write(&mut headers);
    admission.routing.write(&mut headers);
    incoming.forward = Some(Forward {
        method: Method::POST,
        path_and_query: PATH.to_owned(),
        headers,
        peer: None,
        is_tls: false,
        host: None,
        is_unread: false,
    });
    incoming
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::routes;

    #[test]
    fn jobs_are_routes_that_begin_work() {
        let jobs: Vec<&Route> = routes::all().filter(|route| is_job(route)).collect();
        assert_eq!(jobs.len(), JOBS.len(), "each is a route");
        assert!(jobs.iter().all(|route| route.answer == Answer::Control));
        let is = |method: &str, path: &str| {
            routes::all().any(|route| route.method == method && route.path == path && is_job(route))
        };
        assert!(is("POST", "/v1/interactions") && is("POST", "/api/crawl"));
        assert!(!is("GET", "/api/crawl") && !is("POST", "/v1/batches") && !is("POST", "/api/crawl/estimate"));
    }

    #[test]
    fn only_a_wish_of_the_request_itself_counts() {
        for (body, is) in [
            (r#"{"background":true}"#, true),
            (r#"{"b\u0061ckground":true}"#, true),
            (r#"{"\u0062\u0061ckground":true}"#, true),
            (r#"{"background" : false}"#, false),
            (r#"{"background":null}"#, false),
            (r#"{"background":"true"}"#, false),
            (r#"{"input":"\"background\":true"}"#, false),
            (r#"{"metadata":{"background":true}}"#, false),
            (r#"{"background":true"#, false),
        ] {
            assert_eq!(is_asked(Answer::Responses, body.as_bytes()), is, "{body}");
            assert!(!is_asked(Answer::Chat, body.as_bytes()));
        }
    }
}
