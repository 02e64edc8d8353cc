//! The error value of the gateway: what went wrong, whose fault it is, and whether a retry is safe.
//!
//! The value holds everything that decides what happens after a failure: the [`ErrorKind`] (a closed list, with one
//! stable code and one HTTP status each), the [`Origin`] and the [`Retry`] class. Messages never contain keys, prompts
//! or upstream bodies.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Declares each kind with its code, status, wire type and summary.
macro_rules! kinds {
    ($($variant:ident $code:literal $status:literal $wire:literal $summary:literal;)+) => {
        /// The closed list of error kinds. Each has a heading in `docs/reference/errors.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $(#[doc = $summary] $variant,)+ }

        impl ErrorKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant,)+];

            /// The stable code that clients may match on.
            pub fn code(self) -> &'static str { match self { $(ErrorKind::$variant => $code,)+ } }
            /// The HTTP status.
            pub fn status(self) -> u16 { match self { $(ErrorKind::$variant => $status,)+ } }
            /// The `type` member that OpenAI clients expect.
            pub fn wire_type(self) -> &'static str { match self { $(ErrorKind::$variant => $wire,)+ } }
            /// One sentence for the reference.
            pub fn summary(self) -> &'static str { match self { $(ErrorKind::$variant => $summary,)+ } }
        }
    };
}

kinds! {
    InvalidRequest "invalid_request" 400 "invalid_request_error" "The request is invalid; the message says why.";
    Unauthenticated "unauthenticated" 401 "authentication_error" "The credential is missing or unknown.";
    Forbidden "forbidden" 403 "permission_error" "The credential is valid but lacks the permission.";
    NotFound "not_found" 404 "invalid_request_error" "The resource does not exist.";
    ModelNotFound "model_not_found" 404 "invalid_request_error" "No connection serves this model.";
    MethodNotAllowed "method_not_allowed" 405 "invalid_request_error" "The path does not support this method.";
    UpgradeRefused "upgrade_refused" 426 "invalid_request_error" "The path answers requests over HTTP and opens no WebSocket.";
    RequestTimeout "request_timeout" 408 "invalid_request_error" "The request's body did not arrive in time.";
    ContextTooLong "context_length_exceeded" 400 "invalid_request_error" "The request is longer than the window of every model that could serve it.";
    GuardrailBlocked "guardrail_blocked" 400 "invalid_request_error" "A guardrail blocked the content.";
    Conflict "conflict" 409 "invalid_request_error" "The request contradicts what is stored.";
    TooLarge "too_large" 413 "invalid_request_error" "The body is larger than this route allows.";
    UriTooLong "uri_too_long" 414 "invalid_request_error" "The request target is longer than 8 KiB.";
    UnsupportedMediaType "unsupported_media_type" 415 "invalid_request_error" "The body's media type or encoding is not supported.";
    RateLimited "rate_limited" 429 "rate_limit_error" "A limit of this gateway was reached.";
    BudgetExceeded "budget_exceeded" 429 "rate_limit_error" "The key's budget is used up, or reserved by requests in progress.";
    CallTooDear "call_too_dear" 402 "billing_error" "The call may cost more than its caller allows.";
    TokenLimitExceeded "token_limit_exceeded" 429 "rate_limit_error" "The key's token limit is used up, or reserved by requests in progress.";
    AccountsBusy "accounts_busy" 429 "rate_limit_error" "Every connection that may serve the request has reached the limits set for it.";
    LeaseUnavailable "LEASE_CAPACITY_UNAVAILABLE" 429 "lease_error" "Every connection that may serve the request is leased to a session.";
    LeaseStale "LEASE_FENCE_STALE" 409 "lease_error" "The lease of the request has expired or was replaced.";
    UnpricedModel "unpriced_model" 403 "permission_error" "The model has no price, and the key has a spending limit.";
    HeadersTooLarge "headers_too_large" 431 "invalid_request_error" "The header block is larger than 32 KiB or has over 100 lines.";
    ClientGone "client_gone" 499 "invalid_request_error" "The caller left before the answer was complete.";
    Internal "internal" 500 "server_error" "An internal error of the gateway.";
    UpstreamRefused "upstream_refused" 502 "upstream_error" "The provider could not be reached: name, address, connection or TLS.";
    UpstreamReset "upstream_reset" 502 "upstream_error" "The provider ended the answer before it was complete.";
    UpstreamInvalid "upstream_invalid" 502 "upstream_error" "The provider's answer violates its protocol.";
    EmptyAnswer "empty_answer" 502 "upstream_error" "The provider's answer is empty.";
    AnswerRejected "answer_rejected" 502 "upstream_error" "The provider's answer breaks the combo's rules for answers.";
    UpstreamAuth "upstream_auth" 502 "upstream_error" "The provider refused the connection's credential.";
    UpstreamStatus "upstream_status" 502 "upstream_error" "The provider answered with an error status.";
    UpstreamRateLimited "upstream_rate_limited" 429 "rate_limit_error" "The provider rate-limits this connection, and no other connection is left.";
    UpstreamOverloaded "upstream_overloaded" 503 "upstream_error" "The provider says it is overloaded.";
    UpstreamTimeout "upstream_timeout" 504 "upstream_error" "The provider sent no answer before the timeout, or reports a timeout.";
    UpstreamFirstTokenTimeout "upstream_first_token_timeout" 504 "upstream_error" "The provider started a stream and sent no event before the timeout.";
    UpstreamIdleTimeout "upstream_idle_timeout" 504 "upstream_error" "The provider stopped sending in the middle of its answer.";
    ProxyFailed "proxy_failed" 502 "upstream_error" "The required outbound proxy could not be used; the provider received nothing.";
    NoRoute "no_route" 503 "server_error" "The model's provider has no usable connection.";
    LimitsUnknown "limits_unknown" 503 "server_error" "The key's usage is not known yet, so the request is refused rather than overspent.";
    Overloaded "overloaded" 503 "server_error" "The gateway is at its limit of open requests.";
    Draining "draining" 503 "server_error" "The gateway is shutting down.";
    ControlUnavailable "control_unavailable" 503 "server_error" "Management is unreachable; inference continues.";
    StorageUnavailable "storage_unavailable" 503 "server_error" "A data file cannot be read or written.";
}

