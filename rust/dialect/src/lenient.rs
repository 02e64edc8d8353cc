//! A provider's JSON that strict parsers refuse and most others read: half of a pair of surrogates, and a member that comes twice.
//!
//! Requests are held to the strict reading, since rules are decided on it. An answer is there and paid for: it is read as most
//! clients would read it themselves. Only what strict parsers have refused comes here, so other answers cost nothing.

use serde_json::Value;

use crate::text::without_halves;

/// Reads `json`; where that fails, the same with U+FFFD for halves of pairs; where that fails, of members of one name the last.
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

/// The value of any JSON; `None` for what is none.
pub(crate) fn value(json: &[u8]) -> Option<Value> {
    read(json, |json| serde_json::from_slice(json)).ok()
}

/// The JSON without halves of pairs, where it has any.
fn with_whole_characters(json: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(json).ok()?;
    let whole = without_halves(text);
    (whole != text).then(|| whole.into_bytes())
}

/// The JSON with one member of each name.
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
