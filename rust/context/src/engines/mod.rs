//! The engines. Each proposes new texts for pieces of a conversation. `compress` checks every proposal and accepts or
//! rejects it.
//!
//! `lite` (white space, repeated texts, data URLs), `columnar` (JSON rows as a table), `caveman` (words without
//! content, listed by language in `pack`), `score` (words of little weight), `age` (results of older turns), `dedup`
//! (lines that an earlier result also has), `rtk` (output by command).

mod age;
mod caveman;
mod columnar;
mod dedup;
mod lite;
pub(crate) mod pack;
use pack::pack_of;
pub use pack::{packs, Pack};
mod rtk;
mod score;

use crate::conversation::{Piece, Role};
use crate::level::Level;
use crate::rtk::Filters;

/// A new text for one piece.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// Index of the piece.
    pub(crate) piece: usize,
    pub(crate) text: String,
    /// The id by which the text refers to the original piece.
    pub(crate) raw_id: Option<String>,
}

/// The content that an engine may remove, which determines the check after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// White space, or the content of an earlier piece of the conversation.
    Nothing,
    /// Words of prose. Every protected span must remain.
    Words,
    /// Lines of a tool result. Error lines must remain, and remaining lines must be complete.
    Lines,
}

/// The input of an engine other than the pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) level: Level,
    pub(crate) filters: Option<&'a Filters>,
    /// The languages in which words may be removed. Empty means all.
    pub(crate) languages: &'a [String],
    /// Whether the new text refers to the original output.
    pub(crate) keeps_raw: bool,
    /// The stage's last run in an earlier pass; `None` in its first.
    pub(crate) ran_at: Option<usize>,
}

impl Context<'_> {
    /// Whether a piece has a text that this stage has neither seen nor written.
    pub(crate) fn is_new(&self, piece: &Piece<'_>) -> bool {
        self.ran_at.is_none_or(|run| piece.changed_at > run)
    }
}

/// One engine. It is stable if the new text of a piece depends only on that piece and earlier ones, so that the
/// beginning of a conversation is written identically in each turn. An engine must not change its own output again.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) id: &'static str,
    pub(crate) loss: Loss,
    pub(crate) is_stable: bool,
    pub(crate) propose: fn(&[Piece<'_>], &Context<'_>) -> Vec<Proposal>,
}

/// The ids of all engines.
pub fn engine_ids() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|engine| engine.id)
}

pub(crate) const ENGINES: [Engine; 7] = [
    Engine { id: "lite", loss: Loss::Nothing, is_stable: true, propose: lite::propose },
    Engine { id: "rtk", loss: Loss::Lines, is_stable: true, propose: rtk::propose },
    Engine { id: "columnar", loss: Loss::Nothing, is_stable: true, propose: columnar::propose },
    Engine { id: "caveman", loss: Loss::Words, is_stable: true, propose: caveman::propose },
    Engine { id: "score", loss: Loss::Words, is_stable: false, propose: score::propose },
    Engine { id: "age", loss: Loss::Lines, is_stable: false, propose: age::propose },
    Engine { id: "session-dedup", loss: Loss::Nothing, is_stable: true, propose: dedup::propose },
];

/// The proposals of an engine that rewrites each piece separately. `None` leaves a piece unchanged.
fn each<'p>(
    pieces: &'p [Piece<'p>],
    context: &Context<'_>,
    mut write: impl FnMut(&'p Piece<'p>) -> Option<String>,
) -> Vec<Proposal> {
    let free = pieces.iter().enumerate().filter(|(_, piece)| !piece.frozen && context.is_new(piece));
    free.filter_map(|(index, piece)| Some(Proposal { piece: index, text: write(piece)?, raw_id: None })).collect()
}

/// The rule pack for text that a user or model wrote and that is long enough to shorten; `None` for other pieces.
fn prose_pack(piece: &Piece<'_>) -> Option<&'static Pack> {
    const MIN_BYTES: usize = 50;
    let is_prose = matches!(piece.role, Role::User | Role::Assistant) && piece.text.len() >= MIN_BYTES;
    if is_prose {
        pack_of(&piece.text)
    } else {
        None
    }
}

/// Whether a piece is an excerpt of code or files, such as search results and diffs.
fn is_excerpt(piece: &Piece<'_>) -> bool {
    let mut words = piece.command.as_deref().unwrap_or_default().split_whitespace();
    let is_git =
        |words: &mut dyn Iterator<Item = &str>| matches!(words.next(), Some("diff" | "show" | "blame" | "grep"));
    match words.next() {
        Some("grep" | "rg" | "ag" | "ack" | "diff") => true,
        Some("git") => is_git(&mut words),
        _ => is_file(piece),
    }
}

/// Whether a piece is the content of a file, where every byte may matter.
fn is_file(piece: &Piece<'_>) -> bool {
    const READERS: [&str; 12] =
        ["cat", "sed", "head", "tail", "read", "read_file", "view", "bat", "type", "less", "nl", "open"];
    let first = piece.command.as_deref().and_then(|command| command.split_whitespace().next());
    first.is_some_and(|first| READERS.contains(&first))
}
