//! Edits chat completions that pass through to a provider of their dialect, where the model would reject them.

use bytes::Bytes;
use fairlead_core::json::{self, Kind, MAX_DEPTH};
use fairlead_core::ModelFacts;

use crate::accepted::can_switch_off;
use crate::fit::{insert, Edits};
use crate::left_out::LeftOut;
use crate::moved_turns;
use crate::openai::request::ChatRequest;

/// Returns the further edits to a chat completion.
pub(crate) fn edits(body: &[u8], read: &ChatRequest, facts: &ModelFacts, edits: &mut Edits, left_out: &mut LeftOut) {
    moved_turns::edits(body, facts, edits);
    switch_off_for_tools(body, facts, edits, left_out);
    if !read.stream {
        stream_for_reasoning(body, facts, edits);
    }
    edits.sort_by_key(|(span, _)| span.start);
}

/// Disables reasoning in a request with tools, where the model accepts tools only without reasoning.
fn switch_off_for_tools(body: &[u8], facts: &ModelFacts, edits: &mut Edits, left_out: &mut LeftOut) {
    if facts.tools_need_thinking_off != Some(true) || !can_switch_off(facts) {
        return;
    }
    let Ok(scan) = json::scan_object(body, &["tools", "reasoning_effort"], MAX_DEPTH) else { return };
    if !scan.get("tools").is_some_and(|tools| tools.kind == Kind::Array && tools.elements > 0) {
        return;
    }
    let none = || Bytes::from_static(b"\"none\"");
    match scan.get("reasoning_effort") {
        Some(effort) if !effort.is_null() => {
            if json::as_str(body, effort).is_some_and(|effort| effort != "none") {
                edits.push((effort.span(), none()));
                left_out.hint("reasoning_effort");
            }
        }
        _ if facts.thinks_by_default != Some(true) => {}
        Some(null) => edits.push((null.span(), none())),
        None => insert(body, r#""reasoning_effort":"none""#, edits),
    }
}

/// Asks for a stream, where the model reasons only in streams. The gateway returns a complete answer.
fn stream_for_reasoning(body: &[u8], facts: &ModelFacts, edits: &mut Edits) {
    if facts.thinking_needs_stream != Some(true) {
        return;
    }
    let wanted = ["stream", "stream_options", "enable_thinking"];
    let Ok(scan) = json::scan_object(body, &wanted, MAX_DEPTH) else { return };
    let switch = scan.get("enable_thinking").filter(|value| !value.is_null());
    if !switch.map_or(facts.thinks_by_default == Some(true), |value| value.as_bool() == Some(true)) {
        return;
    }
    match scan.get("stream") {
        Some(value) => edits.push((value.span(), Bytes::from_static(b"true"))),
        None => insert(body, r#""stream":true"#, edits),
    }
    if scan.get("stream_options").is_none() {
        insert(body, r#""stream_options":{"include_usage":true}"#, edits);
    }
}
