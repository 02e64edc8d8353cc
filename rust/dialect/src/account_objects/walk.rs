//! Visits every object of a body once, without recursion and without a copy of the body.

use super::names::{at_address, is_free, is_named_by_id, is_report, names, Names};
use super::{ObjectKind, Reference, Searched};
use fairlead_core::json::{end_of_string, end_of_value, MAX_DEPTH};
use fairlead_core::Dialect;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Write as _;

const MAX_SHOWN_CHARS: usize = 64;
/// A body with more references is refused, because each of them is compared with every pattern.
const MAX_REFERENCES: u32 = 10_000;

/// An open object or list.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
struct Open<'b> {
    is_object: bool,
    /// The member that has it as value, or as an element of its list.
    name: Cow<'b, str>,
    is_element: bool,
    /// The current member of an object, and whether its value follows.
    key: Cow<'b, str>,
    is_owed: bool,
    /// The current element of a list.
    index: usize,
    kind: Option<Cow<'b, str>>,
    id: Option<Cow<'b, str>>,
    has_role: bool,
    has_authorization: bool,
    /// The place of the object that its elements belong to: itself, or the nearest object around a list.
    owner: usize,
    /// The first refused reference of each member. The type of the object decides whether it counts.
    found: SmallVec<[Found<'b>; 1]>,
}

#[derive(Debug)]
struct Found<'b> {
    name: Cow<'b, str>,
    /// The place in a list.
    index: Option<usize>,
    id: Cow<'b, str>,
    names: Names,
    kind: ObjectKind,
}

pub(super) struct Walk<'b, 'r> {
    searched: Searched<'b>,
    is_refused: &'r dyn Fn(ObjectKind, &str) -> bool,
    judged: Cell<u32>,
    open: Vec<Open<'b>>,
}

impl<'b, 'r> Walk<'b, 'r> {
    pub(super) fn new(searched: Searched<'b>, is_refused: &'r dyn Fn(ObjectKind, &str) -> bool) -> Self {
        Self { searched, is_refused, judged: Cell::new(0), open: Vec::new() }
    }

    /// Stops at a string without an end: the parser rejects such a body.
    pub(super) fn run(mut self) -> Option<Reference> {
        let body = self.searched.body;
        let mut at = 0;
        while let Some(&byte) = body.get(at) {
            match byte {
                b'{' | b'[' if self.is_skipped(byte == b'{') => {
                    at = end_of_value(body, at);
                    continue;
                }
                b'{' | b'[' => self.enter(byte == b'{'),
                b'}' | b']' => {
                    if let Some(reference) = self.leave() {
                        return Some(reference);
                    }
                }
                b'"' => {
                    let end = end_of_string(body, at)?;
                    self.string(&body[at..end]);
                    at = end;
                    continue;
                }
                b':' => self.set_owed(true),
                b',' => self.set_owed(false),
                _ => {}
            }
            at += 1;
        }
        None
    }

    fn set_owed(&mut self, is_owed: bool) {
        if let Some(here) = self.open.last_mut() {
            here.is_owed = is_owed && here.is_object;
            here.index += usize::from(!is_owed && !here.is_object);
        }
    }

    fn is_skipped(&self, is_object: bool) -> bool {
        let Some(here) = self.open.last() else { return false };
        self.open.len() >= MAX_DEPTH || (here.is_object && is_free(&here.key, &here.name, is_object))
    }

    fn enter(&mut self, is_object: bool) {
        let parent = self.open.last();
        let name =
            parent.map_or(
                Cow::Borrowed(""),
                |parent| {
                    if parent.is_object {
                        parent.key.clone()
                    } else {
                        parent.name.clone()
                    }
                },
            );
        let is_element = parent.is_some_and(|parent| !parent.is_object);
        // Azure reads these with the identity of the operator's resource.
        let is_source = is_object && is_element && self.open.len() == 2 && name == "data_sources";
        let owner = if is_object { self.open.len() } else { parent.map_or(0, |parent| parent.owner) };
        let mut open = Open {
            is_object,
            name,
            is_element,
            key: Cow::Borrowed(""),
            is_owed: false,
            index: 0,
            kind: None,
            id: None,
            has_role: false,
            has_authorization: false,
            owner,
            found: SmallVec::new(),
        };
        if is_source && self.refuses(ObjectKind::Other, "data_sources") {
            let id = Cow::Borrowed("data_sources");
            let (name, kind) = (Cow::Borrowed("type"), ObjectKind::Other);
            open.found.push(Found { name, index: None, id, names: Names::Object, kind });
        }
        self.open.push(open);
    }

