//! The members next to a `data` member that say what it holds.

use super::encoded::is_text_media;
use super::escapes::unescaped;
use super::names::{is_base64_kind, is_media_type, name_at};
use crate::json::{end_of_string, end_of_value};

/// How far the object is read for the `type` of an object behind its `data`.
const MAX_BEHIND_BYTES: usize = 16 * 1024;

/// The members of an object that say what its `data` holds. A member that is there twice counts for the reading in which
/// the data is text, because parsers differ in which of the two they take.
#[derive(Debug, Default, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "independent facts, named as questions")]
pub(super) struct Siblings {
    /// Every `type` so far is one of base64; `None` if there is no `type`.
    is_base64: Option<bool>,
    /// The media type is one of text.
    pub(super) is_text: bool,
    /// The members behind the `data` have been read.
    is_read: bool,
    /// The object is too long to be read to its end.
    is_cut: bool,
}

impl Siblings {
    /// Takes note of a member, without the quotes of its value.
    pub(super) fn note(&mut self, name: &[u8], value: &[u8]) {
        if name == b"type" {
            self.is_base64 = Some(self.is_base64 != Some(false) && is_base64_kind(value));
        } else if is_media_type(name) {
            self.is_text |= is_text_media(unescaped(&String::from_utf8_lossy(value)).as_bytes());
        }
    }

    /// Whether the `data` is base64.
    pub(super) fn are_of_base64(self) -> bool {
        self.is_base64 == Some(true) && !self.is_cut
    }

    /// Reads the members behind the `data`. A second call changes nothing.
    pub(super) fn read_behind(&mut self, body: &[u8], mut at: usize) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        let body = &body[..body.len().min(at + MAX_BEHIND_BYTES)];
        let mut name = None;
        while let Some(&byte) = body.get(at) {
            match byte {
                b'"' => {
                    let Some(end) = end_of_string(body, at) else { break };
                    let is_name = body[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                    if is_name {
                        name = Some(at + 1..end - 1);
                    } else if let Some(name) = name.take() {
                        self.note(name_at(body, &name).as_bytes(), &body[at + 1..end - 1]);
                    }
                    at = end;
                }
                b'{' | b'[' => {
                    name = None;
                    at = end_of_value(body, at);
                }
                b'}' | b']' => return,
                _ => at += 1,
            }
        }
        self.is_cut = true;
    }
}
