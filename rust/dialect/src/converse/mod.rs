//! Amazon Bedrock's `Converse`, the form that most of its models share. Requests are written from the common model.
//! Answers are rewritten as messages, the closest dialect, so that every later step reads one dialect.
//!
//! Reading order: [`request_out`] with [`blocks`] and [`tools`], then [`whole`] and [`stream_in`].

mod blocks;
mod request_out;
mod stream_in;
mod tools;
mod whole;

pub(crate) use request_out::write as write_request;
pub(crate) use stream_in::StreamReader;
pub(crate) use whole::read as read_answer;

/// An answer's id, from the id of its call.
fn message_id(id: &str) -> String {
    format!("msg_{id}")
}

/// The reason in the messages dialect why a model stopped.
fn stop_reason(reason: &str) -> &str {
    match reason {
        "guardrail_intervened" | "content_filtered" => "refusal",
        // Broken output is an error there, and `whole` and `stream_in` report it as one.
        other => other,
    }
}

/// The message of the error for a reason that means broken output.
fn broken(reason: &str) -> Option<&'static str> {
    match reason {
        "malformed_model_output" => Some("The model's output is malformed (malformed_model_output)."),
        "malformed_tool_use" => Some("The model's call of a tool is malformed (malformed_tool_use)."),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
