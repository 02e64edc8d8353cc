//! JSON strings that are copied from one body to another without decoding.
//!
//! Most of a conversation is text that no rule reads. It is stored as the sender's JSON token, including escapes, and
//! copied into the other dialect's body as a whole. So translation does not decode it and changes no byte of it.

use std::borrow::Cow;
use std::io::Write as _;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A text, as a token or decoded. `Debug` does not print the content.
#[derive(Clone)]
pub(crate) enum Text<'a> {
    /// A complete JSON string including its quotes.
    Token(&'a str),
    Plain(Cow<'a, str>),
}

impl<'a> Text<'a> {
    /// Returns the token if the value is a string.
    pub(crate) fn of(raw: &'a RawValue) -> Option<Self> {
        let token = raw.get();
        token.starts_with('"').then_some(Self::Token(token))
    }

    /// Returns JSON that is embedded in a string, or any other JSON unchanged.
    pub(crate) fn of_json(raw: &'a RawValue) -> Self {
        Self::of(raw).unwrap_or(Self::Plain(Cow::Borrowed(raw.get())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Token(token) => token.len() <= 2,
            Self::Plain(text) => text.is_empty(),
        }
    }

    /// Decodes the escapes. A lone surrogate, which a provider may send, becomes U+FFFD.
    pub(crate) fn decode(&self) -> Cow<'a, str> {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Token(token) => {
                let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
                if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
                    Cow::Borrowed(inner)
                } else {
                    // The token has been scanned before, so only a provider's lone surrogate can fail here.
                    let whole = serde_json::from_str::<String>(token);
                    Cow::Owned(whole.or_else(|_| serde_json::from_str(&without_halves(token))).unwrap_or_default())
                }
            }
        }
    }

    /// Appends the content of its JSON string, without the quotes.
    pub(crate) fn push_inner(&self, out: &mut Vec<u8>) {
        match self {
            Self::Token(token) => {
                let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
                out.extend_from_slice(inner.as_bytes());
            }
            Self::Plain(text) => escape(out, text),
        }
    }

    pub(crate) fn into_owned(self) -> Text<'static> {
        Text::Plain(Cow::Owned(self.decode().into_owned()))
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Text")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'a RawValue>::deserialize(deserializer)?;
        Self::of(raw).ok_or_else(|| D::Error::custom("expected a string"))
    }
}

/// Deserializes a string member. Any other type counts as absent.
pub(crate) fn if_text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text<'a>>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Text::of)
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Plain(Cow::Owned(text))
    }
}

impl From<&'static str> for Text<'static> {
    fn from(text: &'static str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }
}

/// Writes JSON sequentially and inserts the commas.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    comma: bool,
}

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), comma: false }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn lead(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.comma, true) {
            self.out.push(b',');
        }
        &mut self.out
    }

    /// Opens an object or a list.
    pub(crate) fn open(&mut self, bracket: u8) -> &mut Self {
        self.lead().push(bracket);
        self.comma = false;
        self
    }

    pub(crate) fn close(&mut self, bracket: u8) -> &mut Self {
        self.out.push(bracket);
        self.comma = true;
        self
    }

    /// `name` must not need escapes.
    pub(crate) fn key(&mut self, name: &str) -> &mut Self {
        let out = self.lead();
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        self.comma = false;
        self
    }

    /// Writes a member name from the caller's body.
    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.str(name);
        self.out.push(b':');
        self.comma = false;
        self
    }

    /// Writes any complete JSON value.
    pub(crate) fn raw(&mut self, json: &str) -> &mut Self {
        self.lead().extend_from_slice(json.as_bytes());
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        let out = self.lead();
        // Writing into memory does not fail.
        let _written = write!(out, "{number}");
        self
    }

    pub(crate) fn text(&mut self, text: &Text<'_>) -> &mut Self {
        match text {
            Text::Token(token) => self.raw(token),
            Text::Plain(text) => self.str(text),
        }
    }

    pub(crate) fn str(&mut self, text: &str) -> &mut Self {
        self.joined(&[text])
    }

    /// Writes several texts as one string.
    pub(crate) fn joined(&mut self, texts: &[&str]) -> &mut Self {
        let out = self.lead();
        out.push(b'"');
        for text in texts {
            escape(out, text);
        }
        out.push(b'"');
        self
    }

    /// Writes a string from its escaped content.
    pub(crate) fn inner(&mut self, inner: &[u8]) -> &mut Self {
        let out = self.lead();
        out.push(b'"');
        out.extend_from_slice(inner);
        out.push(b'"');
        self
    }

    /// Writes serialized members or elements that are separated by commas. `written` may be empty.
    pub(crate) fn spliced(&mut self, written: &[u8]) -> &mut Self {
        if !written.is_empty() {
            self.lead().extend_from_slice(written);
        }
        self
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    pub(crate) fn member(&mut self, name: &str, text: &Text<'_>) -> &mut Self {
        self.key(name).text(text)
    }
}

/// Replaces every lone surrogate of a JSON text by `\ufffd`.
pub(crate) fn without_halves(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (plain, escaped) = rest.split_at(at);
        out.push_str(plain);
        let length = match (unit(escaped), escaped.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = escaped.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        let (escape, after) = escaped.split_at_checked(length).unwrap_or((escaped, ""));
        out.push_str(escape);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the code unit of a text that starts with `\uXXXX`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Appends the escaped content of a JSON string.
fn escape(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied_to = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(bytes.get(copied_to..at).unwrap_or_default());
        copied_to = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                let _written = write!(out, "\\u{other:04x}");
            }
        }
    }
    out.extend_from_slice(bytes.get(copied_to..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_passes_as_it_was_written() {
        let raw: &RawValue = serde_json::from_str(r#""a\/\u00e9\n""#).expect("JSON");
        let text = Text::of(raw).expect("a string");
        let mut writer = Writer::default();
        writer.open(b'{').member("t", &text).key("n").number(3).close(b'}');
        assert_eq!(writer.take(), br#"{"t":"a\/\u00e9\n","n":3}"#);
        assert_eq!(text.decode(), "a/é\n");
    }

    #[test]
    fn half_of_a_pair_costs_nothing_of_the_rest() {
        for (token, text) in [
            (r#""a\ud83d b""#, "a\u{fffd} b"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ude00\ud83d\n""#, "\u{fffd}\u{fffd}\n"),
            (r#""\\\ud83d\ud83d\ude00\\ud83d""#, "\\\u{fffd}\u{1f600}\\ud83d"),
        ] {
            let raw: &RawValue = serde_json::from_str(token).expect("JSON");
            assert_eq!(Text::of(raw).expect("a string").decode(), text, "{token}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(first in any::<String>(), second in any::<String>()) {
            let mut writer = Writer::default();
            writer.joined(&[&first, &second]);
            let read: String = serde_json::from_slice(&writer.take()).expect("a string");
            prop_assert_eq!(read, first + &second);
        }
    }
}
