//! The segments of a prompt in any dialect, as hashes: the tools, the instructions and the turns. One pass over the body
//! finds them, without a copy of its texts.
//!
//! The form of a content is not part of a hash, nor are marks for the provider's cache: a client that marks its newest
//! message sends it as a list, and on the next turn as a text.

use fairlead_core::json::Name;
use fairlead_core::strategy::identity;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserializer;

/// The beginning of a block that Claude Code adds to its instructions. It differs in each request.
const BILLING: &str = "x-anthropic-billing-header:";

/// A hash that is continued. It takes eight bytes at a time, because prompts are long, and is the same in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub fn value(self) -> u64 {
        self.0
    }

    fn add(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(word.try_into().map_or(0, u64::from_le_bytes));
        }
        let rest = words.remainder().iter().rev().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        self.mix(rest);
        // The length separates this text from the next one.
        self.mix(bytes.len() as u64);
    }

    fn mix(&mut self, word: u64) {
        // The two halves of a 128-bit product, as in wyhash.
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// The segments of a prompt.
#[derive(Debug, Clone, Default)]
pub struct Segments {
    pub tools: Digest,
    pub system: Digest,
    /// The hash of the first turn alone.
    pub first: Option<u64>,
    /// For each turn, the hash of the conversation up to its end.
    pub turns: Vec<u64>,
    all: Digest,
    /// The caller's key for the provider's cache.
    key: Option<String>,
}

impl Segments {
    /// Reads a body. `None` if it is not an object with a conversation, or another kind of input.
    pub fn of(body: &[u8]) -> Option<Self> {
        let mut segments = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        deserializer.deserialize_map(Body(&mut segments)).ok()?;
        Some(segments)
    }

    /// The identity for the provider's prompt cache: the caller's cache key, or else the beginning of the conversation
    /// up to and including the first message of the user. Different callers have different identities.
    pub fn opening(&self, caller: &str) -> u64 {
        if let Some(key) = &self.key {
            return identity(&[caller, key]);
        }
        let (system, first) = (self.system.0.to_string(), self.first.unwrap_or_default().to_string());
        identity(&[caller, &system, &first])
    }

    /// Adds a message. Instructions before the first turn are part of the system prompt.
    fn add(&mut self, role: Option<&str>, hash: Digest) {
        if self.turns.is_empty() && matches!(role, Some("system" | "developer")) {
            self.system.add(&hash.0.to_le_bytes());
            return;
        }
        self.first.get_or_insert(hash.0);
        self.all.add(&hash.0.to_le_bytes());
        self.turns.push(self.all.0);
    }
}

/// Visits the members of the body.
struct Body<'s>(&'s mut Segments);

impl<'de> Visitor<'de> for Body<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let segments = self.0;
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            match &*name {
                "tools" | "functions" => map.next_value_seed(Hash(&mut segments.tools))?,
                "system" | "instructions" | "systemInstruction" | "system_instruction" => {
                    map.next_value_seed(Hash(&mut segments.system))?;
                }
                "prompt_cache_key" => {
                    segments.key = map.next_value::<Option<Name<'de>>>()?.map(|key| key.0.into_owned());
                }
                "messages" | "contents" | "input" => map.next_value_seed(Turns(segments))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Visits the list of messages. In responses it can be a single text.
struct Turns<'s>(&'s mut Segments);

impl<'de> DeserializeSeed<'de> for Turns<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Turns<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list or a text")
    }
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        let mut hash = Digest::default();
        hash.add(text.as_bytes());
        self.0.add(Some("user"), hash);
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Turn(self.0))?.is_some() {}
        Ok(())
    }
}

/// Visits one message.
struct Turn<'s>(&'s mut Segments);

