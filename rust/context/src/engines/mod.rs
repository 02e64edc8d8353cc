//! The engines. Each proposes new texts for pieces of a conversation; `compress` judges every proposal and takes it or leaves it.
//!
//! `lite` (white space, repeated texts, data URLs), `columnar` (JSON rows as a table), `caveman` (words that say nothing, with `pack`: lists of
//! them by language), `score` (words of little weight), `age` (results of older turns), `dedup` (lines that an earlier result has), `rtk`
//! (outputs by their command).

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
    /// The id under which the text names the piece as it came.
    pub(crate) raw_id: Option<String>,
}

/// What an engine may leave out, and so what is checked after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// White space, or what an earlier piece of the conversation says.
    Nothing,
    /// Words of prose; every protected span survives.
    Words,
    /// Lines of a tool's result; lines that tell an error survive, and those that are kept are whole.
    Lines,
}

/// The input of an engine beside the pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) level: Level,
    pub(crate) filters: Option<&'a Filters>,
    /// Languages in which words may go; empty: all.
    pub(crate) languages: &'a [String],
    /// Whether outputs are named as they came.
    pub(crate) keeps_raw: bool,
    /// The run of a stage in which this one worked last, in an earlier pass; `None` in its first.
    pub(crate) ran_at: Option<usize>,
}

impl Context<'_> {
    /// Whether a piece has a text that this stage did not see, nor write itself.
    pub(crate) fn is_new(&self, piece: &Piece<'_>) -> bool {
        self.ran_at.is_none_or(|run| piece.changed_at > run)
    }
}

/// One engine. It is stable when a piece's new text depends on that piece and earlier ones only, so that the beginning of a
/// conversation is written in the same way in each turn. It finds nothing more in what it wrote itself.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) id: &'static str,
    pub(crate) loss: Loss,
    pub(crate) is_stable: bool,
    pub(crate) propose: fn(&[Piece<'_>], &Context<'_>) -> Vec<Proposal>,
}

/// Ids of all engines, for lists of what there is.
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

/// Proposals of an engine that writes each piece by itself; `None` leaves a piece as it is.
fn each<'p>(
    pieces: &'p [Piece<'p>],
    context: &Context<'_>,
    mut write: impl FnMut(&'p Piece<'p>) -> Option<String>,
) -> Vec<Proposal> {
    let free = pieces.iter().enumerate().filter(|(_, piece)| !piece.frozen && context.is_new(piece));
    free.filter_map(|(index, piece)| Some(Proposal { piece: index, text: write(piece)?, raw_id: None })).collect()
}

/// The pack for what a person or a model wrote, long enough that words can be spared; `None` for all else.
fn prose_pack(piece: &Piece<'_>) -> Option<&'static Pack> {
    const MIN_BYTES: usize = 50;
    let is_prose = matches!(piece.role, Role::User | Role::Assistant) && piece.text.len() >= MIN_BYTES;
    if is_prose {
        pack_of(&piece.text)
    } else {
        None
    }
}

/// Whether a piece shows code or text of files, as hits of a search and differences do.
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

/// Whether a piece is the contents of a file, where every byte may count.
fn is_file(piece: &Piece<'_>) -> bool {
    const READERS: [&str; 12] =
        ["cat", "sed", "head", "tail", "read", "read_file", "view", "bat", "type", "less", "nl", "open"];
    let first = piece.command.as_deref().and_then(|command| command.split_whitespace().next());
    first.is_some_and(|first| READERS.contains(&first))
}
