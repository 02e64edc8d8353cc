//! Reads bodies of the four dialects as conversations: `chat`, `messages`, `responses` and `gemini`. `command` extracts
//! the command of a tool call.

mod chat;
mod command;
mod gemini;
mod messages;
mod responses;

use std::collections::HashMap;

use fairlead_core::json::Kind;
use fairlead_core::Dialect;

use crate::conversation::{Conversation, Piece, Role};
use crate::tape::Tape;

/// The reader of a body: its tape, and the conversation that it builds.
#[derive(Debug)]
struct Reader<'t, 'a> {
    tape: &'t Tape<'a>,
    conversation: Conversation<'a>,
    /// Commands by the ids of their calls.
    commands: HashMap<String, String>,
}

/// The texts of a body.
pub(crate) fn conversation<'a>(dialect: Dialect, tape: &Tape<'a>) -> Conversation<'a> {
    let mut reader = Reader { tape, conversation: Conversation::default(), commands: HashMap::new() };
    match dialect {
        Dialect::Openai => chat::read(&mut reader),
        Dialect::Anthropic => messages::read(&mut reader),
        Dialect::OpenaiResponses => responses::read(&mut reader),
        Dialect::Gemini => gemini::read(&mut reader),
    }
    reader.conversation
}

impl Reader<'_, '_> {
    /// Adds the text at `index`, if there is one.
    fn push(&mut self, index: usize, role: Role, turn: usize, command: Option<String>) {
        let (Some(value), Some(text)) = (self.tape.value(index), self.tape.text(index)) else { return };
        self.conversation.pieces.push(Piece {
            span: value.span(),
            text,
            role,
            turn,
            command,
            frozen: false,
            changed_at: 0,
        });
    }

    /// Adds a content that is a string, or a list of parts with a member `text`.
    fn content(&mut self, index: usize, role: Role, turn: usize, command: Option<&String>) {
        match self.tape.kind(index) {
            Some(Kind::String) => self.push(index, role, turn, command.cloned()),
            Some(Kind::Array) => {
                let parts: Vec<usize> = self.tape.elements(index).collect();
                for part in parts {
                    self.note_mark(part);
                    if let Some(text) = self.tape.member(part, "text") {
                        self.push(text, role, turn, command.cloned());
                    }
                }
            }
            _ => {}
        }
    }

    fn note_mark(&mut self, part: usize) {
        self.conversation.has_cache_mark |= self.tape.member(part, "cache_control").is_some();
    }

    fn role(&self, message: usize) -> Role {
        match self.tape.member_text(message, "role").as_deref() {
            Some("system" | "developer") => Role::System,
            Some("assistant" | "model") => Role::Assistant,
            Some("tool" | "function") => Role::Tool,
            _ => Role::User,
        }
    }
}
