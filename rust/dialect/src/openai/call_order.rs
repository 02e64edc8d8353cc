//! Orders the tool calls of a chat stream.
//!
//! A provider can interleave parallel calls: call 0 starts, call 1 starts, arguments of 0, arguments of 1. In the
//! model, arguments follow their call, and the callers' dialects close one block before they open the next. So while
//! the open call's arguments are incomplete JSON, everything else is queued in order: other calls, and text between
//! them. The queue is bounded.

use std::collections::VecDeque;

use crate::media;
use crate::model::{Content, Event};
use crate::step::Malformed;
use crate::text::Text;

/// The maximum size of the queue in bytes.
const MOST_WAITING: usize = 4 << 20;

/// A kind of text that an answer has besides calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Refusal,
    Thinking,
}

impl TextKind {
    pub(super) fn event(self, text: Text<'_>) -> Event<'_> {
        match self {
            Self::Text => Event::Text(text),
            Self::Refusal => Event::Refusal(text),
            Self::Thinking => Event::Thinking(text),
        }
    }
}

/// A piece of a call, as a chunk contains it.
#[derive(Debug)]
pub(super) struct CallPiece<'a> {
    /// The provider's index of the call. Absent: the open call's.
    pub(super) index: Option<u32>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) arguments: Option<Text<'a>>,
}

#[derive(Debug)]
enum Waiting {
    Call { index: u32, id: String, name: String, arguments: String },
    TextKind(TextKind, String),
    Media(Content<'static>),
}

#[derive(Debug)]
struct Open {
    index: u32,
    id: String,
    json: Progress,
}

/// The calls of one answer, in order.
#[derive(Debug, Default)]
pub(super) struct CallOrder {
    open: Option<Open>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    calls: usize,
}

impl CallOrder {
    /// Returns how many calls have started.
    pub(super) fn count(&self) -> usize {
        self.calls
    }

