//! Shortens command output by the filter of its command, or by the shapes of its lines if no filter matches.

use crate::conversation::{Piece, Role};
use crate::level::Level;
use crate::raw;
use crate::rtk::{built_in_filters, filtered, Bounds, Focus};
use crate::{lines, marker};

use super::{Context, Proposal};

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    let bounds = match context.level {
        Level::Minimal => Bounds { samples: 3, text: None, factor: 3 },
        Level::Standard => Bounds { samples: 2, text: Some(1), factor: 1 },
        Level::Aggressive => Bounds { samples: 1, text: Some(2), factor: 1 },
    };
    let mut focus = Focus::default();
    let mut proposals = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if piece.role == Role::User {
            focus.add(piece, context);
        }
        let is_new = focus.is_new || context.is_new(piece);
        if piece.role != Role::Tool || piece.frozen || !is_new || marker::is_in(&piece.text) {
            continue;
        }
        // A filter may recognize output by its beginning, so terminal colours are removed first.
        let clean = lines::without_control(&piece.text);
        let command = piece.command.as_deref().unwrap_or_default();
        let own = context.filters.and_then(|filters| filters.of(command, &clean));
        let filter = own.or_else(|| built_in_filters().of(command, &clean));
        let Some(mut text) = filtered(&clean, filter, &focus, bounds) else {
            if clean.len() < piece.text.len() {
                proposals.push(Proposal { piece: index, text: clean.into_owned(), raw_id: None });
            }
            continue;
        };
        let raw_id = context.keeps_raw.then(|| raw::id_of(&piece.text));
        if let Some(id) = &raw_id {
            text.push('\n');
            text.push_str(&marker::full_output_note(id));
        }
        proposals.push(Proposal { piece: index, text, raw_id });
    }
    proposals
}
