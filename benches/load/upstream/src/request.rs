//! Reads a request out of a buffer: where it ends, and what it asks for.

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Unary,
    Stream { usage: bool },
    Stall,
    Models,
    Health,
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The buffer ends inside a request.
    More,
    /// The first `length` bytes are one request.
    Whole { ask: Ask, length: usize },
}

pub fn read(buffer: &[u8]) -> Read {
    let Some(head_length) = find(buffer, b"\r\n\r\n").map(|at| at + 4) else {
        return Read::More;
    };
    let (head, rest) = buffer.split_at(head_length);
    let body_length = if header(head, b"transfer-encoding").is_some() {
        chunked_length(rest)
    } else {
        header(head, b"content-length").map_or(Some(0), |value| std::str::from_utf8(value).ok()?.trim().parse().ok())
    };
    match body_length {
        Some(length) if rest.len() >= length => {
            Read::Whole { ask: ask(head, &rest[..length]), length: head_length + length }
        }
        _ => Read::More,
    }
}

fn ask(head: &[u8], body: &[u8]) -> Ask {
    let path = head.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    match path {
        _ if path.ends_with(b"/chat/completions") => {
            if !is_true(body, b"\"stream\"") {
                Ask::Unary
            } else if find(body, b"\"stall").is_some() {
                Ask::Stall
            } else {
                Ask::Stream { usage: is_true(body, b"\"include_usage\"") }
            }
        }
        b"/v1/models" | b"/models" => Ask::Models,
        b"/health" | b"/healthz" | b"/model_info" | b"/get_model_info" | b"/server_info" | b"/get_server_info" => {
            Ask::Health
        }
        _ => Ask::Unknown,
    }
}

/// Whether `"name": true` stands in the JSON, however it is spaced.
fn is_true(body: &[u8], name: &[u8]) -> bool {
    find(body, name).is_some_and(|at| {
        let value = body[at + name.len()..].trim_ascii_start();
        value.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    })
}

fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').find_map(|line| {
        let (left, right) = line.split_at(line.iter().position(|&byte| byte == b':')?);
        left.eq_ignore_ascii_case(name).then(|| &right[1..])
    })
}

/// The length of a chunked body up to its end, if it is all there. No trailers: no gateway sends them.
fn chunked_length(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = find(&body[at..], b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&body[at..at + line]).ok()?, 16).ok()?;
        at += line + 2 + size + 2;
        if at > body.len() {
            return None;
        }
        if size == 0 {
            return Some(at);
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(body: &str) -> Vec<u8> {
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    }

    fn asked(body: &str) -> Ask {
        match read(&post(body)) {
            Read::Whole { ask, .. } => ask,
            Read::More => panic!("the request is whole"),
        }
    }

    #[test]
    fn a_body_tells_what_is_asked() {
        assert_eq!(asked(r#"{"model":"mock"}"#), Ask::Unary);
        assert_eq!(asked(r#"{"stream":false}"#), Ask::Unary);
        assert_eq!(asked(r#"{"stream" : true}"#), Ask::Stream { usage: false });
        assert_eq!(asked(r#"{"stream":true,"stream_options":{"include_usage":true}}"#), Ask::Stream { usage: true });
        assert_eq!(asked(r#"{"model":"stall","stream":true}"#), Ask::Stall);
    }

    #[test]
    fn a_request_is_whole_only_with_its_body() {
        let whole = post(r#"{"model":"mock"}"#);
        for cut in 0..whole.len() {
            assert_eq!(read(&whole[..cut]), Read::More);
        }
        let two = [whole.clone(), whole.clone()].concat();
        assert_eq!(read(&two), Read::Whole { ask: Ask::Unary, length: whole.len() });
    }

    #[test]
    fn a_chunked_body_ends_at_its_last_chunk() {
        let head = "POST /chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let request = format!("{head}f\r\n{{\"stream\":true}}\r\n0\r\n\r\n");
        let whole = Read::Whole { ask: Ask::Stream { usage: false }, length: request.len() };
        assert_eq!(read(request.as_bytes()), whole);
        assert_eq!(read(&request.as_bytes()[..request.len() - 2]), Read::More);
    }
}