    /// Emits a non-empty text, or queues it while the open call's arguments are incomplete. An emitted text ends the
    /// open call.
    pub(super) fn push(
        &mut self,
        kind: TextKind,
        text: Text<'_>,
        emit: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Malformed> {
        if self.open.as_ref().is_none_or(|open| open.json.is_complete()) && self.waiting.is_empty() {
            self.open = None;
            emit(kind.event(text));
            return Ok(());
        }
        let text = text.decode();
        self.reserve(text.len())?;
        match self.waiting.back_mut() {
            Some(Waiting::TextKind(last, text_so_far)) if *last == kind => text_so_far.push_str(&text),
            _ => self.waiting.push_back(Waiting::TextKind(kind, text.into_owned())),
        }
        Ok(())
    }

    /// Emits an image or audio, or queues it like a text.
    pub(super) fn show(&mut self, content: Content<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        if self.open.as_ref().is_none_or(|open| open.json.is_complete()) && self.waiting.is_empty() {
            self.open = None;
            emit(Event::Media(content));
            return Ok(());
        }
        self.reserve(media::bytes_of(&content))?;
        self.waiting.extend(media::into_owned(content).map(Waiting::Media));
        Ok(())
    }

    pub(super) fn read(&mut self, piece: CallPiece<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        let index = piece.index.unwrap_or_else(|| self.open.as_ref().map_or(0, |open| open.index));
        let arguments = piece.arguments.filter(|text| !text.is_empty());
        // Some providers repeat the id and name in each piece, and some give all calls the same index.
        let is_it =
            |number: u32, known: &str| number == index && piece.id.as_ref().is_none_or(|id| id.decode() == known);
        if let Some(open) = self.open.as_mut().filter(|open| is_it(open.index, &open.id)) {
            if let Some(text) = arguments {
                open.json.read(&text);
                emit(Event::Arguments(text));
            }
            self.advance(emit);
            return Ok(());
        }
        let known = self.waiting.iter_mut().rev().find_map(|each| match each {
            Waiting::Call { index, id, arguments, .. } if is_it(*index, id) => Some(arguments),
            _ => None,
        });
        if let Some(known) = known {
            let text = arguments.map(|text| text.decode().into_owned()).unwrap_or_default();
            known.push_str(&text);
            return self.reserve(text.len());
        }
        // Arguments for a call that has not started are invalid.
        let name = piece.name.ok_or(Malformed)?;
        let id = piece.id.unwrap_or_else(|| format!("call_{}", self.calls).into());
        self.calls += 1;
        let is_busy = self.open.as_ref().is_some_and(|open| !open.json.is_complete());
        if is_busy || !self.waiting.is_empty() {
            let (id, name) = (id.decode().into_owned(), name.decode().into_owned());
            let arguments = arguments.map(|text| text.decode().into_owned()).unwrap_or_default();
            let bytes = id.len() + name.len() + arguments.len();
            self.waiting.push_back(Waiting::Call { index, id, name, arguments });
            return self.reserve(bytes);
        }
        let mut json = Progress::default();
        let known = id.decode().into_owned();
        emit(Event::Call { id, name });
        if let Some(text) = arguments {
            json.read(&text);
            emit(Event::Arguments(text));
        }
        self.open = Some(Open { index, id: known, json });
        Ok(())
    }

    /// Emits the queue at the end of the answer.
    pub(super) fn finish(&mut self, emit: &mut dyn FnMut(Event<'_>)) {
        while let Some(next) = self.waiting.pop_front() {
            self.begin(next, emit);
        }
        self.waiting_bytes = 0;
    }

    /// Emits from the queue until the open call is incomplete.
    fn advance(&mut self, emit: &mut dyn FnMut(Event<'_>)) {
        while self.open.as_ref().is_none_or(|open| open.json.is_complete()) {
            let Some(next) = self.waiting.pop_front() else { return };
            self.begin(next, emit);
        }
    }

    fn begin(&mut self, next: Waiting, emit: &mut dyn FnMut(Event<'_>)) {
        match next {
            Waiting::TextKind(kind, text) => {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(text.len());
                self.open = None;
                emit(kind.event(text.into()));
            }
            Waiting::Media(content) => {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(media::bytes_of(&content));
                self.open = None;
                emit(Event::Media(content));
            }
            Waiting::Call { index, id, name, arguments } => {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(id.len() + name.len() + arguments.len());
                emit(Event::Call { id: id.clone().into(), name: name.into() });
                let mut json = Progress::default();
                if !arguments.is_empty() {
                    let text = Text::from(arguments);
                    json.read(&text);
                    emit(Event::Arguments(text));
                }
                self.open = Some(Open { index, id, json });
            }
        }
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes > MOST_WAITING {
            return Err(Malformed);
        }
        Ok(())
    }
}

/// Tracks the nesting of a JSON object or list in pieces that can end anywhere.
#[derive(Debug, Default)]
struct Progress {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    has_begun: bool,
}

impl Progress {
    fn is_complete(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.is_in_string
    }

    fn read(&mut self, text: &Text<'_>) {
        for byte in text.decode().bytes() {
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b if b.is_ascii_whitespace() => continue,
                _ => {}
            }
            self.has_begun = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: u32, id: Option<&'static str>, arguments: &'static str) -> CallPiece<'static> {
        let name = id.map(|_| Text::from("f"));
        CallPiece { index: Some(index), id: id.map(Text::from), name, arguments: Some(arguments.into()) }
    }

    fn shown(run: impl FnOnce(&mut CallOrder, &mut dyn FnMut(Event<'_>))) -> String {
        let mut order = CallOrder::default();
        let mut out = String::new();
        run(&mut order, &mut |event| {
            let text = match event {
                Event::Call { id, .. } => format!("<{}>", id.decode()),
                Event::Arguments(text) | Event::Text(text) => text.decode().into_owned(),
                _ => panic!("another event"),
            };
            out.push_str(&text);
        });
        out
    }

    #[test]
    fn pieces_by_turns_become_one_call_after_the_other() {
        let out = shown(|order, emit| {
            for each in [
                piece(0, Some("a"), ""),
                piece(1, Some("b"), ""),
                piece(0, None, r#"{"x":"}"#),
                piece(1, None, r#"{"y":"#),
                piece(0, None, r#""}"#),
                piece(1, None, "2}"),
            ] {
                order.read(each, emit).expect("in order");
            }
            order.finish(emit);
        });
        assert_eq!(out, r#"<a>{"x":"}"}<b>{"y":2}"#);
    }

    #[test]
    fn a_text_inside_of_arguments_comes_after_them() {
        let out = shown(|order, emit| {
            order.read(piece(0, Some("a"), "{"), emit).expect("begun");
            order.push(TextKind::Text, "hm".into(), emit).expect("kept");
            order.read(piece(0, None, "}"), emit).expect("goes on");
            order.push(TextKind::Text, "so".into(), emit).expect("text_so_far");
        });
        assert_eq!(out, "<a>{}hmso");
    }

    #[test]
    fn calls_without_arguments_do_not_hold_others_for_ever() {
        let out = shown(|order, emit| {
            order.read(piece(0, Some("a"), ""), emit).expect("begun");
            order.read(piece(1, Some("b"), "{}"), emit).expect("waits");
            order.finish(emit);
        });
        assert_eq!(out, "<a><b>{}");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut order = CallOrder::default();
        order.read(piece(0, Some("a"), "{"), &mut |_| {}).expect("begun");
        let long = "x".repeat(1 << 20);
        let sent = (0..6).try_for_each(|_| order.push(TextKind::Text, long.clone().into(), &mut |_| {}));
        assert_eq!(sent, Err(Malformed));
        assert_eq!(order.read(piece(7, None, "1"), &mut |_| {}), Err(Malformed), "arguments of nothing");
    }
}
