//! One attempt over one connection, from a leased connection to the head of the provider's response. Every failure
//! states whether another attempt is safe.

use crate::clock;
use crate::observe::reason::MAX_NAME_BYTES;
use crate::observe::trace;
use crate::upstream::auth::{self, Proof};
use crate::upstream::failure::{unreadable, AttemptFailure, Rejection};
use crate::upstream::half_open;
use crate::upstream::target::Target;
use crate::upstream::wire::{BodySlices, Chunk, Fault, Incoming, Lease, Pool};
use fairlead_core::{parse_retry_after, Dialect, Error, ErrorKind, Protocol, ProviderError, Retry};
use fairlead_dialect::openai::answer::{error_fields, UpstreamError};
use fairlead_dialect::{member_of, reason_of, Pieces, RejectionReason};
use http::{header, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use std::time::{Duration, Instant};

const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const SESSION: HeaderName = HeaderName::from_static("x-fairlead-session");
/// The maximum number of bytes read from a provider's error response.
const MAX_ERROR_BYTES: usize = 256 * 1024;
const ERROR_BODY_DEADLINE: Duration = Duration::from_secs(5);
/// Short, because another connection can be tried instead.
const REFUSAL_BODY_DEADLINE: Duration = Duration::from_secs(1);
/// The body of a failure does not affect the decision. It is only reported if it arrives in time.
const FAILURE_BODY_DEADLINE: Duration = Duration::from_millis(250);
/// The headers in which providers return a request id, the most common first.
const REQUEST_IDS: [&str; 5] = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "cf-ray"];
/// A later close is not attributed to the provider's idle timer: the provider may have processed the request, which
/// costs money.
const IDLE_CLOSE_WINDOW: Duration = Duration::from_secs(1);

/// Builds the provider's error for the caller, with the connection's secrets masked.
pub(crate) fn rejection(status: StatusCode, error: UpstreamError, target: &Target) -> Rejection {
    let message = if error.message.is_empty() {
        format!("The provider rejected the request ({}).", status.as_u16())
    } else {
        target.mask(&error.message)
    };
    let reason = reason_of(&error);
    let mask = |text: Option<String>| text.map(|text| target.mask(&text));
    // Clients recognize a context overflow by OpenAI's code, whatever the provider's code is.
    let code = match reason {
        RejectionReason::Overflow => Some(ErrorKind::ContextTooLong.code().to_owned()),
        _ => mask(error.code),
    };
    Rejection {
        status,
        reason,
        message,
        kind: mask(error.kind),
        code,
        param: mask(error.param),
        detail: mask(error.detail),
    }
}

/// Builds the provider's error for the record, with the connection's secrets masked. `status` is that of the response
/// head.
pub(crate) fn provider_error(status: u16, error: &UpstreamError, target: &Target) -> ProviderError {
    let mask = |text: &Option<String>| text.as_deref().map(|text| target.mask(text));
    let kind = mask(&error.kind).or_else(|| error.status.as_deref().map(|text| target.mask(text)));
    let is_rejection = is_rejection(status);
    ProviderError {
        status,
        code: mask(&error.code),
        kind,
        message: target.mask(&error.message),
        request_id: None,
        reason: is_rejection.then(|| reason_of(error).name()),
        member: is_rejection.then(|| member_of(error)).flatten().map(|member| target.mask(&member)),
    }
}

/// Whether a response with this status can reject the request: an error inside a stream, or a client error that blames
/// neither the credential nor the load.
fn is_rejection(status: u16) -> bool {
    status == 200 || (matches!(status, 400..=499) && !matches!(status, 401..=403 | 408 | 424 | 429))
}

fn request_id_of(response: &Response<Incoming>) -> Option<String> {
    let headers = response.headers();
    let id = REQUEST_IDS.iter().find_map(|name| headers.get(*name)?.to_str().ok())?;
    Some(id.chars().take(MAX_NAME_BYTES).collect())
}

/// The body of a request: in memory, or a form that may be stored on disk.
#[derive(Debug, Clone, Copy)]
pub enum Contents<'a> {
    Json(&'a Pieces),
    Form { content_type: &'a HeaderValue, chunks: &'a [Chunk] },
}

impl Contents<'_> {
    fn body(self) -> BodySlices {
        match self {
            Self::Json(pieces) => BodySlices::new(pieces.clone()),
            Self::Form { chunks, .. } => BodySlices::mixed(chunks.iter().cloned()),
        }
    }
}

