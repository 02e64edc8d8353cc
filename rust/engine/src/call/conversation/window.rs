//! Limits a conversation to the context windows of its targets, as the operator configured. Targets with a smaller
//! window are removed. If none is left, the oldest messages are dropped or the caller receives an error with the token
//! count and the window.

use crate::active_config::ActiveConfig;
use crate::blocking;
use crate::call::choose::endpoints;
use crate::call::context::Call;
use crate::call::conversation::read;
use crate::observe::settle::CompressionFigures;
use bytes::Bytes;
use fairlead_context::{trim_window, Trimmed};
use fairlead_core::{Dialect, Error, ErrorKind, Snapshot, WindowPolicy};
use fairlead_dialect::estimate_tokens;
use fairlead_dialect::openai::request::ChatRequest;

/// Larger bodies are counted on a blocking thread.
const MOST_INLINE_BYTES: usize = 64 * 1024;

/// Returns the body and the request that fit a window. The choice keeps the targets whose windows are large enough.
pub async fn hold(
    call: &mut Call,
    active: &ActiveConfig,
    body: Bytes,
    request: ChatRequest,
) -> Result<(Bytes, ChatRequest), Error> {
    let policy = active.snapshot.context.window;
    let route = call.settlement.admission.route;
    if policy == WindowPolicy::Pass || endpoints::needs(route).is_some() {
        return Ok((body, request));
    }
    let windows: Vec<Option<u64>> =
        (0..call.choice.targets.len()).map(|at| window(&active.snapshot, call, at)).collect();
    let Some(largest) = windows.iter().copied().map(|window| window.unwrap_or(u64::MAX)).max() else {
        return Ok((body, request));
    };
    let dialect = call.settlement.admission.dialect;
    // If the tokens cannot be counted, the provider has to decide.
    let Some(tokens) = counted(dialect, &body).await else { return Ok((body, request)) };
    if tokens <= largest {
        let indices: Vec<usize> =
            (0..windows.len()).filter(|at| windows[*at].is_none_or(|window| tokens <= window)).collect();
        if indices.len() < windows.len() {
            call.choice = call.choice.narrowed(&indices);
        }
        return Ok((body, request));
    }
    let indices: Vec<usize> = (0..windows.len()).filter(|at| windows[*at] == Some(largest)).collect();
    if policy == WindowPolicy::Trim {
        if let Some(trimmed) = trimmed(dialect, &body, largest).await {
            let written = Bytes::from(trimmed.body);
            let request = read::again(&call.settlement.admission, &written, request)?;
            note(call, tokens, trimmed.left_out);
            call.choice = call.choice.narrowed(&indices);
            return Ok((written, request));
        }
    }
    let message = format!(
        "The request has about {tokens} tokens, and the largest window of `{}` has {largest}. Send less, or name a model with a larger window.",
        request.model
    );
    Err(Error::client(ErrorKind::ContextTooLong, message).about("messages"))
}

fn window(snapshot: &Snapshot, call: &Call, at: usize) -> Option<u64> {
    snapshot.model(call.choice.model(at)).and_then(|model| model.context_length)
}

/// The approximate number of tokens in the body.
async fn counted(dialect: Dialect, body: &Bytes) -> Option<u64> {
    if body.len() <= MOST_INLINE_BYTES {
        return estimate_tokens(dialect, body).ok();
    }
    let body = body.clone();
    blocking::compute(move || estimate_tokens(dialect, &body).ok()).await.ok().flatten()
}

async fn trimmed(dialect: Dialect, body: &Bytes, most: u64) -> Option<Trimmed> {
    let body = body.clone();
    blocking::compute(move || trim_window(dialect, &body, most)).await.ok().flatten()
}

/// Records that messages were dropped.
fn note(call: &mut Call, tokens: u64, left_out: usize) {
    let settlement = &mut call.settlement;
    let before = settlement.compression().cloned();
    let mut figures =
        before.unwrap_or_else(|| CompressionFigures { name: "window".to_owned(), ..CompressionFigures::default() });
    figures.tokens_before = figures.tokens_before.max(tokens);
    let separator = if figures.rejected.is_empty() { "" } else { "," };
    figures.rejected = format!("{}{separator}window:left-out={left_out}", figures.rejected);
    settlement.set_compression(figures);
}
