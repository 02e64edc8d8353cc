//! Progress events, which a caller requests with `X-Gateway-Progress: true`. They report the size of the stream so far:
//! every two seconds and once before the terminal event.
//!
//! Their event name is `progress`, so clients that select events by name ignore them. In the chat dialect they also
//! have an empty `choices`, like that dialect's usage chunk, for clients that parse every event as a chunk.

use bytes::Bytes;
use fairlead_core::Dialect;
use fairlead_dialect::Pieces;
use memchr::memmem;
use std::time::{Duration, Instant};

pub const EVERY: Duration = Duration::from_secs(2);

/// The progress events of one stream, inserted between the events of its response.
#[derive(Debug)]
pub struct Progress {
    caller: Dialect,
    began: Instant,
    written: Instant,
    tokens: u64,
    /// The last byte sent, to recognize the start of a line across pieces.
    last: u8,
}

impl Progress {
    pub fn new(caller: Dialect, began: Instant) -> Self {
        Self { caller, began, written: Instant::now(), tokens: 0, last: b'\n' }
    }

    /// Adds a due event to bytes for the caller: after them, or before the terminal event if the stream is `done`.
    /// `is_between` says whether an event can be inserted there.
    pub fn pass(&mut self, mut out: Pieces, done: bool, is_between: bool, now: Instant) -> Pieces {
        self.count(&out);
        if done {
            return self.finish(&out, is_between);
        }
        if is_between && !out.is_empty() {
            out.extend(self.due(now));
        }
        out
    }

    /// Counts each line of data as one token.
    fn count(&mut self, pieces: &Pieces) {
        for piece in pieces {
            let starts = u64::from(self.last == b'\n' && piece.starts_with(b"data:"));
            self.tokens += starts + memmem::find_iter(piece, b"\ndata:").count() as u64;
            self.last = piece.last().copied().unwrap_or(self.last);
        }
    }

    /// Returns the event if it is due. Call this between two events of the stream.
    fn due(&mut self, now: Instant) -> Option<Bytes> {
        if now.duration_since(self.written) < EVERY {
            return None;
        }
        self.written = now;
        Some(self.event(now, false))
    }

    /// Inserts the last progress event before the stream's terminal event at the end of `pieces`. If the terminal event
    /// does not start in them, no event is inserted.
    fn finish(&mut self, pieces: &Pieces, is_between_events: bool) -> Pieces {
        let whole = Bytes::from(pieces.concat());
        let body = whole.trim_ascii_end();
        let start = match body.windows(2).rposition(|pair| pair == b"\n\n") {
            Some(end) => end + 2,
            None => match body.windows(4).rposition(|ends| ends == b"\r\n\r\n") {
                Some(end) => end + 4,
                None if is_between_events => 0,
                None => return Pieces::from_iter([whole]),
            },
        };
        // The terminal event of the chat dialect is not a token.
        let is_done = u64::from(whole[start..].starts_with(b"data: [DONE]"));
        self.tokens = self.tokens.saturating_sub(is_done);
        let event = self.event(Instant::now(), true);
        Pieces::from_iter([whole.slice(..start), event, whole.slice(start..)])
    }

    fn event(&self, now: Instant, is_done: bool) -> Bytes {
        let elapsed_ms = now.duration_since(self.began).as_millis();
        let done = if is_done { r#","done":true"# } else { "" };
        let choices = if self.caller == Dialect::Openai { r#","choices":[]"# } else { "" };
        let tokens = self.tokens;
        Bytes::from(format!(
            "event: progress\ndata: {{\"tokens_generated\":{tokens},\"elapsed_ms\":{elapsed_ms}{done}{choices}}}\n\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(texts: &[&'static str]) -> Pieces {
        texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
    }

    fn text(pieces: &Pieces) -> String {
        String::from_utf8(pieces.concat()).expect("text")
    }

    #[test]
    fn lines_of_data_are_counted_across_pieces() {
        let mut progress = Progress::new(Dialect::Openai, Instant::now());
        progress.count(&pieces(&["data: 1\n\nda", "ta: 2\n", "\ndata: 3\n\n"]));
        progress.count(&pieces(&["data: 4 data: x\n\n", "event: a\ndata: 5\n\n"]));
        assert_eq!(progress.tokens, 4, "a line that is cut inside its name is not known by its beginning");
    }

    #[test]
    fn one_event_in_two_seconds() {
        let mut progress = Progress::new(Dialect::Anthropic, Instant::now());
        assert_eq!(progress.due(Instant::now()), None);
        let later = Instant::now() + EVERY;
        let event = progress.due(later).expect("due");
        assert!(event.starts_with(b"event: progress\ndata: {\"tokens_generated\":0,\"elapsed_ms\":2"));
        assert_eq!(progress.due(later), None);
    }

    #[test]
    fn the_last_one_comes_before_the_terminal_event() {
        let mut progress = Progress::new(Dialect::Openai, Instant::now());
        let last = pieces(&["data: {}\n\ndata: [DO", "NE]\n\n"]);
        progress.count(&last);
        let stream = text(&progress.finish(&last, true));
        let (before, after) = stream.split_once("event: progress").expect("an event");
        assert_eq!(before, "data: {}\n\n");
        assert!(after.contains(r#""tokens_generated":1,"#) && after.contains(r#""done":true,"choices":[]"#), "{after}");
        assert!(after.ends_with("\n\ndata: [DONE]\n\n"));
    }

    #[test]
    fn an_event_that_began_before_is_not_cut_in_two() {
        let mut progress = Progress::new(Dialect::Openai, Instant::now());
        assert_eq!(text(&progress.finish(&pieces(&["\"}\n\n"]), false)), "\"}\n\n");
    }
}
