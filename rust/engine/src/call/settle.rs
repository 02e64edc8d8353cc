//! The settle phase, which ends a call. It updates the state of the target that served the call or failed, sends a
//! response or an error to the caller, and writes the record.

use crate::call::attempt::failover;
use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::guardrails;
use crate::call::kind::{CallKind, Reply};
use crate::call::relay::head;
use crate::call::relay::FinishedStream;
use crate::clock;
use crate::control::responses;
use crate::exchange::Head;
use crate::gate::answer;
use crate::gate::headers;
use crate::observe::settle::{CacheHold, HoldEnd, Settlement};
use crate::route::choice::Choice;
use crate::route::model;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use bytes::Bytes;
use fairlead_core::{Error, ErrorKind, Origin, Outcome};
use fairlead_dialect::stream::terminal_error;
use fairlead_dialect::{error_body, ErrorText};
use http::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Refuses a request with an error in the caller's dialect. If comments of a stream were already sent, the error is
/// part of the stream.
pub fn refuse(settlement: &mut Settlement, outcome: Outcome, fault: &Error) {
    if settlement.exchange.is_headed() {
        return end_with_error(settlement, outcome, fault, &ErrorText::from(fault));
    }
    settlement.status = fault.kind.status();
    let surface = settlement.admission.route.surface;
    let (mut head, body) = answer::error(&settlement.shared, surface, &settlement.admission.request_id, fault);
    head::add_fault(settlement, &mut head.headers);
    settlement.bytes_response = body.len() as u64;
    settlement.settle(outcome, Some(fault));
    settlement.exchange.answer(head, body);
}

/// Sends a failure as the last event of a stream that contains only comments so far.
fn end_with_error(settlement: &mut Settlement, outcome: Outcome, fault: &Error, text: &ErrorText<'_>) {
    let bytes = terminal_error(settlement.admission.dialect, settlement.admission.reads_list, text);
    settlement.bytes_response += bytes.len() as u64;
    settlement.settle_with_message(outcome, fault, text.message);
    settlement.exchange.end([bytes]);
}

/// Ends a call that a target has served: updates statistics, stores the response if requested, writes the record and
/// sends the last bytes.
///
/// `began` is the time of the request to the target, if it differs from the arrival of the caller's request.
pub async fn finish<K: CallKind>(call: &mut Call, kind: &K, at: usize, reply: Reply, began: Option<Instant>) {
    let answer = match reply {
        Reply::Stream(stream) => return finish_stream(call, kind, at, stream, began).await,
        Reply::Complete(answer) => answer,
    };
    record_answer(call, at, None, began);
    let target = Arc::clone(&call.choice.targets[at]);
    give(call, kind, &target, answer).await;
}

/// Sends a target's complete response, which is stored first if the caller requested that.
pub async fn give<K: CallKind>(call: &mut Call, kind: &K, target: &Target, answer: plain::Answer) {
    let fallbacks = call.fallbacks();
    let mut answer = plain::answer(&mut call.settlement, target, answer, fallbacks);
    if let Ok((head, body)) = &mut answer {
        // Stored in the form that the caller receives, so redacted text is not stored.
        let is_stored = kind.store(call, Some(body)).await;
        responses::note_unstored(is_stored, &mut head.headers);
    }
    call.give(answer);
}

async fn finish_stream<K: CallKind>(
    call: &mut Call,
    kind: &K,
    at: usize,
    mut stream: FinishedStream,
    began: Option<Instant>,
) {
    let error = stream.error.as_ref();
    record_answer(call, at, error, began);
    if error.is_none() {
        // Stored in the form that the caller receives, without anything that a guardrail withholds.
        let response = stream.response.take();
        let response = response.and_then(|body| guardrails::judge_answer(&mut call.settlement, &body, false).ok());
        kind.store(call, response.as_ref()).await;
    }
    if stream.is_events && call.settlement.admission.wants_cost {
        // The same information as in the headers of a complete response.
        let (usage, cost) = (call.settlement.total_usage(), call.settlement.cost());
        let (tokens_in, tokens_out, price) = (headers::TOKENS_IN, headers::TOKENS_OUT, headers::RESPONSE_COST);
        let (input, output, cost) = (usage.input, usage.output, cost.usd_text());
        let unpriced =
            if call.settlement.is_unpriced() { format!(": {}=true\n", headers::UNPRICED) } else { String::new() };
        let comment =
            Bytes::from(format!(": {tokens_in}={input}\n: {tokens_out}={output}\n: {price}={cost}\n{unpriced}\n"));
        call.settlement.bytes_response += comment.len() as u64;
        stream.last.push(comment);
    }
    call.settlement.settle(stream.outcome, stream.error.as_ref());
    if stream.is_cut {
        return call.settlement.exchange.abort();
    }
    call.settlement.exchange.end(std::mem::take(&mut stream.last));
    stream.keep_connection().await;
}

/// Updates the target's health and the combo's statistics with the result of a response.
fn record_answer(call: &mut Call, at: usize, error: Option<&Error>, began: Option<Instant>) {
    let (target, settlement) = (&call.choice.targets[at], &mut call.settlement);
    let began = began.unwrap_or(settlement.admission.started);
    let took = began.elapsed();
    match error {
        None => {
            target.served(took, settlement.first_byte.map_or(took, |first| first.saturating_duration_since(began)));
        }
        Some(error) => {
            target.blame(error.kind, None);
            if error.origin == Origin::Upstream {
                settlement.note_failed_attempt(target, call.choice.upstream_model(at), error);
            }
        }
    }
    remember(&call.choice, at, settlement, error.is_none().then_some(took));
}

