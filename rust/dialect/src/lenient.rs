//! Parses a provider's JSON that strict parsers reject and most others accept: lone surrogates and duplicate members.
//!
//! Requests are parsed strictly, because rules depend on them. A response has been paid for, so it is parsed the way
//! most clients would. Only JSON that the strict parser rejected reaches this module, so other responses cost nothing.

use serde_json::Value;

use crate::text::without_halves;

/// Parses `json`. On failure, retries with U+FFFD for lone surrogates, then with only the last of duplicate members.
pub(crate) fn read<T, E>(json: &[u8], mut read: impl FnMut(&[u8]) -> Result<T, E>) -> Result<T, E> {
    let mut outcome = read(json);
    for version in [with_whole_characters, with_single_members] {
        if outcome.is_ok() {
            break;
        }
        if let Some(json) = version(json) {
            outcome = read(&json);
        }
    }
    outcome
}

/// Parses any JSON value. Returns `None` for invalid JSON.
pub(crate) fn value(json: &[u8]) -> Option<Value> {
    read(json, |json| serde_json::from_slice(json)).ok()
}

/// Returns the JSON without lone surrogates. `None` if it has none.
fn with_whole_characters(json: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(json).ok()?;
    let whole = without_halves(text);
    (whole != text).then(|| whole.into_bytes())
}

/// Returns the JSON without duplicate members.
fn with_single_members(json: &[u8]) -> Option<Vec<u8>> {
    let whole = with_whole_characters(json);
    let value: Value = serde_json::from_slice(whole.as_deref().unwrap_or(json)).ok()?;
    serde_json::to_vec(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::json;

    #[test]
    fn what_is_strict_is_read_once() {
        let mut reads = 0;
        let outcome = read(b"{}", |json| {
            reads += 1;
            json::validate(json, 8)
        });
        assert!(outcome.is_ok());
        assert_eq!(reads, 1);
    }

    #[test]
    fn what_is_refused_is_read_as_most_would() {
        let strict = |json: &[u8]| json::scan_object(json, &[], 8).map(|_| String::from_utf8_lossy(json).into_owned());
        for (json, expected) in [
            (r#"{"b":1.50,"a":"\ud83d\\ud83d"}"#, r#"{"b":1.50,"a":"\ufffd\\ud83d"}"#),
            (r#"{"a":1,"a":{"b":2,"b":[3]}}"#, r#"{"a":{"b":[3]}}"#),
            (r#"{"a":1,"\u0061":"\ude00"}"#, "{\"a\":\"\u{fffd}\"}"),
        ] {
            assert_eq!(read(json.as_bytes(), strict).as_deref(), Ok(expected), "{json}");
        }
        for json in ["", "{", r#"{"a":1,"a":}"#, "\"\\ud8", "<html>"] {
            assert!(read(json.as_bytes(), strict).is_err(), "{json}");
            assert_eq!(value(json.as_bytes()), None, "{json}");
        }
        assert_eq!(value(br#"["\ud83d"]"#), Some(Value::from(vec!["\u{fffd}"])));
    }
}
