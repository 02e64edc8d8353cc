//! One stream event as the guardrails read it: the texts in it, the output that each belongs to, and the texts that it
//! ends.

use super::names::name_at;
use super::walk::{walk, TextKind, Visitor};
use serde_json::Value;
use smallvec::SmallVec;
use std::ops::Range;

/// Identifies a part of an answer: the item, and the part, summary or block within it. Empty if the event has no ids.
pub(super) type Ids = [SmallVec<[u8; 16]>; 4];

/// Identifies a text. Pieces with the same key continue each other.
pub(super) type Key = SmallVec<[u8; 96]>;

/// Objects and lists that arrive complete in one event, even where texts arrive in pieces.
const WHOLE: &[&[u8]] = &[b"annotation", b"annotations", b"citation", b"citations", b"images"];

/// The effect of an event on the texts of its stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The event holds the next piece of a text. In untyped events each choice may also end.
    Delta,
    /// The event's texts are complete, and the texts of these parts end before it.
    End(Ids),
    /// The event's texts are complete, and it ends no other text.
    Beside,
    /// The event holds audio, as base64.
    Sound,
}

/// One stream event as the guardrails read it.
#[derive(Debug)]
pub(super) struct Event<'d> {
    data: &'d [u8],
    kind: Option<Range<usize>>,
    ids: [Option<Range<usize>>; 4],
    pub(super) sequence: Option<Range<usize>>,
    has_choices: bool,
    nodes: SmallVec<[Node; 12]>,
    here: usize,
    pub(super) texts: SmallVec<[Text; 2]>,
}

/// An object or list of the event.
#[derive(Debug, Default)]
struct Node {
    above: usize,
    /// The member name; empty for an element of a list.
    name: Range<usize>,
    /// The index of the element in its list.
    span: u32,
    elements: u32,
    /// The number of the choice, tool call or block.
    index: Option<Range<usize>>,
    is_thought: bool,
    is_finished: bool,
    /// A later event continues one of the arguments of this tool call.
    continues: bool,
}

#[derive(Debug)]
pub(super) struct Text {
    /// Includes the quotes.
    pub(super) span: Range<usize>,
    name: Range<usize>,
    node: usize,
    pub(super) kind: TextKind,
}

impl Visitor for Event<'_> {
    fn enter(&mut self, name: Option<Range<usize>>) {
        let above = self.here;
        let is_root = self.nodes.is_empty();
        let mut node = Node { above, ..Node::default() };
        match name {
            Some(name) => {
                let is_list = matches!(&*name_at(self.data, &name), "choices" | "candidates");
                self.has_choices |= above == 0 && !is_root && is_list;
                node.name = name;
            }
            None => {
                if let Some(above) = self.nodes.get_mut(above) {
                    node.span = above.elements;
                    above.elements += 1;
                }
            }
        }
        self.here = self.nodes.len();
        self.nodes.push(node);
    }

    fn leave(&mut self) {
        self.here = self.nodes.get(self.here).map_or(0, |node| node.above);
    }

    fn text(&mut self, span: Range<usize>, name: Range<usize>, kind: TextKind) {
        self.texts.push(Text { span, name, node: self.here, kind });
    }

    fn value(&mut self, name: Range<usize>, span: Range<usize>) {
        let is_top = self.here == 0;
        let Some(node) = self.nodes.get_mut(self.here) else { return };
        match name_at(self.data, &name).as_bytes() {
            b"index" => {
                if is_top {
                    self.ids[3] = Some(span.clone());
                }
                node.index = Some(span);
            }
            b"jsonPath" | b"json_path" => node.index = Some(span),
            b"willContinue" | b"will_continue" => node.continues = &self.data[span] == b"true",
            b"thought" => node.is_thought = &self.data[span] == b"true",
            b"finish_reason" | b"finishReason" => node.is_finished = self.data[span.start] == b'"',
            b"type" if is_top && span.len() > 2 => self.kind = Some(span.start + 1..span.end - 1),
            b"output_index" if is_top => self.ids[0] = Some(span),
            b"item_id" if is_top && self.ids[0].is_none() => self.ids[0] = Some(span),
            b"content_index" if is_top => self.ids[1] = Some(span),
            b"summary_index" if is_top => self.ids[2] = Some(span),
            b"sequence_number" if is_top => self.sequence = Some(span),
            _ => {}
        }
    }
}

