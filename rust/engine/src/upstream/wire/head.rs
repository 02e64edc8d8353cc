//! Encodes request heads and decodes response heads.

use super::framing::{persists, Framing, Malformed};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, Uri, Version};
use std::mem::MaybeUninit;

/// The maximum size of a response head, and its maximum number of headers.
pub(super) const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

/// Encodes a request head with the length of its body. Length headers in the input are ignored.
pub(super) fn encode(method: &Method, uri: &Uri, headers: &HeaderMap, body_bytes: u64) -> Vec<u8> {
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let mut out = Vec::with_capacity(method.as_str().len() + path.len() + size + 64);
    for part in [method.as_str(), " ", path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in headers {
        if matches!(*name, header::CONTENT_LENGTH | header::TRANSFER_ENCODING | header::CONNECTION) {
            continue;
        }
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    if body_bytes > 0 || !matches!(*method, Method::GET | Method::HEAD) {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(body_bytes.to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) answer: Response<()>,
    pub(super) framing: Framing,
    pub(super) persists: bool,
    /// The offset of the body.
    pub(super) end: usize,
}

/// Whether a head may end in the bytes after the first `seen`.
pub(super) fn may_end(input: &[u8], seen: usize) -> bool {
    let new = &input[seen.saturating_sub(3)..];
    memchr::memchr_iter(b'\n', new).any(|at| matches!(new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// The result of decoding bytes as a head.
#[derive(Debug)]
pub(super) enum Decoded {
    Complete(ResponseHead),
    /// More bytes are needed. This many bytes were interim responses (1xx) and can be discarded.
    Partial(usize),
}

/// Decodes a response head and skips interim responses (1xx). The size limit applies to each of them, so a provider may
/// send an interim response every second for as long as the caller waits.
pub(super) fn decode(input: &Bytes) -> Result<Decoded, Malformed> {
    let mut start = 0;
    loop {
        let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut read = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut read,
            &input[start..],
            &mut lines,
        );
        let end = match parsed.map_err(|_| Malformed)? {
            httparse::Status::Complete(size) => start + size,
            httparse::Status::Partial if input.len() - start >= MAX_HEAD_BYTES => return Err(Malformed),
            httparse::Status::Partial => return Ok(Decoded::Partial(start)),
        };
        let status = read.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Malformed)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            // No protocol upgrade was requested.
            return Err(Malformed);
        }
        if status.is_informational() {
            start = end;
            continue;
        }
        let version = if read.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
        let mut headers = HeaderMap::with_capacity(read.headers.len());
        for line in &*read.headers {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Malformed)?;
            // An empty value may not point into the input.
            let value = if line.value.is_empty() { Bytes::new() } else { input.slice_ref(line.value) };
            headers.append(name, HeaderValue::from_maybe_shared(value).map_err(|_| Malformed)?);
        }
        let framing = Framing::read(status, version, &headers)?;
        let persists = persists(version, &headers);
        let mut answer = Response::new(());
        *answer.status_mut() = status;
        *answer.version_mut() = version;
        *answer.headers_mut() = headers;
        return Ok(Decoded::Complete(ResponseHead { answer, framing, persists, end }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_length_that_its_body_has() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("h"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("99"));
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        let uri = Uri::from_static("http://elsewhere/v1/chat?x=1");
        let head = encode(&Method::POST, &uri, &headers, 5);
        assert_eq!(
            String::from_utf8(head).expect("text"),
            "POST /v1/chat?x=1 HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n"
        );
        let get = encode(&Method::GET, &Uri::from_static("/"), &HeaderMap::new(), 0);
        assert_eq!(get, b"GET / HTTP/1.1\r\n\r\n");
        let empty = encode(&Method::POST, &Uri::from_static("/"), &HeaderMap::new(), 0);
        assert!(empty.ends_with(b"content-length: 0\r\n\r\n"));
    }

    #[test]
    fn an_answer_may_be_announced_and_is_read_when_it_is_whole() {
        let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nx:\r\n\r\nok";
        let announced = text.windows(4).position(|four| four == b"\r\n\r\n").expect("there") + 4;
        for size in 0..text.len() - 2 {
            let decoded = decode(&Bytes::copy_from_slice(&text[..size])).expect("so far well");
            let Decoded::Partial(passed) = decoded else { panic!("{size}") };
            assert_eq!(passed >= announced, size >= announced, "{size}");
        }
        let many = [b"HTTP/1.1 102 Processing\r\n\r\n".repeat(MAX_HEAD_BYTES), text.to_vec()].concat();
        assert!(matches!(decode(&Bytes::from(many)), Ok(Decoded::Complete(_))), "each is small");
        let Ok(Decoded::Complete(head)) = decode(&Bytes::from_static(text)) else { panic!("whole") };
        assert_eq!((head.answer.status(), head.framing, head.persists), (StatusCode::OK, Framing::Length(2), true));
        assert_eq!((&text[head.end..], &head.answer.headers()["x"]), (&b"ok"[..], &HeaderValue::from_static("")));
    }

    #[test]
    fn a_head_may_end_where_its_last_line_does() {
        let text = b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n";
        for seen in 0..text.len() {
            assert!(may_end(text, seen), "{seen}");
            assert!(!may_end(&text[..text.len() - 1], seen.min(text.len() - 1)));
        }
        assert!(may_end(b"x\n\n", 2) && !may_end(b"\r\n\r\nmore", 8));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let long = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; MAX_HEAD_BYTES]].concat();
        let many = [b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".repeat(MAX_HEADERS + 1), b"\r\n".to_vec()].concat();
        for text in [
            &b"SSH-2.0-x\r\n"[..],
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"HTTP/1.1 101 X\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx\x00: y\r\n\r\n",
            &long,
            &many,
        ] {
            assert!(
                decode(&Bytes::copy_from_slice(text)).is_err(),
                "{:?}",
                String::from_utf8_lossy(&text[..text.len().min(40)])
            );
        }
    }
}
