//! A conversation as the texts that a model reads, each with its place in the body.

use std::borrow::Cow;
use std::ops::Range;

/// Whose words a text is.
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

/// One text of the body: a JSON string that may be written anew. Every byte outside of these stays as it came.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    /// Where its JSON string lies in the body, quotes included.
    pub(crate) span: Range<usize>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) role: Role,
    /// Index of its message; system texts outside of the messages have 0.
    pub(crate) turn: usize,
    /// For the result of a tool call: what was run, as in `git status`, or the tool's name with its path.
    pub(crate) command: Option<String>,
    /// A frozen text went to the provider in an earlier turn, and goes there again byte by byte.
    pub(crate) frozen: bool,
    /// The run of a stage that wrote it anew last; 0 for a text as it came.
    pub(crate) changed_at: usize,
}

impl Piece<'_> {
    /// Puts another text in the place of this one, which is given back.
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
    /// Bytes of all texts.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.text.len()).sum()
    }

    /// Bytes of the results of tool calls.
    pub(crate) fn tool_bytes(&self) -> usize {
        let tools = self.pieces.iter().filter(|piece| piece.role == Role::Tool);
        tools.map(|piece| piece.text.len()).sum()
    }
}
