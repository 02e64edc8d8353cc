//! Why an attempt at a provider failed, as every later step needs it: the caller's error, whether another attempt is safe, and
//! who is to blame.

use fairlead_core::{Error, ErrorKind};
use fairlead_dialect::{ErrorText, RejectionReason};
use http::StatusCode;

/// Why an attempt failed.
#[derive(Debug)]
pub struct AttemptFailure {
    pub error: Error,
    /// When the provider says to come back, milliseconds from now.
    pub hint_ms: Option<u64>,
    /// The provider refused the request itself: status and fields of its error, for the caller to see.
    pub rejection: Option<Box<Rejection>>,
    /// The connection is to blame, and rests.
    pub blames_connection: bool,
}

/// A 4xx of the provider that is the caller's to mend.
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
        // What a guardrail withholds was answered well, and what a proxy refused was never heard of. An answer with nothing in it
        // may be what was asked for: no caller can make a connection rest for all others by asking for it.
        let blames_connection = !matches!(
            error.kind,
            ErrorKind::GuardrailBlocked | ErrorKind::ProxyFailed | ErrorKind::EmptyAnswer | ErrorKind::AnswerRejected
        );
        Self { error, hint_ms: None, rejection: None, blames_connection }
    }
}

/// A body that was kept for the provider cannot be had.
pub(crate) fn unreadable() -> Error {
    Error::gateway(ErrorKind::StorageUnavailable, "The upload cannot be read again.").after_s(1)
}

impl Rejection {
    /// The provider's own error, in the shape that every dialect of callers is told errors in.
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
