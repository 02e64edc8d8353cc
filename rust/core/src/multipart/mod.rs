//! Reads `multipart/form-data` (RFC 7578) once, as it arrives: the position of each part and the values of the small
//! ones.
//!
//! A form decides policy, because one of its fields names the model, which the key must be allowed to call. The body is
//! forwarded unchanged, so the server behind the gateway must find the same fields. The reader therefore refuses
//! everything that two parsers could read differently: a preamble, a duplicate field, a part with no name or two, a
//! folded header, an invalid line end, a missing final boundary. A part with a file name is a file, of which only the
//! position is stored.
//!
//! `form` is the result, `part_head` reads the headers of a part, and [`Reader`] reads the body in pieces.

mod form;
mod part_head;

pub use form::{Form, FormFault, Part};

use memchr::memmem;
use part_head::{is_list, is_token, is_utf8, read_headers, split_name};

const MAX_PARTS: usize = 128;
const MAX_HEADER_BYTES: usize = 8 * 1024;
const MAX_FIELD_BYTES: usize = 256 * 1024;
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
/// The fields that the gateway uses for decisions. They are never files or array elements.
const DECIDING: [&str; 3] = ["model", "stream", "n"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte.
    Start,
    /// After a boundary.
    Boundary,
    Headers,
    Content,
    /// After the final boundary.
    Done,
}

/// Reads a form in pieces.
#[derive(Debug)]
pub struct Reader {
    /// CRLF, two dashes and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// The bytes that have not been processed, and the position of the first of them in the body.
    buffer: Vec<u8>,
    at: u64,
    value: Vec<u8>,
    fields_bytes: usize,
    form: Form,
}

/// The boundary of a content type, if it is a form that every parser splits in the same way.
pub fn boundary_of(content_type: &str) -> Option<&str> {
    let (essence, rest) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut boundary = None;
    for parameter in rest.split(';').filter(|parameter| !parameter.trim().is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        // Parsers disagree about the end of a parameter that contains a quote.
        if value.contains(['"', '\\']) || !name.bytes().all(is_token) {
            return None;
        }
        if name.eq_ignore_ascii_case("boundary") && boundary.replace(value).is_some() {
            return None;
        }
        let is_extended = name.len() > 8 && name[..8].eq_ignore_ascii_case("boundary");
        let is_charset = name.eq_ignore_ascii_case("charset");
        if is_extended || is_charset && !is_utf8(value) {
            return None;
        }
    }
    let boundary = boundary?;
    let is_fine = (1..=70).contains(&boundary.len())
        && !boundary.ends_with(' ')
        && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte));
    is_fine.then_some(boundary)
}

impl Reader {
    pub fn new(boundary: &str) -> Self {
        let mut delimiter = b"\r\n--".to_vec();
        delimiter.extend_from_slice(boundary.as_bytes());
        Self {
            delimiter,
            state: State::Start,
            buffer: Vec::new(),
            at: 0,
            value: Vec::new(),
            fields_bytes: 0,
            form: Form::default(),
        }
    }

