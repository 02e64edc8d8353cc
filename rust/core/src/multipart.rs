//! `multipart/form-data` (RFC 7578), read once as it comes: where each part lies, what the small ones say.
//!
//! A form is policy before it is data: the model that a key may call stands in one of its fields. So it is read by one
//! reader only, and what two readers could take differently is refused: a preamble, a field twice, a part without a
//! name or with two, a folded header, a line end that is none, a last boundary that does not come. The body goes on as it
//! came, so whoever reads it behind the gateway must find the same fields. Parts with a file name are files; of them nothing
//! is kept but their place.

use memchr::memmem;

const MAX_PARTS: usize = 128;
const MAX_HEADER_BYTES: usize = 8 * 1024;
const MAX_FIELD_BYTES: usize = 256 * 1024;
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
const MAX_NAME_CHARS: usize = 255;
/// Fields that the gateway decides by: never files, and never an array's.
const DECIDING: [&str; 3] = ["model", "stream", "n"];

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
pub struct FormFault(pub &'static str);

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

/// The boundary of a content type, if it is that of a form that every reader cuts at the same places.
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
        // A quote inside would hide where parameters end from those who count quotes, and from those who do not.
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
            held: Vec::new(),
            at: 0,
            value: Vec::new(),
            fields_bytes: 0,
            form: Form::default(),
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), FormFault> {
        self.held.extend_from_slice(piece);
        while self.step()? {}
        Ok(())
    }

    /// The form, once nothing more comes.
    pub fn finish(self) -> Result<Form, FormFault> {
        match self.state {
            State::Done => Ok(self.form),
            State::Start if self.held.is_empty() => Err(FormFault("is empty")),
            _ => Err(FormFault("does not end with its boundary")),
        }
    }

    /// Takes one step; whether there is more to do with what is held.
    fn step(&mut self) -> Result<bool, FormFault> {
        match self.state {
            State::Start => self.read_first_boundary(),
            State::Boundary => self.read_boundary_end(),
            State::Headers => self.read_part_headers(),
            State::Content => self.read_content(),
            State::Done => self.read_epilogue(),
        }
    }

    /// The first boundary has no line before it.
    fn read_first_boundary(&mut self) -> Result<bool, FormFault> {
        let first = &self.delimiter[2..];
        let shared = self.held.len().min(first.len());
        if self.held[..shared] != first[..shared] {
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
        self.state = match self.held.get(..2) {
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
        let Some(end) = memmem::find(&self.held, b"\r\n\r\n") else {
            return if self.held.len() > MAX_HEADER_BYTES { Err(TOO_LARGE) } else { Ok(false) };
        };
        if end > MAX_HEADER_BYTES {
            return Err(TOO_LARGE);
        }
        // Some readers end the headers at a boundary. Lines that end otherwise than with CR LF are refused below.
        let boundary = &self.delimiter[2..];
        if self.held.starts_with(boundary) || memmem::find(&self.held[..end], &self.delimiter).is_some() {
            return Err(FormFault("has its boundary among the headers of a part"));
        }
        let mut part = read_headers(&self.held[..end])?;
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
        Ok(true)
    }

    /// An epilogue would be read by nobody; a last line end is usual.
    fn read_epilogue(&self) -> Result<bool, FormFault> {
        if !self.held.iter().all(|byte| b"\r\n".contains(byte)) || self.held.len() > 4 {
            return Err(FormFault("has something behind its last boundary"));
        }
        Ok(false)
    }

    /// Where the next border begins. A boundary at the beginning of a line that CR LF did not end is one to some readers.
    fn find_border(&self) -> Result<Option<usize>, FormFault> {
        let boundary = &self.delimiter[2..];
        let is_start = self.form.parts.last().is_some_and(|part| part.start == self.at);
        for at in memmem::find_iter(&self.held, boundary) {
            match &self.held[..at] {
                [.., b'\r', b'\n'] => return Ok(Some(at - 2)),
                // What was dropped before stands before it, and was looked at when it was there.
                [] if !is_start => {}
                [] | [.., b'\r' | b'\n'] => {
                    return Err(FormFault("has its boundary behind a line end that is not CR LF"));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Whether every reader finds the same fields: arrays of one name are that name to some, and so is another case.
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
            self.value.extend_from_slice(&self.held[..end]);
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
        self.held.drain(..count);
        self.at += count as u64;
    }
}

/// `timestamp_granularities[]` and its like may come more than once.
fn is_list(name: &str) -> bool {
    name.ends_with("[]")
}

/// `image[]` is `image` and `[]`.
fn split_name(name: &str) -> (&str, &str) {
    name.split_at(name.find('[').unwrap_or(name.len()))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii"].iter().any(|plain| charset.eq_ignore_ascii_case(plain))
}

fn read_headers(block: &[u8]) -> Result<Part, FormFault> {
    let block = std::str::from_utf8(block).map_err(|_| FormFault("has a part whose headers are not UTF-8"))?;
    let mut part = Part { name: String::new(), file_name: None, content_type: None, start: 0, end: 0, value: None };
    let mut seen = Vec::new();
    for line in block.split("\r\n") {
        if line.starts_with([' ', '\t']) {
            return Err(FormFault("has a part with a folded header; write each on one line"));
        }
        // A control character in a name is told of as one, and any other than a tab is no part of a header.
        if line.contains(['\r', '\n']) {
            return Err(FormFault("has a part with a line end that is not CR LF"));
        }
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_header_name(name)) else {
            return Err(FormFault("has a part with a line that is no header"));
        };
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "content-disposition" | "content-type" | "content-transfer-encoding") {
            if seen.contains(&name) {
                return Err(FormFault(match name.as_str() {
                    "content-disposition" => "has a part with two dispositions",
                    _ => "has a part with a header twice",
                }));
            }
            seen.push(name.clone());
        }
        match name.as_str() {
            "content-disposition" => read_disposition(value, &mut part)?,
            "content-type" => part.content_type = Some(value.trim().chars().take(MAX_NAME_CHARS).collect()),
            "content-transfer-encoding" => {
                let coding = value.trim();
                if !["binary", "8bit", "7bit"].iter().any(|plain| coding.eq_ignore_ascii_case(plain)) {
                    return Err(FormFault("has a part with a transfer coding"));
                }
            }
            _ => {}
        }
        if value.chars().any(|char| char.is_control() && char != '\t') {
            return Err(FormFault("has a part with control characters in a header"));
        }
    }
    if part.name.is_empty() {
        return Err(FormFault("has a part without a name"));
    }
    if let Some(kind) = &part.content_type {
        check_type(kind, part.file_name.is_none())?;
    }
    Ok(part)
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token)
}

/// A part is no form of its own, and what a field says is UTF-8.
fn check_type(kind: &str, is_field: bool) -> Result<(), FormFault> {
    let lower = kind.to_ascii_lowercase();
    if lower.starts_with("multipart/") {
        return Err(FormFault("has a part that is a form itself"));
    }
    let charset = lower.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim() == "charset").then(|| value.trim().trim_matches('"'))
    });
    if is_field && charset.is_some_and(|charset| !is_utf8(charset)) {
        return Err(FormFault("has a field in another charset than UTF-8"));
    }
    Ok(())
}

