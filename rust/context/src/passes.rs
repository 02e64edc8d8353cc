//! Runs the stages of a plan on a conversation until no stage finds anything more, because the output of one stage may
//! be input for an earlier one. A body that has passed through a plan therefore passes through it again unchanged.

use fairlead_dialect::counted_bytes;

use crate::conversation::{Conversation, Piece};
use crate::engines::Context;
use crate::gate;
use crate::gate::Rejection;
use crate::plan::{Plan, Stage};
use crate::raw::RawOutput;
use serde::Serialize;

/// Statistics of one stage, over all passes. The caller's `lap` measures the time.
#[derive(Debug, Default, Serialize)]
pub struct StageReport {
    pub engine: &'static str,
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// The number of texts that were rewritten.
    pub changed: usize,
    /// The number of protected spans that were checked and found.
    pub protected: usize,
    /// Why texts were left unchanged after a failed check.
    pub rejected: Vec<Rejection>,
    pub micros: u64,
    /// The stage did not run, because its result for a text may change in later turns and the body marks a part for the
    /// provider's cache.
    pub is_downgraded: bool,
}

/// The maximum number of passes over the stages of a plan. Each pass shortens the texts. In most conversations the
/// second pass finds nothing.
const PASSES_MAX: usize = 8;

/// The result of running the stages on a conversation.
pub(crate) struct Passes {
    pub(crate) stages: Vec<StageReport>,
    pub(crate) raw_outputs: Vec<RawOutput>,
    /// Another pass would change nothing.
    pub(crate) is_settled: bool,
}

/// Runs the stages in order, and repeats them while one changes what another has already seen.
pub(crate) fn run(plan: &Plan, conversation: &mut Conversation<'_>, lap: &mut impl FnMut() -> u64) -> Passes {
    let mut works: Vec<Work> = plan.stages.iter().map(|stage| Work::new(*stage, conversation)).collect();
    let mut passed = Passes { stages: Vec::new(), raw_outputs: Vec::new(), is_settled: false };
    let mut runs = 0;
    for _ in 0..PASSES_MAX {
        let mut is_changed = false;
        for work in works.iter_mut().filter(|work| !work.report.is_downgraded) {
            if work.has_seen_all(conversation) {
                continue;
            }
            runs += 1;
            is_changed |= work.run(runs, plan, conversation, &mut passed.raw_outputs);
            work.report.micros += lap();
        }
        if !is_changed {
            passed.is_settled = true;
            break;
        }
    }
    passed.stages = works.into_iter().map(Work::reported).collect();
    passed
}

/// One stage over all passes.
struct Work {
    stage: Stage,
    /// The last run in which this stage ran.
    ran_at: Option<usize>,
    bytes_before: usize,
    bytes_saved: usize,
    report: StageReport,
}

impl Work {
    fn new(stage: Stage, conversation: &Conversation<'_>) -> Self {
        let is_downgraded = conversation.has_cache_mark && !stage.engine.is_stable;
        let report = StageReport { engine: stage.engine.id, is_downgraded, ..StageReport::default() };
        Self { stage, ran_at: None, bytes_before: 0, bytes_saved: 0, report }
    }

    /// Whether nothing changed since this stage ran. An engine finds nothing in its own output.
    fn has_seen_all(&self, conversation: &Conversation<'_>) -> bool {
        self.ran_at.is_some_and(|run| conversation.pieces.iter().all(|piece| piece.changed_at <= run))
    }

    /// Runs the stage. Returns whether it changed a text.
    fn run(
        &mut self,
        run: usize,
        plan: &Plan,
        conversation: &mut Conversation<'_>,
        raw_outputs: &mut Vec<RawOutput>,
    ) -> bool {
        let Stage { engine, level } = self.stage;
        let context = Context {
            level,
            filters: plan.filters.as_deref(),
            languages: &plan.languages,
            keeps_raw: plan.keeps_raw,
            ran_at: self.ran_at.replace(run),
        };
        if context.ran_at.is_none() {
            self.bytes_before = conversation.bytes();
        }
        let mut is_changed = false;
        for proposal in (engine.propose)(&conversation.pieces, &context) {
            let Some(piece) = conversation.pieces.get_mut(proposal.piece).filter(|piece| !piece.frozen) else {
                continue;
            };
            match gate::check(piece, &proposal, engine.loss) {
                Ok(protected) => {
                    self.report.protected += protected;
                    self.report.changed += 1;
                    self.bytes_saved += piece.text.len() - proposal.text.len();
                    is_changed = true;
                    let before = piece.rewrite(proposal.text, run);
                    if let Some(id) = proposal.raw_id {
                        raw_outputs.push(raw_output(id, piece, before));
                    }
                }
                Err(rejection) => self.report.rejected.push(rejection),
            }
        }
        is_changed
    }

    fn reported(self) -> StageReport {
        let tokens = |bytes: usize| counted_bytes(bytes) as u64;
        StageReport {
            tokens_before: tokens(self.bytes_before),
            tokens_after: tokens(self.bytes_before - self.bytes_saved),
            ..self.report
        }
    }
}

fn raw_output(id: String, piece: &Piece<'_>, text: String) -> RawOutput {
    RawOutput { id, command: piece.command.clone().unwrap_or_default(), text }
}
