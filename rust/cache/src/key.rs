//! The cache key: a digest of everything that can change the answer to a request.
//!
//! Two bodies that differ only in white space, the order of members or the spelling of numbers have the same key.
//! `model`, `stream` and `stream_options` are not included: the model is represented by the targets it resolves to, and
//! a plain answer and a stream are stored separately. The *partition* is the digest without the last user turn. Only
//! turns within one partition are compared by meaning.

use ring::digest::{Context, SHA256};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::Deserializer;
use std::fmt;

/// SHA-256 of a request, or of everything but its last turn.
pub type Digest = [u8; 32];

/// Longer questions are not compared by meaning, because a mean over many words says little.
pub const MAX_QUESTION_BYTES: usize = 2_000;

/// Members that do not change the content of the answer.
const APART: [&str; 3] = ["model", "stream", "stream_options"];
/// A larger integer may have lost digits when it was parsed.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The member that holds the turns in a dialect's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// `messages`: chat completions and Anthropic Messages.
    Messages,
    /// `input`: OpenAI Responses.
    Input,
    /// `contents`: Gemini's generateContent.
    Contents,
}

impl Turns {
    fn member(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Input => "input",
            Self::Contents => "contents",
        }
    }
}

/// Everything but the body that an answer depends on: the caller and the model. Every part goes into the key.
#[derive(Debug, Clone, Copy)]
pub struct KeyScope<'a> {
    /// Kind and id of the principal.
    pub principal: &'a str,
    /// The route as in the table, which determines the dialect.
    pub route: &'a str,
    /// The targets that the model's name resolves to: an alias, a combo with its steps, or connections.
    pub model: &'a str,
    pub turns: Turns,
    /// Headers that can change the answer.
    pub headers: &'a [&'a [u8]],
}

/// The cache identity of a request: the exact key, and the question to compare by meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    pub key: Digest,
    /// With the text of the last user turn. `None` if that turn is not plain text, or is too long.
    pub question: Option<Question>,
    /// `temperature` is 0.
    pub is_deterministic: bool,
    /// The request needs something that a cached answer cannot provide: several answers, an answer stored by the
    /// provider, web access.
    pub is_unfit: bool,
}

/// The last user turn, and the partition in which it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub partition: Digest,
    pub text: String,
}

/// Computes the fingerprint of a body. Returns `None` if the body is ambiguous (a duplicate member, a number that loses
/// digits, too deep); it is not cached then.
pub fn fingerprint(scope: &KeyScope<'_>, body: &[u8]) -> Option<Fingerprint> {
    let Canon::Object(members) = parse(body)? else { return None };
    let of = |name: &str| member(&members, name);
    let temperature = match scope.turns {
        Turns::Contents => config(&members).and_then(|config| config.member("temperature")),
        _ => of("temperature"),
    };
    let is_deterministic = matches!(temperature, Some(Canon::Plain(text)) if text == "0");
    let is_unfit = is_unfit(scope.turns, &members);
    let (before_last, last) = split_last_turn(scope.turns, of(scope.turns.member())?)?;
    let mut rest = Vec::with_capacity(body.len());
    let is_turns = |name: &str| name == scope.turns.member();
    for (name, value) in members.iter().filter(|(name, _)| !APART.contains(&name.as_str()) && !is_turns(name)) {
        write_text(name, &mut rest);
        value.write(&mut rest);
    }
    let mut before = Vec::with_capacity(body.len());
    for turn in before_last {
        turn.write(&mut before);
    }
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
    Some(Fingerprint { key, question, is_deterministic, is_unfit })
}

fn member<'m>(members: &'m [(String, Canon)], name: &str) -> Option<&'m Canon> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Gemini's generation settings, in either spelling.
fn config(members: &[(String, Canon)]) -> Option<&Canon> {
    member(members, "generationConfig").or_else(|| member(members, "generation_config"))
}