    /// Reads the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), FormFault> {
        self.buffer.extend_from_slice(piece);
        while self.step()? {}
        Ok(())
    }

    /// Returns the form at the end of the body.
    pub fn finish(self) -> Result<Form, FormFault> {
        match self.state {
            State::Done => Ok(self.form),
            State::Start if self.buffer.is_empty() => Err(FormFault("is empty")),
            _ => Err(FormFault("does not end with its boundary")),
        }
    }

    /// Takes one step. Returns whether the buffer allows another one.
    fn step(&mut self) -> Result<bool, FormFault> {
        match self.state {
            State::Start => self.read_first_boundary(),
            State::Boundary => self.read_boundary_end(),
            State::Headers => self.read_part_headers(),
            State::Content => self.read_content(),
            State::Done => self.read_epilogue(),
        }
    }

    /// The first boundary has no line end before it.
    fn read_first_boundary(&mut self) -> Result<bool, FormFault> {
        let first = &self.delimiter[2..];
        let shared = self.buffer.len().min(first.len());
        if self.buffer[..shared] != first[..shared] {
            return Err(FormFault("does not begin with its boundary"));
        }
        if shared < first.len() {
            return Ok(false);
        }
        self.drop_held(shared);
        self.state = State::Boundary;
        Ok(true)
    }

    fn read_boundary_end(&mut self) -> Result<bool, FormFault> {
        self.state = match self.buffer.get(..2) {
            None => return Ok(false),
            Some(b"--") => State::Done,
            Some(b"\r\n") if self.form.parts.len() >= MAX_PARTS => return Err(FormFault("has more than 128 parts")),
            Some(b"\r\n") => State::Headers,
            Some(_) => return Err(FormFault("has something behind a boundary")),
        };
        self.drop_held(2);
        Ok(true)
    }

    fn read_part_headers(&mut self) -> Result<bool, FormFault> {
        const TOO_LARGE: FormFault = FormFault("has a part whose headers are larger than 8 KiB");
        let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") else {
            return if self.buffer.len() > MAX_HEADER_BYTES { Err(TOO_LARGE) } else { Ok(false) };
        };
        if end > MAX_HEADER_BYTES {
            return Err(TOO_LARGE);
        }
        // Some parsers end the headers at a boundary. Line ends other than CRLF are refused below.
        let boundary = &self.delimiter[2..];
        if self.buffer.starts_with(boundary) || memmem::find(&self.buffer[..end], &self.delimiter).is_some() {
            return Err(FormFault("has its boundary among the headers of a part"));
        }
        let mut part = read_headers(&self.buffer[..end])?;
        self.check_name(&part)?;
        self.drop_held(end + 4);
        part.start = self.at;
        self.form.parts.push(part);
        self.value.clear();
        self.state = State::Content;
        Ok(true)
    }

    fn read_content(&mut self) -> Result<bool, FormFault> {
        let found = self.find_border()?;
        // Keeps the bytes that may be the beginning of a boundary.
        let end = found.unwrap_or_else(|| (self.buffer.len() + 1).saturating_sub(self.delimiter.len()));
        self.keep_value(end)?;
        self.drop_held(end);
        if found.is_none() {
            return Ok(false);
        }
        self.end_part()?;
        self.drop_held(self.delimiter.len());
        self.state = State::Boundary;
        Ok(true)
    }

    /// An epilogue is refused because no parser reads it. A final line end is common and allowed.
    fn read_epilogue(&self) -> Result<bool, FormFault> {
        if !self.buffer.iter().all(|byte| b"\r\n".contains(byte)) || self.buffer.len() > 4 {
            return Err(FormFault("has something behind its last boundary"));
        }
        Ok(false)
    }

    /// Finds the next boundary. A boundary after a line end that is not CRLF is an error, because some parsers accept it.
    fn find_border(&self) -> Result<Option<usize>, FormFault> {
        let boundary = &self.delimiter[2..];
        let is_start = self.form.parts.last().is_some_and(|part| part.start == self.at);
        for at in memmem::find_iter(&self.buffer, boundary) {
            match &self.buffer[..at] {
                [.., b'\r', b'\n'] => return Ok(Some(at - 2)),
                // The bytes before it were dropped after they had been checked.
                [] if !is_start => {}
                [] | [.., b'\r' | b'\n'] => {
                    return Err(FormFault("has its boundary behind a line end that is not CR LF"));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Checks that every parser finds the same fields. Some treat arrays of a name as that name and ignore case.
    fn check_name(&self, part: &Part) -> Result<(), FormFault> {
        let (base, list) = split_name(&part.name);
        if base.eq_ignore_ascii_case("_charset_") {
            return Err(FormFault("has a `_charset_`; fields are UTF-8"));
        }
        let is_deciding = DECIDING.iter().any(|name| name.eq_ignore_ascii_case(base));
        if is_deciding && part.file_name.is_some() {
            return Err(FormFault("has a file where `model`, `stream` or `n` is a field"));
        }
        if is_deciding && (!list.is_empty() || !DECIDING.contains(&base)) {
            return Err(FormFault("has `model`, `stream` or `n` in another spelling"));
        }
        for other in &self.form.parts {
            let (other_base, other_list) = split_name(&other.name);
            if !other_base.eq_ignore_ascii_case(base) {
                continue;
            }
            let are_files = part.file_name.is_some() && other.file_name.is_some();
            let is_same = other_list.eq_ignore_ascii_case(list);
            if list.is_empty() != other_list.is_empty() || is_same && !is_list(&part.name) && !are_files {
                return Err(FormFault("has a field twice"));
            }
        }
        Ok(())
    }

    fn keep_value(&mut self, end: usize) -> Result<(), FormFault> {
        let is_field = self.form.parts.last().is_some_and(|part| part.file_name.is_none());
        if is_field {
            self.fields_bytes += end;
            if self.value.len() + end > MAX_FIELD_BYTES || self.fields_bytes > MAX_FIELDS_BYTES {
                return Err(FormFault("has a field that is larger than 256 KiB; send files with a file name"));
            }
            self.value.extend_from_slice(&self.buffer[..end]);
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), FormFault> {
        let at = self.at;
        let Some(part) = self.form.parts.last_mut() else { return Ok(()) };
        part.end = at;
        if part.file_name.is_none() {
            let text = String::from_utf8(std::mem::take(&mut self.value));
            part.value = Some(text.map_err(|_| FormFault("has a field that is not UTF-8"))?);
        }
        Ok(())
    }

    fn drop_held(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.at += count as u64;
    }
}

#[cfg(test)]
mod tests;
