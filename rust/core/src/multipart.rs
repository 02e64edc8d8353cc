//! `multipart/form-data` (RFC 7578), read once as it comes: where each part lies, what the small ones say.
//!
//! A form is policy before it is data: the model that a key may call stands in one of its fields. So it is read by one
//! reader only, and what two readers could take differently is refused: a preamble, a field twice, a part without a
//! name, a last boundary that does not come. Parts with a file name are files; of them nothing is kept but their place.

use memchr::memmem;

const MAX_PARTS: usize = 128;
const MAX_HEADER_BYTES: usize = 8 * 1024;
const MAX_FIELD_BYTES: usize = 256 * 1024;
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
const MAX_NAME_CHARS: usize = 255;

/// One part. `start..end` is where its content lies in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// Without any folders; `None` for a field.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub start: u64,
    pub end: u64,
    /// What a field says; `None` for a file.
    pub value: Option<String>,
}

/// A form that came whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    pub parts: Vec<Part>,
}

impl Form {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.name == name)?.value.as_deref()
    }

    /// The part of this name, field or file.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    pub fn files(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.file_name.is_some())
    }
}

/// Why a body is no form, as the end of a sentence that begins with "The form".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The form {0}.")]
pub struct Fault(pub &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the very beginning.
    Start,
    /// Behind a boundary.
    Boundary,
    Headers,
    Content,
    /// Behind the last boundary.
    Done,
}

/// Reads a form piece by piece.
#[derive(Debug)]
pub struct Reader {
    /// CRLF, two dashes and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// Bytes not yet done with, and where the first of them stands in the body.
    held: Vec<u8>,
    at: u64,
    value: Vec<u8>,
    fields_bytes: usize,
    form: Form,
}

