//! The checks after each engine. A proposal that fails is dropped, and the text of before goes out.

use std::collections::HashSet;

use memchr::memmem;

use crate::conversation::Piece;
use crate::engines::{Loss, Proposal};
use crate::{lines, protect};

/// Why a proposal was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// Not shorter than before.
    Inflation,
    /// A protected span, a line of an error, or a value is missing, or text became a fence and so turned code into prose.
    Fidelity,
}

impl Rejection {
    pub fn name(self) -> &'static str {
        match self {
            Self::Inflation => "inflation",
            Self::Fidelity => "fidelity",
        }
    }
}

/// Judges one proposal. `Ok` counts the protected spans that were looked for.
pub(crate) fn check(before: &Piece<'_>, proposal: &Proposal, loss: Loss) -> Result<usize, Rejection> {
    if proposal.text.len() >= before.text.len() {
        return Err(Rejection::Inflation);
    }
    // Colours of a terminal are no part of a line.
    let clean = lines::without_control(&before.text);
    let wanted = match loss {
        // The engine compared the whole text, or wrote it from its own values.
        Loss::Nothing => return Ok(0),
        Loss::Words => protect::spans(&before.text).into_iter().map(|span| &before.text[span]).collect::<Vec<_>>(),
        Loss::Lines => clean.lines().filter(|line| lines::is_error(line)).map(str::trim).collect(),
    };
    let survives = match loss {
        Loss::Lines => lines_survive(&wanted, &proposal.text),
        _ => protect::fences(&proposal.text) == protect::fences(&before.text) && words_survive(&wanted, &proposal.text),
    };
    survives.then_some(wanted.len()).ok_or(Rejection::Fidelity)
}

/// Whether all of `wanted` are in `text`, in order. The search never goes back.
fn words_survive(wanted: &[&str], text: &str) -> bool {
    let mut at = 0;
    wanted.iter().all(|span| {
        let found = text.as_bytes().get(at..).and_then(|rest| memmem::find(rest, span.as_bytes()));
        at += found.map_or(0, |place| place + span.len());
        found.is_some()
    })
}

/// Whether each line is there; runs of one line may have become fewer.
fn lines_survive(wanted: &[&str], text: &str) -> bool {
    let lines: HashSet<&str> = text.lines().map(str::trim).collect();
    wanted.iter().all(|line| lines.contains(line))
}
