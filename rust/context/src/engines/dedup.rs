//! Replaces runs of lines that an earlier result also has: a file that is read twice, or another run of the same tests.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::conversation::{Piece, Role};
use crate::marker;

use super::{Context, Proposal};

/// The number of lines of a run before it is looked up.
const WINDOW: usize = 6;
/// The minimum number of bytes of a run, so that its note is much shorter.
const RUN_MIN_BYTES: usize = 240;

/// The first occurrence of lines: the index of the piece, and of the line in it.
type WindowPosition = (usize, usize);

pub(super) fn propose(pieces: &[Piece<'_>], _: &Context<'_>) -> Vec<Proposal> {
    let lines: Vec<Vec<&str>> = pieces.iter().map(|piece| lines_of(piece)).collect();
    let mut windows: HashMap<u64, WindowPosition> = HashMap::new();
    let mut proposals = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let hashes: Vec<u64> = lines[index].windows(WINDOW).map(hash_of).collect();
        if marker::points_back(&piece.text) {
            continue;
        }
        if !piece.frozen {
            if let Some(text) = without_repeats(index, &lines, &hashes, &windows) {
                proposals.push(Proposal { piece: index, text, raw_id: None });
                // Later runs cannot refer to lines that are replaced by a note.
                continue;
            }
        }
        for (at, hash) in hashes.into_iter().enumerate() {
            windows.entry(hash).or_insert((index, at));
        }
    }
    proposals
}

fn lines_of<'p>(piece: &'p Piece<'_>) -> Vec<&'p str> {
    if piece.role == Role::Tool {
        piece.text.split('\n').collect()
    } else {
        Vec::new()
    }
}

fn hash_of(window: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    window.hash(&mut hasher);
    hasher.finish()
}

fn without_repeats(
    index: usize,
    lines: &[Vec<&str>],
    hashes: &[u64],
    windows: &HashMap<u64, WindowPosition>,
) -> Option<String> {
    let own = &lines[index];
    let mut out = String::new();
    let mut is_shorter = false;
    let mut at = 0;
    while at < own.len() {
        let position = hashes.get(at).and_then(|hash| windows.get(hash));
        let run = position.map_or(0, |&(piece, line)| {
            own[at..].iter().zip(&lines[piece][line..]).take_while(|(own, earlier)| own == earlier).count()
        });
        let bytes: usize = own[at..at + run].iter().map(|line| line.len() + 1).sum();
        if run >= WINDOW && bytes >= RUN_MIN_BYTES {
            out.push_str(&marker::lines_again(run, own[at]));
            is_shorter = true;
            at += run;
        } else {
            // The lines of a run that is too short are skipped at once, so that no line is compared twice.
            let passed = run.max(1);
            out.push_str(&own[at..at + passed].join("\n"));
            at += passed;
        }
        out.push('\n');
    }
    out.pop();
    is_shorter.then_some(out)
}
