//! A conversation as the texts that a model reads, each with its position in the body.

use std::borrow::Cow;
use std::ops::Range;

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One text of the body: a JSON string that may be rewritten. All bytes outside of these strings stay unchanged.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    /// The range of its JSON string in the body, including the quotes.
    pub(crate) span: Range<usize>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) role: Role,
    /// The index of its message; 0 for system texts outside the messages.
    pub(crate) turn: usize,
    /// For a tool result: the command, such as `git status`, or the name of the tool with its path.
    pub(crate) command: Option<String>,
    /// A frozen text was sent to the provider in an earlier turn, and must be sent again byte by byte.
    pub(crate) frozen: bool,
    /// The run of a stage that last rewrote the text; 0 for an original text.
    pub(crate) changed_at: usize,
}

impl Piece<'_> {
    /// Replaces the text. Returns the previous one.
    pub(crate) fn rewrite(&mut self, text: String, run: usize) -> String {
        self.changed_at = run;
        std::mem::replace(&mut self.text, Cow::Owned(text)).into_owned()
    }
}

/// The texts of a body in the order in which a model reads them.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) pieces: Vec<Piece<'a>>,
    /// Whether the caller marked a part of it with `cache_control`.
    pub(crate) has_cache_mark: bool,
}

impl Conversation<'_> {
    /// The number of bytes of all texts.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.text.len()).sum()
    }

    /// The number of bytes of the tool results.
    pub(crate) fn tool_bytes(&self) -> usize {
        let tools = self.pieces.iter().filter(|piece| piece.role == Role::Tool);
        tools.map(|piece| piece.text.len()).sum()
    }
}