impl<'d> Event<'d> {
    pub(super) fn read(data: &'d [u8]) -> Self {
        let mut event = Self {
            data,
            kind: None,
            ids: [const { None }; 4],
            sequence: None,
            has_choices: false,
            nodes: SmallVec::new(),
            here: 0,
            texts: SmallVec::new(),
        };
        walk(data, &mut event);
        event
    }

    pub(super) fn kind(&self) -> Kind {
        let Some(kind) = self.kind.clone().map(|kind| &self.data[kind]) else {
            return if self.has_choices { Kind::Delta } else { Kind::End(Ids::default()) };
        };
        let ends = |suffix: &[u8]| kind.ends_with(suffix);
        if ends(b"audio.delta") {
            Kind::Sound
        } else if kind == b"message_delta" {
            Kind::End(self.ids())
        } else if ends(b".delta") || ends(b"_delta") {
            Kind::Delta
        } else if [&b".done"[..], b".completed", b".failed", b".incomplete", b".cancelled", b"_stop", b"error"]
            .into_iter()
            .any(ends)
        {
            Kind::End(self.ids())
        } else {
            Kind::Beside
        }
    }

    pub(super) fn ids(&self) -> Ids {
        self.ids.clone().map(|span| span.map_or_else(SmallVec::new, |span| self.data[span].into()))
    }

    /// Whether the text continues the text of an earlier event with the same key. Otherwise it is complete.
    pub(super) fn is_delta(&self, text: &Text) -> bool {
        if matches!(text.kind, TextKind::Alone | TextKind::Encoded)
            || self.nodes.is_empty()
            || self.is_in_complete(text)
        {
            return false;
        }
        if self.kind.is_some() {
            return true;
        }
        let name = |node: usize| name_at(self.data, &self.nodes[node].name);
        let is_text = name_at(self.data, &text.name) == "text";
        let mut at = text.node;
        let Some(choice) = self.choice(text) else { return false };
        if self.is_partial_argument(text) {
            return true;
        }
        if is_text && at == choice {
            return true; // OpenAI's chat completions
        }
        let is_part = is_text && name(self.nodes[at].above) == "parts";
        while at != choice {
            if name(at) == "delta" {
                return true;
            }
            at = self.nodes[at].above;
        }
        is_part
    }

    /// Whether the text is inside an object or list that one event holds completely.
    fn is_in_complete(&self, text: &Text) -> bool {
        let mut at = text.node;
        while at != 0 {
            let node = &self.nodes[at];
            if WHOLE.contains(&&self.data[node.name.clone()]) {
                return true;
            }
            at = node.above;
        }
        false
    }

    /// Whether the text is a piece of a function call argument that Gemini streams.
    fn is_partial_argument(&self, text: &Text) -> bool {
        let list = self.nodes[text.node].above;
        matches!(&self.data[text.name.clone()], b"stringValue" | b"string_value")
            && matches!(&self.data[self.nodes[list].name.clone()], b"partialArgs" | b"partial_args")
    }

    /// Whether the text is itself JSON.
    pub(super) fn is_json(&self, text: &Text) -> bool {
        let is_arguments = |kind: &Range<usize>| memchr::memmem::find(&self.data[kind.clone()], b"arguments").is_some();
        text.kind == TextKind::Json
            || (name_at(self.data, &text.name) == "delta" && self.kind.as_ref().is_some_and(is_arguments))
    }

    /// The key of the text.
    pub(super) fn key(&self, text: &Text) -> Key {
        let mut key = Key::new();
        if let Some(kind) = &self.kind {
            key.extend_from_slice(&self.data[kind.clone()]);
            for id in &self.ids {
                key.push(b'#');
                key.extend_from_slice(id.clone().map_or(&b""[..], |id| &self.data[id]));
            }
        }
        let mut at = text.node;
        while at != 0 {
            let node = &self.nodes[at];
            let is_element = node.name.is_empty();
            key.push(b'/');
            if !is_element {
                key.extend_from_slice(&self.data[node.name.clone()]);
            } else if node.is_thought {
                key.push(b'*');
            } else if let Some(index) = &node.index {
                key.push(b'#');
                key.extend_from_slice(&self.data[index.clone()]);
            } else if &self.data[self.nodes[node.above].name.clone()] != b"parts" {
                // Gemini's `parts` are pieces of one text, so their index is not part of the key.
                key.push(b'@');
                key.extend_from_slice(&node.span.to_le_bytes());
            }
            at = node.above;
        }
        key.push(b'/');
        key.extend_from_slice(&self.data[text.name.clone()]);
        key
    }