fn read_disposition(value: &str, part: &mut Part) -> Result<(), FormFault> {
    let mut rest = value.trim();
    let kind = rest.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("form-data") {
        return Err(FormFault("has a part that is not `form-data`"));
    }
    rest = rest.get(kind.len()..).unwrap_or_default().trim_start();
    let mut extended = None;
    let (mut is_named, mut is_extended) = (false, false);
    while !rest.is_empty() && rest != ";" {
        let parameter_of = rest.strip_prefix(';').and_then(|after| after.split_once('='));
        let Some((name, after)) = parameter_of else {
            return Err(FormFault("has a part whose disposition is not `form-data; name=\"...\"`"));
        };
        let name = name.trim().to_ascii_lowercase();
        if !is_header_name(&name) {
            return Err(FormFault("has a part whose disposition is not `form-data; name=\"...\"`"));
        }
        let (text, next) = parameter(after.trim_start(), name == "name")?;
        rest = next.trim_start();
        let is_again = match name.as_str() {
            "name" => std::mem::replace(&mut is_named, true),
            "filename" => part.file_name.is_some(),
            "filename*" => std::mem::replace(&mut is_extended, true),
            // Of `name*` or `name*0` some readers know nothing, and others take it for the name.
            other if other.starts_with("name*") => return Err(FormFault("has a part with an extended `name*`")),
            other if other.starts_with("filename*") => {
                return Err(FormFault("has a part whose `filename` is in pieces"))
            }
            _ => false,
        };
        if is_again {
            return Err(FormFault("has a part whose disposition says `name` or `filename` twice"));
        }
        match name.as_str() {
            "name" => part.name = text,
            "filename" => part.file_name = Some(text),
            "filename*" => {
                extended =
                    Some(decode_extended(&text).ok_or(FormFault("has a part whose `filename*` is not UTF-8''..."))?);
            }
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
        return Err(FormFault("has a name with control characters or of more than 255 characters"));
    }
    check_field_name(&part.name)
}

/// A field's name means the same with and without quotes, escapes and codings taken off.
fn check_field_name(name: &str) -> Result<(), FormFault> {
    let bytes = name.as_bytes();
    let is_encoded = bytes.windows(3).any(|three| three[0] == b'%' && three[1..].iter().all(u8::is_ascii_hexdigit))
        || name.contains("=?");
    if is_encoded || name.contains(['"', '\\', ';']) || name.starts_with('\'') || name.trim().len() != name.len() {
        return Err(FormFault("has a field's name with quotes, escapes, semicolons or blanks at an end"));
    }
    Ok(())
}

/// A token or a quoted text, and what follows it. As browsers send it: only a quote is escaped. A name is not unescaped: one
/// that has escapes is refused.
fn parameter(text: &str, is_name: bool) -> Result<(String, &str), FormFault> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        let token = text[..end].trim();
        if token.is_empty() || !token.bytes().all(|byte| is_token(byte) || (byte >= 0x80 && !is_name)) {
            return Err(FormFault("has a part with a name that must stand in quotes"));
        }
        return Ok((token.to_owned(), &text[end..]));
    };
    let mut out = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' if is_name => return Ok((out, &inner[at + 1..])),
            '"' => return Ok((out.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"), &inner[at + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                out.push('"');
                chars.next();
            }
            _ => out.push(char),
        }
    }
    Err(FormFault("has a part with a quote that is not closed"))
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
