use super::*;

fn inbound<'a>(headers: &'a HeaderList<'a>) -> Inbound<'a> {
    Inbound {
        method: "POST",
        path: "/v1/models",
        query: b"",
        headers,
        authority: None,
        peer: "127.0.0.1".parse().ok(),
        is_tls: false,
        is_http2: false,
    }
}

fn status(headers: &HeaderList<'_>) -> u16 {
    read(&inbound(headers)).map_or_else(|error| error.kind.status(), |_| 200)
}

#[test]
fn a_host_is_one_host() {
    for good in ["localhost", "a.example:20128", "[::1]:1", "127.0.0.1"] {
        assert_eq!(status(&[(b"host", good.as_bytes())]), 200, "{good}");
    }
    for bad in ["", "a/b", "a?b", "a#b", "u@h", "a b", "a:x", "a:99999", "[::1", "[x]", "::1", "é"] {
        assert_eq!(status(&[(b"host", bad.as_bytes())]), 400, "{bad}");
    }
    assert_eq!(status(&[]), 400);
    assert_eq!(status(&[(b"host", b"a"), (b"host", b"a")]), 400);
}

#[test]
fn the_name_that_is_called_may_stand_in_the_target_alone() {
    let no_host: &HeaderList<'_> = &[];
    let over_http2 = Inbound { authority: Some("evil.example:443"), is_http2: true, ..inbound(no_host) };
    assert_eq!(read(&over_http2).map(|sheet| sheet.host).ok(), Some("evil.example:443"));
}

#[test]
fn a_query_may_hold_a_key() {
    let shown = |query: &'static [u8]| {
        let mut credentials = Credentials::default();
        show_query_keys(&mut credentials, query);
        (credentials.bearer, credentials.ambiguous)
    };
    assert_eq!(shown(b"alt=sse&key=sk-1"), (Some("sk-1"), false));
    assert_eq!(shown(b"key=sk-1&key=sk-1"), (Some("sk-1"), false));
    assert!(shown(b"key=sk-1&key=sk-2").1);
    assert_eq!(shown(b"key=&monkey=x"), (None, false));
    assert_eq!(without_keys(b"alt=sse&key=sk-1&pageSize=2"), b"alt=sse&pageSize=2");
    assert_eq!(without_keys(b"key=sk-1"), b"");
}

#[test]
fn sizes_are_bounded() {
    let big = vec![b'a'; MAX_HEADER_BYTES];
    assert_eq!(status(&[(b"host", b"a"), (b"x", &big)]), 431);
    let many: Vec<(&[u8], &[u8])> = std::iter::repeat_n((&b"x"[..], &b"y"[..]), MAX_HEADERS + 1).collect();
    assert_eq!(status(&many), 431);
}

#[test]
fn a_body_has_one_framing() {
    assert_eq!(status(&[(b"host", b"a"), (b"content-length", b"5"), (b"transfer-encoding", b"chunked")]), 400);
    assert_eq!(status(&[(b"host", b"a"), (b"transfer-encoding", b"chunked")]), 200);
}

#[test]
fn two_credentials_must_agree() {
    let same = [(&b"host"[..], &b"a"[..]), (b"authorization", b"Bearer k"), (b"x-api-key", b"k")];
    assert!(!read(&inbound(&same)).expect("read").credentials.ambiguous);
    let other = [(&b"host"[..], &b"a"[..]), (b"authorization", b"Bearer k"), (b"x-api-key", b"l")];
    assert!(read(&inbound(&other)).expect("read").credentials.ambiguous);
    let basic = [(&b"host"[..], &b"a"[..]), (b"authorization", b"Basic eA==")];
    assert!(read(&inbound(&basic)).expect("read").has_other_scheme);
    assert_eq!(other_scheme().kind.status(), 401);
}

#[test]
fn a_proxied_request_is_not_local_and_a_foreign_page_is_cross_site() {
    let read_of = |extra: (&'static [u8], &'static [u8])| {
        let headers = [(&b"host"[..], &b"gw:1"[..]), extra];
        let credentials = read(&inbound(&headers)).expect("read").credentials;
        (credentials.is_local_peer, credentials.is_cross_site)
    };
    assert_eq!(read_of((b"x-forwarded-for", b"1.2.3.4")), (false, true));
    assert_eq!(read_of((b"cf-connecting-ip", b"1.2.3.4")), (false, true));
    assert_eq!(read_of((b"sec-fetch-site", b"same-origin")), (true, false));
    assert_eq!(read_of((b"sec-fetch-site", b"same-site")), (true, true));
    assert_eq!(read_of((b"origin", b"http://gw:1")), (true, false));
    assert_eq!(read_of((b"origin", b"null")), (true, true));
    assert_eq!(read_of((b"origin", b"https://gw:1")), (true, true));
}

#[test]
fn a_page_is_foreign_by_what_it_says_or_by_the_name_it_calls() {
    let is_foreign = |host: &'static str, extra: &[(&'static [u8], &'static [u8])]| {
        let mut headers = vec![(&b"host"[..], host.as_bytes())];
        headers.extend_from_slice(extra);
        read(&inbound(&headers)).expect("read").credentials.is_of_foreign_page
    };
    for own in ["localhost:1", "127.0.0.1:1", "[::1]:1", "192.168.0.2"] {
        assert!(!is_foreign(own, &[]), "{own}");
        assert!(is_foreign(own, &[(b"origin", b"http://evil.example")]), "{own}");
        assert!(is_foreign(own, &[(b"sec-fetch-site", b"cross-site")]), "{own}");
    }
    assert!(!is_foreign("localhost:1", &[(b"origin", b"http://localhost:1")]));
    for rebound in ["evil.example:1", "localhost.evil.example", "127.0.0.1.evil.example"] {
        assert!(is_foreign(rebound, &[]), "{rebound}");
    }
}

#[test]
fn the_hyphened_session_header_wins() {
    let headers = [(&b"host"[..], &b"a"[..]), (b"x-session-id", b"one"), (b"x_session_id", b"two")];
    assert_eq!(read(&inbound(&headers)).expect("read").session_id, Some("one"));
    assert_eq!(status(&[(b"host", b"a"), (b"x-session-id", b"a\x01b")]), 400);
}