    /// The choice that the text belongs to.
    fn choice(&self, text: &Text) -> Option<usize> {
        let mut at = text.node;
        while at != 0 {
            let above = self.nodes[at].above;
            if self.is_choice(at) {
                return Some(at);
            }
            at = above;
        }
        None
    }

    fn is_choice(&self, node: usize) -> bool {
        let above = self.nodes[node].above;
        let is_list = matches!(&*name_at(self.data, &self.nodes[above].name), "choices" | "candidates");
        node != 0 && above != 0 && self.nodes[above].above == 0 && is_list && self.nodes[node].name.is_empty()
    }

    fn number(&self, choice: usize) -> SmallVec<[u8; 16]> {
        let node = &self.nodes[choice];
        node.index.clone().map_or_else(|| node.span.to_string().into_bytes().into(), |index| self.data[index].into())
    }

    /// The number of the text's choice, and whether the choice ends in this event.
    pub(super) fn choice_of(&self, text: &Text) -> (SmallVec<[u8; 16]>, bool) {
        let Some(choice) = self.choice(text) else { return Default::default() };
        let is_end = self.is_partial_argument(text) && !self.nodes[text.node].continues;
        (self.number(choice), is_end || self.nodes[choice].is_finished)
    }

    /// The numbers of the choices that end in this event.
    pub(super) fn finished(&self) -> impl Iterator<Item = SmallVec<[u8; 16]>> + '_ {
        let is_finished = |node: &usize| self.nodes[*node].is_finished && self.is_choice(*node);
        (0..self.nodes.len()).filter(is_finished).map(|choice| self.number(choice))
    }

    /// Builds an event that holds only this text and the members that identify it.
    pub(super) fn alone(&self, span: usize, words: &str, sequence: Option<u64>) -> Vec<u8> {
        let text = self.texts.iter().find(|text| text.span.start == span);
        let Some((text, mut whole)) = text.zip(serde_json::from_slice::<Value>(self.data).ok()) else {
            return Vec::new();
        };
        let mut path = Vec::new();
        let mut at = text.node;
        while at != 0 {
            let node = &self.nodes[at];
            path.push((node.name.clone(), node.span as usize));
            at = node.above;
        }
        if let (Some(sequence), Value::Object(members)) = (sequence, &mut whole) {
            members.insert("sequence_number".into(), sequence.into());
        }
        let mut here = &mut whole;
        let is_gemini = path.last().is_some_and(|(name, _)| &self.data[name.clone()] == b"candidates");
        let is_typed = self.kind.is_some();
        let mut is_top = true;
        for (name, element) in path.into_iter().rev() {
            let name = name_at(self.data, &name);
            strip(here, &name, is_top, is_typed, is_gemini);
            is_top = false;
            let next = match here {
                Value::Object(members) => members.get_mut(&*name),
                Value::Array(elements) => {
                    if element < elements.len() {
                        elements.swap(0, element);
                    }
                    elements.truncate(1);
                    elements.first_mut()
                }
                _ => None,
            };
            let Some(next) = next else { return Vec::new() };
            here = next;
        }
        let name = name_at(self.data, &text.name);
        strip(here, &name, is_top, is_typed, is_gemini);
        match here {
            Value::Object(members) => {
                members.insert(name.into_owned(), words.into());
            }
            other => *other = Value::Array(vec![words.into()]),
        }
        whole.to_string().into_bytes()
    }
}

/// Removes everything from an object that is not on the path to the text, so that clients do not append other values
/// twice.
fn strip(object: &mut Value, wanted: &str, is_top: bool, is_typed: bool, is_gemini: bool) {
    let Value::Object(members) = object else { return };
    members.retain(|name, value| {
        if name == wanted {
            return true;
        }
        if value.is_array() && is_top && is_typed {
            *value = Value::Array(Vec::new());
            return true;
        }
        let is_plain = !value.is_array() && !value.is_object();
        let is_kept = match name.as_str() {
            "index" | "type" | "thought" | "jsonPath" | "json_path" | "willContinue" | "will_continue" => true,
            "finish_reason" => value.is_null(),
            "role" => is_gemini,
            _ => is_top,
        };
        is_plain && is_kept
    });
}
