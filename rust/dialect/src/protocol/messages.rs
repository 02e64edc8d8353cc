//! Messages requests as Amazon Bedrock's `InvokeModel` and Vertex AI's `rawPredict` accept them. The URL names the
//! model, and the body names the version of the API instead of a header.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use fairlead_core::json::{self, Value, MAX_DEPTH};

use crate::fit::{member_at, with_comma};
use crate::translate::SentRequest;
use crate::Pieces;

/// The members that both clouds reject, apart from `model`: each has its own service tiers and regions.
const REFUSED: [&str; 2] = ["service_tier", "inference_geo"];

/// The beta features of Claude on Bedrock, by the names of Anthropic's own API, with Bedrock's names. Bedrock answers 400
/// to a request with any other.
const BEDROCK_BETAS: &[(&str, &str)] = &[
    ("advanced-tool-use-2025-11-20", "tool-search-tool-2025-10-19"),
    ("compact-2026-01-12", "compact-2026-01-12"),
    ("computer-use-2024-10-22", "computer-use-2024-10-22"),
    ("computer-use-2025-01-24", "computer-use-2025-01-24"),
    ("computer-use-2025-11-24", "computer-use-2025-11-24"),
    ("context-1m-2025-08-07", "context-1m-2025-08-07"),
    ("context-management-2025-06-27", "context-management-2025-06-27"),
    ("dangerous-tool-use-2026-09-03", "dangerous-tool-use-2026-09-03"),
    ("dev-full-thinking-2025-05-14", "dev-full-thinking-2025-05-14"),
    ("effort-2025-11-24", "effort-2025-11-24"),
    ("fine-grained-tool-streaming-2025-05-14", "fine-grained-tool-streaming-2025-05-14"),
    ("interleaved-thinking-2025-05-14", "interleaved-thinking-2025-05-14"),
    ("mid-conversation-output-config-2026-07-01", "mid-conversation-output-config-2026-07-01"),
    ("mid-conversation-tool-changes-2026-07-01", "mid-conversation-tool-changes-2026-07-01"),
    ("output-128k-2025-02-19", "output-128k-2025-02-19"),
    ("thinking-binding-controls-2026-08-01", "thinking-binding-controls-2026-08-01"),
    ("thinking-display-updates-2026-08-18", "thinking-display-updates-2026-08-18"),
    ("token-efficient-tools-2025-02-19", "token-efficient-tools-2025-02-19"),
    ("tool-examples-2025-10-29", "tool-examples-2025-10-29"),
    ("tool-search-tool-2025-10-19", "tool-search-tool-2025-10-19"),
];

