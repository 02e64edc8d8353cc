//! How an error is said inside a stream, once the caller has words of its answer.

use crate::call::context::Call;
use crate::call::failover;
use bytes::Bytes;
use fairlead_core::{Dialect, Error};
use fairlead_dialect::stream::terminal_error;
use fairlead_dialect::{add_diagnostics, ErrorText, Pieces};

/// How an error is said inside a stream.
#[derive(Debug, Clone, Copy)]
pub struct ErrorForm {
    pub dialect: Dialect,
    /// One JSON list that grows; else events.
    pub is_list: bool,
}

impl ErrorForm {
    pub fn event(self, error: &Error) -> Bytes {
        terminal_error(self.dialect, self.is_list, &ErrorText::from(error))
    }
}

/// What a caller is told last of a stream that failed, with what every target of the combo came to.
pub fn diagnosed(last: Pieces, form: ErrorForm, call: &mut Call, error: &Error) -> Pieces {
    if call.choice.combo.is_none() {
        return last;
    }
    // It counts as a failure of an attempt for this once alone: the call was served, as far as it went.
    call.failures.push((call.last_target, error.clone().into()));
    let diagnostics = failover::diagnostics(&call.choice, &call.failures);
    call.failures.pop();
    match diagnostics {
        Some(diagnostics) => add_diagnostics(last, form.is_list, &diagnostics.to_string()),
        None => last,
    }
}
