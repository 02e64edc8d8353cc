//! Runs of lines that an earlier result has, too: the second reading of a file, the next run of the same tests.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::conversation::{Piece, Role};
use crate::marker;

use super::{Context, Proposal};

/// Lines that a run must have before it is looked for.
const WINDOW: usize = 6;
/// Bytes that a run must have, so that its note is far shorter.
const RUN_MIN_BYTES: usize = 240;

/// Where lines were first seen: index of the piece, and of the line in it.
type Place = (usize, usize);

pub(super) fn propose(pieces: &[Piece<'_>], _: &Context<'_>) -> Vec<Proposal> {
    let lines: Vec<Vec<&str>> = pieces.iter().map(|piece| lines_of(piece)).collect();
    let mut windows: HashMap<u64, Place> = HashMap::new();
    let mut proposals = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let hashes: Vec<u64> = lines[index].windows(WINDOW).map(hash_of).collect();
        if marker::points_back(&piece.text) {
            continue;
        }
        if !piece.frozen {
            if let Some(text) = without_repeats(index, &lines, &hashes, &windows) {
                proposals.push(Proposal { piece: index, text, raw_id: None });
                // A run that is a note from now on is nothing to point to.
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

fn without_repeats(index: usize, lines: &[Vec<&str>], hashes: &[u64], windows: &HashMap<u64, Place>) -> Option<String> {
    let own = &lines[index];
    let mut out = String::new();
    let mut is_shorter = false;
    let mut at = 0;
    while at < own.len() {
        let place = hashes.get(at).and_then(|hash| windows.get(hash));
        let run = place.map_or(0, |&(piece, line)| {
            own[at..].iter().zip(&lines[piece][line..]).take_while(|(own, earlier)| own == earlier).count()
        });
        let bytes: usize = own[at..at + run].iter().map(|line| line.len() + 1).sum();
        if run >= WINDOW && bytes >= RUN_MIN_BYTES {
            out.push_str(&marker::lines_again(run, own[at]));
            is_shorter = true;
            at += run;
        } else {
            // Lines of a run that is too short to replace are passed at once, so that no line is compared twice.
            let passed = run.max(1);
            out.push_str(&own[at..at + passed].join("\n"));
            at += passed;
        }
        out.push('\n');
    }
    out.pop();
    is_shorter.then_some(out)
}
