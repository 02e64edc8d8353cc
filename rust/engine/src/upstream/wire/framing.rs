//! Determines the end of a response body (RFC 9112, section 6.3) and decodes the chunked coding.

use bytes::BytesMut;
use http::header::{self, HeaderMap};
use http::{StatusCode, Version};

/// The maximum number of bytes of one chunk's extensions, or of all trailers together. Their content is ignored.
const MAX_ASIDE_BYTES: usize = 16 * 1024;
/// The allowance for the extensions of all chunks together, in addition to a share of the body's size. A server may add
/// an extension to every chunk, but may not send extensions without a body.
const MAX_EXTENSIONS_AHEAD_BYTES: u64 = 64 * 1024;
/// The allowance per byte of the body: a chunk of one byte may have an extension such as `;chunk-signature=<64 hex
/// digits>`.
const EXTENSION_BYTES_PER_BYTE: u64 = 128;
/// The digits of a chunk size, including the blanks with which some servers pad it.
const MAX_SIZE_BYTES: usize = 32;

/// Invalid HTTP, or HTTP that was not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// How the end of a response body is determined.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// This many bytes of the body remain.
    Length(u64),
    Chunked(Chunks),
    /// All bytes until the connection closes.
    UntilClose,
}

impl Framing {
    /// Whether the body is complete. A body that is delimited by the close of its connection is complete only after the
    /// close.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_done(),
            Self::UntilClose => false,
        }
    }

    /// Determines the framing from the head of a response to a request other than HEAD.
    pub(super) fn read(status: StatusCode, version: Version, headers: &HeaderMap) -> Result<Self, Malformed> {
        if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok(Self::Length(0));
        }
        if headers.contains_key(header::TRANSFER_ENCODING) {
            let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
            let is_chunked = codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
            // No other coding was requested.
            let is_legal = is_chunked && codings.next().is_none() && version == Version::HTTP_11;
            return if is_legal { Ok(Self::Chunked(Chunks::default())) } else { Err(Malformed) };
        }
        let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
        let Some(first) = lengths.next() else { return Ok(Self::UntilClose) };
        if lengths.any(|other| other != first) {
            return Err(Malformed);
        }
        let digits = first.as_bytes();
        // Only digits are allowed; the standard parser would accept a sign.
        let number = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit));
        number.and_then(|text| text.parse().ok()).map(Self::Length).ok_or(Malformed)
    }
}

/// Whether the connection can carry another request after this response. Two different lengths end the connection,
/// because another recipient may have used the other one (RFC 9112, section 6.1).
pub(super) fn persists(version: Version, headers: &HeaderMap) -> bool {
    let says = |word: &[u8]| {
        let values = headers.get_all(header::CONNECTION).iter();
        values
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(word))
    };
    let has_two = headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH);
    !has_two && if version == Version::HTTP_11 { !says(b"close") } else { says(b"keep-alive") }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    #[default]
    Size,
    Digits,
    /// After the digits.
    Blank,
    Extension,
    SizeEnd,
    Data,
    DataEnd,
    DataEnded,
    /// At the start of a trailer or of the last line.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerEnd,
    LastEnd,
    Done,
}

/// Decodes the chunked coding (RFC 9112, section 7.1). Only CR LF ends a line, so that an intermediary cannot see
/// different boundaries than we do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    /// Remaining bytes of this chunk.
    left: u64,
    /// Bytes of the size line so far.
    size_bytes: usize,
    /// Bytes of this chunk's extension, or of the trailers.
    aside: usize,
    /// Bytes of all extensions and of the body so far.
    extensions_bytes: u64,
    body_bytes: u64,
}