impl<'de> DeserializeSeed<'de> for Turn<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Turn<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message or a text")
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        Turns(self.0).visit_str(text)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut role, mut hash) = (None, Digest::default());
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            match &*name {
                "role" => role = Some(map.next_value::<Name<'de>>()?.0),
                name if is_passed(name) => drop(map.next_value::<IgnoredAny>()?),
                _ => map.next_value_seed(Hash(&mut hash))?,
            }
        }
        hash.add(role.as_deref().unwrap_or_default().as_bytes());
        self.0.add(role.as_deref(), hash);
        Ok(())
    }
}

/// Whether a member is not part of the prompt: the form of a content, and marks for the cache, which move.
fn is_passed(name: &str) -> bool {
    matches!(name, "type" | "cache_control")
}

/// Hashes the texts and numbers of any value.
struct Hash<'h>(&'h mut Digest);

impl<'de> DeserializeSeed<'de> for Hash<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hash<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if !text.trim_start().starts_with(BILLING) {
            self.0.add(text.as_bytes());
        }
        Ok(())
    }
    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.0.add(&[u8::from(flag)]);
        Ok(())
    }
    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.0.add(&number.to_le_bytes());
        Ok(())
    }
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.add(&number.to_le_bytes());
        Ok(())
    }
    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.add(&number.to_le_bytes());
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Hash(self.0))?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            if is_passed(&name) {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Hash(self.0))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn segments(body: &Value) -> Segments {
        Segments::of(body.to_string().as_bytes()).expect("a conversation")
    }

    #[test]
    fn a_longer_conversation_begins_with_the_shorter_one() {
        let one = segments(&json!({"system": "s", "messages": [{"role": "user", "content": "a"}]}));
        let two = segments(&json!({"system": "s", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": "b"}
        ]}));
        assert_eq!((one.system, one.tools, one.first), (two.system, two.tools, two.first));
        assert_eq!(one.turns, two.turns[..1]);
        let edited =
            segments(&json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "b"}]}));
        assert!(edited.turns.iter().all(|turn| !two.turns.contains(turn)), "each hash covers everything before it");
    }

    #[test]
    fn segments_differ_by_themselves() {
        let body = |system: &str, tool: &str| {
            segments(&json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": "a"}],
                "tools": [{"type": "function", "function": {"name": tool}}]}))
        };
        let (one, tools, system) = (body("s", "f"), body("s", "g"), body("t", "f"));
        assert_eq!((one.system, &one.turns), (tools.system, &tools.turns));
        assert_ne!(one.tools, tools.tools);
        assert_eq!((one.tools, &one.turns), (system.tools, &system.turns));
        assert_ne!(one.system, system.system);
    }

    #[test]
    fn every_dialect_has_turns() {
        for body in [
            json!({"input": "a"}),
            json!({"input": [{"role": "developer", "content": "s"}, {"role": "user", "content": "a"}]}),
            json!({"contents": [{"parts": [{"text": "a"}]}]}),
        ] {
            assert_eq!(segments(&body).turns.len(), 1, "{body}");
        }
        assert_eq!(segments(&json!({"input": ["a", "b"]})).turns.len(), 2);
        assert!(segments(&json!({"prompt": "a"})).first.is_none());
        assert!(Segments::of(b"[]").is_none());
    }

    #[test]
    fn a_conversation_begins_in_the_same_way_on_every_turn() {
        let first = segments(&json!({"system": [
            {"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        ], "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ]}));
        let second = segments(&json!({"system": [
            {"type": "text", "text": "x-anthropic-billing-header: cch=2;"},
            {"type": "text", "text": "Be brief."}
        ], "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}
        ]}));
        assert_eq!(first.opening("key"), second.opening("key"));
        assert_ne!(first.opening("key"), first.opening("other"));
        let other = segments(&json!({"system": "Be brief.", "messages": [{"role": "user", "content": "hi!"}]}));
        assert_ne!(first.opening("key"), other.opening("key"));
        let named = segments(&json!({"prompt_cache_key": "k", "input": "a"}));
        assert_eq!(named.opening("key"), identity(&["key", "k"]));
    }
}
