//! Feeds arbitrary bytes in arbitrary pieces to the HTTP/1 client. It never panics, stays within its bounds, and
//! returns the same result however the bytes are split.

use super::framing::{Chunks, Framing};
use super::head::{self, Decoded};
use crate::fuzz;
use bytes::{Buf as _, Bytes, BytesMut};
use proptest::prelude::*;
use proptest::sample::{select, Index};

/// The result of reading a stream of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Read {
    /// An incomplete head.
    Waiting,
    Malformed,
    /// Status, headers, body so far, whether the body is complete, and the following bytes.
    Answer {
        status: u16,
        headers: usize,
        body: Vec<u8>,
        is_complete: bool,
        is_malformed: bool,
        after: usize,
    },
}

/// Reads like the connection does: a head in pieces, then a body.
fn read(pieces: &[&[u8]]) -> Read {
    let mut partial = BytesMut::new();
    let mut pieces = pieces.iter();
    let head = loop {
        let Some(piece) = pieces.next() else { return Read::Waiting };
        let seen = partial.len();
        partial.extend_from_slice(piece);
        if seen > 0 && !head::may_end(&partial, seen) {
            if partial.len() > head::MAX_HEAD_BYTES {
                return Read::Malformed;
            }
            continue;
        }
        let mut input = std::mem::take(&mut partial).freeze();
        match head::decode(&input) {
            Err(_) => return Read::Malformed,
            Ok(Decoded::Partial(passed)) => {
                input.advance(passed);
                partial = input.into();
            }
            Ok(Decoded::Complete(head)) => {
                let rest = input.slice(head.end..);
                break (head, rest);
            }
        }
    };
    let (head, first) = head;
    let rest: Vec<Bytes> = std::iter::once(first).chain(pieces.map(|piece| Bytes::copy_from_slice(piece))).collect();
    let total: usize = rest.iter().map(Bytes::len).sum();
    let (mut body, mut is_malformed, mut used) = (BytesMut::new(), false, 0);
    let is_complete = match head.framing {
        Framing::Length(length) => {
            let all = rest.concat();
            used = usize::try_from(length).unwrap_or(usize::MAX).min(all.len());
            body.extend_from_slice(&all[..used]);
            used as u64 == length
        }
        Framing::UntilClose => {
            body.extend_from_slice(&rest.concat());
            used = total;
            true
        }
        Framing::Chunked(mut chunks) => {
            for piece in &rest {
                match chunks.decode(piece, &mut body) {
                    Ok(count) => used += count,
                    Err(_) => is_malformed = true,
                }
                if is_malformed || chunks.is_done() {
                    break;
                }
            }
            chunks.is_done()
        }
    };
    let (status, headers) = (head.answer.status().as_u16(), head.answer.headers().len());
    let after = if is_malformed { 0 } else { total - used };
    Read::Answer { status, headers, body: body.to_vec(), is_complete, is_malformed, after }
}

fn any_answer() -> impl Strategy<Value = (Vec<u8>, Vec<Index>)> {
    let piece = select(vec![
        &b"HTTP/1.1 200 OK\r\n"[..],
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.0 404 X\r\n",
        b"HTTP/1.1 204 N\r\n",
        b"content-length: 5\r\n",
        b"Content-Length: 18446744073709551616\r\n",
        b"transfer-encoding: chunked\r\n",
        b"connection: close\r\n",
        b"x: y\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"\n\n",
        b"5\r\nhello\r\n",
        b"5;ext=\"a\"\r\nhello\r\n",
        b"a\r\n0123456789\r\n",
        b"ffffffffffffffff\r\n",
        b"0\r\n\r\n",
        b"0\r\nx: y\r\n\r\n",
        b"hello",
        b":",
        b"\0",
    ]);
    let piece = prop_oneof![6 => piece.prop_map(<[u8]>::to_vec), 1 => proptest::collection::vec(any::<u8>(), 0..12)];
    let whole = select(vec![
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"",
    ]);
    let bytes = (whole, proptest::collection::vec(piece, 0..16))
        .prop_map(|(start, pieces)| [start, &pieces.concat()[..]].concat());
    (bytes, proptest::collection::vec(any::<Index>(), 0..12))
}

#[test]
fn fuzz_http1() {
    fuzz::check(&any_answer(), |(bytes, cuts)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        cuts.dedup();
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts
            .iter()
            .map(|&to| {
                let piece = &bytes[from..to];
                from = to;
                piece
            })
            .filter(|piece| !piece.is_empty())
            .collect();
        let whole = if bytes.is_empty() { read(&[]) } else { read(&[&bytes]) };
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        for cut in [read(&pieces), read(&single)] {
            // An error after the point where a split read is still waiting is found with the remaining bytes.
            if (&whole, &cut) != (&Read::Malformed, &Read::Waiting) {
                prop_assert_eq!(&cut, &whole);
            }
        }
        if let Read::Answer { body, .. } = &whole {
            prop_assert!(body.len() <= bytes.len());
        }
        Ok(())
    });
}

#[test]
fn fuzz_chunks() {
    let part = (proptest::collection::vec(any::<u8>(), 1..40), "(;[a-z0-9=]{0,80})?", " {0,3}");
    let strategy = (proptest::collection::vec(part, 0..40), 1..64_usize, "([a-z]{1,8}: [ -~]{0,20}\r\n){0,3}");
    fuzz::check(&strategy, |(parts, step, trailers)| {
        let mut input = Vec::new();
        for (data, extension, blank) in &parts {
            input.extend_from_slice(format!("{:X}{blank}{extension}\r\n", data.len()).as_bytes());
            input.extend_from_slice(data);
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        let (mut chunks, mut out) = (Chunks::default(), BytesMut::new());
        for piece in input.chunks(step) {
            prop_assert_eq!(chunks.decode(piece, &mut out).ok(), Some(piece.len()));
        }
        let expected: Vec<u8> = parts.iter().flat_map(|(data, ..)| data.clone()).collect();
        prop_assert_eq!((&out[..], chunks.is_done()), (&expected[..], true));
        Ok(())
    });
}