impl Call {
    /// Ends the call with an error of the gateway.
    pub fn refuse(&mut self, fault: &Error) {
        self.end_refused(Outcome::Refused, fault);
    }

    /// Ends the call with an error of the gateway and this outcome in the record.
    pub fn end_refused(&mut self, outcome: Outcome, fault: &Error) {
        refuse(&mut self.settlement, outcome, fault);
    }

    /// Ends a call that failed before the caller's request was sent to any target.
    pub fn refuse_before_attempts(&mut self, fault: &Error) {
        let outcome = match fault.origin {
            _ if fault.kind == ErrorKind::Draining => Outcome::Drained,
            Origin::Upstream => Outcome::UpstreamFailed,
            Origin::Client | Origin::Gateway => Outcome::Refused,
        };
        self.end_refused(outcome, fault);
    }

    /// Sends a complete response, or an error that says why it is withheld.
    pub fn give(&mut self, answer: Result<(Head, Bytes), Error>) {
        match answer {
            Ok((head, body)) => {
                self.settlement.settle(Outcome::Completed, None);
                self.settlement.exchange.answer(head, body);
            }
            Err(fault) => self.refuse(&fault),
        }
    }

    /// Updates the health of the target and model, and the combo's statistics, after a failure.
    pub fn record_failure(&mut self, at: usize, failed: &AttemptFailure) {
        let (target, model) = (&self.choice.targets[at], self.choice.upstream_model(at));
        target.hold_against(model, failed);
        self.settlement.note_failed_attempt(target, model, &failed.error);
        let is_of_combo = matches!(
            failed.error.kind,
            ErrorKind::EmptyAnswer | ErrorKind::AnswerRejected | ErrorKind::UpstreamTimeout
        );
        if failed.blames_connection || is_of_combo {
            remember(&self.choice, at, &mut self.settlement, None);
        }
    }

    /// Ends a call that no target has served, with one error that summarizes all attempts.
    pub fn fail(&mut self) {
        let mut failures = std::mem::take(&mut self.failures);
        let settlement = &mut self.settlement;
        let (summary, earlier) = (failover::summary(&self.choice, &failures), self.earlier_failures);
        let diagnostics = failover::diagnostics(&self.choice, &failures);
        if summary.is_some() {
            // Prefers the most informative error: a provider's failure rather than a missing model.
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
            // Uses the provider's retry delay, or else the connection's own cooldown.
            let model = settlement.upstream_model.as_deref().unwrap_or_default();
            let (_, cooldown_ms) = target.availability(model, clock::monotonic_ms());
            error.retry_after_s = Some(last.hint_ms.unwrap_or(cooldown_ms).div_ceil(1_000).max(1));
        }
        if error.kind == ErrorKind::AccountsBusy {
            // Uses the first connection to have capacity again.
            let others = failures.iter().filter(|(_, one)| one.error.kind == ErrorKind::AccountsBusy);
            let waits = others.map(|(_, one)| one.error.retry_after_s).chain([error.retry_after_s]);
            error.retry_after_s = waits.flatten().min();
        }
        if !failures.is_empty() && self.choice.combo.is_none() {
            let others: Vec<&str> = failures.iter().map(|(_, failed)| failed.error.kind.code()).collect();
            error.message = format!("{} Other connections failed before: {}.", error.message, others.join(", ")).into();
        }
        // Uses the provider's message if the request itself is wrong, and the gateway's message otherwise.
        let text = last.rejection.as_ref().map_or_else(|| ErrorText::from(&error), |one| one.text());
        if settlement.exchange.is_headed() {
            return end_with_error(settlement, outcome, &error, &text);
        }
        let surface = settlement.admission.route.surface;
        let body = error_body(surface, &text, &settlement.admission.request_id);
        let (mut head, _) = answer::error(&settlement.shared, surface, &settlement.admission.request_id, &error);
        head.headers.extend(head::headers(settlement, &target, earlier + failures.len()));
        head.status = StatusCode::from_u16(text.status).unwrap_or(StatusCode::BAD_GATEWAY);
        settlement.status = text.status;
        settlement.bytes_response = body.len() as u64;
        settlement.settle_with_message(outcome, &error, text.message);
        settlement.exchange.answer(head, body);
    }
}

/// Records an attempt in the statistics used by later choices. `served` is the duration of a successful attempt.
fn remember(choice: &Choice, at: usize, settlement: &mut Settlement, served: Option<Duration>) {
    let is_success = served.is_some();
    if let Some(leg) = choice.leg(at) {
        let (memory, _) = &mut *leg.memory.lock();
        if is_success {
            memory.succeed(leg.id);
        } else {
            memory.fail(leg.id);
        }
    }
    if let Some(took) = served {
        if let Some(target) = choice.targets.get(at) {
            target.served_model(choice.upstream_model(at), took);
        }
        let model = settlement.model.as_deref().unwrap_or_default();
        let hold = choice.prompt.as_ref().and_then(|prompt| prompt.hold);
        let session = hold.map(|hold| hold.id).or_else(|| model::session(&settlement.admission, model));
        if let (Some(session), Some(id)) = (session, choice.identity(at)) {
            settlement.shared.affinity.keep(session, id, clock::monotonic_ms());
            if let Some(hold) = hold {
                settlement.set_cache_hold(CacheHold { conversation: session, end: HoldEnd::of(hold.last_target, id) });
            }
        }
    }
}
