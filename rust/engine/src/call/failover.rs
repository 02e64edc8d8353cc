//! The steps after a failed attempt: the next target, or what the caller is told.

use crate::route::choice::{Choice, TOLD_AT_MOST};
use crate::route::combos::{excluded, waits};
use crate::upstream::failure::AttemptFailure;
use fairlead_core::{ErrorKind, Outcome, Retry};
use fairlead_dialect::RejectionReason;
use serde_json::{json, Value};
use std::fmt::Write as _;

/// Whether the next target may be tried, as long as the caller has seen nothing.
///
/// Between connections of one model only what is safe is repeated. A combo is the operator's word that another target may
/// answer, so there every failure of a provider goes on, and so does a rejection whose reason another model, account or provider may
/// not have.
pub fn may_go_on(choice: &Choice, failed: &AttemptFailure) -> bool {
    if matches!(failed.error.kind, ErrorKind::Draining | ErrorKind::GuardrailBlocked) {
        return false;
    }
    if choice.combo.is_none() {
        return failed.error.retry != Retry::Never;
    }
    failed.rejection.as_ref().is_none_or(|rejection| {
        matches!(rejection.status.as_u16(), 404 | 405 | 410 | 413) || rejection.reason != RejectionReason::Request
    })
}

/// How a request ends that this failure ends.
pub fn outcome(kind: ErrorKind) -> Outcome {
    match kind {
        ErrorKind::Draining => Outcome::Drained,
        ErrorKind::GuardrailBlocked | ErrorKind::AccountsBusy => Outcome::Refused,
        _ => Outcome::UpstreamFailed,
    }
}

/// What every target of a combo came to, for programs; `None` where no combo chose.
pub fn diagnostics(choice: &Choice, failures: &[(usize, AttemptFailure)]) -> Option<Value> {
    let combo = choice.combo.as_ref()?;
    let (_, last) = failures.last()?;
    let order: Vec<&str> = failures.iter().map(|(at, _)| choice.model(*at)).take(TOLD_AT_MOST).collect();
    let details = order.iter().zip(failures).map(|(model, (at, failed))| {
        json!({
            "target": model, "provider": choice.targets.get(*at).map(|target| target.provider_name()), "reason": failed.error.kind.code(),
            "status": failed.rejection.as_ref().map(|one| one.status.as_u16()).or(failed.error.upstream_status),
        })
    });
    Some(json!({
        "poolSize": choice.targets.len() + combo.closed.len() + combo.barred.len(), "attempted": failures.len(),
        "attemptOrder": order, "failures": details.collect::<Vec<Value>>(),
        "excluded": excluded(&combo.closed, &combo.barred), "terminalReason": last.error.kind.code(),
    }))
}

/// One sentence with every target of a combo and why it did not answer; `None` where no combo chose, or where the request
/// itself was rejected, which the provider tells best.
pub fn summary(choice: &Choice, failures: &[(usize, AttemptFailure)]) -> Option<String> {
    let combo = choice.combo.as_ref()?;
    let (_, last) = failures.last()?;
    if matches!(last.error.kind, ErrorKind::Draining | ErrorKind::GuardrailBlocked)
        || (last.rejection.is_some() && !may_go_on(choice, last))
    {
        return None;
    }
    let reasons: Vec<String> = failures
        .iter()
        .take(TOLD_AT_MOST)
        .map(|(at, failed)| {
            let status = failed.rejection.as_ref().map(|rejection| format!(" ({})", rejection.status.as_u16()));
            format!("{}: {}{}", choice.model(*at), failed.error.kind.code(), status.unwrap_or_default())
        })
        .collect();
    let more = failures.len().saturating_sub(TOLD_AT_MOST);
    let mut message = format!("Every target of the combo `{}` failed: {}", combo.name, reasons.join("; "));
    if more > 0 {
        // Writing into a text cannot fail.
        let _written = write!(message, "; and {more} more");
    }
    if !combo.closed.is_empty() {
        message.push_str("; not tried: ");
        message.push_str(&waits(&combo.closed));
    }
    message.push('.');
    Some(message)
}
