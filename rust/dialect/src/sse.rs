//! Splits a byte stream into server-sent events as it arrives, with as little copying as possible.
//!
//! An event includes every byte up to the blank line that ends it, so the concatenated events are the original stream.
//! Lines end with LF, CRLF or CR in any mixture. The caller judges each event when it is complete. Accepted events are
//! passed on in the longest runs within a chunk, and an incomplete event is buffered.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use crate::Pieces;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The size limits of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// An incomplete event longer than this is passed on as it arrives instead of buffered.
    pub held_bytes: usize,
    /// A longer event is an error.
    pub event_bytes: usize,
}

/// A piece of the stream for the judge. A byte order mark at the start of the stream is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A complete event including the blank line that ends it.
    Event(&'a [u8]),
    /// The first bytes of an event that is too long to buffer; at least [`Limits::held_bytes`].
    Opening(&'a [u8]),
    /// Later bytes of such an event. They always pass, because the first bytes have passed.
    More(&'a [u8]),
}

/// The judge's verdict on a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Drop the part. For an `Opening`, equivalent to `Stop`.
    Drop,
    /// Pass the part, and drop everything after it.
    Last,
    /// Drop the part and everything after it.
    Stop,
}

/// The state of the stream after a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Open,
    /// The judge returned `Last` or `Stop`. Later chunks are dropped.
    Ended,
    /// An event exceeded [`Limits::event_bytes`]. Later chunks are dropped.
    TooLong,
}

/// The bytes still buffered at the end of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub bytes: Bytes,
    /// The bytes are a complete event. Only a line feed could have followed.
    pub is_complete: bool,
    /// The beginning of this event has been passed on.
    pub mid_event: bool,
}

/// Splits chunks into events.
pub struct Framer {
    limits: Limits,
    flow: Flow,
    /// The buffered start of the current event.
    buffer: BytesMut,
    /// The bytes of the current event that were passed on before it was complete.
    gone_bytes: usize,
    /// The current line has no bytes so far.
    line_empty: bool,
    /// The last byte was a CR, and an LF may follow that belongs to it.
    after_cr: Option<Line>,
    /// No event has been judged yet, so a byte order mark is allowed.
    at_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Blank,
    Filled,
}

impl Default for Limits {
    fn default() -> Self {
        Self { held_bytes: 1 << 20, event_bytes: 8 << 20 }
    }
}

