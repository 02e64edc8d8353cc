//! Cacheable Gemini answers, and their conversion between events and a list.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::Value;

/// The facts about an answer or a chunk.
#[derive(Debug, Default, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct ReplayFacts {
    pub(crate) has_text: bool,
    pub(crate) has_stopped: bool,
    pub(crate) is_unfit: bool,
}

/// Reads a complete answer or a chunk. One candidate of text and reasoning with a normal finish is cacheable.
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
            // A function call, an image, or executed code, signed or not. A signature can come in a separate part.
            let members = part.as_object().into_iter().flatten();
            let is_signature = |(name, _): (&String, &Value)| matches!(name.as_str(), "thoughtSignature" | "thought");
            facts.is_unfit |= text.is_none() && !members.into_iter().all(is_signature);
        }
        // Web search results become outdated.
        facts.is_unfit |= !candidate["groundingMetadata"].is_null();
        if let Some(reason) = candidate["finishReason"].as_str() {
            facts.has_stopped = true;
            facts.is_unfit |= reason != "STOP";
        }
    }
    facts
}

/// Writes a complete answer as a stream of one event. Line breaks in the answer are removed.
pub(crate) fn as_stream(body: &[u8]) -> Option<Bytes> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    Some(Bytes::from(format!("data: {answer}\r\n\r\n")))
}

/// Joins events into the list for callers that did not request events.
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

/// Splits a list into events. Returns `None` if the bytes are not a list.
pub fn events_of(list: &[u8]) -> Option<Bytes> {
    let chunks: Vec<&RawValue> = serde_json::from_slice(list).ok()?;
    let mut out = Vec::with_capacity(list.len() + 16 * chunks.len());
    for chunk in chunks {
        out.extend_from_slice(&as_stream(chunk.get().as_bytes())?);
    }
    Some(Bytes::from(out))
}
