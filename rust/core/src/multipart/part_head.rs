//! Reads the head of a part: its name, file name and content type.

use super::form::{FormFault, Part};

const MAX_NAME_CHARS: usize = 255;

/// Whether the name is an array such as `timestamp_granularities[]`, which may appear more than once.
pub fn is_list(name: &str) -> bool {
    name.ends_with("[]")
}

/// Splits `image[]` into `image` and `[]`.
pub fn split_name(name: &str) -> (&str, &str) {
    name.split_at(name.find('[').unwrap_or(name.len()))
}

pub fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii"].iter().any(|plain| charset.eq_ignore_ascii_case(plain))
}

pub fn read_headers(block: &[u8]) -> Result<Part, FormFault> {
    let block = std::str::from_utf8(block).map_err(|_| FormFault("has a part whose headers are not UTF-8"))?;
    let mut part = Part { name: String::new(), file_name: None, content_type: None, start: 0, end: 0, value: None };
    let mut seen = Vec::new();
    for line in block.split("\r\n") {
        if line.starts_with([' ', '\t']) {
            return Err(FormFault("has a part with a folded header; write each on one line"));
        }
        // A control character in a name gets its own message. Elsewhere in a header, only a tab is allowed.
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

pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token)
}

/// Checks that a part is not a nested form, and that a field is UTF-8.
pub fn check_type(kind: &str, is_field: bool) -> Result<(), FormFault> {
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

pub fn read_disposition(value: &str, part: &mut Part) -> Result<(), FormFault> {
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
            // Some parsers ignore `name*` and `name*0`, others use them as the name.
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

/// Checks that a field name stays the same when quotes, escapes and encodings are removed.
pub fn check_field_name(name: &str) -> Result<(), FormFault> {
    let bytes = name.as_bytes();
    let is_encoded = bytes.windows(3).any(|three| three[0] == b'%' && three[1..].iter().all(u8::is_ascii_hexdigit))
        || name.contains("=?");
    if is_encoded || name.contains(['"', '\\', ';']) || name.starts_with('\'') || name.trim().len() != name.len() {
        return Err(FormFault("has a field's name with quotes, escapes, semicolons or blanks at an end"));
    }
    Ok(())
}

/// Reads a token or a quoted string, and returns the rest. As in browsers, only a quote is escaped. Names with escapes
/// are refused.
pub fn parameter(text: &str, is_name: bool) -> Result<(String, &str), FormFault> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        let token = text[..end].trim();
        if token.is_empty() || !token.bytes().all(|byte| is_token(byte) || (byte >= 0x80 && !is_name)) {
            return Err(FormFault("has a part with a name that must be quoted"));
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

/// Decodes RFC 5987, such as `UTF-8''na%C3%AFve.txt`.
pub fn decode_extended(text: &str) -> Option<String> {
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
