//! Adds the result of every target of a combo to the error that ends a stream. The error can be the provider's, passed
//! through unchanged, or the gateway's.

use bytes::Bytes;
use fairlead_core::json::{self, Kind};

use crate::openai::error::is_error;
use crate::Pieces;

/// The most braces, from the end of the list, that are tried as the start of its last element.
const MAX_BRACES: usize = 64;

/// Adds `diagnostics`, a JSON object, to the error in the last bytes of a stream. Bytes that do not end with an error,
/// or whose error has diagnostics already, are unchanged. `is_list`: the stream is a JSON array instead of events.
pub fn add_diagnostics(last: Pieces, is_list: bool, diagnostics: &str) -> Pieces {
    let whole = last.concat();
    let object = if is_list { last_element(&whole) } else { last_event(&whole) };
    let Some(brace) = object.filter(|&brace| is_open_error(&whole, brace)) else { return last };
    let (before, after) = whole.split_at(brace + 1);
    let member = format!(r#""diagnostics":{diagnostics},"#);
    Pieces::from_iter([Bytes::from([before, member.as_bytes(), after].concat())])
}

/// Returns the offset of the JSON object in the last event that has one.
fn last_event(events: &[u8]) -> Option<usize> {
    let mut end = events.len();
    for line in events.rsplit(|&byte| byte == b'\n') {
        let start = end - line.len();
        if let Some(data) = line.strip_prefix(b"data:") {
            let blanks = data.len() - data.trim_ascii_start().len();
            if data.get(blanks) == Some(&b'{') {
                return Some(start + b"data:".len() + blanks);
            }
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Returns the offset of the list's last element if that is an object. A nested object is not accepted, because bytes
/// would remain after it.
fn last_element(list: &[u8]) -> Option<usize> {
    let closed = list.trim_ascii_end().strip_suffix(b"]")?.trim_ascii_end();
    let braces = closed.iter().enumerate().rev().filter(|(_, byte)| **byte == b'{').take(MAX_BRACES);
    let is_complete = |at: usize| closed.get(at..).is_some_and(|rest| json::validate(rest, json::MAX_DEPTH).is_ok());
    braces.map(|(at, _)| at).find(|&at| is_complete(at))
}

/// Returns whether the object from `brace` to the end of its line or list is an error without diagnostics.
fn is_open_error(stream: &[u8], brace: usize) -> bool {
    let rest = stream.get(brace..).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let element = rest.trim_ascii_end().strip_suffix(b"]").unwrap_or(rest).trim_ascii_end();
    [line, element].iter().any(|object| {
        let Ok(found) = json::scan_object(object, &["error", "type", "diagnostics"], json::MAX_DEPTH) else {
            return false;
        };
        let kind =
            found.get("type").filter(|kind| kind.kind == Kind::String).and_then(|kind| json::as_str(object, kind));
        let is_failure = matches!(kind.as_deref(), Some("error" | "response.failed"));
        found.get("diagnostics").is_none() && (is_failure || found.get("error").is_some_and(is_error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn with_diagnostics(last: &str, is_list: bool) -> String {
        let pieces = Pieces::from_iter([Bytes::copy_from_slice(last.as_bytes())]);
        let stream = add_diagnostics(pieces, is_list, r#"{"poolSize":2}"#).concat();
        String::from_utf8(stream).expect("text")
    }

    #[test]
    fn the_error_that_ends_a_stream_of_events_tells_them() {
        for (last, expected) in [
            (
                "data: {\"choices\":[]}\n\ndata: {\"error\":{\"message\":\"a\"}}\n\ndata: [DONE]\n\n",
                "data: {\"choices\":[]}\n\ndata: {\"diagnostics\":{\"poolSize\":2},\"error\":{\"message\":\"a\"}}\n\ndata: [DONE]\n\n",
            ),
            (
                "event: error\r\ndata:{\"type\":\"error\",\"code\":\"x\"}\r\n\r\n",
                "event: error\r\ndata:{\"diagnostics\":{\"poolSize\":2},\"type\":\"error\",\"code\":\"x\"}\r\n\r\n",
            ),
            (
                "\n\nevent: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{}}\n\n",
                "\n\nevent: response.failed\ndata: {\"diagnostics\":{\"poolSize\":2},\"type\":\"response.failed\",\"response\":{}}\n\n",
            ),
        ] {
            assert_eq!(with_diagnostics(last, false), expected);
        }
    }

    #[test]
    fn the_error_that_ends_a_list_tells_them() {
        let error = json!({"error": {"code": 500, "message": "no {braces} \"]}", "details": [{"a": {}}]}});
        for before in ["[", ",\r\n", "[{\"candidates\":[{}]},\r\n"] {
            let list = with_diagnostics(&format!("{before}{error:#}]"), true);
            let element = list.strip_prefix(before).and_then(|rest| rest.strip_suffix(']')).expect("the element");
            let element: Value = serde_json::from_str(element).expect("JSON");
            assert_eq!((&element["error"], &element["diagnostics"]), (&error["error"], &json!({"poolSize": 2})));
        }
    }

    #[test]
    fn what_is_no_error_or_tells_them_already_stays_as_it_is() {
        for (last, is_list) in [
            ("", false),
            ("data: [DONE]\n\n", false),
            ("data: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\"\"}}],\"error\":null}\n\n", false),
            ("data: {\"error\":{\"message\":\"a\"},\"diagnostics\":{}}\n\n", false),
            ("data: {\"error\":\n\n", false),
            ("[{\"candidates\":[]}]", true),
            ("[]", true),
            ("", true),
            ("{\"error\":{}}", true),
        ] {
            assert_eq!(with_diagnostics(last, is_list), last);
        }
        let deep = format!("[{}", "{".repeat(100_000));
        assert_eq!(with_diagnostics(&format!("{deep}]"), true), format!("{deep}]"));
    }
}
