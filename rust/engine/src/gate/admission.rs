//! Admission: every request passes through this module once. It checks the route, the caller, the tier and the
//! limits. The result is an immediate response or a body to read.

use crate::clock;
use crate::exchange::{Exchange, Head, Wake};
use crate::gate::address::{admit_address, caller_address};
use crate::gate::admission_proof::{self, AdmissionProof};
use crate::gate::answer;
use crate::gate::body::{refuse_and_close, settle, too_large, Pending};
use crate::gate::cors::{self, Cors};
use crate::gate::forwarded_headers::forwarded_headers;
use crate::gate::inbound::{self, Inbound, RequestHeaders};
use crate::gate::preferences::{Accepts, CachePreference, RoutePreference};
use crate::gate::request::{Admission, BufferedRequest, Forward};
use crate::gate::unserved;
use crate::gate::upload::Upload;
use crate::models::anthropic;
use crate::models::combos;
use crate::models::gemini;
use crate::models::ollama;
use crate::observe::trace::Trace;
use crate::shared::{GaugePermit, Shared};
use bytes::{Bytes, BytesMut};
use fairlead_core::guardrail::Disabled;
use fairlead_core::routes::{self, scopes, Answer, Match, Ollama, Route, Surface, Tier};
use fairlead_core::{policy, Error, ErrorKind, Outcome, Principal, SecretHash, Snapshot};
use http::{HeaderValue, StatusCode};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// The maximum length of `anthropic-beta`.
const MAX_BETA_BYTES: usize = 2_048;

/// The result of admitting a request head.
#[derive(Debug)]
pub enum Admitted {
    /// The exchange already has its response.
    Answered(Arc<Exchange>),
    /// Feed the body if `wants_body`; afterwards the request continues without the front.
    Pending(Pending),
}

/// Admits a request head.
pub fn admit(shared: &Arc<Shared>, inbound: &Inbound<'_>, wake: Arc<dyn Wake>) -> Admitted {
    let id = shared.next_id();
    let exchange = Exchange::new(id, wake);
    exchange.set_cors(Cors::of(&shared.active.load().snapshot.settings.cors_origins, inbound));
    let request_id = format!("req_{}{id:08x}", shared.worker_id);
    let mut gate = Gate { shared, inbound, exchange, request_id, surface: surface_of(inbound.path) };
    match gate.pass() {
        Ok(Some(pending)) => Admitted::Pending(pending),
        Ok(None) => Admitted::Answered(gate.exchange),
        Err(fault) => {
            shared.metrics.answered(endpoint_of(inbound), fault.kind.status());
            let refuse = if fault.kind == ErrorKind::TooLarge { refuse_and_close } else { answer::refuse };
            refuse(shared, &gate.exchange, gate.surface, &gate.request_id, &fault);
            Admitted::Answered(gate.exchange)
        }
    }
}

/// A request head during admission.
struct Gate<'a> {
    shared: &'a Arc<Shared>,
    inbound: &'a Inbound<'a>,
    exchange: Arc<Exchange>,
    request_id: String,
    /// The API whose error format is used.
    surface: Surface,
}

/// A head whose route was found.
struct RoutedHead<'a> {
    route: &'static Route,
    /// The part of the path that matches the last placeholder of the route.
    tail: Cow<'a, str>,
    headers: RequestHeaders<'a>,
}

