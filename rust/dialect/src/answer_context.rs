//! What an answer in another form says that its provider does not know.

use bytes::Bytes;

use crate::tool_names::ToolNames;

/// The parts of an answer that its provider does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerContext {
    /// The time, for a form that tells one.
    pub created_s: u64,
    /// The caller asked for the usage chunk of the chat form.
    pub asks_usage: bool,
    /// A Gemini caller reads its stream as one JSON list.
    pub is_list: bool,
    /// The response is handed out beside the stream, for whoever keeps it.
    pub keeps: bool,
    /// Letters and digits that nobody can guess: the id of a response, and of an answer without one.
    pub id: String,
    /// The members of the request that its response repeats, from [`crate::translate::echo`].
    pub echo: Bytes,
    /// Tools that were sent under other names.
    pub tool_names: ToolNames,
}
