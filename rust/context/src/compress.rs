//! The face of the crate: a body in, a body and a report out.

use fairlead_dialect::counted_bytes;

use fairlead_core::Dialect;
use serde::Serialize;

use crate::conversation::{Conversation, Piece};
use crate::passes::{self, Passes, StageReport};
use crate::plan::Plan;
use crate::raw::RawOutput;
use crate::read;
use crate::session::Session;
use crate::tape::Tape;

/// The outcome of compression for one body.
#[derive(Debug)]
pub struct Outcome {
    /// The body that goes out, or why the caller's goes out as it came.
    pub body: Result<Vec<u8>, Unchanged>,
    pub report: Report,
    /// Outputs that the body names as they came; empty unless the plan asks for them.
    pub raw_outputs: Vec<RawOutput>,
    /// To be handed in with the next turn of the session.
    pub session: Session,
}

/// Why a body goes out as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unchanged {
    /// The plan has no stages.
    Off,
    /// Not a JSON object, or none that the dialect knows.
    NotUnderstood,
    /// No engine found anything to leave out.
    NothingToGain,
    /// The engines found more in what the others left, pass after pass, so that what goes out would be made shorter again.
    Unsettled,
}

/// Figures of one body. Tokens are those of its texts, by the gateway's one counter; calls and schemas are not in them.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Those among them that are results of tool calls.
    pub tool_tokens_before: u64,
    pub tool_tokens_after: u64,
    pub stages: Vec<StageReport>,
    /// Texts that went out in an earlier turn and went out again as they were.
    pub frozen: usize,
}

/// Runs a plan over a body, until no stage of it finds anything more. `lap` is called after each run of a stage and gives the microseconds
/// since it was called last; a caller that measures nothing gives 0.
pub fn compress(
    dialect: Dialect,
    body: &[u8],
    plan: &Plan,
    session: Option<&Session>,
    mut lap: impl FnMut() -> u64,
) -> Outcome {
    let unchanged = |why| Outcome {
        body: Err(why),
        report: Report::default(),
        raw_outputs: Vec::new(),
        session: session.cloned().unwrap_or_default(),
    };
    if plan.stages.is_empty() && session.is_none_or(|session| session.bytes() == 0) {
        return unchanged(Unchanged::Off);
    }
    let Ok(tape) = Tape::read(body) else { return unchanged(Unchanged::NotUnderstood) };
    let before = read::conversation(dialect, &tape);
    if before.pieces.is_empty() {
        return unchanged(Unchanged::NotUnderstood);
    }
    let copied = || Conversation { pieces: before.pieces.clone(), has_cache_mark: before.has_cache_mark };
    let mut after = copied();
    let mut report = Report { tokens_before: tokens(before.bytes()), ..Report::default() };
    report.frozen = session.map_or(0, |session| session.freeze(&mut after));
    let _ = lap();
    let Passes { stages, mut raw_outputs, is_settled } = passes::run(plan, &mut after, &mut lap);
    report.stages = stages;
    if !is_settled {
        after = copied();
        report.frozen = session.map_or(0, |session| session.freeze(&mut after));
        raw_outputs.clear();
    }
    report.tokens_after = tokens(after.bytes());
    report.tool_tokens_before = tokens(before.tool_bytes());
    report.tool_tokens_after = tokens(after.tool_bytes());
    let next = Session::after(&before.pieces, &after.pieces);
    let why = if is_settled { Unchanged::NothingToGain } else { Unchanged::Unsettled };
    let body = written(body, &before.pieces, &after.pieces).ok_or(why);
    Outcome { body, report, raw_outputs, session: next }
}

/// The body with the texts that changed; `None` when none did. All other bytes are the caller's.
fn written(body: &[u8], before: &[Piece<'_>], after: &[Piece<'_>]) -> Option<Vec<u8>> {
    let mut changed: Vec<&Piece<'_>> =
        before.iter().zip(after).filter(|(before, after)| before.text != after.text).map(|(_, after)| after).collect();
    changed.sort_by_key(|piece| piece.span.start);
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    for piece in &changed {
        out.extend_from_slice(body.get(at..piece.span.start)?);
        serde_json::to_writer(&mut out, piece.text.as_ref()).ok()?;
        at = piece.span.end;
    }
    out.extend_from_slice(body.get(at..)?);
    (!changed.is_empty()).then_some(out)
}

fn tokens(bytes: usize) -> u64 {
    counted_bytes(bytes) as u64
}
