//! Completes streams that end with `[DONE]` without a finish reason, as some servers do. The gateway adds an event with
//! one, because the caller's parser may wait for it.

use crate::lenient;
use bytes::Bytes;
use serde_json::{json, Map, Value};

/// The maximum size of a first event that is stored for its common members.
const MAX_FIRST_BYTES: usize = 2048;
/// Members that are equal in every event of a stream.
const ENVELOPE: [&str; 5] = ["id", "object", "created", "model", "system_fingerprint"];

/// The data needed to end a stream without a finish reason.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// The data of the first event.
    first: Option<Box<[u8]>>,
    has_calls: bool,
    has_ended: bool,
}

impl Unfinished {
    /// Stores the first event of the answer.
    pub(super) fn begin(&mut self, data: &[u8]) {
        if self.first.is_none() && data.len() <= MAX_FIRST_BYTES {
            self.first = Some(data.into());
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Records that the answer calls tools.
    pub(super) fn note_calls(&mut self) {
        self.has_calls = true;
    }

    /// Records `[DONE]`.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns the final event and `[DONE]`, if the stream ended without a finish reason.
    pub(super) fn events(&self) -> Option<Bytes> {
        if !self.has_ended {
            return None;
        }
        let first = self.first.as_deref().and_then(lenient::value).unwrap_or_default();
        let known = ENVELOPE.into_iter().filter_map(|name| Some((name.to_owned(), first.get(name)?.clone())));
        let mut event: Map<String, Value> = known.collect();
        let reason = if self.has_calls { "tool_calls" } else { "stop" };
        let is_text = first["object"] == "text_completion" || first["choices"][0].get("text").is_some();
        let choice = if is_text {
            json!({"index": 0, "text": "", "finish_reason": reason})
        } else {
            json!({"index": 0, "delta": {}, "finish_reason": reason})
        };
        event.insert("choices".to_owned(), json!([choice]));
        Some(Bytes::from(format!("data: {}\n\ndata: [DONE]\n\n", Value::Object(event))))
    }
}
