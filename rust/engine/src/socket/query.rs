//! The query of `/v1/realtime?model=...`: reads the model, and encodes a name for a provider's query.

use fairlead_core::{Error, ErrorKind};
use std::fmt::Write as _;

/// Returns the model in the query, which must occur exactly once.
pub fn model_of(query: &[u8]) -> Result<String, Error> {
    let missing = || {
        Error::client(ErrorKind::InvalidRequest, "`model` is required: ask for `/v1/realtime?model=...`.")
            .about("model")
    };
    let query = std::str::from_utf8(query).map_err(|_| missing())?;
    let mut found = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).ok_or_else(missing)?;
        if name != "model" && name.trim_matches('\0').trim().eq_ignore_ascii_case("model") {
            let message = "The query's `model` is written in lower case and without blanks.";
            return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
        }
        if name == "model" && found.replace(value).is_some() {
            let message = "The query names `model` twice; name it once.";
            return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
        }
    }
    decode(found.ok_or_else(missing)?).ok_or_else(missing)
}

/// Decodes a value of a query; `None` if its escapes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Escapes all characters that are not allowed in a value of a query.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stands_in_the_query() {
        assert_eq!(model_of(b"a=1&model=openai%2Fgpt-realtime").ok().as_deref(), Some("openai/gpt-realtime"));
        for bad in [
            "",
            "models=x",
            "model=%zz",
            "model=%ff",
            "model=a/b&model=a/c",
            "model=a/b&%6dodel=a/c",
            "model=a/b&Model=a/c",
            "+model=a/b&model=a/c",
        ] {
            assert!(model_of(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(encode("a/b c"), "a%2Fb%20c");
    }
}