impl Chunks {
    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Decodes more input and appends the body's bytes to `out`. Returns the number of bytes used, which is all of them
    /// unless the body is complete.
    pub fn decode(&mut self, input: &[u8], out: &mut BytesMut) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some(&byte) = input.get(used) {
            if self.at == At::Data {
                let amount = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - used);
                out.extend_from_slice(&input[used..used + amount]);
                used += amount;
                self.left -= amount as u64;
                self.body_bytes += amount as u64;
                if self.left == 0 {
                    self.at = At::DataEnd;
                }
                continue;
            }
            if self.is_done() {
                break;
            }
            used += 1;
            self.at = self.after(byte)?;
        }
        Ok(used)
    }

    fn after(&mut self, byte: u8) -> Result<At, Malformed> {
        Ok(match (self.at, byte) {
            (At::Size | At::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                self.left = self.left.checked_mul(16).ok_or(Malformed)? + digit;
                self.sized(At::Digits)?
            }
            (At::Digits | At::Blank, b' ' | b'\t') => self.sized(At::Blank)?,
            (At::Digits | At::Blank | At::Extension, b'\r') => At::SizeEnd,
            (At::Digits | At::Blank, b';') => self.extended()?,
            (At::Extension, byte) if is_visible(byte) => self.extended()?,
            (At::SizeEnd, b'\n') if self.left > 0 => At::Data,
            (At::DataEnd, b'\r') => At::DataEnded,
            (At::DataEnded, b'\n') => {
                self.size_bytes = 0;
                self.aside = 0;
                At::Size
            }
            (At::Trailer, b'\r') => At::LastEnd,
            (At::Trailer | At::TrailerName, byte) if is_token(byte) => self.beside(At::TrailerName)?,
            (At::TrailerName, b':') => self.beside(At::TrailerValue)?,
            (At::TrailerValue, b'\r') => At::TrailerEnd,
            (At::TrailerValue, byte) if is_visible(byte) => self.beside(At::TrailerValue)?,
            // A size of zero, or another trailer.
            (At::SizeEnd, b'\n') => {
                self.aside = 0;
                At::Trailer
            }
            (At::TrailerEnd, b'\n') => At::Trailer,
            (At::LastEnd, b'\n') => At::Done,
            _ => return Err(Malformed),
        })
    }

    fn sized(&mut self, at: At) -> Result<At, Malformed> {
        self.size_bytes += 1;
        if self.size_bytes > MAX_SIZE_BYTES {
            Err(Malformed)
        } else {
            Ok(at)
        }
    }

    fn extended(&mut self) -> Result<At, Malformed> {
        self.extensions_bytes += 1;
        // The announced size of the chunk after the extension counts as well.
        let body_bytes = self.body_bytes.saturating_add(self.left.min(MAX_EXTENSIONS_AHEAD_BYTES));
        let most = body_bytes.saturating_mul(EXTENSION_BYTES_PER_BYTE).saturating_add(MAX_EXTENSIONS_AHEAD_BYTES);
        if self.extensions_bytes > most {
            return Err(Malformed);
        }
        self.beside(At::Extension)
    }

    fn beside(&mut self, at: At) -> Result<At, Malformed> {
        self.aside += 1;
        if self.aside > MAX_ASIDE_BYTES {
            Err(Malformed)
        } else {
            Ok(at)
        }
    }
}

