//! Answers as HTTP/1.1 bytes, and the part of them that waits for the socket.

use crate::io::Io;
use bytes::{Buf as _, Bytes};
use fairlead_engine::Head;
use http::{header, HeaderMap, StatusCode};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWrite as _;

/// Pieces up to this size are copied into the tail, because one buffer is cheaper to write than two.
const COPY_BYTES: usize = 4096;
/// The maximum number of slices of one write.
const MAX_SLICES: usize = 16;

/// How the end of an answer's body is signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyCoding {
    /// The answer has no body: it answers `HEAD`, or its status allows none.
    Nothing,
    /// The head states the length.
    Length,
    Chunked,
    /// The connection closes at the end of the body (HTTP/1.0).
    UntilClose,
}

/// Bytes to be sent to the caller.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Large pieces, and everything that was queued before them.
    queue: VecDeque<Bytes>,
    /// The bytes after the queue.
    tail: Vec<u8>,
    /// How much of the tail has been written. Only used while the queue is empty.
    written: usize,
    waiting_bytes: usize,
}

impl Outgoing {
    /// The number of bytes that have not been written.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    fn push_slice(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.waiting_bytes += bytes.len();
    }

    fn push_bytes(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY_BYTES {
            return self.push_slice(&bytes);
        }
        if self.written < self.tail.len() {
            let mut tail = Bytes::from(std::mem::take(&mut self.tail));
            tail.advance(self.written);
            self.queue.push_back(tail);
        }
        self.tail.clear();
        self.written = 0;
        self.waiting_bytes += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Tells a waiting caller to send its body (RFC 9110, 10.1.1).
    pub fn push_continue(&mut self) {
        self.push_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    /// Adds an answer without a body, after which the connection closes.
    pub fn push_fault(&mut self, status: StatusCode) {
        let head = Head { status, headers: HeaderMap::new() };
        self.push_head(&head, &HeadFacts { content_length: Some(0), closes: true, ..HeadFacts::default() });
    }

    /// Adds the head of an answer.
    pub fn push_head(&mut self, head: &Head, facts: &HeadFacts) {
        let before = self.tail.len();
        let out = &mut self.tail;
        let size: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        out.reserve(size + 160);
        out.extend_from_slice(if facts.is_http_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        out.extend_from_slice(head.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(head.status.canonical_reason().unwrap_or("Unknown").as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in &head.headers {
            if matches!(*name, header::CONNECTION | header::TRANSFER_ENCODING | header::CONTENT_LENGTH) {
                continue;
            }
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        if let Some(length) = facts.content_length {
            // Writing to memory cannot fail.
            let _written = write!(out, "content-length: {length}\r\n");
        }
        if facts.is_chunked {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        // Each HTTP version has a default, and the header is sent only if it differs (RFC 9112, 9.3), unless the engine
        // sets it.
        let is_said = head.headers.contains_key(header::CONNECTION);
        match (facts.is_http_10, facts.closes) {
            (true, true) if !is_said => {}
            (_, true) => out.extend_from_slice(b"connection: close\r\n"),
            (true, false) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (false, false) => {}
        }
        push_date(out);
        out.extend_from_slice(b"\r\n");
        self.waiting_bytes += self.tail.len() - before;
    }

    /// Adds the head of an answer that opens a WebSocket (RFC 6455, 4.2.2).
    pub fn push_switch(&mut self, accept: &str) {
        self.push_slice(b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n");
        self.push_slice(b"sec-websocket-accept: ");
        self.push_slice(accept.as_bytes());
        let before = self.tail.len();
        self.tail.extend_from_slice(b"\r\n");
        push_date(&mut self.tail);
        self.tail.extend_from_slice(b"\r\n");
        self.waiting_bytes += self.tail.len() - before;
    }

    /// Adds a piece of a body.
    pub fn push_piece(&mut self, piece: Bytes, coding: BodyCoding) {
        match coding {
            BodyCoding::Nothing => {}
            BodyCoding::Length | BodyCoding::UntilClose => self.push_bytes(piece),
            // An empty chunk would end the body.
            BodyCoding::Chunked if piece.is_empty() => {}
            BodyCoding::Chunked => {
                let before = self.tail.len();
                // Writing to memory cannot fail.
                let _written = write!(self.tail, "{:x}\r\n", piece.len());
                self.waiting_bytes += self.tail.len() - before;
                self.push_bytes(piece);
                self.push_slice(b"\r\n");
            }
        }
    }

    /// Adds the end of a complete body.
    pub fn push_end(&mut self, coding: BodyCoding) {
        if coding == BodyCoding::Chunked {
            self.push_slice(b"0\r\n\r\n");
        }
    }

    /// Writes the waiting bytes. Ready when all of them have left this process.
    pub fn poll_write(&mut self, io: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waiting_bytes > 0 {
            let tail = &self.tail[self.written..];
            let wrote = if self.queue.is_empty() {
                ready!(Pin::new(&mut *io).poll_write(cx, tail))?
            } else {
                let mut slices: SmallVec<[IoSlice<'_>; MAX_SLICES]> =
                    self.queue.iter().take(MAX_SLICES - 1).map(|piece| IoSlice::new(piece)).collect();
                if self.queue.len() < MAX_SLICES && !tail.is_empty() {
                    slices.push(IoSlice::new(tail));
                }
                ready!(Pin::new(&mut *io).poll_write_vectored(cx, &slices))?
            };
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.drop_written(wrote);
        }
        Pin::new(io).poll_flush(cx)
    }

    fn drop_written(&mut self, mut wrote: usize) {
        self.waiting_bytes -= wrote;
        while let Some(first) = self.queue.front_mut() {
            let amount = wrote.min(first.len());
            first.advance(amount);
            wrote -= amount;
            if !first.is_empty() {
                return;
            }
            self.queue.pop_front();
        }
        self.written += wrote;
        if self.waiting_bytes == 0 {
            // An empty buffer would still hold its memory.
            *self = Self::default();
        }
    }

    /// Writes all waiting bytes.
    pub async fn flush(&mut self, io: &mut Io) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_write(io, cx)).await
    }
}

/// The properties of an answer's head in addition to its headers.
#[derive(Debug, Default)]
pub struct HeadFacts {
    pub is_http_10: bool,
    pub content_length: Option<u64>,
    pub is_chunked: bool,
    /// The connection closes after this answer.
    pub closes: bool,
}

/// The length in the engine's own headers.
pub fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

thread_local! {
    /// The `date` line, and the second that it was formatted for.
    static DATE: RefCell<(u64, [u8; 37])> = const { RefCell::new((0, *b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\n")) };
}

fn push_date(out: &mut Vec<u8>) {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(of, line)| {
        if *of != now_s {
            *of = now_s;
            // The line always has the same length.
            let _written = line[6..].as_mut().write_all(http_date(now_s).as_bytes());
        }
        out.extend_from_slice(line);
    });
}

/// Formats `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7). `unix_s` is in seconds since 1970.
fn http_date(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Counts days since 1 March of the year 0 in the Gregorian calendar. Years begin in March, so that leap days end
    // them.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(shifted_month >= 10);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn text(out: &Outgoing) -> String {
        let queued: Vec<u8> = out.queue.iter().flatten().copied().collect();
        String::from_utf8([&queued[..], &out.tail].concat()).expect("text")
    }

    #[test]
    fn moments_are_written_as_http_dates() {
        for (unix_s, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(unix_s), date);
        }
        let mut line = Vec::new();
        push_date(&mut line);
        assert!(line.starts_with(b"date: ") && line.ends_with(b" GMT\r\n") && line.len() == 37);
    }

    #[test]
    fn a_head_says_how_its_body_ends_and_whether_the_connection_stays() {
        let mut headers = HeaderMap::new();
        headers.insert("x-y", HeaderValue::from_static("z"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("99"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let mut head = Head { status: StatusCode::OK, headers };
        let mut out = Outgoing::default();
        out.push_head(&head, &HeadFacts { content_length: Some(2), ..HeadFacts::default() });
        out.push_piece(Bytes::from_static(b"ok"), BodyCoding::Length);
        let sent = text(&out);
        assert!(sent.starts_with("HTTP/1.1 200 OK\r\nx-y: z\r\ncontent-length: 2\r\ndate: "), "{sent}");
        assert!(sent.ends_with(" GMT\r\n\r\nok") && !sent.contains("connection"), "{sent}");
        assert_eq!(out.waiting_bytes(), sent.len());

        let mut out = Outgoing::default();
        out.push_head(&head, &HeadFacts { is_http_10: true, closes: true, ..HeadFacts::default() });
        let sent = text(&out);
        assert!(sent.starts_with("HTTP/1.0 200 OK\r\n") && sent.contains("connection: close\r\n"), "{sent}");
        head.headers.clear();
        for (is_http_10, closes, connection) in
            [(false, true, "close"), (false, false, ""), (true, true, ""), (true, false, "keep-alive")]
        {
            let mut out = Outgoing::default();
            out.push_head(&head, &HeadFacts { is_http_10, closes, ..HeadFacts::default() });
            let sent = text(&out);
            let found = sent.split_once("connection: ").map_or("", |(_, rest)| rest.lines().next().unwrap_or_default());
            assert_eq!(found, connection, "{sent}");
        }
    }

    #[test]
    fn pieces_become_chunks_small_or_large() {
        let mut out = Outgoing::default();
        out.push_piece(Bytes::from_static(b"hello"), BodyCoding::Chunked);
        out.push_piece(Bytes::new(), BodyCoding::Chunked);
        let large = Bytes::from(vec![b'a'; COPY_BYTES + 1]);
        out.push_piece(large.clone(), BodyCoding::Chunked);
        out.push_end(BodyCoding::Chunked);
        let wanted = format!("5\r\nhello\r\n1001\r\n{}\r\n0\r\n\r\n", "a".repeat(large.len()));
        assert_eq!((text(&out), out.waiting_bytes()), (wanted.clone(), wanted.len()));
        // In whatever portions the socket accepts it.
        let mut taken = String::new();
        while out.waiting_bytes() > 0 {
            let amount = out.waiting_bytes().min(7);
            let left = &text(&out)[out.written..];
            taken.push_str(&left[..amount]);
            out.drop_written(amount);
        }
        assert_eq!(taken, wanted);
    }
}
