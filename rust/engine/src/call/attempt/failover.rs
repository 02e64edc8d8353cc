//! The steps after a failed attempt: the next target, or the error for the caller.

use crate::call::context::Call;
use crate::route::choice::{Choice, MAX_LISTED_TARGETS};
use crate::route::combos::{excluded, waits};
use crate::upstream::failure::AttemptFailure;
use fairlead_core::{ErrorKind, Outcome, ProviderError, Retry};
use fairlead_dialect::RejectionReason;
use serde_json::{json, Value};
use std::fmt::Write as _;

/// Whether the next target may be tried, provided that nothing was sent to the caller.
///
/// Between connections of one model only safe failures are retried. With a combo the operator permits other targets, so
/// every provider failure is retried. A rejection is retried too, if its reason may not apply to another model, account
/// or provider.
pub fn may_go_on(choice: &Choice, failed: &AttemptFailure) -> bool {
    if matches!(failed.error.kind, ErrorKind::Draining | ErrorKind::GuardrailBlocked) {
        return false;
    }
    if choice.combo.is_none() {
        return failed.error.retry != Retry::Never;
    }
    failed.rejection.as_ref().is_none_or(|rejection| {
        matches!(rejection.status.as_u16(), 404 | 405 | 410 | 413)
            || !matches!(rejection.reason, RejectionReason::Policy | RejectionReason::Request)
    })
}

/// Attributes a rejection to the gateway if the gateway wrote the body in another dialect than the caller's, and the
/// provider calls that body invalid. The caller's own body may be valid at the next target.
pub fn blame_translation(call: &Call, at: usize, failed: &mut AttemptFailure) {
    let Some(rejection) = &mut failed.rejection else { return };
    let is_invalid = matches!(rejection.status.as_u16(), 400 | 422)
        && matches!(rejection.reason, RejectionReason::Parameter | RejectionReason::Request);
    let connection = &call.choice.targets[at].connection;
    let is_written = connection.dialect != call.settlement.admission.dialect || connection.protocol.is_always_written();
    if !is_invalid || !is_written {
        return;
    }
    rejection.reason = RejectionReason::Translation;
    let reported = failed.error.provider_error().cloned().unwrap_or_default();
    let reason = Some(rejection.reason.name());
    failed.error = failed.error.clone().with_provider_error(ProviderError { reason, ..reported });
    call.shared().metrics.translation_refused(connection.provider.as_str());
}

/// The outcome of a request that ends with this failure.
pub fn outcome(kind: ErrorKind) -> Outcome {
    match kind {
        ErrorKind::Draining => Outcome::Drained,
        ErrorKind::GuardrailBlocked | ErrorKind::AccountsBusy => Outcome::Refused,
        _ => Outcome::UpstreamFailed,
    }
}

/// The results of all targets of a combo, in machine-readable form; `None` without a combo.
pub fn diagnostics(choice: &Choice, failures: &[(usize, AttemptFailure)]) -> Option<Value> {
    let combo = choice.combo.as_ref()?;
    let (_, last) = failures.last()?;
    let order: Vec<&str> = failures.iter().map(|(at, _)| choice.model(*at)).take(MAX_LISTED_TARGETS).collect();
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

/// A sentence that lists the targets of a combo and why each failed. `None` without a combo, or if the request itself
/// was rejected: the provider's own message is better then.
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
        .take(MAX_LISTED_TARGETS)
        .map(|(at, failed)| {
            let status = failed.rejection.as_ref().map(|rejection| format!(" ({})", rejection.status.as_u16()));
            format!("{}: {}{}", choice.model(*at), failed.error.kind.code(), status.unwrap_or_default())
        })
        .collect();
    let more = failures.len().saturating_sub(MAX_LISTED_TARGETS);
    let mut message = format!("Every target of the combo `{}` failed: {}", combo.name, reasons.join("; "));
    if more > 0 {
        // Writing to a string cannot fail.
        let _written = write!(message, "; and {more} more");
    }
    if !combo.closed.is_empty() {
        message.push_str("; not tried: ");
        message.push_str(&waits(&combo.closed));
    }
    message.push('.');
    Some(message)
}
