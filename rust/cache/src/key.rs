//! What makes two requests the same: a digest over everything that can change the answer.
//!
//! Two bodies that say the same in other white space, another order of members or another spelling of a number have one
//! key. `model`, `stream` and `stream_options` are not part of it: the model is named by what it resolves to, and an answer
//! is kept for both ways of asking for it. The *partition* is the same digest without the last user turn; only within it
//! are turns ever compared by meaning.

use ring::digest::{Context, SHA256};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::Deserializer;
use std::fmt;

/// SHA-256 of a request, or of all of it but its last turn.
pub type Digest = [u8; 32];

/// A longer question is not compared by meaning: the mean of many words means nothing.
pub const MAX_QUESTION_BYTES: usize = 2_000;

/// Members that do not change what the answer says.
const APART: [&str; 3] = ["model", "stream", "stream_options"];
/// A whole number above this may have lost digits when it was read.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// What is asked, beside the body, by whom and of what. Every part goes into the key.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Kind and id of the principal.
    pub principal: &'a str,
    /// The route as in the table: it says the dialect.
    pub route: &'a str,
    /// What the model resolves to: alias, combo with its steps, places that serve it.
    pub model: &'a str,
    /// Headers that can change the answer.
    pub headers: &'a [&'a [u8]],
}

/// What a body asks for, as far as a cache is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub key: Digest,
    /// With the text of the last user turn; `None` where that turn is not plain text, or is long.
    pub question: Option<Question>,
    /// `temperature` is the number 0.
    pub is_deterministic: bool,
    /// The body asks for what a kept answer cannot give: several answers, an answer that is stored elsewhere, the web.
    pub is_unfit: bool,
}

/// The last user turn, and what it may be compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub partition: Digest,
    pub text: String,
}

/// Reads a body. `None`: it has no one meaning (a member twice, a number without all its digits, too deep) and is not cached.
pub fn read(scope: &Scope<'_>, body: &[u8]) -> Option<Asked> {
    let Canon::Object(members) = parse(body)? else { return None };
    let of = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let is_deterministic = matches!(of("temperature"), Some(Canon::Plain(text)) if text == "0");
    let is_one = |value: &Canon| matches!(value, Canon::Plain(text) if text == "1" || text == "null");
    let is_unfit = of("n").is_some_and(|n| !is_one(n))
        || matches!(of("store"), Some(Canon::Plain(text)) if text == "true")
        || of("web_search_options").is_some();
    let (turns, last) = match of("messages") {
        Some(Canon::Array(turns)) => (turns.as_slice(), turns.last()?),
        _ => return None,
    };
    let mut rest = Vec::with_capacity(body.len());
    for (name, value) in members.iter().filter(|(name, _)| !APART.contains(&name.as_str()) && name != "messages") {
        write_text(name, &mut rest);
        value.write(&mut rest);
    }
    let mut before = Vec::with_capacity(body.len());
    turns[..turns.len() - 1].iter().for_each(|turn| turn.write(&mut before));
    let mut turn = Vec::new();
    last.write(&mut turn);
    let mut parts = vec![b"fairlead cache 1".as_slice(), scope.principal.as_bytes(), scope.route.as_bytes()];
    parts.push(scope.model.as_bytes());
    parts.extend_from_slice(scope.headers);
    parts.extend([rest.as_slice(), before.as_slice()]);
    let partition = digest(&parts);
    let key = digest(&[&partition, &turn]);
    let question = last.question().filter(|text| text.len() <= MAX_QUESTION_BYTES && !text.trim().is_empty());
    let question = question.map(|text| Question { partition, text: text.to_owned() });
    Some(Asked { key, question, is_deterministic, is_unfit })
}

/// SHA-256 over parts that cannot run into each other.
pub fn digest(parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// JSON in the one way in which each value is written.
#[derive(Debug)]
enum Canon {
    /// Null, a boolean or a number.
    Plain(String),
    Text(String),
    Array(Vec<Canon>),
    /// Sorted by name.
    Object(Vec<(String, Canon)>),
}

impl Canon {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(text) => write_text(text, out),
            Self::Array(values) => {
                out.push(b'[');
                for value in values {
                    value.write(out);
                    out.push(b',');
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (name, value) in members {
                    write_text(name, out);
                    value.write(out);
                    out.push(b',');
                }
                out.push(b'}');
            }
        }
    }

    fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a user's turn that has nothing but a role and one text.
    fn question(&self) -> Option<&str> {
        let Self::Object(members) = self else { return None };
        let is_bare = members.len() == 2 && self.member("role")?.text()? == "user";
        match self.member("content").filter(|_| is_bare)? {
            Self::Text(text) => Some(text),
            Self::Array(parts) => match parts.as_slice() {
                [part @ Self::Object(members)] if members.len() == 2 => {
                    part.member("type").and_then(Self::text).filter(|kind| *kind == "text")?;
                    part.member("text")?.text()
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Its length goes before it, so that no text can end early.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(text.as_bytes());
}

fn parse(body: &[u8]) -> Option<Canon> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Seed.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Canon;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Canon, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Canon;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Canon, E> {
        Ok(Canon::Plain("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Canon, E> {
        Ok(Canon::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Canon, E> {
        Ok(Canon::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Canon, E> {
        Ok(Canon::Plain(value.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Canon, E> {
        if value.abs() >= MAX_EXACT {
            return Err(E::custom("a number without all its digits"));
        }
        // 1.0 is 1, and -0.0 is 0.
        let text = if value.fract() == 0.0 { (value as i64).to_string() } else { value.to_string() };
        Ok(Canon::Plain(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Canon, E> {
        Ok(Canon::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Canon, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element_seed(Seed)? {
            values.push(value);
        }
        Ok(Canon::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Canon, A::Error> {
        let mut members: Vec<(String, Canon)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            members.push((name, map.next_value_seed(Seed)?));
        }
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(A::Error::custom("a member twice"));
        }
        Ok(Canon::Object(members))
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