/// One request to a provider.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    pub uri: &'a Uri,
    /// The provider's name for the model.
    pub model: &'a str,
    /// The caller's `anthropic-beta` header, for providers of that dialect.
    pub betas: Option<&'a HeaderValue>,
    /// The caller and its session (`Admission::session`), for providers that receive the session.
    pub session: Option<&'a HeaderValue>,
    pub body: Contents<'a>,
    /// Whether a stream is requested.
    pub is_stream: bool,
}

/// Sends the request over a pooled or a new connection. If a pooled connection turns out to be closed before the first
/// byte of a response, a new connection replaces it once.
///
/// Every call to a provider goes through this function. It acquires the half-open permit and reads limits from the
/// response head. An access token that the provider rejected is not used again.
pub async fn send(pool: &Pool, target: &Target, request: Upstream<'_>) -> Result<Response<Incoming>, AttemptFailure> {
    let permit = half_open::acquire(target, request.model).await?;
    let outcome = dial(pool, target, request).await;
    permit.complete(&outcome);
    outcome
}

async fn dial(pool: &Pool, target: &Target, request: Upstream<'_>) -> Result<Response<Incoming>, AttemptFailure> {
    let proof = prove(pool, target, request.uri, request.body).await?;
    if let Some(lease) = pool.idle(&target.origin) {
        match send_over(lease, target, request, &proof).await {
            Err(AttemptFailure {
                error: Error { retry: Retry::NothingSent | Retry::ReusedConnection, .. }, ..
            }) => {}
            other => return other,
        }
    }
    let connect_ms = target.connection.timeouts.connect_ms;
    let lease = tokio::time::timeout(Duration::from_millis(connect_ms), Box::pin(pool.fresh(&target.origin)))
        .await
        .map_err(|_| target.origin.late(connect_ms))??;
    send_over(lease, target, request, &proof).await
}

async fn send_over(
    lease: Lease,
    target: &Target,
    upstream_request: Upstream<'_>,
    proof: &[(HeaderName, HeaderValue)],
) -> Result<Response<Incoming>, AttemptFailure> {
    let Upstream { uri, model, betas, session, body, is_stream } = upstream_request;
    let timeouts = &target.connection.timeouts;
    let head_ms = if is_stream { timeouts.header_ms } else { timeouts.answer_ms };
    let is_reused = lease.is_reused;
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = target.headers.clone();
    if let Contents::Form { content_type, .. } = body {
        request.headers_mut().insert(header::CONTENT_TYPE, content_type.clone());
    }
    request.headers_mut().extend(proof.iter().cloned());
    // Bedrock reads beta features in the body.
    let is_messages = target.connection.dialect == Dialect::Anthropic
        && matches!(target.connection.protocol, Protocol::Own | Protocol::VertexRawPredict);
    if let Some(betas) = betas.filter(|_| is_messages) {
        request.headers_mut().insert(ANTHROPIC_BETA, betas.clone());
    }
    if let Some(session) = session.filter(|_| target.connection.sends_session) {
        request.headers_mut().insert(SESSION, session.clone());
    }
    if is_stream && !target.connection.protocol.streams_frames() {
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    }
    trace::pass_on(request.headers_mut());
    let sent_at = Instant::now();
    let started_ms = clock::monotonic_ms();
    let (head, ()) = request.into_parts();
    let answer = lease.send(&head, body.body());
    let answer = tokio::time::timeout(Duration::from_millis(head_ms), answer).await.map_err(|_| {
        upstream(ErrorKind::UpstreamTimeout, Retry::Never, format!("The provider sent no answer within {head_ms} ms."))
    })?;
    let response =
        answer.map_err(|unanswered| broken(&unanswered.fault, is_reused && sent_at.elapsed() < IDLE_CLOSE_WINDOW))?;
    target.observe_head(model, response.headers());
    judge(response, target, started_ms).await
}

/// Returns the headers that authenticate a request. Amazon's signature covers the body and needs it in memory.
pub async fn prove(
    pool: &Pool,
    target: &Target,
    uri: &Uri,
    body: Contents<'_>,
) -> Result<auth::Headers, AttemptFailure> {
    let token = &target.hot.access_token;
    match body {
        Contents::Json(pieces) => Ok(target.proof.headers(pool, token, uri, pieces).await?),
        Contents::Form { .. } if matches!(target.proof, Proof::Aws { .. }) => {
            let message = "Connections that sign each request take no forms.";
            let error = Error::client(ErrorKind::InvalidRequest, message).about("model");
            Err(AttemptFailure { blames_connection: false, ..error.into() })
        }
        Contents::Form { .. } => Ok(target.proof.headers(pool, token, uri, &Pieces::new()).await?),
    }
}

