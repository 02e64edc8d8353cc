//! Outputs as they were before the engine rtk made them shorter, for the caller to keep: the shorter text names them.

use ring::digest::{digest, SHA256};

/// Bytes of a digest that make an id.
const ID_BYTES: usize = 16;

/// An output that was made shorter, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOutput {
    /// As the shorter text names it. The same output has the same id in every turn, so that the text of a turn stays as it was.
    pub id: String,
    /// The command that was run; empty where it is not known.
    pub command: String,
    pub text: String,
}

/// The id of an output: hex of a digest of its text.
pub(crate) fn id_of(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    fairlead_core::hex(&digest.as_ref()[..ID_BYTES])
}