/// Whether the body requests something that a cached answer cannot provide.
fn is_unfit(turns: Turns, members: &[(String, Canon)]) -> bool {
    let of = |name: &str| member(members, name);
    match turns {
        Turns::Messages => {
            of("n").is_some_and(|n| !n.is_one())
                || of("store").is_some_and(Canon::is_true)
                || of("web_search_options").is_some()
        }
        // A request that stores its response must reach the provider again. The answer of one that continues an earlier
        // response depends on content outside the body.
        Turns::Input => {
            of("background").is_some_and(Canon::is_true)
                || ["conversation", "previous_response_id", "prompt"]
                    .iter()
                    .any(|name| of(name).is_some_and(Canon::is_set))
                || of("tools").is_some_and(|tools| {
                    !tools.all(|tool| tool.member("type").and_then(Canon::text).is_some_and(is_own_tool))
                })
        }
        Turns::Contents => {
            let count = |config: &Canon| {
                let count = config.member("candidateCount").or_else(|| config.member("candidate_count"));
                count.is_some_and(|count| !count.is_one())
            };
            config(members).is_some_and(count)
                || ["cachedContent", "cached_content"].iter().any(|name| of(name).is_some_and(Canon::is_set))
                || of("tools").is_some_and(|tools| !tools.all(Canon::is_declaration))
        }
    }
}

/// The turns before the last one, and the last one. `None` if there are no turns.
fn split_last_turn(turns: Turns, value: &Canon) -> Option<(&[Canon], &Canon)> {
    match value {
        Canon::Array(list) => {
            let (last, before) = list.split_last()?;
            Some((before, last))
        }
        // A single text is the whole conversation.
        Canon::Text(_) if turns == Turns::Input => Some((&[], value)),
        _ => None,
    }
}

/// SHA-256 over length-prefixed parts, so that no two lists of parts give the same input.
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

/// JSON in a canonical form.
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

    fn is_one(&self) -> bool {
        matches!(self, Self::Plain(text) if text == "1" || text == "null")
    }

    fn is_true(&self) -> bool {
        matches!(self, Self::Plain(text) if text == "true")
    }

    fn is_set(&self) -> bool {
        !matches!(self, Self::Plain(text) if text == "null")
    }

    /// Whether the condition holds for every element of a list. It holds for an absent value.
    fn all(&self, is_so: impl Fn(&Self) -> bool) -> bool {
        match self {
            Self::Array(values) => values.iter().all(is_so),
            other => !other.is_set(),
        }
    }

    /// Whether this is a Gemini tool that the caller runs itself.
    fn is_declaration(&self) -> bool {
        let Self::Object(members) = self else { return false };
        members.iter().all(|(name, _)| name == "functionDeclarations" || name == "function_declarations")
    }

    /// The text of a user turn that consists of only a role and one text.
    fn question(&self) -> Option<&str> {
        let members = match self {
            Self::Object(members) => members,
            // The whole `input`.
            Self::Text(text) => return Some(text),
            _ => return None,
        };
        let is_message = self.member("type").is_none_or(|kind| kind.text() == Some("message"));
        let more = usize::from(self.member("type").is_some());
        let is_bare = is_message && members.len() == 2 + more && self.member("role")?.text()? == "user";
        let content = self.member("content").or_else(|| self.member("parts"));
        match content.filter(|_| is_bare)? {
            Self::Text(text) => Some(text),
            Self::Array(parts) => match parts.as_slice() {
                [part @ Self::Object(members)] => {
                    let kind = part.member("type").map(Self::text);
                    let is_text = kind.is_none_or(|kind| matches!(kind, Some("text" | "input_text")));
                    let is_alone = members.len() == 1 + usize::from(kind.is_some());
                    part.member("text").filter(|_| is_text && is_alone)?.text()
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether this is an OpenAI Responses tool that the caller runs itself.
fn is_own_tool(kind: &str) -> bool {
    matches!(kind, "function" | "custom")
}

/// Writes a text prefixed with its length, so that its end is unambiguous.
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
        // 1.0 equals 1, and -0.0 equals 0.
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
