//! Cohere's chat, version 2. Requests are written from the common model. Answers are rewritten as messages, the closest
//! dialect, so that every later step reads one dialect.
//!
//! Reading order: [`request_out`] with [`turns`], then [`usage`], [`whole`] and [`stream_in`].

mod request_out;
mod stream_in;
mod turns;
mod usage;
mod whole;

pub(crate) use request_out::write as write_request;
pub(crate) use stream_in::StreamReader;
pub(crate) use whole::read as read_answer;

/// The reason in the messages dialect why a model stopped. `Err`: the answer failed; the text is for the caller.
fn stop_reason(reason: &str) -> Result<&'static str, String> {
    match reason {
        "STOP_SEQUENCE" => Ok("stop_sequence"),
        "MAX_TOKENS" => Ok("max_tokens"),
        "TOOL_CALL" => Ok("tool_use"),
        "ERROR_TOXIC" => Ok("refusal"),
        "TIMEOUT" => Err("The model did not answer in time (TIMEOUT).".into()),
        "ERROR" => Err("The model failed (ERROR).".into()),
        // `COMPLETE`, and reasons that may be added to the protocol: an answer that ends with one is complete.
        _ => Ok("end_turn"),
    }
}

/// The answer's id: the provider's, or one from the id of the call.
fn message_id(own: Option<&str>, id: &str) -> String {
    match own {
        Some(own) if !own.is_empty() => own.to_owned(),
        _ => format!("msg_{id}"),
    }
}

#[cfg(test)]
mod tests;