/// The body for `rawPredict`. It keeps `stream`, as Anthropic's own client does.
pub(super) fn at_vertex(sent: SentRequest) -> SentRequest {
    rewritten(sent, &["model"], r#""anthropic_version":"vertex-2023-10-16""#)
}

/// The body for `InvokeModel`. The caller's beta features are a member of the body.
pub(super) fn at_bedrock(sent: SentRequest, betas: Option<&str>) -> SentRequest {
    let mut members = r#""anthropic_version":"bedrock-2023-05-31""#.to_owned();
    let mut unknown = false;
    // The names come from the list above and need no escapes.
    let mut known: Vec<String> = Vec::new();
    for beta in betas.into_iter().flat_map(|list| list.split(',')).map(str::trim).filter(|beta| !beta.is_empty()) {
        match BEDROCK_BETAS.iter().find(|(own, _)| *own == beta) {
            Some((_, theirs)) => known.push(format!("\"{theirs}\"")),
            None => unknown = true,
        }
    }
    known.dedup();
    if !known.is_empty() {
        members.extend([r#","anthropic_beta":["#, &known.join(","), "]"]);
    }
    let mut sent = rewritten(sent, &["model", "stream"], &members);
    if unknown {
        sent.left_out.push("anthropic-beta".to_owned());
    }
    sent
}

/// Removes members that the cloud rejects, and inserts others at the start of the body.
fn rewritten(sent: SentRequest, silently: &[&str], members: &str) -> SentRequest {
    const WANTED: [&str; 5] = ["model", "stream", "anthropic_version", REFUSED[0], REFUSED[1]];
    let SentRequest { pieces, mut left_out, tool_names } = sent;
    let body: Bytes = match &pieces[..] {
        [whole] => whole.clone(),
        parts => parts.concat().into(),
    };
    // The body was written by the gateway or has been scanned, so the scan does not fail.
    let Ok(scan) = json::scan_object(&body, &WANTED, MAX_DEPTH) else {
        return SentRequest { pieces, left_out, tool_names };
    };
    let mut cuts: Vec<Range<usize>> = Vec::new();
    for name in WANTED {
        let Some(value) = scan.get(name) else { continue };
        let is_refused = REFUSED.contains(&name);
        if name == "anthropic_version" || is_refused || silently.contains(&name) {
            if is_refused && !value.is_null() {
                left_out.push(name.to_owned());
            }
            cuts.extend(cut(&body, value));
        }
    }
    cuts.sort_by_key(|cut| cut.start);
    SentRequest { pieces: spliced(&body, &cuts, members), left_out, tool_names }
}

/// The span of a member and one comma beside it.
fn cut(body: &[u8], value: Value) -> Option<Range<usize>> {
    member_at(body, value).map(|member| with_comma(body, member))
}

/// Returns the body without the spans, which are sorted, and with `members` at its start.
fn spliced(body: &Bytes, cuts: &[Range<usize>], members: &str) -> Pieces {
    let Some(brace) = body.iter().position(|&byte| byte == b'{') else { return Pieces::from_iter([body.clone()]) };
    let mut rest = Pieces::new();
    let mut from = brace + 1;
    for cut in cuts {
        if cut.start < from {
            // The comma before this last member was cut with its neighbour, so the one before both has to go.
            if let Some(before) = rest.last_mut() {
                let end = before.trim_ascii_end().strip_suffix(b",").map_or(before.len(), <[u8]>::len);
                before.truncate(end);
            }
        } else {
            rest.push(body.slice(from..cut.start));
        }
        from = cut.end.max(from);
    }
    rest.push(body.slice(from..));
    rest.retain(|piece| !piece.is_empty());
    let next = rest.iter().flat_map(|piece| piece.iter()).find(|byte| !byte.is_ascii_whitespace());
    let mut head = BytesMut::with_capacity(members.len() + 2);
    head.extend_from_slice(b"{");
    head.extend_from_slice(members.as_bytes());
    if !matches!(next, Some(b'}' | b',')) {
        head.extend_from_slice(b",");
    }
    rest.insert(0, head.freeze());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value as Json};

    fn sent(body: &str) -> SentRequest {
        let (first, second) = body.split_at(body.len() / 2);
        let pieces = [first, second].map(|part| Bytes::copy_from_slice(part.as_bytes()));
        SentRequest { pieces: Pieces::from_iter(pieces), ..SentRequest::default() }
    }

    fn read(sent: &SentRequest) -> Json {
        serde_json::from_slice(&sent.pieces.concat()).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&sent.pieces.concat()));
        })
    }

    #[test]
    fn vertex_gets_the_version_in_the_body_and_the_model_in_the_url() {
        for body in [
            r#"{"model":"claude","messages":[],"stream":true}"#,
            r#"{ "messages":[], "stream" : true , "model" : "claude" }"#,
            r#"{"service_tier":"auto","model":"claude","inference_geo":"us","messages":[],"stream":true}"#,
            r#"{"messages":[],"stream":true,"anthropic_version":"x","model":"claude"}"#,
        ] {
            let expected = json!({"anthropic_version": "vertex-2023-10-16", "messages": [], "stream": true});
            assert_eq!(read(&at_vertex(sent(body))), expected, "{body}");
        }
        let left_out = at_vertex(sent(r#"{"model":"m","service_tier":"auto","messages":[]}"#)).left_out;
        assert_eq!(left_out, ["service_tier"]);
    }

    #[test]
    fn bedrock_gets_neither_model_nor_stream() {
        for body in [
            r#"{"model":"claude","stream":true,"messages":[]}"#,
            r#"{"messages":[],"model":"claude","stream":true}"#,
            r#"{"model":"claude","messages":[],"stream":true}"#,
        ] {
            let expected = json!({"anthropic_version": "bedrock-2023-05-31", "messages": []});
            assert_eq!(read(&at_bedrock(sent(body), None)), expected, "{body}");
        }
        let expected = json!({"anthropic_version": "bedrock-2023-05-31"});
        assert_eq!(read(&at_bedrock(sent(r#"{"model":"claude","stream":true}"#), None)), expected);
    }

    #[test]
    fn bedrock_gets_the_beta_features_that_it_has() {
        let body = r#"{"model":"claude","messages":[]}"#;
        let betas = "claude-code-20250219, interleaved-thinking-2025-05-14,context-1m-2025-08-07";
        let written = at_bedrock(sent(body), Some(betas));
        let expected = json!(["interleaved-thinking-2025-05-14", "context-1m-2025-08-07"]);
        assert_eq!(read(&written)["anthropic_beta"], expected);
        assert_eq!(written.left_out, ["anthropic-beta"]);
        assert!(at_bedrock(sent(body), Some("effort-2025-11-24")).left_out.is_empty());
    }
}
