//! Shortens the results of older turns by their kind: a file to its definitions, search results to their files, shell
//! output to its beginning and end, JSON to its first rows. Error lines stay, and so do lines with rare words that the
//! user wrote.

use std::collections::HashSet;

use crate::conversation::{Piece, Role};
use crate::level::Level;
use crate::rtk::Focus;
use crate::{lines, marker};

use super::{is_file, Context, Proposal};

/// Shorter results are not changed.
const MIN_LINES: usize = 12;

/// The kind of a tool result, which determines its most important lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    File,
    Search,
    Json,
    Shell,
}

pub(super) fn propose(pieces: &[Piece<'_>], context: &Context<'_>) -> Vec<Proposal> {
    let newest = match context.level {
        Level::Minimal => 6,
        Level::Standard => 4,
        Level::Aggressive => 2,
    };
    let last = pieces.iter().map(|piece| piece.turn).max().unwrap_or_default();
    let mut focus = Focus::default();
    for piece in pieces.iter().filter(|piece| piece.role == Role::User) {
        focus.add(piece, context);
    }
    let shorter = |(index, piece): (usize, &Piece<'_>)| {
        let is_old = piece.role == Role::Tool && piece.turn + newest <= last;
        if !is_old || piece.frozen || marker::is_in(&piece.text) || !(focus.is_new || context.is_new(piece)) {
            return None;
        }
        let lines: Vec<&str> = piece.text.lines().collect();
        if lines.len() < MIN_LINES {
            return None;
        }
        let mut keep = chosen(strategy_of(piece), &lines);
        lines::mark_errors(&lines, &mut keep);
        focus.mark(&lines, &mut keep);
        Some(Proposal { piece: index, text: lines::selection(&lines, &keep)?, raw_id: None })
    };
    pieces.iter().enumerate().filter_map(shorter).collect()
}

fn strategy_of(piece: &Piece<'_>) -> Strategy {
    let command = piece.command.as_deref().unwrap_or_default();
    if is_file(piece) {
        Strategy::File
    } else if ["grep", "rg", "git grep", "search", "ack"].iter().any(|name| command.starts_with(name)) {
        Strategy::Search
    } else if piece.text.trim_start().starts_with(['{', '[']) {
        Strategy::Json
    } else {
        Strategy::Shell
    }
}

fn chosen(strategy: Strategy, lines: &[&str]) -> Vec<bool> {
    let count = lines.len();
    let ends = |at: usize, head: usize, tail: usize| at < head || at + tail >= count;
    let mut files: HashSet<String> = HashSet::new();
    let keep = |(at, line): (usize, &&str)| match strategy {
        Strategy::File => ends(at, 3, 1) || is_definition(line),
        Strategy::Search => files.insert(line.split(':').next().unwrap_or_default().to_owned()),
        Strategy::Json => ends(at, 8, 2),
        Strategy::Shell => ends(at, 3, 6),
    };
    lines.iter().enumerate().map(keep).collect()
}

/// Whether a line of a file defines something that other files use.
fn is_definition(line: &str) -> bool {
    const OPENINGS: [&str; 17] = [
        "pub ",
        "fn ",
        "def ",
        "class ",
        "struct ",
        "enum ",
        "trait ",
        "impl ",
        "export ",
        "function ",
        "interface ",
        "type ",
        "func ",
        "async def ",
        "const ",
        "# ",
        "[",
    ];
    OPENINGS.iter().any(|opening| line.trim_start().starts_with(opening))
}