impl<'a> Gate<'a> {
    /// Runs all checks. Returns `None` if the exchange already has its response.
    // Long: every check of a head in order, and the record of its results.
    fn pass(&mut self) -> Result<Option<Pending>, Error> {
        let address = caller_address(self.inbound, self.shared.config.trusted_proxies);
        if let Err(fault) = admit_address(self.shared, address) {
            // The head was not checked, so nothing after it on this connection is read.
            self.shared.refused_callers.note(clock::unix_ms(), address, None, &fault);
            self.shared.metrics.answered(endpoint_of(self.inbound), fault.kind.status());
            refuse_and_close(self.shared, &self.exchange, self.surface, &self.request_id, &fault);
            return Ok(None);
        }
        let Some(RoutedHead { route, tail, headers }) = self.find_route()? else { return Ok(None) };
        let (shared, inbound) = (self.shared, self.inbound);
        match route.answer {
            Answer::Health => {
                answer::health(shared, &self.exchange);
                return Ok(None);
            }
            Answer::Ready => {
                answer::ready(shared, &self.exchange);
                return Ok(None);
            }
            _ => {}
        }
        if shared.drain.is_draining() {
            return Err(shared.drain.error());
        }
        let ts_ms = clock::unix_ms();
        let (principal, proof) = admit_caller(shared, route, &headers, inbound.method, Moment { address, ts_ms })
            .inspect_err(|fault| shared.refused_callers.note(ts_ms, address, Some(route), fault))?;
        check_body(route, &principal, &headers)?;
        admit_page(route, &principal, &headers)?;
        let admission = Admission {
            route,
            surface: self.surface,
            dialect: route.dialect(),
            tail: tail.into_owned(),
            principal,
            proof,
            request_id: self.request_id.clone(),
            session_tag: headers.session_tag.map(str::to_owned),
            session_id: headers.session_id.map(str::to_owned),
            pin: headers.pin.map(str::to_owned),
            lease: headers.lease.claim()?,
            route_model: headers.route_model.filter(|model| !model.is_empty()).map(str::to_owned),
            idempotency_key: headers.idempotency_key.map(str::to_owned),
            is_key_declared: headers.is_key_declared,
            accepts_events: Accepts::read(headers.accept),
            disabled_guardrails: headers.disabled_guardrails.map(Disabled::parse).unwrap_or_default(),
            anthropic_beta: betas(headers.anthropic_beta)?,
            wants_progress: headers.wants_progress,
            wants_cost: headers.wants_cost,
            is_counted: headers.is_counted && on_behalf(shared, &headers).is_some(),
            trace: trace_of(shared, route, &headers),
            compression: headers.compression.filter(|name| !name.is_empty()).map(str::to_owned),
            cache: CachePreference::read(&headers.cache)?,
            routing: RoutePreference::read(&headers.routing)?,
            reads_list: route.answer == Answer::StreamGenerate && !inbound::requests_events(inbound.query),
            started: Instant::now(),
            ts_ms,
        };
        if lists(shared, &self.exchange, &admission, &headers, inbound.query)? {
            return Ok(None);
        }
        self.take_in(admission, &headers).map(Some)
    }