impl Framer {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            flow: Flow::Open,
            buffer: BytesMut::new(),
            gone_bytes: 0,
            line_empty: true,
            after_cr: None,
            at_start: true,
        }
    }

    /// Processes the next chunk: shows each part to `judge` in order, and returns the accepted bytes.
    pub fn push(&mut self, chunk: &Bytes, mut judge: impl FnMut(Part<'_>) -> Verdict) -> (Pieces, Flow) {
        let mut run = Run { chunk, pieces: Pieces::new(), from: 0 };
        let mut start = 0;
        while self.flow == Flow::Open {
            let Some(end) = self.event_end(chunk, start) else {
                self.keep_or_pass(&mut run, start, &mut judge);
                break;
            };
            let verdict = self.judge_event(&mut run, start..end, &mut judge);
            if matches!(verdict, Verdict::Last | Verdict::Stop) {
                self.flow = Flow::Ended;
            }
            start = end;
        }
        (run.pieces, self.flow)
    }

    /// Ends the stream and returns the buffered bytes.
    pub fn close(self) -> Rest {
        let is_complete = self.after_cr == Some(Line::Blank);
        let skip = if self.at_start && self.buffer.starts_with(BOM) { BOM.len() } else { 0 };
        Rest { bytes: self.buffer.freeze().slice(skip..), is_complete, mid_event: self.gone_bytes > 0 }
    }

    /// Returns whether only complete events have been passed on, so that another event can be inserted.
    pub fn between_events(&self) -> bool {
        self.gone_bytes == 0
    }

    /// Returns the offset after the blank line that ends the current event, if the chunk contains it at or after `at`.
    fn event_end(&mut self, chunk: &[u8], mut at: usize) -> Option<usize> {
        loop {
            if let Some(line) = self.after_cr {
                // At the end of the chunk this is undecided: an LF in the next chunk would belong to this CR.
                let next = *chunk.get(at)?;
                self.after_cr = None;
                at += usize::from(next == b'\n');
                if line == Line::Blank {
                    return Some(at);
                }
            }
            let rest = chunk.get(at..).filter(|rest| !rest.is_empty())?;
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.line_empty = false;
                return None;
            };
            let line = if self.line_empty && length == 0 { Line::Blank } else { Line::Filled };
            self.line_empty = true;
            at += length + 1;
            if rest.get(length) == Some(&b'\r') {
                self.after_cr = Some(line);
            } else if line == Line::Blank {
                return Some(at);
            }
        }
    }

    /// Judges the event whose last bytes are `span` of the chunk.
    fn judge_event(
        &mut self,
        run: &mut Run<'_>,
        span: Range<usize>,
        judge: &mut impl FnMut(Part<'_>) -> Verdict,
    ) -> Verdict {
        let tail = run.chunk.get(span.clone()).unwrap_or_default();
        if self.gone_bytes > 0 {
            judge(Part::More(tail));
            self.gone_bytes = 0;
            run.keep_until(span.end);
            return Verdict::Pass;
        }
        if self.buffer.is_empty() {
            let verdict = judge(Part::Event(self.without_bom(tail)));
            match verdict {
                Verdict::Pass => {}
                Verdict::Last => run.keep_until(span.end),
                Verdict::Drop | Verdict::Stop => {
                    run.keep_until(span.start);
                    run.from = span.end;
                }
            }
            if verdict == Verdict::Pass && span.end == run.chunk.len() {
                run.keep_until(span.end);
            }
            self.at_start = false;
            return verdict;
        }
        self.buffer.extend_from_slice(tail);
        let event = std::mem::take(&mut self.buffer).freeze();
        let verdict = judge(Part::Event(self.without_bom(&event)));
        self.at_start = false;
        if matches!(verdict, Verdict::Pass | Verdict::Last) {
            run.pieces.push(event);
        }
        run.from = span.end;
        verdict
    }

    /// Handles an incomplete event at the end of the chunk. The event starts at `start` or in an earlier chunk.
    fn keep_or_pass(&mut self, run: &mut Run<'_>, start: usize, judge: &mut impl FnMut(Part<'_>) -> Verdict) {
        let part = run.chunk.get(start..).unwrap_or_default();
        if self.gone_bytes == 0 && self.buffer.len() + part.len() <= self.limits.held_bytes {
            run.keep_until(start);
            self.buffer.extend_from_slice(part);
            return;
        }
        run.keep_until(start);
        let event_bytes = self.gone_bytes + self.buffer.len() + part.len();
        if event_bytes > self.limits.event_bytes {
            self.flow = Flow::TooLong;
            return;
        }
        let opening = self.gone_bytes == 0;
        self.gone_bytes = event_bytes;
        if !opening {
            judge(Part::More(part));
            run.keep_until(run.chunk.len());
            return;
        }
        self.buffer.extend_from_slice(part);
        let event = std::mem::take(&mut self.buffer).freeze();
        let verdict = judge(Part::Opening(self.without_bom(&event)));
        self.at_start = false;
        if matches!(verdict, Verdict::Pass | Verdict::Last) {
            run.pieces.push(event);
        } else {
            self.gone_bytes = 0;
        }
        if verdict != Verdict::Pass {
            self.flow = Flow::Ended;
        }
    }

    fn without_bom<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        if self.at_start {
            event.strip_prefix(BOM).unwrap_or(event)
        } else {
            event
        }
    }
}

/// Prints the number of buffered bytes but not their content, which is part of a conversation.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held_bytes = self.buffer.len();
        f.debug_struct("Framer").field("flow", &self.flow).field("held_bytes", &held_bytes).finish_non_exhaustive()
    }
}

/// The accepted bytes of a chunk, in as few slices as possible.
struct Run<'a> {
    chunk: &'a Bytes,
    pieces: Pieces,
    /// The start of the accepted bytes that are not in a slice yet.
    from: usize,
}

impl Run<'_> {
    /// Ends the current run at `end`.
    fn keep_until(&mut self, end: usize) {
        if self.from < end {
            self.pieces.push(self.chunk.slice(self.from..end));
        }
        self.from = end;
    }
}

/// Returns the data of an event: its `data` fields joined by LF. Borrowed for a single field; `None` without one.
pub fn data_of(event: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut data: Option<Cow<'_, [u8]>> = None;
    let mut rest = event;
    while !rest.is_empty() {
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let value = match line.strip_prefix(b"data") {
            Some([]) => line.get(4..).unwrap_or_default(),
            Some([b':', value @ ..]) => value.strip_prefix(b" ").unwrap_or(value),
            _ => continue,
        };
        data = Some(match data {
            None => Cow::Borrowed(value),
            Some(before) => {
                let mut joined = before.into_owned();
                joined.push(b'\n');
                joined.extend_from_slice(value);
                Cow::Owned(joined)
            }
        });
    }
    data
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
