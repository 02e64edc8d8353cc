//! Cacheable responses, and the conversion of a complete response to a stream.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{json, Value};

/// Returns whether a response is cacheable: completed, with only text messages and reasoning.
pub(crate) fn is_fit(response: &Value) -> bool {
    let items = response["output"].as_array().map_or(&[][..], Vec::as_slice);
    let is_text =
        |part: &Value| part["type"] == "output_text" && part["annotations"].as_array().is_none_or(Vec::is_empty);
    let is_said = |item: &Value| match item["type"].as_str() {
        Some("reasoning") => true,
        Some("message") => item["content"].as_array().is_some_and(|parts| parts.iter().all(is_text)),
        _ => false,
    };
    let has_text = items
        .iter()
        .flat_map(|item| item["content"].as_array().into_iter().flatten())
        .any(|part| part["type"] == "output_text" && part["text"].as_str().is_some_and(|text| !text.is_empty()));
    response["status"] == "completed"
        && response["error"].is_null()
        && response["incomplete_details"].is_null()
        && has_text
        && items.iter().all(is_said)
}

/// Returns the complete response if this event reports it as completed.
pub(crate) fn completed(data: &[u8]) -> Option<Bytes> {
    #[derive(serde::Deserialize)]
    struct Completed<'a> {
        r#type: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        response: &'a RawValue,
    }
    let event: Completed<'_> = serde_json::from_slice(data).ok()?;
    (event.r#type == "response.completed").then(|| Bytes::copy_from_slice(event.response.get().as_bytes()))
}

/// Writes the response as a stream. Returns `None` if it has content that the stream would change.
pub(crate) fn as_stream(body: &[u8]) -> Option<Bytes> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let mut out = Stream::default();
    let mut begun = response.clone();
    for (name, value) in
        [("status", json!("in_progress")), ("output", json!([])), ("usage", Value::Null), ("completed_at", Value::Null)]
    {
        if !begun[name].is_null() {
            begun[name] = value;
        }
    }
    out.event("response.created", &json!({"response": begun}));
    out.event("response.in_progress", &json!({"response": begun}));
    for (at, item) in response["output"].as_array()?.iter().enumerate() {
        out.item(at, item)?;
    }
    let name = match response["status"].as_str() {
        Some("incomplete") => "response.incomplete",
        Some("failed") => "response.failed",
        _ => "response.completed",
    };
    out.event(name, &json!({"response": response}));
    Some(Bytes::from(out.bytes))
}

/// Events with sequence numbers.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    sequence: u64,
}

impl Stream {
    fn event(&mut self, name: &str, members: &Value) {
        let mut event = members.clone();
        event["type"] = name.into();
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        self.bytes.extend_from_slice(format!("event: {name}\ndata: {event}\n\n").as_bytes());
    }

    fn item(&mut self, at: usize, item: &Value) -> Option<()> {
        let is_message = item["type"] == "message";
        if !is_message && item["type"] != "reasoning" {
            self.call(at, item);
            return Some(());
        }
        let parts = if is_message { "content" } else { "summary" };
        let mut begun = item.clone();
        begun[parts] = json!([]);
        if is_message {
            begun["status"] = "in_progress".into();
        }
        self.event("response.output_item.added", &json!({"output_index": at, "item": begun}));
        for (index, part) in item[parts].as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
            self.part(at, item, index, part)?;
        }
        self.event("response.output_item.done", &json!({"output_index": at, "item": item}));
        Some(())
    }

    /// Writes an item that is neither a message nor reasoning. Functions and custom tools have one piece.
    fn call(&mut self, at: usize, item: &Value) {
        let (member, name) = match item["type"].as_str() {
            Some("function_call") => ("arguments", "response.function_call_arguments"),
            Some("custom_tool_call") => ("input", "response.custom_tool_call_input"),
            _ => ("", ""),
        };
        let mut begun = item.clone();
        if !member.is_empty() {
            begun[member] = "".into();
        }
        self.event("response.output_item.added", &json!({"output_index": at, "item": begun}));
        if !member.is_empty() {
            let place = json!({"item_id": item["id"], "output_index": at});
            let with = |name: &str| {
                let mut event = place.clone();
                event[name] = item[member].clone();
                event
            };
            self.event(&format!("{name}.delta"), &with("delta"));
            self.event(&format!("{name}.done"), &with(member));
        }
        self.event("response.output_item.done", &json!({"output_index": at, "item": item}));
    }

    fn part(&mut self, at: usize, item: &Value, index: usize, part: &Value) -> Option<()> {
        let is_message = item["type"] == "message";
        let (place, begin, text) = if is_message {
            ("content_index", "response.content_part", "response.output_text")
        } else {
            ("summary_index", "response.reasoning_summary_part", "response.reasoning_summary_text")
        };
        let own = |members: Value| {
            let mut own = json!({"item_id": item["id"], "output_index": at, place: index});
            for (name, value) in members.as_object().into_iter().flatten() {
                own[name.as_str()] = value.clone();
            }
            own
        };
        let (member, text) = if part["type"] == "refusal" { ("refusal", "response.refusal") } else { ("text", text) };
        let words = part[member].as_str()?;
        let mut empty = part.clone();
        empty[member] = "".into();
        self.event(&format!("{begin}.added"), &own(json!({"part": empty})));
        let odds = part["logprobs"].as_array().cloned().unwrap_or_default();
        let with_odds = |mut members: Value| {
            if is_message && member == "text" {
                members["logprobs"] = odds.clone().into();
            }
            members
        };
        self.event(&format!("{text}.delta"), &own(with_odds(json!({"delta": words}))));
        self.event(&format!("{text}.done"), &own(with_odds(json!({member: words}))));
        self.event(&format!("{begin}.done"), &own(json!({"part": part})));
        Some(())
    }
}
