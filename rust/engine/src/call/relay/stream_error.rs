//! The format of errors inside a stream, after the caller has received a part of the response.

use crate::call::attempt::failover;
use crate::call::context::Call;
use bytes::Bytes;
use fairlead_core::{Dialect, Error};
use fairlead_dialect::stream::terminal_error;
use fairlead_dialect::{add_diagnostics, ErrorText, Pieces};

/// The format of errors inside a stream.
#[derive(Debug, Clone, Copy)]
pub struct ErrorForm {
    pub dialect: Dialect,
    /// One growing JSON list; otherwise events.
    pub is_list: bool,
}

impl ErrorForm {
    pub fn event(self, error: &Error) -> Bytes {
        terminal_error(self.dialect, self.is_list, &ErrorText::from(error))
    }
}

/// Adds the results of all targets of the combo to the last event of a failed stream.
pub fn diagnosed(last: Pieces, form: ErrorForm, call: &mut Call, error: &Error) -> Pieces {
    if call.choice.combo.is_none() {
        return last;
    }
    // The failure is added only for this message, because the call was served up to this point.
    call.failures.push((call.last_target, error.clone().into()));
    let diagnostics = failover::diagnostics(&call.choice, &call.failures);
    call.failures.pop();
    match diagnostics {
        Some(diagnostics) => add_diagnostics(last, form.is_list, &diagnostics.to_string()),
        None => last,
    }
}
