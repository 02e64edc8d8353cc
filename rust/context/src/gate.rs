//! The checks after each engine. A rejected proposal is dropped, and the previous text is sent.

use std::collections::HashSet;

use memchr::memmem;

use crate::conversation::Piece;
use crate::engines::{Loss, Proposal};
use crate::{lines, protect};

/// Why a proposal was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// The new text is not shorter.
    Inflation,
    /// A protected span, an error line or a value is missing, or text became a code fence and changed what counts as
    /// prose.
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

/// Checks one proposal. `Ok` contains the number of protected spans that were checked.
pub(crate) fn check(before: &Piece<'_>, proposal: &Proposal, loss: Loss) -> Result<usize, Rejection> {
    if proposal.text.len() >= before.text.len() {
        return Err(Rejection::Inflation);
    }
    // Terminal colours are not part of a line.
    let clean = lines::without_control(&before.text);
    let wanted = match loss {
        // The engine compared the whole text, or wrote it from its original values.
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

/// Whether `text` contains all of `wanted`, in order. The search never goes back.
fn words_survive(wanted: &[&str], text: &str) -> bool {
    let mut at = 0;
    wanted.iter().all(|span| {
        let found = text.as_bytes().get(at..).and_then(|rest| memmem::find(rest, span.as_bytes()));
        at += found.map_or(0, |offset| offset + span.len());
        found.is_some()
    })
}

/// Whether `text` contains each line. Repeated lines may have become fewer.
fn lines_survive(wanted: &[&str], text: &str) -> bool {
    let lines: HashSet<&str> = text.lines().map(str::trim).collect();
    wanted.iter().all(|line| lines.contains(line))
}
