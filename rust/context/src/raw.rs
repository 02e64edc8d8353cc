//! The original of output that the rtk engine has shortened, for the caller to store. The shorter text refers to it.

use ring::digest::{digest, SHA256};

/// The number of digest bytes in an id.
const ID_BYTES: usize = 16;

/// The original of a shortened output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOutput {
    /// The id that the shorter text uses. The same output has the same id in every turn, so that the text of a turn
    /// does not change.
    pub id: String,
    /// The command that was run; empty if unknown.
    pub command: String,
    pub text: String,
}

/// The id of an output: a digest of its text in hexadecimal.
pub(crate) fn id_of(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    fairlead_core::hex(&digest.as_ref()[..ID_BYTES])
}
