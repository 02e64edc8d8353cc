//! The trace context of a request (W3C Trace Context, level 1).
//!
//! Without tracing, `traceparent` and `tracestate` are forwarded unchanged. With tracing, the gateway adds a span: the
//! provider receives the caller's trace with the gateway's span as its parent, and the record stores what control needs
//! to export the span. This module exports nothing.

use fairlead_core::{hex, random_bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::future::Future;
use std::sync::Arc;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The maximum length of a forwarded `tracestate` in bytes (section 3.3.1.5).
const MAX_STATE_BYTES: usize = 512;

tokio::task_local! {
    /// The trace of the request that the current task serves.
    static CURRENT: Option<Arc<Trace>>;
}

/// Decides which requests are traced, and whether the caller's sampling decision is used.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Sampling {
    /// The share of new traces that are sampled, 0 to 1.
    pub ratio: f64,
    /// The caller's sampling decision is used.
    pub parent_based: bool,
}

/// The trace context of a call (W3C Trace Context).
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the trace context and of records")]
pub struct Trace {
    pub trace_id: String,
    /// The gateway's span; `None` if no span is recorded.
    pub span_id: Option<String>,
    pub parent_span_id: Option<String>,
    traceparent: HeaderValue,
    tracestate: Option<HeaderValue>,
}

impl Trace {
    /// Creates the trace from the caller's headers. Returns `None` if there is nothing to forward or record.
    pub fn begin(sent: Option<&[u8]>, state: Option<&[u8]>, sampling: Option<Sampling>) -> Option<Arc<Self>> {
        let parent = sent.and_then(parse);
        let tracestate = parent
            .and(state)
            .filter(|state| state.len() <= MAX_STATE_BYTES)
            .and_then(|state| HeaderValue::from_bytes(state).ok());
        let Some(sampling) = sampling else {
            let parent = parent?;
            let traceparent = HeaderValue::from_bytes(sent?).ok()?;
            let parent_span_id = Some(parent.span_id.to_owned());
            let trace_id = parent.trace_id.to_owned();
            return Some(Arc::new(Self { trace_id, span_id: None, parent_span_id, traceparent, tracestate }));
        };
        let trace_id = match &parent {
            Some(parent) => parent.trace_id.to_owned(),
            None => hex(&random_bytes::<16>().ok()?),
        };
        let own = hex(&random_bytes::<8>().ok()?);
        let is_sampled = match &parent {
            Some(parent) if sampling.parent_based => parent.is_sampled,
            _ => is_within(&trace_id, sampling.ratio),
        };
        let flags = if is_sampled { "01" } else { "00" };
        Some(Arc::new(Self {
            traceparent: HeaderValue::try_from(format!("00-{trace_id}-{own}-{flags}")).ok()?,
            trace_id,
            span_id: is_sampled.then_some(own),
            parent_span_id: parent.map(|parent| parent.span_id.to_owned()),
            tracestate,
        }))
    }
}

/// Runs the work of a request so that [`pass_on`] finds its trace.
pub fn within<F: Future>(trace: Option<Arc<Trace>>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(trace, work)
}

/// Returns the trace of the current task, to pass it to a spawned task.
pub fn current() -> Option<Arc<Trace>> {
    CURRENT.try_with(Option::clone).ok().flatten()
}

/// Adds the trace headers of the current task to a request.
pub fn pass_on(headers: &mut HeaderMap) {
    // Outside a request there is no trace.
    let _found = CURRENT.try_with(|trace| {
        if let Some(trace) = trace {
            headers.insert(TRACEPARENT, trace.traceparent.clone());
            if let Some(state) = &trace.tracestate {
                headers.insert(TRACESTATE, state.clone());
            }
        }
    });
}

#[derive(Clone, Copy)]
struct Parent<'a> {
    trace_id: &'a str,
    span_id: &'a str,
    is_sampled: bool,
}

/// Parses version 00 exactly, and the shared part of later versions (section 2.2.4).
fn parse(sent: &[u8]) -> Option<Parent<'_>> {
    let text = std::str::from_utf8(sent).ok()?;
    let mut fields = text.split('-');
    let (version, trace_id, span_id, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_fine = is_hex(version, 2)
        && version != "ff"
        && (version != "00" || fields.next().is_none())
        && is_hex(trace_id, 32)
        && is_hex(span_id, 16)
        && is_hex(flags, 2)
        && [trace_id, span_id].iter().all(|id| id.bytes().any(|digit| digit != b'0'));
    let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    is_fine.then_some(Parent { trace_id, span_id, is_sampled })
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Samples by the low 64 bits of the id, like OpenTelemetry's `traceidratio`, so that all services decide alike.
fn is_within(trace_id: &str, ratio: f64) -> bool {
    let low = trace_id.get(16..).and_then(|low| u64::from_str_radix(low, 16).ok()).unwrap_or(u64::MAX);
    (low as f64) < ratio * (u64::MAX as f64) || ratio >= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const ALL: Sampling = Sampling { ratio: 1.0, parent_based: true };

    #[tokio::test]
    async fn without_tracing_both_headers_pass_as_they_came() {
        let trace = Trace::begin(Some(SENT), Some(b"a=1,b=2"), None);
        let headers = within(trace, async {
            let mut headers = HeaderMap::new();
            pass_on(&mut headers);
            headers
        });
        let headers = headers.await;
        assert_eq!((headers["traceparent"].as_bytes(), headers["tracestate"].as_bytes()), (SENT, &b"a=1,b=2"[..]));
        assert_eq!(Trace::begin(None, Some(b"a=1"), None), None);
    }

    #[test]
    fn with_tracing_the_gateway_is_a_step_of_the_callers_trace() {
        let trace = Trace::begin(Some(SENT), Some(b"a=1"), Some(ALL)).expect("a trace");
        assert_eq!(trace.trace_id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent_span_id.as_deref(), Some("b7ad6b7169203331"));
        let own = trace.span_id.as_deref().expect("sampled");
        assert_ne!(own, "b7ad6b7169203331");
        assert_eq!(trace.traceparent, format!("00-{}-{own}-01", trace.trace_id));
        assert_eq!(trace.tracestate, Some(HeaderValue::from_static("a=1")));
    }

    #[test]
    fn a_caller_that_does_not_sample_is_heard_only_where_its_decision_counts() {
        let sent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        let trace = Trace::begin(Some(sent), None, Some(ALL)).expect("a trace");
        assert_eq!((trace.span_id.as_deref(), trace.traceparent.as_bytes().last()), (None, Some(&b'0')));
        let own = Trace::begin(Some(sent), None, Some(Sampling { parent_based: false, ..ALL })).expect("a trace");
        assert!(own.span_id.is_some());
        let none = Trace::begin(None, None, Some(Sampling { ratio: 0.0, ..ALL })).expect("a trace");
        assert!(none.span_id.is_none());
    }

    #[test]
    fn what_is_no_traceparent_begins_no_trace() {
        for sent in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\u{e9}",
        ] {
            assert_eq!(Trace::begin(Some(sent.as_bytes()), None, None), None, "{sent}");
        }
        assert!(
            Trace::begin(Some(b"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"), None, None).is_some()
        );
    }

    #[test]
    fn a_share_of_the_traces_is_a_share_of_the_ids() {
        let sampling = Sampling { ratio: 0.25, parent_based: true };
        let sampled =
            (0..4000).filter(|_| Trace::begin(None, None, Some(sampling)).is_some_and(|t| t.span_id.is_some()));
        let sampled = sampled.count();
        assert!((800..1200).contains(&sampled), "{sampled}");
    }
}