    /// Finds the route of the request and checks its headers. Returns `None` if the request was already answered or
    /// refused.
    fn find_route(&mut self) -> Result<Option<RoutedHead<'a>>, Error> {
        let (shared, inbound) = (self.shared, self.inbound);
        let mut headers = match inbound::read(inbound) {
            Ok(headers) => headers,
            Err(fault) => {
                refuse_and_close(shared, &self.exchange, self.surface, &self.request_id, &fault);
                return Ok(None);
            }
        };
        let found = routes::find(inbound.method, inbound.path);
        let is_delegated = matches!(found, Match::Found { route, .. } if route.tier == Tier::Delegated);
        if headers.has_other_scheme && !is_delegated {
            refuse_and_close(shared, &self.exchange, self.surface, &self.request_id, &inbound::other_scheme());
            return Ok(None);
        }
        match found {
            Match::Found { route, tail } => {
                self.surface = surface_for(route, &headers);
                if route.surface == Surface::Gemini {
                    inbound::show_query_keys(&mut headers.credentials, inbound.query);
                }
                Ok(Some(RoutedHead { route, tail, headers }))
            }
            Match::OtherMethod(methods) => {
                let own = answer::base_headers(shared, &self.request_id);
                if let Some(headers) = cors::preflight(inbound, self.exchange.is_readable_elsewhere(), own) {
                    self.exchange.answer(Head { status: StatusCode::NO_CONTENT, headers }, Bytes::new());
                } else {
                    let refuse = if unserved::requests_websocket(inbound) {
                        unserved::no_socket
                    } else {
                        unserved::other_method
                    };
                    let fault = refuse(inbound, &methods);
                    shared.metrics.answered("", fault.kind.status());
                    let refusal = (&fault, methods.as_slice());
                    answer::refuse_method(shared, &self.exchange, self.surface, &self.request_id, refusal);
                }
                Ok(None)
            }
            Match::None => Err(unserved::no_route(inbound, headers.host, shared.config.trusted_proxies)),
        }
    }

    /// Counts the request as in flight and prepares for its body.
    fn take_in(&self, admission: Admission, headers: &RequestHeaders<'_>) -> Result<Pending, Error> {
        let (shared, exchange, route) = (self.shared, &self.exchange, admission.route);
        shared.counts.requests_total.fetch_add(1, Ordering::Relaxed);
        // Management requests have additional capacity, so an operator has access while inference requests are shed.
        let more = if route.answer.is_control() { 256 } else { 0 };
        let in_flight = match GaugePermit::for_request(shared, shared.config.max_in_flight + more) {
            Ok(in_flight) => in_flight,
            Err(fault) => {
                shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
                settle(shared, exchange, admission, Outcome::Shed, &fault);
                return Err(fault);
            }
        };
        // Without an announced body its type only matters if a body arrives.
        let objection = (headers.may_have_body && route.body_limit_bytes() > 0)
            .then(|| check_type(route, &admission.principal, headers).err())
            .flatten();
        let forward = route.answer.is_control().then(|| forward(self.inbound, route, headers.content_type));
        Ok(Pending {
            exchange: Arc::clone(exchange),
            incoming: Some(Box::new(BufferedRequest {
                exchange: Arc::clone(exchange),
                admission,
                forward,
                body: Bytes::new(),
                in_flight,
                buffered: None,
                upload: None,
            })),
            upload: if route.takes_upload() {
                Some(Upload::begin(shared, exchange, headers.content_type)?)
            } else {
                None
            },
            fed_bytes: 0,
            body: BytesMut::new(),
            limit: route.accepted_bytes(),
            is_forgotten: route.forgets_body(),
            must_be_empty: route.takes_empty_body(),
            expected: if headers.has_body || headers.may_have_body { headers.content_length } else { Some(0) },
            objection,
            shared: Arc::clone(shared),
        })
    }
}

/// The origin and time of a request.
struct Moment {
    address: Option<IpAddr>,
    ts_ms: u64,
}

/// Determines the caller and checks the rules of the route's tier and of the key.
fn admit_caller(
    shared: &Shared,
    route: &Route,
    headers: &RequestHeaders<'_>,
    method: &str,
    Moment { address, ts_ms }: Moment,
) -> Result<(Principal, AdmissionProof), Error> {
    let active = shared.active.load();
    let principal = resolve(shared, route, headers, &active.snapshot, ts_ms)?;
    let is_read = matches!(method, "GET" | "HEAD");
    let tier = route.tier_for(&headers.credentials);
    let is_on_behalf = on_behalf(shared, headers).is_some();
    if !principal.key().is_some_and(|key| scopes::opens(&key.scopes, route)) {
        principal.admit(tier, is_read, &active.snapshot, shared.config.require_api_key)?;
    }
    principal.admit_page(tier, &headers.credentials)?;
    principal.admit_host(tier, headers.host, &shared.config.host_names)?;
    if let Some(key) = principal.key() {
        policy::admit_hour(key, ts_ms)?;
        // Control acts for a caller that has already passed this check.
        if !is_on_behalf {
            policy::admit_address(key, address)?;
        }
        policy::admit_endpoint(key, route.endpoint)?;
    }
    let credential = admission_proof::credential_of(&principal, headers.credentials.cookie, &active.snapshot);
    Ok((principal, AdmissionProof { address, credential, tier, is_read, is_on_behalf }))
}

