//! What a stream used that was cut: the usage that its provider reported so far, and the events that came after the report.

use crate::observe::settle::Open;
use fairlead_core::Usage;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Bytes of an ordinary request for each token, about.
const BYTES_PER_TOKEN: u64 = 4;
/// What every event of a stream has.
static DATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"data:"));
/// The usage that a stream has told so far.
#[derive(Debug, Clone, Copy)]
pub struct ToldUsage {
    pub usage: Option<Usage>,
    /// The usage is told when the stream begins, and covers nothing that follows.
    pub is_of_prompt: bool,
}

impl Open {
    /// Counts the events of a piece of a stream that has begun to say something, and takes over the usage that it has told so far. A
    /// caller that leaves in the middle is settled with both.
    pub fn note_events(&mut self, piece: &[u8], has_said: bool, report: ToldUsage) {
        let is_first = self.delivered_events == 0;
        if has_said {
            self.delivered_events += DATA.find_iter(piece).count() as u64;
        }
        let usage = report.usage.unwrap_or_default();
        if usage != self.usage {
            self.usage = usage;
            self.told_events = if is_first && report.is_of_prompt { 0 } else { self.delivered_events };
        }
    }

    /// Counts an answer that was cut: most providers say at the end of a stream what it used, so every event that came after what
    /// was told counts as about one token, and the request by its length.
    pub(super) fn estimate_usage(&mut self) {
        let untold = self.delivered_events.saturating_sub(self.told_events);
        if untold == 0 {
            return;
        }
        if self.usage == Usage::default() {
            self.usage.input = self.bytes_request.div_ceil(BYTES_PER_TOKEN);
        }
        self.usage.output = self.usage.output.saturating_add(untold);
    }
}
