//! An admitted request: who requests what, and the complete request with its body.

use crate::exchange::Exchange;
use crate::gate::admission_proof::AdmissionProof;
use crate::gate::preferences::{Accepts, CacheMode, CachePreference, RoutePreference};
use crate::gate::upload::Receipt;
use crate::observe::capture::{Capture, CaptureSubject};
use crate::observe::kept_headers::{lines, HeaderLines};
use crate::observe::trace::Trace;
use crate::shared::{GaugePermit, Shared};
use bytes::Bytes;
use fairlead_core::guardrail::{Disabled, Guardrail};
use fairlead_core::routes::{Route, Surface};
use fairlead_core::{CacheDefaultMode, Dialect, Inexpressible, Key, Principal, ServiceMode, SessionClaim};
use http::{HeaderMap, HeaderValue};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// The caller and the request, as determined during admission.
#[expect(clippy::struct_excessive_bools, reason = "independent choices of a caller")]
#[derive(Debug, Clone)]
pub struct Admission {
    pub route: &'static Route,
    /// The API whose error format is used.
    pub surface: Surface,
    /// The caller's dialect.
    pub dialect: Dialect,
    /// The part of the path that matched the route's placeholder.
    pub tail: String,
    pub principal: Principal,
    /// The facts that admission depended on, to check them again later.
    pub proof: AdmissionProof,
    pub request_id: String,
    pub session_tag: Option<String>,
    pub session_id: Option<String>,
    /// `X-Gateway-Connection`.
    pub pin: Option<String>,
    /// `X-Gateway-Lease-Owner` and `-Generation`.
    pub lease: Option<Box<SessionClaim>>,
    /// `X-Route-Model`: the model that replaces the one in the body.
    pub route_model: Option<String>,
    pub idempotency_key: Option<String>,
    /// The caller sent it as an idempotency key, so it applies across workers.
    pub is_key_declared: bool,
    /// Whether `Accept` contains event streams.
    pub accepts_events: Accepts,
    /// `X-Gateway-Disabled-Guardrails`.
    pub disabled_guardrails: Disabled,
    /// A Gemini caller did not request events, so its stream is one JSON list.
    pub reads_list: bool,
    /// `anthropic-beta` as sent.
    pub anthropic_beta: Option<HeaderValue>,
    pub wants_progress: bool,
    /// `X-Gateway-Cost-Comment`: an event stream ends with its cost.
    pub wants_cost: bool,
    /// The limits on requests already counted it when it was accepted.
    pub is_counted: bool,
    pub trace: Option<Arc<Trace>>,
    /// `X-Gateway-Compression`: the name of a pipeline, or `default`.
    pub compression: Option<String>,
    /// The caller's preferences about the response cache.
    pub cache: CachePreference,
    /// The caller's preferences about the choice of a target.
    pub routing: RoutePreference,
    pub started: Instant,
    pub ts_ms: u64,
}

impl Admission {
    /// Identifies the caller and its session, for a provider that stores sessions. The sessions of two callers differ.
    pub fn session(&self) -> Option<HeaderValue> {
        let session = self.session_id.as_deref()?;
        let of: &str = match &self.principal {
            Principal::Key(key) => &key.id,
            Principal::Session { user_id, .. } => user_id,
            Principal::Token(token) => token.id.as_str(),
            Principal::Anonymous | Principal::Local => "",
        };
        HeaderValue::try_from(format!("{}:{of}/{session}", self.principal.kind())).ok()
    }

