//! Parses the head of an HTTP/1.1 request (RFC 9112, sections 3 to 6) and determines where its body ends.
//!
//! The head is parsed in place: names are converted to lower case in the buffer, and nothing is copied. Anything that
//! two parsers could read differently is refused, here or by the engine, which returns a message.

use fairlead_engine::Chunks;
use http::{StatusCode, Uri};
use memchr::memchr_iter;
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The maximum number of header lines. The engine has the same limit and reports it with a message, unless this one is
/// reached first.
const MAX_HEADERS: usize = 100;

/// A head that cannot be parsed: the status of the answer without a body, after which the connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadFault(pub StatusCode);

const BAD: HeadFault = HeadFault(StatusCode::BAD_REQUEST);

/// How the end of a request's body is determined.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// The number of bytes still to come.
    Length(u64),
    Chunked(Chunks),
}

impl BodyEnd {
    /// Whether the body has been read completely.
    pub fn is_reached(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_done(),
        }
    }
}

/// Whether a head may end after the first `seen` bytes. Only then it is parsed again.
pub fn may_end(input: &[u8], seen: usize) -> bool {
    let new = &input[seen.saturating_sub(3)..];
    memchr_iter(b'\n', new).any(|at| matches!(new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// A complete head, as positions in its bytes.
#[derive(Debug)]
pub struct HeadLines {
    /// The offset of the body.
    pub end: usize,
    pub is_http_10: bool,
    method: Range<usize>,
    target: Range<usize>,
    /// The positions of each name and value.
    lines: SmallVec<[(Range<usize>, Range<usize>); 24]>,
}

/// Finds the lines of a head. `None` means that it is incomplete.
pub fn scan(input: &[u8]) -> Result<Option<HeadLines>, HeadFault> {
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut read = httparse::Request::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut read, input, &mut space);
    let end = match parsed {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadFault(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)),
        Err(_) => return Err(BAD),
    };
    let span_of = |part: &[u8]| {
        if part.is_empty() {
            return 0..0;
        }
        let start = part.as_ptr() as usize - input.as_ptr() as usize;
        start..start + part.len()
    };
    let (Some(method), Some(target), Some(version)) = (read.method, read.path, read.version) else { return Err(BAD) };
    let lines = read.headers.iter().map(|line| (span_of(line.name.as_bytes()), span_of(line.value))).collect();
    Ok(Some(HeadLines {
        end,
        is_http_10: version == 0,
        method: span_of(method.as_bytes()),
        target: span_of(target.as_bytes()),
        lines,
    }))
}

/// A parsed head, borrowed from its bytes.
#[derive(Debug)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a [u8],
    /// The host in the target itself (absolute form).
    pub authority: Option<&'a str>,
    /// Names in lower case, and values, in their original order.
    pub headers: SmallVec<[(&'a [u8], &'a [u8]); 24]>,
    pub is_http_10: bool,
    pub body: BodyEnd,
    /// The caller wants to reuse the connection.
    pub is_persistent: bool,
    /// The caller waits for `100 Continue` before it sends its body (`Expect: 100-continue`).
    pub waits_to_continue: bool,
}

impl HeadLines {
    /// Converts the names to lower case and parses the head.
    pub fn read<'a>(&self, input: &'a mut [u8]) -> Result<RequestHead<'a>, HeadFault> {
        for (name, _) in &self.lines {
            input[name.clone()].make_ascii_lowercase();
        }
        let input = &*input;
        let text = |span_of: &Range<usize>| std::str::from_utf8(&input[span_of.clone()]).map_err(|_| BAD);
        let target = text(&self.target)?;
        let (path, query, authority) = if is_plain_path(target) {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            (path, query, None)
        } else {
            split_target(target)?
        };
        let mut head = RequestHead {
            method: text(&self.method)?,
            path,
            query: query.as_bytes(),
            authority,
            headers: SmallVec::new(),
            is_http_10: self.is_http_10,
            body: BodyEnd::Length(0),
            is_persistent: !self.is_http_10,
            waits_to_continue: false,
        };
        head.take_lines(self.lines.iter().map(|(name, value)| (&input[name.clone()], &input[value.clone()])))?;
        Ok(head)
    }
}

impl<'a> RequestHead<'a> {
    fn take_lines(&mut self, lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<(), HeadFault> {
        let mut length = None;
        let mut last_coding = None;
        for (name, value) in lines {
            match name {
                b"content-length" => {
                    let this = decimal(value).ok_or(BAD)?;
                    if length.replace(this).is_some_and(|other| other != this) {
                        return Err(BAD);
                    }
                }
                b"transfer-encoding" => {
                    // HTTP/1.0 has no transfer codings, so a proxy of that version may have forwarded one that it did
                    // not understand.
                    if self.is_http_10 {
                        return Err(BAD);
                    }
                    last_coding = value.rsplit(|&byte| byte == b',').next().map(<[u8]>::trim_ascii);
                }
                b"connection" => {
                    for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                        if option.eq_ignore_ascii_case(b"close") {
                            self.is_persistent = false;
                        } else if self.is_http_10 && option.eq_ignore_ascii_case(b"keep-alive") {
                            self.is_persistent = true;
                        }
                    }
                }
                b"expect" => self.waits_to_continue = !self.is_http_10 && value.eq_ignore_ascii_case(b"100-continue"),
                _ => {}
            }
            self.headers.push((name, value));
        }
        self.body = match last_coding {
            Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => {
                // The request has two framings. Whatever the engine decides, nothing after this request is read (RFC
                // 9112, 6.1).
                self.is_persistent &= length.is_none();
                BodyEnd::Chunked(Chunks::default())
            }
            Some(_) => return Err(BAD),
            None => BodyEnd::Length(length.unwrap_or(0)),
        };
        Ok(())
    }

    /// The value of the first line with this name. `name` is in lower case.
    pub fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.headers.iter().find(|(of, _)| *of == name).map(|(_, value)| *value)
    }
}

/// Parses a number that consists only of digits. The standard parser would accept a sign.
fn decimal(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Whether a target is in origin form with common characters only, so that it needs no URI parser.
fn is_plain_path(target: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._~-:@!$&'()*+,;=%?".contains(&byte);
    target.starts_with('/') && target.bytes().all(is_plain)
}

/// The path, query and authority of a target in any other form, or with unusual characters.
fn split_target(target: &str) -> Result<(&str, &str, Option<&str>), HeadFault> {
    let uri: Uri = target.parse().map_err(|_| BAD)?;
    // The parts are looked up in the target, because it lives as long as the head.
    let find = |part: &str| target.find(part).and_then(|at| target.get(at..at + part.len())).ok_or(BAD);
    let authority = uri.authority().map(|authority| find(authority.as_str())).transpose()?;
    let rest = match (uri.scheme_str(), authority) {
        (Some(scheme), Some(authority)) => {
            let start = scheme.len() + "://".len() + authority.len();
            target.get(start..).ok_or(BAD)?
        }
        (None, Some(_)) => "",
        _ => target,
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    // An absolute target without a path means the root.
    let path = if path.is_empty() && uri.scheme().is_some() { "/" } else { path };
    Ok((path, query, authority))
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
