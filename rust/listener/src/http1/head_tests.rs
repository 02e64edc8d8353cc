//! Tests of request heads: which are accepted and which refused, however the bytes are cut.

use super::*;
use crate::fuzz;
use proptest::prelude::*;

fn read(text: &[u8]) -> Result<Option<(String, usize)>, HeadFault> {
    let mut bytes = text.to_vec();
    let Some(lines) = scan(&bytes)? else { return Ok(None) };
    let end = lines.end;
    let head = lines.read(&mut bytes)?;
    Ok(Some((format!("{head:?}"), end)))
}

fn facts<T>(text: &str, look: impl FnOnce(&RequestHead<'_>) -> T) -> T {
    let mut bytes = text.as_bytes().to_vec();
    let lines = scan(&bytes).expect("a head").expect("whole");
    let head = lines.read(&mut bytes).expect("in order");
    look(&head)
}

#[test]
fn a_head_is_read_where_it_lies() {
    let text = "POST /v1/chat?x=1 HTTP/1.1\r\nHost: a\r\nX-Y:  z \r\nEmpty:\r\nContent-Length: 5\r\n\r\nhello";
    facts(text, |head| {
        assert_eq!((head.method, head.path, head.query, head.authority), ("POST", "/v1/chat", &b"x=1"[..], None));
        assert_eq!(head.headers[..3], [(&b"host"[..], &b"a"[..]), (b"x-y", b"z"), (b"empty", b"")]);
        assert_eq!((&head.body, head.is_persistent), (&BodyEnd::Length(5), true));
    });
    let (_, end) = read(text.as_bytes()).expect("a head").expect("whole");
    assert_eq!(&text[end..], "hello");
    for size in 0..end {
        assert_eq!(read(&text.as_bytes()[..size]), Ok(None), "{size}");
        assert!(!may_end(&text.as_bytes()[..size], 0));
    }
    assert!((0..=end).all(|seen| may_end(&text.as_bytes()[..end], seen)));
}

#[test]
fn targets_have_four_forms() {
    for (target, path, query, authority) in [
        ("/a%20b/c?d=e?f", "/a%20b/c", "d=e?f", None),
        ("/?", "/", "", None),
        ("/a|b?c|d#e", "/a|b", "c|d", None),
        ("http://h:1/x/y?z", "/x/y", "z", Some("h:1")),
        ("http://h", "/", "", Some("h")),
        ("http://h?q", "/", "q", Some("h")),
        ("*", "*", "", None),
        ("h:443", "", "", Some("h:443")),
    ] {
        let text = format!("OPTIONS {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        facts(&text, |head| {
            assert_eq!((head.path, head.query, head.authority), (path, query.as_bytes(), authority), "{target}");
        });
    }
}

#[test]
fn the_head_says_whether_the_connection_stays() {
    for (version, lines, stays) in [
        ("1.1", "", true),
        ("1.1", "Connection: x, Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", false),
    ] {
        let text = format!("POST / HTTP/{version}\r\nHost: h\r\n{lines}\r\n");
        assert_eq!(facts(&text, |head| head.is_persistent), stays, "{text}");
    }
}

#[test]
fn bodies_end_in_one_way_or_are_refused() {
    let body = |lines: &str| {
        let mut bytes = format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\n").into_bytes();
        let lines = scan(&bytes)?.expect("whole");
        lines.read(&mut bytes).map(|head| head.body)
    };
    assert_eq!(body(""), Ok(BodyEnd::Length(0)));
    assert_eq!(body("Content-Length: 7\r\nContent-Length: 7\r\n"), Ok(BodyEnd::Length(7)));
    assert_eq!(body("Transfer-Encoding: Chunked\r\n"), Ok(BodyEnd::Chunked(Chunks::default())));
    for lines in [
        "Content-Length: 7\r\nContent-Length: 8\r\n",
        "Content-Length: 7, 7\r\n",
        "Content-Length: +7\r\n",
        "Content-Length: 0x7\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551618\r\n",
        "Content-Length : 7\r\n",
        "X: y\r\n Content-Length: 7\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n",
        "X\0: y\r\n",
        "X: \0\r\n",
        "X: a\rb\r\n",
    ] {
        assert_eq!(body(lines), Err(BAD), "{lines:?}");
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(old), Err(BAD));
    let many = ["GET / HTTP/1.1\r\n", &"x: y\r\n".repeat(MAX_HEADERS + 1), "\r\n"].concat();
    assert_eq!(read(many.as_bytes()), Err(HeadFault(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
}

/// Almost valid heads: parts that parsers disagree about, between parts that they agree about.
fn any_head() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"POST /v1/chat HTTP/1.1\r\n"[..],
        b"GET http://h/x?y#z HTTP/1.1\r\n",
        b"GET /|\xc3\xa9 HTTP/1.0\r\n",
        b"Host: h\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: +5\r\n",
        b"content-length:",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close, x\r\n",
        b"Expect: 100-continue\r\n",
        b"X-Y: z\n",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"\0",
        b"a",
    ]);
    let piece = prop_oneof![6 => piece.prop_map(<[u8]>::to_vec), 1 => proptest::collection::vec(any::<u8>(), 0..6)];
    (any::<bool>(), proptest::collection::vec(piece, 0..16)).prop_map(|(begins_well, pieces)| {
        let start: &[u8] = if begins_well { b"POST / HTTP/1.1\r\n" } else { b"" };
        [start, &pieces.concat()].concat()
    })
}

#[test]
fn fuzz_request_head() {
    fuzz::check(&(any_head(), 0_usize..200), |(input, cut)| {
        let whole = read(&input);
        let part = read(&input[..cut.min(input.len())]);
        if part != Ok(None) {
            // More bytes neither change what was parsed nor make a refused head valid.
            prop_assert_eq!(&part, &whole);
        }
        let Ok(Some((_, end))) = whole else { return Ok(()) };
        prop_assert!(may_end(&input[..end], 0), "it was looked for where it ends");
        let mut bytes = input[..end].to_vec();
        let lines = scan(&bytes).expect("a head").expect("whole");
        let head = lines.read(&mut bytes).expect("in order");
        let has = |name: &[u8]| head.headers.iter().any(|(of, _)| *of == name);
        prop_assert_eq!(matches!(head.body, BodyEnd::Chunked(_)), has(b"transfer-encoding"));
        prop_assert!(head.headers.iter().all(|(name, _)| !name.is_empty() && !name.iter().any(u8::is_ascii_uppercase)));
        prop_assert!(!head.headers.iter().any(|(_, value)| value.iter().any(|byte| b"\r\n\0".contains(byte))));
        Ok(())
    });
}
