//! The ends of strings and values, for walks over a body that need no validation.

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