/// The party that caused the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Client,
    Gateway,
    Upstream,
}

/// Whether another attempt is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never: the attempt would fail again, or part of an answer has already been sent to the caller.
    Never,
    /// Safe: no byte of the request reached the provider.
    NothingSent,
    /// Safe: a reused connection was closed before it returned any byte.
    ReusedConnection,
    /// Safe over another connection: the provider answered that it did not process the request (429, 5xx).
    Elsewhere,
}

/// The underlying error of a failure, and the result of each target that was tried. Few failures have either, so they
/// are boxed.
#[derive(Debug, Clone, Default)]
pub struct Cause(Option<Arc<Details>>);

#[derive(Debug, Clone, Default)]
struct Details {
    /// For logs. May contain addresses and certificates, so callers never see it.
    below: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// For callers.
    diagnostics: Option<String>,
    /// For the usage record. May repeat a prompt, so callers see it only when the provider rejected the request itself.
    provider: Option<Arc<ProviderError>>,
}

/// The error that a provider returned. Its texts are untrusted; the connection's secrets are masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    pub status: u16,
    pub code: Option<String>,
    pub kind: Option<String>,
    pub message: String,
    /// The id under which the provider's support can find the call.
    pub request_id: Option<String>,
    /// Why the provider rejected the request; `None` for other failures.
    pub reason: Option<&'static str>,
    /// The member of the request that the provider named.
    pub member: Option<String>,
}

impl Cause {
    fn with(&self, change: impl FnOnce(&mut Details)) -> Self {
        let mut details = self.0.as_deref().cloned().unwrap_or_default();
        change(&mut details);
        Self(Some(Arc::new(details)))
    }
}

/// Causes always compare equal, so that errors compare by what decides the next step. No decision depends on a cause.
impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

/// A failure as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub origin: Origin,
    pub retry: Retry,
    pub message: Cow<'static, str>,
    /// The field or header that the message refers to.
    pub param: Option<Cow<'static, str>>,
    /// The value of `Retry-After`, in whole seconds.
    pub retry_after_s: Option<u64>,
    /// The status that the provider returned, if it answered.
    pub upstream_status: Option<u16>,
    /// The underlying error, for logs, and the result of each target.
    pub cause: Cause,
}

impl Error {
    /// An error of the caller, which is never retried.
    pub fn client(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Origin::Client, Retry::Never, message)
    }

    /// A refusal or a defect of the gateway itself.
    pub fn gateway(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Origin::Gateway, Retry::Never, message)
    }

    /// A failure of the provider.
    pub fn upstream(kind: ErrorKind, retry: Retry, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Origin::Upstream, retry, message)
    }

    fn new(kind: ErrorKind, origin: Origin, retry: Retry, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            origin,
            retry,
            message: message.into(),
            param: None,
            retry_after_s: None,
            upstream_status: None,
            cause: Cause::default(),
        }
    }

    #[must_use]
    pub fn about(mut self, param: impl Into<Cow<'static, str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    #[must_use]
    pub fn with_upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = Some(status);
        self
    }

    /// Adds the result of every target. `diagnostics` is a JSON object.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: &serde_json::Value) -> Self {
        self.cause = self.cause.with(|details| details.diagnostics = Some(diagnostics.to_string()));
        self
    }

    /// Adds the error that the provider returned.
    #[must_use]
    pub fn with_provider_error(mut self, error: ProviderError) -> Self {
        self.cause = self.cause.with(|details| details.provider = Some(Arc::new(error)));
        self
    }

    /// The error that the provider returned, if it answered.
    pub fn provider_error(&self) -> Option<&ProviderError> {
        self.cause.0.as_ref()?.provider.as_deref()
    }

    /// The result of every target of a combo, as a JSON object.
    pub fn diagnostics(&self) -> Option<&str> {
        self.cause.0.as_ref()?.diagnostics.as_deref()
    }

    /// Stores the underlying error for logs. [`std::error::Error::source`] returns it.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = self.cause.with(|details| details.below = Some(Arc::new(cause)));
        self
    }

    #[must_use]
    pub fn after_s(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let below = self.cause.0.as_ref()?.below.as_deref()?;
        Some(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::error::Error as _;

    #[test]
    fn a_cause_is_kept_and_not_shown() {
        let plain = Error::upstream(ErrorKind::UpstreamRefused, Retry::NothingSent, "The provider cannot be reached.");
        let caused = plain.clone().caused_by(std::io::Error::other("10.0.0.7 refused"));
        assert_eq!(caused, plain);
        assert_eq!(caused.to_string(), plain.to_string());
        assert_eq!(caused.source().map(ToString::to_string).as_deref(), Some("10.0.0.7 refused"));
        assert!(plain.source().is_none());
    }

    #[test]
    fn every_kind_has_its_own_code_and_an_error_status() {
        let codes: HashSet<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        assert!(ErrorKind::ALL.iter().all(|kind| (400..600).contains(&kind.status())));
    }
}
