//! A failed attempt: the error for the caller, whether another attempt is safe, and what is to blame.

use fairlead_core::{Error, ErrorKind};
use fairlead_dialect::{ErrorText, RejectionReason};
use http::StatusCode;

/// A failed attempt.
#[derive(Debug)]
pub struct AttemptFailure {
    pub error: Error,
    /// The retry delay that the provider asked for, in milliseconds.
    pub hint_ms: Option<u64>,
    /// The provider rejected the request itself: the status and fields of its error, for the caller.
    pub rejection: Option<Box<Rejection>>,
    /// The connection is to blame and enters cooldown.
    pub blames_connection: bool,
}

/// A 4xx response of the provider that the caller has to fix.
#[derive(Debug)]
pub struct Rejection {
    pub status: StatusCode,
    pub reason: RejectionReason,
    pub message: String,
    pub kind: Option<String>,
    pub code: Option<String>,
    pub param: Option<String>,
    pub detail: Option<String>,
}

impl From<Error> for AttemptFailure {
    fn from(error: Error) -> Self {
        // A response that a guardrail withheld was a success of the provider, and a proxy's failure never reached it.
        // An empty response may be what the caller asked for, and no caller may put a connection into cooldown for all
        // others by requesting it.
        let blames_connection = !matches!(
            error.kind,
            ErrorKind::GuardrailBlocked | ErrorKind::ProxyFailed | ErrorKind::EmptyAnswer | ErrorKind::AnswerRejected
        );
        Self { error, hint_ms: None, rejection: None, blames_connection }
    }
}

/// The error for a stored upload that can no longer be read.
pub(crate) fn unreadable() -> Error {
    Error::gateway(ErrorKind::StorageUnavailable, "The upload cannot be read again.").after_s(1)
}

impl Rejection {
    /// The provider's error in the form that all dialects use to report errors.
    pub fn text(&self) -> ErrorText<'_> {
        ErrorText {
            status: self.status.as_u16(),
            message: &self.message,
            kind: self.kind.as_deref().unwrap_or("invalid_request_error"),
            code: self.code.as_deref(),
            param: self.param.as_deref(),
            detail: self.detail.as_deref(),
            diagnostics: None,
        }
    }
}