/// `may_be_idle_close`: the connection was pooled, and it was closed so soon that the provider's idle timer may be the
/// cause.
fn broken(fault: &Fault, may_be_idle_close: bool) -> AttemptFailure {
    let retry = match fault {
        Fault::NothingSent => {
            return upstream(ErrorKind::UpstreamReset, Retry::NothingSent, "The provider closed the connection.")
                .into();
        }
        Fault::Malformed => {
            return upstream(ErrorKind::UpstreamInvalid, Retry::Never, "The provider's answer is not HTTP.").into();
        }
        Fault::Body(error) => {
            tracing::error!(%error, "an upload cannot be read again");
            return AttemptFailure { blames_connection: false, ..unreadable().into() };
        }
        Fault::Closed if may_be_idle_close => Retry::ReusedConnection,
        Fault::Closed | Fault::Broken(_) => Retry::Never,
    };
    upstream(ErrorKind::UpstreamReset, retry, "The provider closed the connection before it answered.").into()
}

/// Returns a successful response (2xx) and turns every other status into a failure.
async fn judge(
    response: Response<Incoming>,
    target: &Target,
    started_ms: u64,
) -> Result<Response<Incoming>, AttemptFailure> {
    let status = response.status();
    if status.is_success() {
        if is_coded(&response) {
            // The request accepts no content coding. Decoding an unrequested coding would allow decompression bombs.
            let message = "The provider sent a coded answer that was not asked for.";
            return Err(upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message).into());
        }
        return Ok(response);
    }
    let code = status.as_u16();
    let longest_ms = target.resilience.connection_cooldown.max_retry_after_ms;
    let hint_ms = retry_hint(&response).map(|hint_ms| hint_ms.min(longest_ms));
    let mut failure = failure_of(code, target.connection.protocol, hint_ms);
    let request_id = request_id_of(&response);
    let report = |refusal: &UpstreamError| {
        let report = provider_error(code, refusal, target);
        ProviderError { request_id: request_id.map(|id| target.mask(&id)), ..report }
    };
    if matches!(code, 401..=403 | 429) {
        // The body of a refusal shows whether it is temporary or permanent.
        let refusal = read_error(response, REFUSAL_BODY_DEADLINE).await;
        target.observe_refusal(code, refusal.code.as_deref().or(refusal.kind.as_deref()), &refusal.message, started_ms);
        if matches!(code, 401 | 403) {
            target.hot.access_token.forget();
        }
        failure.error = failure.error.with_provider_error(report(&refusal));
        // Google puts the retry delay into the body.
        let reported_ms = refusal.retry_ms.filter(|_| code == 429).map(|hint_ms| hint_ms.get().min(longest_ms));
        let hint_ms = failure.hint_ms.or(reported_ms);
        return Err(AttemptFailure { hint_ms, ..failure });
    }
    if failure.blames_connection {
        let refusal = read_error(response, FAILURE_BODY_DEADLINE).await;
        failure.error = failure.error.with_provider_error(report(&refusal));
        return Err(failure);
    }
    let refusal = read_error(response, ERROR_BODY_DEADLINE).await;
    let report = report(&refusal);
    let mut failure = rejected(status, refusal, target, started_ms, failure);
    failure.error = failure.error.with_provider_error(report);
    Err(failure)
}

/// Handles a rejected request; `failure` is derived from its status. If the credential was rejected, the connection is
/// to blame, as with a 401.
fn rejected(
    status: StatusCode,
    refusal: UpstreamError,
    target: &Target,
    started_ms: u64,
    mut failure: AttemptFailure,
) -> AttemptFailure {
    let code = status.as_u16();
    let reason = reason_of(&refusal);
    if reason == RejectionReason::Credential {
        target.observe_refusal(401, refusal.code.as_deref(), &refusal.message, started_ms);
        return refused(code);
    }
    target.observe_refusal(code, refusal.code.as_deref(), &refusal.message, started_ms);
    if reason == RejectionReason::Access {
        // Another account at the provider may have the permission that this one lacks.
        failure.error.retry = Retry::Elsewhere;
    }
    AttemptFailure { rejection: Some(Box::new(rejection(status, refusal, target))), ..failure }
}