/// The boundary of a content type, if it is that of a form.
pub fn boundary_of(content_type: &str) -> Option<&str> {
    let (essence, rest) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = rest.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim())
    })?;
    let boundary = boundary.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(boundary);
    let is_fine = (1..=70).contains(&boundary.len())
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
            held: Vec::new(),
            at: 0,
            value: Vec::new(),
            fields_bytes: 0,
            form: Form::default(),
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.held.extend_from_slice(piece);
        while self.step()? {}
        Ok(())
    }

    /// The form, once nothing more comes.
    pub fn finish(self) -> Result<Form, Fault> {
        match self.state {
            State::Done => Ok(self.form),
            State::Start if self.held.is_empty() => Err(Fault("is empty")),
            _ => Err(Fault("does not end with its boundary")),
        }
    }

    /// Whether there is more to do with what is held.
    fn step(&mut self) -> Result<bool, Fault> {
        match self.state {
            State::Start => {
                // The first boundary has no line before it.
                let first = &self.delimiter[2..];
                let shared = self.held.len().min(first.len());
                if self.held[..shared] != first[..shared] {
                    return Err(Fault("does not begin with its boundary"));
                }
                if shared < first.len() {
                    return Ok(false);
                }
                self.drop_held(shared);
                self.state = State::Boundary;
            }
            State::Boundary => match self.held.get(..2) {
                None => return Ok(false),
                Some(b"--") => {
                    self.drop_held(2);
                    self.state = State::Done;
                }
                Some(b"\r\n") if self.form.parts.len() >= MAX_PARTS => return Err(Fault("has more than 128 parts")),
                Some(b"\r\n") => {
                    self.drop_held(2);
                    self.state = State::Headers;
                }
                Some(_) => return Err(Fault("has something behind a boundary")),
            },
            State::Headers => {
                let Some(end) = memmem::find(&self.held, b"\r\n\r\n") else {
                    if self.held.len() > MAX_HEADER_BYTES {
                        return Err(Fault("has a part whose headers are larger than 8 KiB"));
                    }
                    return Ok(false);
                };
                if end > MAX_HEADER_BYTES {
                    return Err(Fault("has a part whose headers are larger than 8 KiB"));
                }
                let mut part = read_headers(&self.held[..end])?;
                if part.file_name.is_none()
                    && self.form.parts.iter().any(|other| other.name == part.name && !is_list(&part.name))
                {
                    return Err(Fault("has a field twice"));
                }
                self.drop_held(end + 4);
                part.start = self.at;
                self.form.parts.push(part);
                self.value.clear();
                self.state = State::Content;
            }
            State::Content => {
                let found = memmem::find(&self.held, &self.delimiter);
                // What may be the beginning of a boundary stays.
                let end = found.unwrap_or_else(|| (self.held.len() + 1).saturating_sub(self.delimiter.len()));
                self.keep_value(end)?;
                self.drop_held(end);
                if found.is_none() {
                    return Ok(false);
                }
                self.end_part()?;
                self.drop_held(self.delimiter.len());
                self.state = State::Boundary;
            }
            State::Done => {
                // An epilogue would be read by nobody; a last line end is usual.
                if !self.held.iter().all(|byte| b"\r\n".contains(byte)) || self.held.len() > 4 {
                    return Err(Fault("has something behind its last boundary"));
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keep_value(&mut self, end: usize) -> Result<(), Fault> {
        let is_field = self.form.parts.last().is_some_and(|part| part.file_name.is_none());
        if is_field {
            self.fields_bytes += end;
            if self.value.len() + end > MAX_FIELD_BYTES || self.fields_bytes > MAX_FIELDS_BYTES {
                return Err(Fault("has a field that is larger than 256 KiB; send files with a file name"));
            }
            self.value.extend_from_slice(&self.held[..end]);
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), Fault> {
        let at = self.at;
        let Some(part) = self.form.parts.last_mut() else { return Ok(()) };
        part.end = at;
        if part.file_name.is_none() {
            let text = String::from_utf8(std::mem::take(&mut self.value));
            part.value = Some(text.map_err(|_| Fault("has a field that is not UTF-8"))?);
        }
        Ok(())
    }

    fn drop_held(&mut self, count: usize) {
        self.held.drain(..count);
        self.at += count as u64;
    }
}

/// `timestamp_granularities[]` and its like may come more than once.
fn is_list(name: &str) -> bool {
    name.ends_with("[]")
}

fn read_headers(block: &[u8]) -> Result<Part, Fault> {
    let block = std::str::from_utf8(block).map_err(|_| Fault("has a part whose headers are not UTF-8"))?;
    let mut part = Part { name: String::new(), file_name: None, content_type: None, start: 0, end: 0, value: None };
    let mut is_named = false;
    for line in block.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else {
            return Err(Fault("has a part with a line that is no header"));
        };
        if name.eq_ignore_ascii_case("content-disposition") {
            if is_named {
                return Err(Fault("has a part with two dispositions"));
            }
            is_named = true;
            read_disposition(value, &mut part)?;
        } else if name.eq_ignore_ascii_case("content-type") {
            part.content_type = Some(value.trim().chars().take(MAX_NAME_CHARS).collect());
        } else if name.eq_ignore_ascii_case("content-transfer-encoding") {
            let coding = value.trim();
            if !["binary", "8bit", "7bit"].iter().any(|plain| coding.eq_ignore_ascii_case(plain)) {
                return Err(Fault("has a part with a transfer coding"));
            }
        }
    }
    if part.name.is_empty() {
        return Err(Fault("has a part without a name"));
    }
    Ok(part)
}

fn read_disposition(value: &str, part: &mut Part) -> Result<(), Fault> {
    let mut rest = value.trim();
    let kind = rest.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("form-data") {
        return Err(Fault("has a part that is not `form-data`"));
    }
    rest = rest.get(kind.len()..).unwrap_or_default();
    let mut extended = None;
    while let Some(after) = rest.trim_start().strip_prefix(';') {
        let Some((name, after)) = after.split_once('=') else { break };
        let (text, next) = parameter(after)?;
        rest = next;
        match name.trim().to_ascii_lowercase().as_str() {
            "name" => part.name = text,
            "filename" => part.file_name = Some(text),
            "filename*" => extended = decode_extended(&text),
            _ => {}
        }
    }
    if let Some(name) = extended {
        part.file_name = Some(name);
    }
    if let Some(name) = &mut part.file_name {
        *name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    }
    let is_bad = |text: &str| text.chars().any(char::is_control) || text.chars().count() > MAX_NAME_CHARS;
    if is_bad(&part.name) || part.file_name.as_deref().is_some_and(is_bad) {
        return Err(Fault("has a name with control characters or of more than 255 characters"));
    }
    Ok(())
}

/// A token or a quoted text, and what follows it. As browsers send it: only a quote is escaped.
fn parameter(text: &str) -> Result<(String, &str), Fault> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return Ok((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut out = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((out.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"), &inner[at + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                out.push('"');
                chars.next();
            }
            _ => out.push(char),
        }
    }
    Err(Fault("has a part with a quote that is not closed"))
}

/// RFC 5987: `UTF-8''na%C3%AFve.txt`.
fn decode_extended(text: &str) -> Option<String> {
    let encoded = text.strip_prefix("UTF-8''").or_else(|| text.strip_prefix("utf-8''"))?;
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "multipart_tests.rs"]
mod tests;
