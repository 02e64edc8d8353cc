//! Extracts the text of a custom tool's call from the arguments of the function that represents it.
//!
//! The function has one parameter: `{"input": "..."}`. The text is returned as it arrives, still escaped, so that it
//! can be copied into another JSON string. Models do not always follow a schema. If the arguments have another form,
//! they are buffered, and the text is the only string in them, or else the arguments themselves.

use serde_json::Value;

use crate::text::Text;

/// The parameter that holds the text.
pub(crate) const PARAMETER: &str = "input";

/// Reads the arguments of one call.
#[derive(Debug, Default)]
pub(crate) struct TextArgument {
    state: State,
    /// The arguments before the text, or an incomplete escape in it.
    pending: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The arguments can still begin with the parameter.
    #[default]
    Before,
    Inside,
    After,
    /// The arguments have another form, and are read at the end.
    Other,
}

impl TextArgument {
    /// Reads the next piece of the arguments and appends the escaped text that it contains.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<u8>) {
        match self.state {
            State::Before => {
                self.pending.push_str(piece);
                match after_opening(&self.pending) {
                    Opening::Complete(at) => {
                        let rest = self.pending.split_off(at);
                        self.pending.clear();
                        self.state = State::Inside;
                        self.push_text(&rest, out);
                    }
                    Opening::Incomplete => {}
                    Opening::Other => self.state = State::Other,
                }
            }
            State::Inside => self.push_text(piece, out),
            State::Other => self.pending.push_str(piece),
            State::After => {}
        }
    }

    /// Ends the arguments and appends what is left of the text.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let pending = std::mem::take(&mut self.pending);
        // An escape that was cut off has no meaning.
        if matches!(self.state, State::Before | State::Other) {
            Text::from(whole(&pending)).push_inner(out);
        }
        self.state = State::After;
    }

    fn push_text(&mut self, piece: &str, out: &mut Vec<u8>) {
        for char in piece.chars() {
            if self.state != State::Inside {
                return;
            }
            if !self.pending.is_empty() {
                self.pending.push(char);
                self.end_escape(out);
                continue;
            }
            match char {
                '"' => self.state = State::After,
                '\\' => self.pending.push(char),
                _ => push_escaped(char, out),
            }
        }
    }

    /// Appends the pending escape if it is complete. A surrogate pair is pending until both halves are complete.
    fn end_escape(&mut self, out: &mut Vec<u8>) {
        let pending = &self.pending;
        let bytes = pending.as_bytes();
        match bytes {
            [b'\\', b'u', digits @ ..] if digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit) => return,
            [b'\\', b'u', ..] if is_first_half(pending) => {
                let rest = bytes.get(6..).unwrap_or_default();
                if rest.len() < 6 && br"\u".starts_with(rest.get(..2).unwrap_or(rest)) {
                    return;
                }
                let is_pair = is_second_half(pending.get(6..).unwrap_or_default());
                match pending.get(6..).filter(|_| !is_pair).map(str::to_owned) {
                    None => out.extend_from_slice(bytes),
                    Some(rest) => {
                        out.extend_from_slice(br"\ufffd");
                        self.pending.clear();
                        return self.push_text(&rest, out);
                    }
                }
            }
            [b'\\', b'u', ..] if is_second_half(pending) => out.extend_from_slice(br"\ufffd"),
            [b'\\', b'u', digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit) => out.extend_from_slice(bytes),
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'] => out.extend_from_slice(bytes),
            // JSON has no such escape, so the model wrote a plain backslash.
            _ => {
                let rest = pending.get(1..).unwrap_or_default().to_owned();
                out.extend_from_slice(br"\\");
                self.pending.clear();
                return self.push_text(&rest, out);
            }
        }
        self.pending.clear();
    }
}