    fn refuses(&self, kind: ObjectKind, id: &str) -> bool {
        self.judged.set(self.judged.get().saturating_add(1));
        self.judged.get() > MAX_REFERENCES || (self.is_refused)(kind, id)
    }

    /// A member's name, a member's value or an element.
    fn string(&mut self, quoted: &'b [u8]) {
        let Some(here) = self.open.last_mut() else { return };
        if here.is_object && !here.is_owed {
            here.key = text_of(quoted);
            return;
        }
        if here.is_object {
            match &*here.key {
                "type" => here.kind = Some(text_of(quoted)),
                "id" => here.id = Some(text_of(quoted)),
                "role" => here.has_role = true,
                "authorization" => here.has_authorization = quoted.len() > 2,
                _ => {}
            }
        }
        let name = if here.is_object { &here.key } else { &here.name };
        let named = names(name, self.searched.dialect);
        // The names of a prompt's variables are the caller's.
        if named == Names::Nothing || (here.is_object && here.name == "variables") {
            return;
        }
        let id = text_of(quoted);
        let kind = match named {
            Names::File => ObjectKind::File,
            Names::Address | Names::FileAddress => match at_address(&id, named == Names::FileAddress) {
                Some(kind) => kind,
                None => return,
            },
            _ => ObjectKind::Other,
        };
        let index = (!here.is_object).then_some(here.index);
        let (name, owner) = (name.clone(), here.owner);
        let is_known = self.open.get(owner).is_none_or(|owner| owner.found.iter().any(|earlier| earlier.name == name));
        if is_known || !self.refuses(kind, &id) {
            return;
        }
        if let Some(owner) = self.open.get_mut(owner) {
            owner.found.push(Found { name, index, id, names: named, kind });
        }
    }

    /// Ends the innermost object or list. Returns the first reference of the object that counts.
    fn leave(&mut self) -> Option<Reference> {
        let here = self.open.pop()?;
        if let Some(above) = self.open.last_mut() {
            above.is_owed = false;
        }
        if !here.is_object {
            return None;
        }
        let kind = here.kind.as_deref().unwrap_or_default();
        let is_report = is_report(kind, &here.name);
        for found in &here.found {
            let is_harmless = match found.names {
                Names::File => is_report,
                Names::Object => found.name == "container_id" && kind == "container_file_citation",
                Names::Connector => here.has_authorization,
                Names::Skill => kind == "anthropic",
                _ => false,
            };
            if !is_harmless {
                return Some(self.reference(found));
            }
        }
        let kind = self.kind_of_id(&here)?;
        let id = here.id.filter(|id| self.refuses(kind, id))?;
        Some(self.reference(&Found { name: Cow::Borrowed("id"), index: None, id, names: Names::Object, kind }))
    }

    /// The kind of the object that the member `id` names; `None` if it names nothing.
    fn kind_of_id(&self, here: &Open<'_>) -> Option<ObjectKind> {
        if is_named_by_id(&here.name) && !here.is_element {
            return Some(ObjectKind::Other);
        }
        if self.searched.is_session {
            return None;
        }
        let is_untyped = here.kind.is_none() && !here.has_role && here.is_element && here.name == "input";
        let is_item = here.kind.as_deref() == Some("item_reference")
            || (is_untyped && self.searched.dialect == Dialect::OpenaiResponses);
        is_item.then_some(ObjectKind::Item)
    }

    /// The object that `found` belongs to has ended, so the open objects and lists lead to it.
    fn reference(&self, found: &Found<'_>) -> Reference {
        let mut path = String::new();
        let mut add = |name: Option<&str>, index: usize| {
            // Writing to a string cannot fail.
            let _written = match name {
                Some(name) if path.is_empty() => write!(path, "{name}"),
                Some(name) => write!(path, ".{name}"),
                None => write!(path, "[{index}]"),
            };
        };
        for open in &self.open {
            add(open.is_object.then_some(&*open.key), open.index);
        }
        add(Some(&found.name), 0);
        if let Some(index) = found.index {
            add(None, index);
        }
        Reference { path, id: found.id.chars().take(MAX_SHOWN_CHARS).collect(), kind: found.kind }
    }
}

/// The text of a string with its quotes. Escapes are decoded; text that cannot be decoded stays as it is.
fn text_of(quoted: &[u8]) -> Cow<'_, str> {
    let raw = &quoted[1..quoted.len() - 1];
    if memchr::memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    serde_json::from_slice::<String>(quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}
