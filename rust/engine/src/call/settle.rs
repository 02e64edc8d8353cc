//! Settle: what ends a call. An answer, a refusal or the failure of every attempt goes to the caller, and the record is written.

use crate::call::chaos;
use crate::call::context::Call;
use crate::call::failover;
use crate::call::plain;
use crate::clock;
use crate::exchange::Head;
use crate::gate::answer;
use crate::observe::settle::Settlement;
use bytes::Bytes;
use fairlead_core::{Error, ErrorKind, Origin, Outcome};
use fairlead_dialect::stream::terminal_error;
use fairlead_dialect::{error_body, ErrorText};
use http::StatusCode;
use std::sync::Arc;

/// Refuses a request: in the caller's dialect, or, where comments of a stream went out already, in the stream.
pub fn refuse(settlement: &mut Settlement, outcome: Outcome, fault: &Error) {
    if settlement.exchange.is_headed() {
        return end_with_error(settlement, outcome, fault, &ErrorText::from(fault));
    }
    settlement.status = fault.kind.status();
    let surface = settlement.admission.route.surface;
    let (mut head, body) = answer::error(&settlement.shared, surface, &settlement.admission.request_id, fault);
    chaos::add_header(settlement, &mut head.headers);
    settlement.bytes_response = body.len() as u64;
    settlement.settle(outcome, Some(fault));
    settlement.exchange.answer(head, body);
}

/// Tells a failure as the last event of a stream of which only comments went out.
fn end_with_error(settlement: &mut Settlement, outcome: Outcome, fault: &Error, text: &ErrorText<'_>) {
    let bytes = terminal_error(settlement.admission.dialect, settlement.admission.reads_list, text);
    settlement.bytes_response += bytes.len() as u64;
    settlement.settle(outcome, Some(fault));
    settlement.exchange.end([bytes]);
}

impl Call {
    /// Ends the call with a refusal by the gateway.
    pub fn refuse(&mut self, fault: &Error) {
        self.end_refused(Outcome::Refused, fault);
    }

    /// Ends the call with an error of the gateway, recorded with this outcome.
    pub fn end_refused(&mut self, outcome: Outcome, fault: &Error) {
        refuse(&mut self.settlement, outcome, fault);
    }

    /// Ends a call that failed before any of its targets was asked for the caller's answer.
    pub fn refuse_before_attempts(&mut self, fault: &Error) {
        let outcome = match fault.origin {
            _ if fault.kind == ErrorKind::Draining => Outcome::Drained,
            Origin::Upstream => Outcome::UpstreamFailed,
            Origin::Client | Origin::Gateway => Outcome::Refused,
        };
        self.end_refused(outcome, fault);
    }

    /// Gives a whole answer, or says why it is withheld.
    pub fn give(&mut self, answer: Result<(Head, Bytes), Error>) {
        match answer {
            Ok((head, body)) => {
                self.settlement.settle(Outcome::Completed, None);
                self.settlement.exchange.answer(head, body);
            }
            Err(fault) => self.refuse(&fault),
        }
    }

    /// Notes what a target that has failed teaches: its health, the model's, the combo's memory.
    pub fn record_failure(&mut self, at: usize, failed: &crate::upstream::failure::AttemptFailure) {
        let (target, model) = (&self.choice.targets[at], self.choice.upstream_model(at));
        target.hold_against(model, failed);
        self.settlement.note_failed_attempt(&target.connection.id, model, failed.error.kind);
        let is_of_combo = matches!(
            failed.error.kind,
            ErrorKind::EmptyAnswer | ErrorKind::AnswerRejected | ErrorKind::UpstreamTimeout
        );
        if failed.blames_connection || is_of_combo {
            failover::remember(&self.choice, at, &mut self.settlement, false);
        }
    }

    /// Ends a call that no target has served: one error that says what every attempt came to.
    pub fn fail(&mut self) {
        let mut failures = std::mem::take(&mut self.failures);
        let settlement = &mut self.settlement;
        let (summary, earlier) = (failover::summary(&self.choice, &failures), self.earlier_failures);
        let diagnostics = failover::diagnostics(&self.choice, &failures);
        if summary.is_some() {
            // The error that the caller gets is the one that says most: a provider's failure rather than a model it does not have.
            if let Some(at) = failures.iter().rposition(|(_, failed)| failed.rejection.is_none()) {
                let one = failures.remove(at);
                failures.push(one);
            }
        }
        let Some((at, mut last)) = failures.pop() else {
            return;
        };
        let target = Arc::clone(&self.choice.targets[at]);
        let outcome = failover::outcome(last.error.kind);
        let mut error = last.error;
        if let Some(summary) = summary {
            (error.message, last.rejection) = (summary.into(), None);
        }
        if let Some(diagnostics) = diagnostics {
            error = error.with_diagnostics(&diagnostics);
        }
        if matches!(error.kind, ErrorKind::UpstreamRateLimited | ErrorKind::UpstreamOverloaded) {
            // What the provider said, or else how long the connection rests on its own.
            let model = settlement.upstream_model.as_deref().unwrap_or_default();
            let (_, rest_ms) = target.standing(model, clock::monotonic_ms());
            error.retry_after_s = Some(last.hint_ms.unwrap_or(rest_ms).div_ceil(1_000).max(1));
        }
        if error.kind == ErrorKind::AccountsBusy {
            // The first connection to have room again.
            let others = failures.iter().filter(|(_, one)| one.error.kind == ErrorKind::AccountsBusy);
            let waits = others.map(|(_, one)| one.error.retry_after_s).chain([error.retry_after_s]);
            error.retry_after_s = waits.flatten().min();
        }
        if !failures.is_empty() && self.choice.combo.is_none() {
            let others: Vec<&str> = failures.iter().map(|(_, failed)| failed.error.kind.code()).collect();
            error.message = format!("{} Other connections failed before: {}.", error.message, others.join(", ")).into();
        }
        // The provider's own words where the request is what is wrong with it; ours otherwise.
        let text = last.rejection.as_ref().map_or_else(|| ErrorText::from(&error), |one| one.text());
        if settlement.exchange.is_headed() {
            return end_with_error(settlement, outcome, &error, &text);
        }
        let surface = settlement.admission.route.surface;
        let body = error_body(surface, &text, &settlement.admission.request_id);
        let (mut head, _) = answer::error(&settlement.shared, surface, &settlement.admission.request_id, &error);
        head.headers.extend(plain::headers(settlement, &target, earlier + failures.len()));
        head.status = StatusCode::from_u16(text.status).unwrap_or(StatusCode::BAD_GATEWAY);
        settlement.status = text.status;
        settlement.bytes_response = body.len() as u64;
        settlement.settle(outcome, Some(&error));
        settlement.exchange.answer(head, body);
    }
}
