//! The arguments of tool calls in an answer. The model generates them, so they can be invalid JSON or be truncated by
//! the output limit.

use std::borrow::Cow;

use fairlead_core::json::{scan_object, validate, MAX_DEPTH};
use fairlead_core::Error;

use crate::model::{wrong, Answer, Call, Content, Stop};
use crate::step::Malformed;
use crate::text::Text;

/// The arguments that a dialect can represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentsShape {
    /// Any text.
    Text,
    /// Any JSON.
    Json,
    Object,
}

/// Makes the arguments of all calls representable in the dialect. A call that the output limit truncated is dropped if
/// it cannot be represented, because it cannot be executed. Any other invalid call is an error.
pub(crate) fn fit(answer: &mut Answer<'_>, shape: ArgumentsShape) -> Result<(), Error> {
    let (mut outcome, stop) = (Ok(()), answer.stop);
    answer.parts.retain_mut(|part| {
        let Content::Call(call) = &mut part.content else { return true };
        if call.arguments.trim().is_empty() || (shape != ArgumentsShape::Text && is_null(&call.arguments)) {
            call.arguments = Cow::Borrowed("{}");
        }
        let is_held = match shape {
            ArgumentsShape::Text => true,
            ArgumentsShape::Json => validate(call.arguments.as_bytes(), MAX_DEPTH).is_ok(),
            ArgumentsShape::Object => is_object(&call.arguments),
        };
        if !is_held && stop != Stop::Length {
            outcome = Err(wrong(&part.path, "has arguments that are no object"));
        }
        is_held
    });
    outcome
}

/// Buffers a streamed call for a dialect that needs the complete call with an object.
#[derive(Debug, Default)]
pub(crate) struct CallBuffer {
    /// The id, name and arguments of the incomplete call.
    open: Option<(Text<'static>, Text<'static>, String)>,
}

impl CallBuffer {
    pub(crate) fn begin(&mut self, id: Text<'_>, name: Text<'_>) {
        self.open = Some((id.into_owned(), name.into_owned(), String::new()));
    }

    pub(crate) fn push(&mut self, arguments: &Text<'_>) {
        if let Some((_, _, so_far)) = &mut self.open {
            so_far.push_str(&arguments.decode());
        }
    }

    /// Takes the call if it is complete. Otherwise the caller waits for the stop reason, which says whether the call
    /// was truncated.
    pub(crate) fn take_complete(&mut self) -> Option<Call<'static>> {
        let (_, _, arguments) = self.open.as_mut()?;
        if arguments.trim().is_empty() || is_null(arguments) {
            "{}".clone_into(arguments);
        }
        let is_complete = is_object(arguments);
        let (id, name, arguments) = self.open.take_if(|_| is_complete)?;
        Some(Call { id, name, arguments: Cow::Owned(arguments) })
    }

    /// Takes a call that must be complete because more events follow.
    pub(crate) fn take(&mut self) -> Result<Option<Call<'static>>, Malformed> {
        let call = self.take_complete();
        if self.open.is_some() {
            return Err(Malformed);
        }
        Ok(call)
    }

    /// Takes the last call of an answer. Returns `None` if the output limit truncated it.
    pub(crate) fn take_last(&mut self, stop: Stop) -> Result<Option<Call<'static>>, Malformed> {
        let call = self.take_complete();
        if stop == Stop::Length {
            self.open = None;
        }
        call.map_or_else(|| self.take(), |call| Ok(Some(call)))
    }
}

/// Some models write `null` for a tool without arguments.
fn is_null(arguments: &str) -> bool {
    arguments.trim() == "null"
}

fn is_object(arguments: &str) -> bool {
    scan_object(arguments.as_bytes(), &[], MAX_DEPTH).is_ok()
}
