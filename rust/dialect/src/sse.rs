//! Server-sent events: a byte stream cut into events as it arrives, nothing copied that need not be.
//!
//! An event is every byte up to and including the blank line that ends it, so events joined are the stream again. Lines
//! end with LF, CRLF or CR, mixed as they like. A caller judges each event as soon as it is whole; those that stay are
//! handed on in the longest runs that the chunk allows, and a part of an event waits for its rest.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use crate::Pieces;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How long an event may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A part of an event that is longer is not held back any more but passed on as it comes.
    pub held_bytes: usize,
    /// An event that is longer is a fault.
    pub event_bytes: usize,
}

/// The piece of a stream that a judge is shown. A byte order mark at the start of the stream is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A whole event with the blank line that ends it.
    Event(&'a [u8]),
    /// The first bytes of an event too long to be held; at least [`Limits::held_bytes`] of them.
    Opening(&'a [u8]),
    /// Later bytes of such an event. They pass whatever the verdict is, because their beginning has.
    More(&'a [u8]),
}

/// The judge's verdict on a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Leave it out. For an `Opening` as good as `Stop`.
    Drop,
    /// Pass it, and nothing after it.
    Last,
    /// Leave it out, and everything after it.
    Stop,
}

/// Where the stream stands after a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Open,
    /// A judge said `Last` or `Stop`: later chunks are dropped.
    Ended,
    /// An event passed [`Limits::event_bytes`]: later chunks are dropped.
    TooLong,
}

/// Bytes held back when the stream came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub bytes: Bytes,
    /// Whether the bytes are a whole event; only a line feed was still possible.
    pub whole: bool,
    /// The beginning of this event was passed on already.
    pub mid_event: bool,
}

/// Cuts chunks into events.
pub struct Framer {
    limits: Limits,
    flow: Flow,
    /// Begun in earlier chunks, not passed on.
    buffer: BytesMut,
    /// Bytes of the present event that were passed on before it was whole.
    gone_bytes: usize,
    /// No byte of the present line was seen.
    line_empty: bool,
    /// The last byte was a CR, and whether a LF belongs to it is not known.
    after_cr: Option<Line>,
    /// No event was judged yet, so a byte order mark may stand here.
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

    /// Takes the next chunk, shows each part to `judge` in order, and returns the bytes that stay.
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

    /// Ends the stream and gives what was held back.
    pub fn close(self) -> Rest {
        let whole = self.after_cr == Some(Line::Blank);
        let skip = if self.at_start && self.buffer.starts_with(BOM) { BOM.len() } else { 0 };
        Rest { bytes: self.buffer.freeze().slice(skip..), whole, mid_event: self.gone_bytes > 0 }
    }

    /// Whether everything passed on so far is whole events, so that another event may follow.
    pub fn between_events(&self) -> bool {
        self.gone_bytes == 0
    }

    /// Offset after the blank line that ends the present event, if the chunk has it at or after `at`.
    fn event_end(&mut self, chunk: &[u8], mut at: usize) -> Option<usize> {
        loop {
            if let Some(line) = self.after_cr {
                // At the end of the chunk this stays undecided: a LF in the next one would belong to this CR.
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

    /// The chunk ends within an event that begins at `start`, or began earlier.
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

/// Tells how much is held, and never what: these are the words of a conversation.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held_bytes = self.buffer.len();
        f.debug_struct("Framer").field("flow", &self.flow).field("held_bytes", &held_bytes).finish_non_exhaustive()
    }
}

/// The bytes of a chunk that stay, gathered in as few slices as there are gaps.
struct Run<'a> {
    chunk: &'a Bytes,
    pieces: Pieces,
    /// Start of the bytes that stay and are no piece yet.
    from: usize,
}

impl Run<'_> {
    /// Closes the run at `end`.
    fn keep_until(&mut self, end: usize) {
        if self.from < end {
            self.pieces.push(self.chunk.slice(self.from..end));
        }
        self.from = end;
    }
}

/// The data of an event: its `data` fields joined by LF. Borrowed when there is one field; `None` when there is none.
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
