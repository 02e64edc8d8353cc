//! Usage of a truncated stream: what its provider reported, plus an estimate for the events after that report.

use crate::observe::settle::PendingRecord;
use fairlead_core::Usage;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// The approximate number of bytes per token in a typical request.
const BYTES_PER_TOKEN: u64 = 4;
/// Every event of a stream contains this field name.
static DATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"data:"));
/// The usage that a stream has reported so far.
#[derive(Debug, Clone, Copy)]
pub struct ReportedUsage {
    pub usage: Option<Usage>,
    /// The report came at the start of the stream and covers the prompt only.
    pub is_of_prompt: bool,
}

impl PendingRecord {
    /// Counts the events in a piece of a stream, once the stream has produced output, and stores the usage reported so
    /// far. The settlement uses both if the caller leaves before the end.
    pub fn note_events(&mut self, piece: &[u8], has_output: bool, report: ReportedUsage) {
        let is_first = self.delivered_events == 0;
        if has_output {
            self.delivered_events += DATA.find_iter(piece).count() as u64;
        }
        let usage = report.usage.unwrap_or_default();
        if usage != self.usage {
            self.usage = usage;
            self.counted_events = if is_first && report.is_of_prompt { 0 } else { self.delivered_events };
        }
    }

    /// Estimates the usage of a truncated response. Most providers report usage at the end of a stream. Each event
    /// after the last report counts as about one token, and the input is estimated from the length of the request.
    pub(super) fn estimate_usage(&mut self) {
        let uncounted = self.delivered_events.saturating_sub(self.counted_events);
        if uncounted == 0 {
            return;
        }
        if self.usage == Usage::default() {
            self.usage.input = self.bytes_request.div_ceil(BYTES_PER_TOKEN);
        }
        self.usage.output = self.usage.output.saturating_add(uncounted);
    }
}
