//! Writes the model's events as a responses stream of numbered events. Each item and each part is opened, filled and
//! closed.

use bytes::Bytes;
use fairlead_core::Usage;

use super::call_item::CallItem;
use super::complete::{envelope, inside, status, ResponseState};
use super::item;
use crate::answer_context::AnswerContext;
use crate::call_form::CallForm;
use crate::media::as_link;
use crate::model::{Content, Event, Source, Stop};
use crate::shapes::ErrorText;
use crate::signature::{for_responses_caller, of_redacted};
use crate::text::{Text, Writer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Thinking,
    Call,
}

/// The open item. Texts are stored as escaped strings without their quotes.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    /// The text of the open part, or the arguments of the call.
    text: Vec<u8>,
    /// A part is open.
    in_part: bool,
    /// The finished parts of the message, separated by commas.
    content: Vec<u8>,
    parts: u64,
    call: CallItem,
    signature: Option<String>,
    logprobs: Vec<u8>,
    /// The members before the text of a delta.
    before: Vec<u8>,
}

/// Writes the model's events as a responses stream of numbered events.
#[derive(Debug)]
pub(crate) struct Encoder {
    context: AnswerContext,
    model: Text<'static>,
    sequence: u64,
    is_started: bool,
    open: Option<Open>,
    /// The index of the open item, or of the next one.
    index: u64,
    /// The finished items, separated by commas.
    output: Vec<u8>,
    /// The log probabilities of the next text, as list elements without the brackets.
    logprobs: Vec<u8>,
    /// The complete response, if it is to be stored.
    response: Option<Bytes>,
}

impl Encoder {
    pub(crate) fn new(context: AnswerContext) -> Self {
        Self {
            context,
            model: "".into(),
            sequence: 0,
            is_started: false,
            open: None,
            index: 0,
            output: Vec::new(),
            logprobs: Vec::new(),
            response: None,
        }
    }

