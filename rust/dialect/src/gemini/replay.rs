//! Generated content that is given again: which answers are fit for it, one in the framing of the other.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::Value;

/// The content that one answer, or one chunk of it, has told.
#[derive(Debug, Default, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct ReplayFacts {
    pub(crate) has_text: bool,
    pub(crate) has_stopped: bool,
    pub(crate) is_unfit: bool,
}

/// Reads a whole answer, or a chunk: fit is one candidate of texts and thoughts that ended by itself.
pub(crate) fn read(answer: &Value) -> ReplayFacts {
    let mut facts = ReplayFacts {
        is_unfit: !answer["error"].is_null() || !answer["promptFeedback"]["blockReason"].is_null(),
        ..ReplayFacts::default()
    };
    let candidates = answer["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    facts.is_unfit |= candidates.len() > 1;
    for candidate in candidates {
        for part in candidate["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice) {
            let text = part["text"].as_str();
            facts.has_text |= text.is_some_and(|text| !text.is_empty()) && part["thought"] != true;
            // A call, a picture, code that was run.
            facts.is_unfit |= text.is_none() && part["thoughtSignature"].is_null();
        }
        // What was looked up on the web belongs to its time.
        facts.is_unfit |= !candidate["groundingMetadata"].is_null();
        if let Some(reason) = candidate["finishReason"].as_str() {
            facts.has_stopped = true;
            facts.is_unfit |= reason != "STOP";
        }
    }
    facts
}

/// A whole answer as a stream of one event; it may have been spread over lines.
pub(crate) fn as_stream(body: &[u8]) -> Option<Bytes> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    Some(Bytes::from(format!("data: {answer}\r\n\r\n")))
}

/// Events as the one list that callers read who did not ask for events.
pub fn list_of(events: &[u8]) -> Bytes {
    let mut out = vec![b'['];
    for line in events.split(|byte| *byte == b'\n') {
        let Some(data) = line.strip_prefix(b"data:") else { continue };
        if out.len() > 1 {
            out.extend_from_slice(b",\r\n");
        }
        out.extend_from_slice(data.trim_ascii());
    }
    out.push(b']');
    Bytes::from(out)
}

/// The other way round. `None`: it is no list.
pub fn events_of(list: &[u8]) -> Option<Bytes> {
    let chunks: Vec<&RawValue> = serde_json::from_slice(list).ok()?;
    let mut out = Vec::with_capacity(list.len() + 16 * chunks.len());
    for chunk in chunks {
        out.extend_from_slice(&as_stream(chunk.get().as_bytes())?);
    }
    Some(Bytes::from(out))
}