/// Returns the escaped text of complete arguments.
pub(crate) fn text_of(arguments: &str) -> Vec<u8> {
    let (mut reader, mut out) = (TextArgument::default(), Vec::new());
    reader.push(arguments, &mut out);
    reader.finish(&mut out);
    out
}

enum Opening {
    /// The text starts at this offset.
    Complete(usize),
    Incomplete,
    Other,
}

/// Reads `{"input":"` with any white space.
fn after_opening(arguments: &str) -> Opening {
    let mut at = 0;
    for token in ["{", "\"", PARAMETER, "\"", ":", "\""] {
        let rest = arguments.get(at..).unwrap_or_default();
        let is_in_name =
            token == PARAMETER || at > 0 && arguments.get(..at).is_some_and(|read| read.ends_with(PARAMETER));
        let start = if is_in_name { rest } else { rest.trim_start() };
        if !start.starts_with(token) {
            return if token.starts_with(start) { Opening::Incomplete } else { Opening::Other };
        }
        at = arguments.len() - start.len() + token.len();
    }
    Opening::Complete(at)
}

/// Returns the text of arguments that have another form.
fn whole(arguments: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(arguments) else { return arguments.to_owned() };
    let only = members.values().next().filter(|_| members.len() == 1);
    match (members.get(PARAMETER).or(only), members.is_empty()) {
        (Some(Value::String(text)), _) => text.clone(),
        (_, true) => String::new(),
        _ => arguments.to_owned(),
    }
}

fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

fn is_first_half(escape: &str) -> bool {
    matches!(unit(escape), Some(0xD800..=0xDBFF))
}

fn is_second_half(escape: &str) -> bool {
    matches!(unit(escape), Some(0xDC00..=0xDFFF))
}

/// Appends a character. Some models write control characters without an escape.
fn push_escaped(char: char, out: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let text: &str = char.encode_utf8(&mut utf8);
    if char < ' ' {
        Text::from(text.to_owned()).push_inner(out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn decoded(inner: &[u8]) -> String {
        let token = [b"\"", inner, b"\""].concat();
        serde_json::from_slice(&token).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&token)))
    }

    #[test]
    fn every_form_of_arguments_gives_its_text() {
        for (arguments, expected) in [
            (r#"{"input":"ls -l\n"}"#, "ls -l\n"),
            ("{ \"input\" :\n \"a\nb\" }", "a\nb"),
            (r#"{"input":"a","other":1}"#, "a"),
            (r#"{"input":"cut o"#, "cut o"),
            (r#"{"input":"cut \u00"#, "cut "),
            (r#"{"other":1,"input":"a"}"#, "a"),
            (r#"{"patch":"*** Begin"}"#, "*** Begin"),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"input":5}"#, r#"{"input":5}"#),
            ("*** Begin Patch", "*** Begin Patch"),
            ("{}", ""),
            ("", ""),
            (r#"{"input":"\d \ud83d. \ud83d\ude00 \ude00"}"#, "\\d \u{fffd}. \u{1f600} \u{fffd}"),
            (r#"{"input":"\ud83d\n\u12"}"#, "\u{fffd}\n\\u12"),
        ] {
            assert_eq!(decoded(&text_of(arguments)), expected, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_the_same_however_it_is_cut(text in any::<String>(), every in 1usize..9) {
            let arguments = json!({"input": text}).to_string();
            let ascii: String = arguments.chars().map(|char| match char {
                char if char.is_ascii() => char.to_string(),
                char => char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat(),
            }).collect();
            for arguments in [arguments, ascii] {
                let (mut reader, mut out) = (TextArgument::default(), Vec::new());
                let chars: Vec<char> = arguments.chars().collect();
                for piece in chars.chunks(every) {
                    let from = out.len();
                    reader.push(&piece.iter().collect::<String>(), &mut out);
                    // Each piece is a complete string.
                    decoded(&out[from..]);
                }
                reader.finish(&mut out);
                prop_assert_eq!(decoded(&out), text.clone());
            }
        }
    }
}
