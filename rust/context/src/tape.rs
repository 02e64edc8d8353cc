//! A JSON text as a flat list of the positions of its values, built in one pass. Values that are not read cost nothing
//! but the scan.

use std::borrow::Cow;

use fairlead_core::json::{self, JsonFault, Kind, Value, MAX_DEPTH};

/// One value, and the next node after it.
#[derive(Debug, Clone, Copy)]
struct Node {
    value: Value,
    /// The index of the first node after this value and everything in it.
    next: usize,
}

/// The values of one JSON text in order. The keys of objects are nodes too. Index 0 is the whole text.
#[derive(Debug)]
pub(crate) struct Tape<'a> {
    bytes: &'a [u8],
    nodes: Vec<Node>,
}

impl<'a> Tape<'a> {
    /// Reads JSON text of any kind.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, JsonFault> {
        json::validate(bytes, MAX_DEPTH)?;
        let mut tape = Self { bytes, nodes: Vec::with_capacity(bytes.len() / 64 + 8) };
        tape.fill();
        Ok(tape)
    }

    fn fill(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => at += 1,
                b'{' | b'[' => {
                    let kind = if byte == b'{' { Kind::Object } else { Kind::Array };
                    open.push(self.nodes.len());
                    self.push(at, at + 1, kind);
                    at += 1;
                }
                b'}' | b']' => {
                    at += 1;
                    let next = self.nodes.len();
                    if let Some(node) = open.pop().and_then(|index| self.nodes.get_mut(index)) {
                        node.value.end = at;
                        node.next = next;
                    }
                }
                b'"' => {
                    let end = string_end(self.bytes, at);
                    self.push(at, end, Kind::String);
                    at = end;
                }
                _ => {
                    let rest = &self.bytes[at..];
                    let length =
                        rest.iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
                    let end = at + length.unwrap_or(rest.len());
                    let kind = match byte {
                        b't' => Kind::True,
                        b'f' => Kind::False,
                        b'n' => Kind::Null,
                        _ => Kind::Number,
                    };
                    self.push(at, end, kind);
                    at = end;
                }
            }
        }
    }

    fn push(&mut self, start: usize, end: usize, kind: Kind) {
        let next = self.nodes.len() + 1;
        self.nodes.push(Node { value: Value { start, end, kind, elements: 0 }, next });
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn kind(&self, index: usize) -> Option<Kind> {
        self.nodes.get(index).map(|node| node.value.kind)
    }

    pub(crate) fn value(&self, index: usize) -> Option<Value> {
        self.nodes.get(index).map(|node| node.value)
    }

    /// The original bytes of a value.
    pub(crate) fn raw(&self, index: usize) -> &'a [u8] {
        self.value(index).and_then(|value| self.bytes.get(value.span())).unwrap_or_default()
    }

    /// The text of a string.
    pub(crate) fn text(&self, index: usize) -> Option<Cow<'a, str>> {
        json::as_str(self.bytes, self.value(index)?)
    }

    /// The indices of the elements of an array, or of the alternating keys and values of an object. Empty for other
    /// kinds.
    pub(crate) fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes.get(index).map_or(0, |node| node.next);
        let mut at = index + 1;
        std::iter::from_fn(move || {
            let child = at;
            (child < end).then(|| {
                at = self.nodes.get(child).map_or(end, |node| node.next);
                child
            })
        })
    }

    /// The keys of an object, each with the index of its value.
    pub(crate) fn members(&self, index: usize) -> impl Iterator<Item = (Cow<'a, str>, usize)> + '_ {
        let is_object = self.kind(index) == Some(Kind::Object);
        let keys = self.children(if is_object { index } else { usize::MAX - 1 }).step_by(2);
        keys.filter_map(|key| Some((self.text(key)?, key + 1)))
    }

    /// The elements of an array; none for any other kind.
    pub(crate) fn elements(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let is_array = self.kind(index) == Some(Kind::Array);
        self.children(if is_array { index } else { usize::MAX - 1 })
    }

    pub(crate) fn member(&self, index: usize, name: &str) -> Option<usize> {
        self.members(index).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The text of a member that is a string.
    pub(crate) fn member_text(&self, index: usize, name: &str) -> Option<Cow<'a, str>> {
        self.text(self.member(index, name)?)
    }
}

/// The offset after the closing quote. `start` is the opening quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_found_in_order() {
        let tape = Tape::read(br#"{"a":[1,{"b":"x\"y"}],"c":null}"#).expect("JSON");
        let list = tape.member(0, "a").expect("a");
        let elements: Vec<usize> = tape.elements(list).collect();
        assert_eq!(tape.raw(elements[0]), b"1");
        assert_eq!(tape.member_text(elements[1], "b").as_deref(), Some("x\"y"));
        assert_eq!(tape.kind(tape.member(0, "c").expect("c")), Some(Kind::Null));
        assert_eq!(tape.members(list).count(), 0);
    }
}