    /// The caller's headers that influenced how the request was handled, as they were parsed.
    fn headers(&self) -> HeaderLines {
        let yes = |is_wanted: bool| is_wanted.then_some("true");
        let is_off = |guardrail: &Guardrail| self.disabled_guardrails.contains(*guardrail);
        let disabled = Guardrail::ALL.into_iter().filter(is_off).map(Guardrail::name).collect::<Vec<_>>().join(", ");
        let threshold = self.cache.threshold.map(|threshold| threshold.to_string());
        lines([
            (
                "accept",
                match self.accepts_events {
                    Accepts::No => None,
                    Accepts::Among => Some("text/event-stream and others"),
                    Accepts::Only => Some("text/event-stream"),
                },
            ),
            ("anthropic-beta", self.anthropic_beta.as_ref().and_then(|betas| betas.to_str().ok())),
            ("idempotency-key", self.idempotency_key.as_deref()),
            (
                "x-gateway-cache-mode",
                match self.cache.mode {
                    CacheMode::Unsaid => None,
                    CacheMode::Exact => Some("exact"),
                    CacheMode::Vector => Some("vector"),
                },
            ),
            ("x-gateway-cache-threshold", threshold.as_deref()),
            ("x-gateway-compression", self.compression.as_deref()),
            ("x-gateway-connection", self.pin.as_deref()),
            ("x-gateway-cost-comment", yes(self.wants_cost)),
            ("x-gateway-disabled-guardrails", (!disabled.is_empty()).then_some(disabled.as_str())),
            ("x-gateway-inexpressible", self.routing.inexpressible.map(Inexpressible::name)),
            // The owner's name is a secret.
            ("x-gateway-lease-owner", self.lease.as_ref().map(|_| "***")),
            ("x-gateway-no-cache", yes(self.cache.is_declined)),
            ("x-gateway-progress", yes(self.wants_progress)),
            ("x-gateway-session-id", self.session_tag.as_deref()),
            ("x-route-model", self.route_model.as_deref()),
            ("x-session-id", self.session_id.as_deref()),
        ])
    }

    /// The choice for members that a provider does not accept: the call's own, else the key's, else that of the nearest
    /// group.
    pub fn inexpressible(&self) -> Option<Inexpressible> {
        let of_key =
            |key: &Arc<Key>| key.inexpressible.or_else(|| key.groups.iter().find_map(|group| group.inexpressible));
        self.routing.inexpressible.or_else(|| self.principal.key().and_then(of_key))
    }

    /// The service tier for the key's conversations.
    pub fn service_mode(&self) -> ServiceMode {
        self.principal.key().map_or(ServiceMode::Inherit, |key| key.tool_service_mode)
    }

    /// Whether the caller's header or the key's `cacheDefaultMode` disables the cache lookup.
    pub fn bypasses_cache(&self) -> bool {
        self.cache.is_declined
            || self.principal.key().is_some_and(|key| key.cache_default_mode == CacheDefaultMode::Bypass)
    }
}

/// The head as control must see it. Present only for requests that control handles.
#[derive(Debug)]
pub struct Forward {
    pub method: http::Method,
    pub path_and_query: String,
    pub headers: HeaderMap,
    pub peer: Option<IpAddr>,
    pub is_tls: bool,
    /// The host as the caller sent it.
    pub host: Option<HeaderValue>,
    /// The body is not inspected: it is a form, or control checks it by other rules.
    pub is_unread: bool,
}

/// A complete request that is ready to be served.
#[derive(Debug)]
pub struct BufferedRequest {
    pub exchange: Arc<Exchange>,
    pub admission: Admission,
    pub forward: Option<Forward>,
    pub body: Bytes,
    /// The request counts as in flight until this is dropped.
    pub in_flight: GaugePermit,
    /// The body's bytes count as buffered until this is dropped.
    pub buffered: Option<GaugePermit>,
    /// The form that was received instead of a body.
    pub upload: Option<Receipt>,
}

impl BufferedRequest {
    /// Captures the request and its response if the operator or the key asks for it. Requests of a key without a log
    /// are never captured.
    pub fn capture(&self, shared: &Shared) {
        let Admission { principal, request_id, ts_ms, .. } = &self.admission;
        let key = principal.key();
        let settings = shared.active.load().snapshot.capture;
        if !(settings.is_for_all || key.is_some_and(|key| key.capture_bodies)) || key.is_some_and(|key| key.no_log) {
            return;
        }
        let key_id = key.map(|key| key.id.clone());
        let headers = self.admission.headers();
        let subject = CaptureSubject { request_id: request_id.clone(), key_id, ts_ms: *ts_ms, headers };
        // A form is on disk and may be large.
        let request = self.upload.is_none().then_some(&self.body);
        self.exchange.set_capture(Capture::begin(&shared.captures, settings, subject, request));
    }
}