/// The failure of a credential that the provider rejected with the status of a bad request.
fn refused(code: u16) -> AttemptFailure {
    let message = format!("The provider refused the connection's credential ({code}).");
    upstream(ErrorKind::UpstreamAuth, Retry::Elsewhere, message).with_upstream_status(code).into()
}

/// Classifies an unsuccessful status. Only a rejected request does not blame the connection. `hint_ms` is the retry
/// delay that the provider asked for; it applies to limits and overload.
fn failure_of(code: u16, protocol: Protocol, hint_ms: Option<u64>) -> AttemptFailure {
    let (kind, message) = match code {
        429 => (ErrorKind::UpstreamRateLimited, "The provider limits this connection.".into()),
        401 | 403 => (ErrorKind::UpstreamAuth, format!("The provider refused the connection's credential ({code}).")),
        402 => (ErrorKind::UpstreamAuth, "The provider asks for payment (402).".into()),
        503 | 529 => (ErrorKind::UpstreamOverloaded, format!("The provider is overloaded ({code}).")),
        // Bedrock: the model failed, not the request.
        424 if protocol != Protocol::Own => (ErrorKind::UpstreamStatus, "The provider's model failed (424).".into()),
        408 | 504 => (ErrorKind::UpstreamTimeout, format!("The provider timed out ({code}).")),
        500..=599 => (ErrorKind::UpstreamStatus, format!("The provider failed ({code}).")),
        400..=499 => (ErrorKind::InvalidRequest, format!("The provider rejected the request ({code}).")),
        300..=399 => {
            let message = "redirects are not followed with a credential";
            (ErrorKind::UpstreamInvalid, format!("The provider redirects ({code}); {message}."))
        }
        _ => (ErrorKind::UpstreamInvalid, format!("The provider answered {code}.")),
    };
    let is_rejected = kind == ErrorKind::InvalidRequest;
    let retry = if is_rejected { Retry::Never } else { Retry::Elsewhere };
    AttemptFailure {
        error: upstream(kind, retry, message).with_upstream_status(code),
        hint_ms: hint_ms.filter(|_| matches!(code, 429 | 503 | 529)),
        rejection: None,
        blames_connection: !is_rejected,
    }
}

fn is_coded(response: &Response<Incoming>) -> bool {
    let coding = response.headers().get(header::CONTENT_ENCODING);
    coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Reads the retry delay. `retry-after-ms` is more precise than `Retry-After`, so it takes precedence.
fn retry_hint(response: &Response<Incoming>) -> Option<u64> {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    text("retry-after-ms")
        .and_then(|ms| ms.trim().parse::<u64>().ok().filter(|&ms| ms > 0))
        .map(|ms| ms.min(fairlead_core::MAX_RETRY_AFTER_MS))
        .or_else(|| parse_retry_after(text("retry-after")?, clock::unix_ms() / 1_000))
}

/// Reads a provider's error within a size and time limit. Returns an empty error if the body cannot be read.
async fn read_error(response: Response<Incoming>, deadline: Duration) -> UpstreamError {
    if is_coded(&response) {
        return UpstreamError::default();
    }
    let amazons = amazons_name(response.headers());
    let is_text =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let body = Limited::new(response.into_body(), MAX_ERROR_BYTES).collect();
    let Ok(Ok(collected)) = tokio::time::timeout(deadline, body).await else { return UpstreamError::default() };
    let body = collected.to_bytes();
    // Proxies in front of a provider report errors as plain text.
    let text = || is_text.then(|| UpstreamError::of_text(&String::from_utf8_lossy(&body)));
    let error = error_fields(&body).or_else(text).unwrap_or_default();
    UpstreamError { kind: error.kind.or(amazons), ..error }
}

/// Returns the name of an error that Amazon sends in a header: `ValidationException:http://internal.amazon.com/...`.
fn amazons_name(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("x-amzn-errortype")?.to_str().ok()?;
    let name = text.split(':').next()?.rsplit('#').next()?;
    Some(name.chars().take(MAX_NAME_BYTES).collect())
}

fn upstream(kind: ErrorKind, retry: Retry, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::upstream(kind, retry, message)
}
