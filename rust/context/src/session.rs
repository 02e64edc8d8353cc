//! Texts that were sent in earlier turns of a session. They are sent again byte by byte, so that the provider's prompt
//! cache can be used.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::conversation::{Conversation, Piece};

/// The texts that a session sent last. The caller stores one for each session, and passes it in with the next turn.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pieces: Vec<FrozenPiece>,
}

#[derive(Debug, Clone)]
struct FrozenPiece {
    /// The hash of the text as the caller sent it, with its role and turn.
    hash: u64,
    bytes: usize,
    /// The text that was sent instead; `None` if it was sent unchanged.
    text: Option<Arc<str>>,
}

impl Session {
    /// The size of the stored texts in bytes.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().filter_map(|piece| piece.text.as_ref()).map(|text| text.len()).sum()
    }

    /// Freezes the texts of the conversation that this session sent before, up to the first one that differs.
    pub(crate) fn freeze(&self, conversation: &mut Conversation<'_>) -> usize {
        let mut count = 0;
        for (piece, frozen) in conversation.pieces.iter_mut().zip(&self.pieces) {
            if frozen.bytes != piece.text.len() || frozen.hash != hash_of(piece) {
                break;
            }
            if let Some(text) = &frozen.text {
                piece.text = text.to_string().into();
            }
            piece.frozen = true;
            count += 1;
        }
        count
    }

    /// The session after a turn. Both arguments are the conversation of one body, before and after the engines.
    pub(crate) fn after(before: &[Piece<'_>], after: &[Piece<'_>]) -> Self {
        let frozen = |(before, after): (&Piece<'_>, &Piece<'_>)| FrozenPiece {
            hash: hash_of(before),
            bytes: before.text.len(),
            text: (before.text != after.text).then(|| Arc::from(after.text.as_ref())),
        };
        Self { pieces: before.iter().zip(after).map(frozen).collect() }
    }
}

fn hash_of(piece: &Piece<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (piece.role, piece.turn, piece.text.as_ref()).hash(&mut hasher);
    hasher.finish()
}