    pub(crate) fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { model, .. } => self.model = model.map_or_else(|| "".into(), Text::into_owned),
            Event::Logprobs(list) => self.logprobs = inside(list).to_vec(),
            Event::Text(text) => {
                self.begin(Kind::Text, out);
                self.delta("response.output_text.delta", &text, out);
            }
            Event::Refusal(text) => {
                self.begin(Kind::Refusal, out);
                self.delta("response.refusal.delta", &text, out);
            }
            Event::Thinking(text) => {
                self.begin(Kind::Thinking, out);
                self.begin_summary(out);
                self.delta("response.reasoning_summary_text.delta", &text, out);
            }
            Event::Signature(text) => {
                self.begin(Kind::Thinking, out);
                if let Some(open) = &mut self.open {
                    open.signature = Some(for_responses_caller(&text.decode()));
                }
                self.end(out);
            }
            Event::Redacted(text) => {
                self.end(out);
                self.begin(Kind::Thinking, out);
                if let Some(open) = &mut self.open {
                    open.signature = Some(of_redacted(&text.decode()));
                }
                self.end(out);
            }
            Event::Call { id, name } => {
                self.end(out);
                self.begin_call(&id, &name, out);
            }
            Event::Arguments(text) => self.arguments(&text, out),
            Event::Media(Content::Image(Source::Base64 { media_type, data })) => self.image(&media_type, &data, out),
            Event::Media(content) => {
                self.end(out);
                if let Some(link) = as_link(&content) {
                    self.begin(Kind::Text, out);
                    self.delta("response.output_text.delta", &link, out);
                    self.end(out);
                }
            }
            Event::BlockEnd => self.end(out),
        }
    }

    /// Writes the item of a generated image with its events.
    fn image(&mut self, media_type: &str, data: &str, out: &mut Vec<u8>) {
        self.end(out);
        self.start(out);
        let id = format!("ig_{}_{}", self.context.id, self.index);
        let at = |item: &[u8], index: u64| {
            let mut rest = Writer::default();
            rest.open(b',').key("output_index").number(index).key("item").spliced(item);
            rest.take()
        };
        let begun = item::image(&id, item::IN_PROGRESS, None);
        self.event("response.output_item.added", b"", &at(&begun, self.index), out);
        let mut position_members = Writer::default();
        position_members.open(b',').key("output_index").number(self.index).key("item_id").str(&id);
        let position_members = position_members.take();
        for name in ["in_progress", "generating", "completed"] {
            self.event(&format!("response.image_generation_call.{name}"), b"", &position_members, out);
        }
        let complete = item::image(&id, item::COMPLETED, Some((media_type, data)));
        self.event("response.output_item.done", b"", &at(&complete, self.index), out);
        self.finish_item(&complete);
    }

    fn finish_item(&mut self, item: &[u8]) {
        if !self.output.is_empty() {
            self.output.push(b',');
        }
        self.output.extend_from_slice(item);
        self.index += 1;
    }

    /// Writes the regular end of the stream.
    pub(crate) fn finish(&mut self, stop: Stop, usage: Option<Usage>, out: &mut Vec<u8>) {
        self.start(out);
        self.end(out);
        let (status, incomplete) = status(stop);
        let usage = usage.unwrap_or_default();
        let state = ResponseState { status, incomplete, error: None };
        let complete = envelope(&self.context, &self.model, state, &self.output, Some(&usage));
        let name = if incomplete.is_some() { "response.incomplete" } else { "response.completed" };
        self.event(name, b",\"response\":", &complete, out);
        self.response = self.context.keeps.then(|| Bytes::from(complete));
    }

    pub(crate) fn take_response(&mut self) -> Option<Bytes> {
        self.response.take()
    }

    /// Writes the end of a failed answer.
    pub(crate) fn fail(&mut self, error: &ErrorText<'_>, out: &mut Vec<u8>) {
        self.start(out);
        let code = error.code.unwrap_or(error.kind);
        let state = ResponseState { status: "failed", incomplete: None, error: Some((code, error.message)) };
        let mut complete = envelope(&self.context, &self.model, state, &self.output, None);
        if let Some(diagnostics) = error.diagnostics {
            complete.extend_from_slice(b",\"diagnostics\":");
            complete.extend_from_slice(diagnostics.as_bytes());
        }
        self.event("response.failed", b",\"response\":", &complete, out);
    }

    fn event(&mut self, name: &str, before: &[u8], rest: &[u8], out: &mut Vec<u8>) {
        for piece in ["event: ", name, "\ndata: {\"type\":\"", name, "\",\"sequence_number\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        push_number(out, self.sequence);
        self.sequence += 1;
        out.extend_from_slice(before);
        out.extend_from_slice(rest);
        out.extend_from_slice(b"}\n\n");
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        let state = ResponseState { status: item::IN_PROGRESS, ..ResponseState::default() };
        let complete = envelope(&self.context, &self.model, state, b"", None);
        self.event("response.created", b",\"response\":", &complete, out);
        self.event("response.in_progress", b",\"response\":", &complete, out);
    }

    /// Opens an item, and in a message a part, unless one of its kind is open. Calls are opened elsewhere.
    fn begin(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let is_message = |kind| matches!(kind, Kind::Text | Kind::Refusal);
        match self.open.as_ref().map(|open| open.kind) {
            Some(open) if open == kind => return,
            Some(open) if is_message(open) && is_message(kind) => self.end_part(out),
            _ => {
                self.end(out);
                self.start(out);
                let (prefix, empty): (_, fn(&str) -> Vec<u8>) = match kind {
                    Kind::Thinking => ("rs", |id| item::reasoning(id, b"", None)),
                    _ => ("msg", |id| item::message(id, item::IN_PROGRESS, b"")),
                };
                self.add(kind, prefix, empty, out);
            }
        }
        if is_message(kind) {
            self.begin_part(kind, out);
        }
    }

    fn add(&mut self, kind: Kind, prefix: &str, empty: impl Fn(&str) -> Vec<u8>, out: &mut Vec<u8>) {
        let id = format!("{prefix}_{}_{}", self.context.id, self.index);
        let mut rest = Writer::default();
        rest.open(b',').key("output_index").number(self.index).key("item").spliced(&empty(&id));
        self.event("response.output_item.added", b"", &rest.take(), out);
        let mut open = Open {
            kind,
            id,
            text: Vec::new(),
            in_part: false,
            content: Vec::new(),
            parts: 0,
            call: CallItem::default(),
            signature: None,
            logprobs: Vec::new(),
            before: Vec::new(),
        };
        open.before = position_members(&open, self.index, None);
        self.open = Some(open);
    }

    fn begin_call(&mut self, id: &Text<'_>, name: &Text<'_>, out: &mut Vec<u8>) {
        self.start(out);
        let call = CallItem::new(id, name, &self.context.tool_names);
        self.add(Kind::Call, call.prefix(), |id| call.write(id, item::IN_PROGRESS, b""), out);
        if let Some(open) = &mut self.open {
            open.call = call;
        }
    }

    /// Writes a piece of a call's arguments, in the form of its tool.
    fn arguments(&mut self, text: &Text<'_>, out: &mut Vec<u8>) {
        let Some(open) = &mut self.open else { return };
        match open.call.form() {
            CallForm::Function => self.delta("response.function_call_arguments.delta", text, out),
            CallForm::Custom => {
                let piece = open.call.push(text);
                self.custom_text(&piece, out);
            }
            // These items have no pieces.
            _ => text.push_inner(&mut open.text),
        }
    }

    /// Writes a piece of a custom tool's text, an escaped string without its quotes.
    fn custom_text(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if let (false, Ok(piece)) = (piece.is_empty(), std::str::from_utf8(piece)) {
            let token = format!("\"{piece}\"");
            self.delta("response.custom_tool_call_input.delta", &Text::Token(&token), out);
        }
    }

    fn begin_part(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let index = self.index;
        let Some(open) = &mut self.open else { return };
        open.kind = kind;
        open.in_part = true;
        open.before = position_members(open, index, Some("content_index"));
        let part = if kind == Kind::Refusal { item::refusal_part(b"") } else { item::text_part(b"", b"") };
        let rest = [&*open.before, b",\"part\":", &part].concat();
        self.event("response.content_part.added", b"", &rest, out);
    }

    /// Opens the summary's part unless one is open.
    fn begin_summary(&mut self, out: &mut Vec<u8>) {
        let index = self.index;
        let Some(open) = self.open.as_mut().filter(|open| !open.in_part) else { return };
        open.in_part = true;
        open.before = position_members(open, index, Some("summary_index"));
        let rest = [&*open.before, b",\"part\":", &item::summary_part(b"")].concat();
        self.event("response.reasoning_summary_part.added", b"", &rest, out);
    }

    fn delta(&mut self, name: &str, text: &Text<'_>, out: &mut Vec<u8>) {
        let Some(open) = &mut self.open else { return };
        let from = open.text.len();
        text.push_inner(&mut open.text);
        for piece in ["event: ", name, "\ndata: {\"type\":\"", name, "\",\"sequence_number\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        push_number(out, self.sequence);
        self.sequence += 1;
        out.extend_from_slice(&open.before);
        out.extend_from_slice(b",\"delta\":\"");
        out.extend_from_slice(open.text.get(from..).unwrap_or_default());
        out.push(b'"');
        if open.kind == Kind::Text {
            out.extend_from_slice(b",\"logprobs\":[");
            out.extend_from_slice(&self.logprobs);
            out.push(b']');
            if !self.logprobs.is_empty() {
                if !open.logprobs.is_empty() {
                    open.logprobs.push(b',');
                }
                open.logprobs.append(&mut self.logprobs);
            }
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// Closes the part of a message or a summary.
    fn end_part(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open.as_mut().filter(|open| open.in_part) else { return };
        open.in_part = false;
        let before = std::mem::take(&mut open.before);
        let text = std::mem::take(&mut open.text);
        let logprobs = std::mem::take(&mut open.logprobs);
        let (name, member, part, last): (_, &[u8], _, _) = match open.kind {
            Kind::Refusal => {
                ("response.refusal.done", b",\"refusal\":\"", item::refusal_part(&text), "response.content_part.done")
            }
            Kind::Thinking => (
                "response.reasoning_summary_text.done",
                b",\"text\":\"",
                item::summary_part(&text),
                "response.reasoning_summary_part.done",
            ),
            Kind::Text | Kind::Call => (
                "response.output_text.done",
                b",\"text\":\"",
                item::text_part(&text, &logprobs),
                "response.content_part.done",
            ),
        };
        let mut rest = [&*before, member, &text, b"\""].concat();
        if open.kind == Kind::Text {
            rest.extend_from_slice(&[b",\"logprobs\":[", &*logprobs, b"]"].concat());
        }
        if open.kind == Kind::Thinking {
            open.text = text;
        } else {
            if open.parts > 0 {
                open.content.push(b',');
            }
            open.content.extend_from_slice(&part);
        }
        open.parts += 1;
        self.event(name, b"", &rest, out);
        self.event(last, b"", &[&*before, b",\"part\":", &part].concat(), out);
    }

    /// Writes the complete arguments of a call, or the complete text of a custom tool.
    fn end_call(&mut self, open: &Open, out: &mut Vec<u8>) {
        let name = open.call.name();
        match open.call.form() {
            CallForm::Function => {
                let rest = [&*open.before, b",\"name\":\"", name, b"\",\"arguments\":\"", &open.text, b"\""].concat();
                self.event("response.function_call_arguments.done", b"", &rest, out);
            }
            CallForm::Custom => {
                let rest = [&*open.before, b",\"input\":\"", &open.text, b"\""].concat();
                self.event("response.custom_tool_call_input.done", b"", &rest, out);
            }
            _ => {}
        }
    }

    /// Closes the open item.
    fn end(&mut self, out: &mut Vec<u8>) {
        let Some(open) = &mut self.open else { return };
        if open.call.form() == CallForm::Custom {
            let rest = open.call.finish();
            self.custom_text(&rest, out);
        }
        self.end_part(out);
        let Some(mut open) = self.open.take() else { return };
        let item = match open.kind {
            Kind::Text | Kind::Refusal => item::message(&open.id, item::COMPLETED, &open.content),
            Kind::Thinking => item::reasoning(&open.id, &open.text, open.signature.as_deref()),
            Kind::Call => {
                if open.call.form() != CallForm::Custom && open.text.is_empty() {
                    // Clients parse the text.
                    open.text.extend_from_slice(b"{}");
                }
                self.end_call(&open, out);
                open.call.write(&open.id, item::COMPLETED, &open.text)
            }
        };
        let mut rest = Writer::default();
        rest.open(b',').key("output_index").number(self.index).key("item").spliced(&item);
        self.event("response.output_item.done", b"", &rest.take(), out);
        self.finish_item(&item);
    }
}

/// Returns the members that locate a delta, starting with a comma.
fn position_members(open: &Open, index: u64, part: Option<&str>) -> Vec<u8> {
    let mut out = Writer::default();
    out.open(b',').key("item_id").str(&open.id).key("output_index").number(index);
    if let Some(part) = part {
        out.key(part).number(open.parts);
    }
    out.take()
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// Writes the end of a failed answer from the given data only, after `sequence` events of the stream.
pub(crate) fn failure(
    error: &ErrorText<'_>,
    id: &str,
    model: Option<&Text<'static>>,
    sequence: u64,
    created_s: u64,
) -> Vec<u8> {
    let context =
        AnswerContext { id: id.strip_prefix("resp_").unwrap_or(id).to_owned(), created_s, ..AnswerContext::default() };
    let mut encoder = Encoder { sequence, is_started: true, ..Encoder::new(context) };
    encoder.model = model.cloned().unwrap_or_else(|| "".into());
    let mut out = Vec::new();
    encoder.fail(error, &mut out);
    out
}