/// The endpoint under which a refusal is counted; empty for a request without a route.
fn endpoint_of(inbound: &Inbound<'_>) -> &'static str {
    match routes::find(inbound.method, inbound.path) {
        Match::Found { route, .. } => route.endpoint,
        Match::OtherMethod(_) | Match::None => "",
    }
}

/// Only calls of models are traced.
fn trace_of(shared: &Shared, route: &Route, headers: &RequestHeaders<'_>) -> Option<Arc<Trace>> {
    let is_call = !matches!(route.answer, Answer::Control | Answer::Models | Answer::Model);
    is_call.then(|| Trace::begin(headers.traceparent, headers.tracestate, shared.config.tracing)).flatten()
}

/// The API of a request that is refused before its route is known.
fn surface_of(path: &str) -> Surface {
    match routes::surface_at(path) {
        _ if path.starts_with("/v1/messages/") => Surface::Anthropic,
        Some(surface) if surface != Surface::Management => surface,
        _ if path.ends_with("/messages") => Surface::Anthropic,
        _ if path.starts_with("/v1beta/") => Surface::Gemini,
        _ if path.starts_with("/ollama/") => Surface::Ollama,
        _ if path.starts_with("/v1/") || path.starts_with("/api/v1/") => Surface::OpenAi,
        None => routes::surface_below(path).unwrap_or(Surface::Management),
        Some(_) => Surface::Management,
    }
}

/// The API whose error format a route uses. Model lists share one URL among the clients of three APIs.
fn surface_for(route: &Route, headers: &RequestHeaders<'_>) -> Surface {
    let is_file = route.endpoint == "files" && route.surface == Surface::OpenAi;
    match route.answer {
        Answer::Models | Answer::Model if headers.has_anthropic_version => Surface::Anthropic,
        _ if is_file && headers.has_anthropic_version => Surface::Anthropic,
        Answer::Models | Answer::Model if headers.is_google_client => Surface::Gemini,
        _ => route.surface,
    }
}

/// Determines the caller. If the responding component authenticates the caller itself, only the session is determined.
fn resolve(
    shared: &Shared,
    route: &Route,
    headers: &RequestHeaders<'_>,
    snapshot: &Snapshot,
    ts_ms: u64,
) -> Result<Principal, Error> {
    if route.tier == Tier::Delegated {
        return Ok(Principal::of_session(snapshot, &headers.credentials, ts_ms));
    }
    on_behalf(shared, headers)
        .map_or_else(
            || Principal::resolve(snapshot, &headers.credentials, shared.config.require_api_key, ts_ms),
            |key_id| Principal::on_behalf(snapshot, key_id, ts_ms),
        )
        .map_err(|fault| route.tier.refusal_of(fault))
}

/// Responds to requests for the model list and its entries, which are prepared in advance.
fn lists(
    shared: &Shared,
    exchange: &Exchange,
    admission: &Admission,
    headers: &RequestHeaders<'_>,
    query: &[u8],
) -> Result<bool, Error> {
    match admission.route.answer {
        Answer::Models | Answer::Model if headers.has_anthropic_version => {
            anthropic::answer(shared, exchange, admission, query)?;
        }
        Answer::Models | Answer::Model if headers.is_google_client => {
            gemini::answer(shared, exchange, admission, query)?;
        }
        Answer::Models => answer::models(shared, exchange, admission, headers.if_none_match, query)?,
        Answer::Model => answer::model(shared, exchange, admission),
        Answer::GeminiModels | Answer::GeminiModel => gemini::answer(shared, exchange, admission, query)?,
        Answer::Combos | Answer::Candidates => combos::answer(shared, exchange, admission),
        Answer::Ollama(Ollama::Tags) => ollama::tags(shared, exchange, admission),
        Answer::Ollama(Ollama::Version) => ollama::version(shared, exchange, admission),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the key that control acts for. Only control knows the link token; from anybody else the header is ignored,
/// like every header with its prefix.
fn on_behalf<'a>(shared: &Shared, headers: &RequestHeaders<'a>) -> Option<&'a str> {
    let (token, key_id) = headers.on_behalf?.split_once(':')?;
    let expected = SecretHash::of(shared.config.link_token.expose().as_bytes());
    expected.same_as(&SecretHash::of(token.as_bytes())).then_some(key_id)
}

/// Refuses forms and WebSockets from pages of other origins, because a browser sends them with cookies and without a
/// preflight request.
fn admit_page(route: &Route, principal: &Principal, headers: &RequestHeaders<'_>) -> Result<(), Error> {
    let is_open = match principal {
        Principal::Key(_) => false,
        Principal::Anonymous => route.takes_upload() || route.answer.is_socket(),
        _ => route.answer.is_socket(),
    };
    if is_open && headers.credentials.is_of_foreign_page {
        let message = "Requests from pages of other sites need a key.";
        return Err(Error::client(ErrorKind::Forbidden, message).about("Origin"));
    }
    Ok(())
}

fn check_body(route: &Route, principal: &Principal, headers: &RequestHeaders<'_>) -> Result<(), Error> {
    if headers.content_length.is_some_and(|length| length > route.accepted_bytes() as u64) {
        return Err(too_large(route.accepted_bytes()));
    }
    if headers.has_body && route.body_limit_bytes() > 0 {
        check_type(route, principal, headers)?;
    }
    Ok(())
}

/// Checks the content type. A page of another origin cannot send JSON or files without a preflight request. It can send
/// a form, so a form must prove that it comes from our origin.
fn check_type(route: &Route, principal: &Principal, headers: &RequestHeaders<'_>) -> Result<(), Error> {
    if route.tier == Tier::Delegated {
        return Ok(());
    }
    // Ollama does not require a content type, and some of its clients send none. A page of another site cannot send a
    // key without a preflight request. Without a key, requests from such pages are refused.
    let is_safe = matches!(principal, Principal::Key(_)) || !headers.credentials.is_of_foreign_page;
    if route.surface == Surface::Ollama && is_safe {
        return Ok(());
    }
    if route.takes_upload() {
        return inbound::boundary(headers.content_type).map(drop);
    }
    if route.takes_file() && inbound::is_file(headers.content_type)
        || route.takes_parts() && inbound::boundary(headers.content_type).is_ok()
    {
        return Ok(());
    }
    if !(route.takes_form() && inbound::is_form(headers.content_type)) {
        return inbound::check_json(headers.content_type);
    }
    if headers.credentials.is_cross_site {
        let message = "A form must come from the gateway's own pages: send Sec-Fetch-Site or Origin.";
        return Err(Error::client(ErrorKind::Forbidden, message).about("Origin"));
    }
    Ok(())
}

/// Copies the head for control. Hop-by-hop headers, headers named by `Connection`, our internal headers and credentials
/// that admission has used are left out. The cookie is kept, because sign-out needs the session. A delegated route
/// checks `Authorization` itself.
fn forward(inbound: &Inbound<'_>, route: &Route, content_type: Option<&[u8]>) -> Forward {
    let is_delegated = route.tier == Tier::Delegated;
    let mut path_and_query = route.own_path(inbound.path).into_owned();
    let query = match route.surface {
        Surface::Gemini => Cow::Owned(inbound::without_keys(inbound.query)),
        _ => Cow::Borrowed(inbound.query),
    };
    if !query.is_empty() {
        path_and_query.push('?');
        path_and_query.push_str(&String::from_utf8_lossy(&query));
    }
    let host = inbound.headers.iter().find(|(name, _)| *name == b"host");
    Forward {
        method: inbound.method.parse().unwrap_or(http::Method::GET),
        path_and_query,
        headers: forwarded_headers(inbound, is_delegated),
        peer: inbound.peer,
        is_tls: inbound.is_tls,
        host: host.and_then(|(_, value)| HeaderValue::from_bytes(value).ok()),
        is_unread: is_delegated
            || route.takes_form() && inbound::is_form(content_type)
            || route.takes_file() && inbound::is_file(content_type),
    }
}

/// Returns `anthropic-beta`, which providers of that dialect receive unchanged.
fn betas(text: Option<&str>) -> Result<Option<HeaderValue>, Error> {
    if text.is_some_and(|text| text.len() > MAX_BETA_BYTES) {
        let message = format!("`anthropic-beta` has more than {MAX_BETA_BYTES} bytes.");
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("anthropic-beta"));
    }
    Ok(text.and_then(|text| HeaderValue::from_str(text).ok()))
}
