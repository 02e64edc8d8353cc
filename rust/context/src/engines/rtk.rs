//! Outputs of commands by the filter of their command, or by the makes of their lines where no filter knows the command.

use crate::conversation::{Piece, Role};
use crate::level::Level;
use crate::marker;
use crate::raw;
use crate::rtk::{built_in_filters, filtered, Bounds, Focus};

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
            focus.add(&piece.text);
        }
        if piece.role != Role::Tool || piece.frozen || marker::is_in(&piece.text) {
            continue;
        }
        let command = piece.command.as_deref().unwrap_or_default();
        let own = context.filters.and_then(|filters| filters.of(command, &piece.text));
        let filter = own.or_else(|| built_in_filters().of(command, &piece.text));
        if let Some(mut text) = filtered(&piece.text, filter, &focus, bounds) {
            let raw_id = (context.keeps_raw && marker::is_in(&text)).then(|| raw::id_of(&piece.text));
            if let Some(id) = &raw_id {
                text.push('\n');
                text.push_str(&marker::whole_output_note(id));
            }
            proposals.push(Proposal { piece: index, text, raw_id });
        }
    }
    proposals
}
