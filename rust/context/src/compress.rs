//! The entry point of the crate: takes a body and returns a body and a report.

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

/// The result of compressing one body.
#[derive(Debug)]
pub struct Outcome {
    /// The body to send, or the reason why the caller's is sent unchanged.
    pub body: Result<Vec<u8>, Unchanged>,
    pub report: Report,
    /// The original outputs that the body refers to. Empty unless the plan requests them.
    pub raw_outputs: Vec<RawOutput>,
    /// To be passed in with the next turn of the session.
    pub session: Session,
}

/// Why a body is sent unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unchanged {
    /// The plan has no stages.
    Off,
    /// The body is not a JSON object, or not one of the dialect.
    NotUnderstood,
    /// No engine found anything to remove.
    NothingToGain,
    /// The engines found more to remove in each pass, so the result would be shortened again the next time.
    Unsettled,
}

/// Statistics of one body. Tokens are those of its texts, by the gateway's token counter; tool calls and schemas are
/// not included.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// The part of them that belongs to tool results.
    pub tool_tokens_before: u64,
    pub tool_tokens_after: u64,
    pub stages: Vec<StageReport>,
    /// The number of texts that were sent in an earlier turn and are sent unchanged again.
    pub frozen: usize,
}

/// Runs a plan over a body until no stage finds anything more. `lap` is called after each run of a stage and returns
/// the microseconds since its last call. A caller that does not measure time returns 0.
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

/// The body with the changed texts; `None` if none changed. All other bytes are unchanged.
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
