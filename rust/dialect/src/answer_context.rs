//! The gateway's input to a translated response.

use bytes::Bytes;

use crate::tool_names::ToolNames;

/// The parts of a response that the provider does not supply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerContext {
    /// The creation time, for dialects that include one.
    pub created_s: u64,
    /// The caller requested the usage chunk of a chat stream.
    pub requests_usage: bool,
    /// A Gemini caller reads the stream as a JSON array.
    pub is_list: bool,
    /// The complete response is also returned beside the stream, so that it can be stored.
    pub keeps: bool,
    /// Unguessable letters and digits for the id of a response, or of an answer without an id.
    pub id: String,
    /// The request members that the response repeats, from [`crate::translate::echo`].
    pub echo: Bytes,
    /// Tools that were sent under other names.
    pub tool_names: ToolNames,
}
