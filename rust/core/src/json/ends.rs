//! The ends of strings and values, for walks over a body that need no validation, and a search that rules out a member.

/// The offset after the closing quote of the string that begins at `start`. `None` if the string has no end.
pub fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let step = memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        at += step;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The offset after the object or list that begins at `at`, or the end of the bytes.
pub fn end_of_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(end) = end_of_string(bytes, at) else { return bytes.len() };
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Whether a body may have a member with this name, which is given with its quotes. A name can be written with escapes,
/// so a body in which a letter, a digit or an underscore is escaped may have any name. No usual client does that.
pub fn may_have(body: &[u8], quoted: &[u8]) -> bool {
    memchr::memmem::find(body, quoted).is_some()
        || memchr::memmem::find_iter(body, b"\\u00").any(|at| matches!(body.get(at + 4), Some(b'3'..=b'7')))
}

#[cfg(test)]
mod tests {
    use super::may_have;

    #[test]
    fn a_name_is_not_hidden_by_escapes() {
        for body in [
            r#"{"background":true}"#,
            r#"{"b\u0061ckground":true}"#,
            r#"{"\u0062ackground":true}"#,
            r#"{"a\u005Fb":1}"#,
        ] {
            assert!(may_have(body.as_bytes(), b"\"background\""), "{body}");
        }
        for body in [r#"{"text":"caf\u00e9 \u000a \u2014 background"}"#, r#"{"a":"\u00"}"#, ""] {
            assert!(!may_have(body.as_bytes(), b"\"background\""), "{body}");
        }
    }
}