/// Whether the byte can be part of a field's name (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether the byte can be part of a field's value, or of an extension: a tab, or no control character.
fn is_visible(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|&(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value))).collect()
    }

    fn framing_of(lines: &[(&'static str, &'static str)]) -> Result<Framing, Malformed> {
        Framing::read(StatusCode::OK, Version::HTTP_11, &headers(lines))
    }

    #[test]
    fn the_head_tells_how_the_body_ends() {
        assert_eq!(framing_of(&[]), Ok(Framing::UntilClose));
        assert_eq!(framing_of(&[("content-length", "12")]), Ok(Framing::Length(12)));
        assert_eq!(framing_of(&[("content-length", "12"), ("content-length", "12")]), Ok(Framing::Length(12)));
        assert_eq!(framing_of(&[("transfer-encoding", "Chunked")]), Ok(Framing::Chunked(Chunks::default())));
        let empty = Framing::read(StatusCode::NO_CONTENT, Version::HTTP_11, &headers(&[("content-length", "5")]));
        assert_eq!(empty, Ok(Framing::Length(0)));
    }

    #[test]
    fn what_can_be_read_two_ways_is_refused() {
        for lines in [
            &[("content-length", "12"), ("content-length", "13")][..],
            &[("content-length", "+12")],
            &[("content-length", "12, 12")],
            &[("content-length", "")],
            &[("content-length", "99999999999999999999")],
            &[("transfer-encoding", "gzip, chunked")],
            &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
        ] {
            assert_eq!(framing_of(lines), Err(Malformed), "{lines:?}");
        }
        let old = headers(&[("transfer-encoding", "chunked")]);
        assert_eq!(Framing::read(StatusCode::OK, Version::HTTP_10, &old), Err(Malformed));
    }

    #[test]
    fn a_connection_persists_unless_told_otherwise() {
        let close = headers(&[("connection", "x, Close")]);
        let keep = headers(&[("connection", "Keep-Alive")]);
        assert!(persists(Version::HTTP_11, &headers(&[])) && !persists(Version::HTTP_11, &close));
        let both = headers(&[("transfer-encoding", "chunked"), ("content-length", "5")]);
        assert!(!persists(Version::HTTP_11, &both));
        assert!(persists(Version::HTTP_10, &keep) && !persists(Version::HTTP_10, &headers(&[])));
    }

    fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let (mut chunks, mut out, mut used) = (Chunks::default(), BytesMut::new(), 0);
        for piece in input.chunks(step) {
            used += chunks.decode(piece, &mut out)?;
        }
        Ok((out.to_vec(), used, chunks.is_done()))
    }

    #[test]
    fn chunks_are_joined_and_what_follows_the_end_is_left() {
        let input = b"5\r\nhello\r\n6 ;a=\"b\"\r\n world\r\n0\r\nx: y\r\n\r\n";
        for step in 1..=input.len() {
            assert_eq!(decode(input, step), Ok((b"hello world".to_vec(), input.len(), true)), "{step}");
        }
        let more = [&input[..], b"HTTP/1.1"].concat();
        assert_eq!(decode(&more, more.len()), Ok((b"hello world".to_vec(), input.len(), true)));
        // Sizes that are padded to a fixed width are not extensions, however many there are.
        let wide = [b"1     \r\nx\r\n".repeat(10_000), b"0\r\n\r\n".to_vec()].concat();
        assert_eq!(decode(&wide, 999).map(|(out, _, is_done)| (out.len(), is_done)), Ok((10_000, true)));
        // An extension for every chunk, which adds up to more than the limit of one chunk.
        let signed = [b"1;chunk-signature=".as_slice(), &[b'0'; 64], b"\r\nx\r\n"].concat();
        let signed = [signed.repeat(10_000), b"0;last\r\nx: y\r\n\r\n".to_vec()].concat();
        assert_eq!(decode(&signed, 999).map(|(out, _, is_done)| (out.len(), is_done)), Ok((10_000, true)));
        assert_eq!(decode(b"5\r\nhel", 100).map(|(out, _, is_done)| (out, is_done)), Ok((b"hel".to_vec(), false)));
    }

    #[test]
    fn chunks_with_other_borders_are_refused() {
        for input in [
            &b"\r\n"[..],
            b"5\nhello",
            b"-5\r\n",
            b"0x5\r\n",
            b"5\r\nhelloX",
            b"5\r\nhello\n",
            b"g\r\n",
            b"5;a\nb\r\n",
            b"5 7\r\n",
            b"5;a\0b\r\n",
            b"0\r\nx: y\n\r\n",
            b"0\r\nx: y\r\n z\r\n\r\n",
            b"0\r\nx: \0\r\n\r\n",
            b"0\r\nx : y\r\n\r\n",
            b"0\r\n: y\r\n\r\n",
            b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"11111111111111111\r\n",
        ] {
            assert_eq!(decode(input, 100), Err(Malformed), "{:?}", String::from_utf8_lossy(input));
        }
        let zeros = [b'0'; MAX_SIZE_BYTES + 1];
        assert_eq!(decode(&zeros, 10), Err(Malformed));
        let long = [b"5;".to_vec(), vec![b'a'; MAX_ASIDE_BYTES + 1]].concat();
        assert_eq!(decode(&long, 1000), Err(Malformed));
        let trailers = [b"0\r\n".to_vec(), b"x: y\r\n".repeat(MAX_ASIDE_BYTES)].concat();
        assert_eq!(decode(&trailers, 1000), Err(Malformed));
        // Long extensions with little data.
        let idle = [b"1;".to_vec(), vec![b'a'; 15_000], b"\r\nx\r\n".to_vec()].concat().repeat(100);
        assert_eq!(decode(&idle, 1000), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_cut_of_any_chunks_gives_the_same_body(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            step in 1..64_usize,
        ) {
            let mut input = Vec::new();
            for part in &parts {
                input.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                input.extend_from_slice(part);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(decode(&input, step), Ok((parts.concat(), input.len(), true)));
        }

        #[test]
        fn no_bytes_make_it_panic(input in proptest::collection::vec(any::<u8>(), 0..200), step in 1..64_usize) {
            let _any = decode(&input, step);
        }
    }
}
