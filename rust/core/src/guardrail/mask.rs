//! Masks bodies that are stored for people to read. Guardrail findings are replaced in every string, and members with
//! the name of a secret are masked completely. A body may have been cut off at any byte, so a possible beginning of a
//! finding at the end of its last text is masked as well.

use super::body::{read, write};
use super::lossy::lossy;
use super::number::integer_of;
use super::streamed_text::StreamedText;
use super::text::judge_text;
use super::{Action, Actions, Findings};
use crate::json::end_of_string;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// The actions for every stored body, whatever keys and calls opt out of.
pub const MASKING: Actions =
    Actions { pii_masker: Action::Redact, prompt_injection: Action::Off, credential_masker: Action::Redact };

const HIDDEN: &[u8] = b"\"***\"";
/// A member holds a secret if the letters of its name contain one of these.
const SECRET_PARTS: &[&str] =
    &["password", "passphrase", "secret", "credential", "authorization", "cookie", "privatekey"];
/// A member holds a secret if the letters of its name end with one of these.
const SECRET_ENDS: &[&str] = &["apikey", "accesskey", "token"];
/// Objects in which any string may be a secret.
const SECRET_OBJECTS: &[&str] = &["headers", "env", "environment"];
/// The maximum depth of JSON inside JSON strings.
const MAX_NESTED: usize = 8;

/// Masks the findings in a text. `is_cut` means that the text was cut off here.
pub fn mask_text(text: &str, is_cut: bool) -> String {
    if is_cut {
        return StreamedText::new(false).push(text, MASKING, &mut Findings::new(), false);
    }
    judge_text(text, MASKING).redacted.unwrap_or_else(|| text.to_owned())
}

/// Masks the findings and secrets in a JSON body, which may be cut off. In a body that is not JSON, the recognizable
/// strings are masked.
pub fn mask_json(body: &[u8]) -> Vec<u8> {
    masked(body, 0)
}

fn masked(body: &[u8], depth: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    // For each open object or list, whether every string in it is a secret.
    let mut open: Vec<bool> = Vec::new();
    let mut is_named_secret = false;
    let mut opens_secret = false;
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        match byte {
            b'"' => {
                let is_secret = is_named_secret || open.last() == Some(&true);
                let Some(end) = end_of_string(body, at) else {
                    out.extend_from_slice(&cut_string(&body[at..], is_secret, depth));
                    break;
                };
                let raw = &body[at..end];
                let is_name = body[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                if is_name {
                    let name = letters_of(raw);
                    is_named_secret = is_secret_name(&name);
                    opens_secret = is_named_secret || SECRET_OBJECTS.contains(&name.as_str());
                    out.extend_from_slice(&string(raw, depth));
                } else if is_secret && end - at > 2 {
                    out.extend_from_slice(HIDDEN);
                } else {
                    out.extend_from_slice(&string(raw, depth));
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                let is_inside = open.last() == Some(&true);
                open.push(is_inside || opens_secret);
                (is_named_secret, opens_secret) = (false, false);
            }
            b'}' | b']' => {
                open.pop();
                (is_named_secret, opens_secret) = (false, false);
            }
            b',' => (is_named_secret, opens_secret) = (false, false),
            b':' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                let end = end_of_bare(body, at);
                let is_secret = is_named_secret || open.last() == Some(&true);
                out.extend_from_slice(&bare(&body[at..end], is_secret, end == body.len()));
                at = end;
                continue;
            }
        }
        out.push(byte);
        at += 1;
    }
    out
}

/// The end of a number, a literal or invalid text: the next JSON delimiter.
fn end_of_bare(body: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'"' | b',' | b':' | b'{' | b'}' | b'[' | b']');
    body[start..].iter().position(is_end).map_or(body.len(), |length| start + length)
}

/// Masks a token outside strings. Literals are harmless. A number at the end of the body is masked like cut text,
/// because its remaining digits may be missing.
fn bare(raw: &[u8], is_secret: bool, is_last: bool) -> Cow<'_, [u8]> {
    let token = raw.trim_ascii();
    if matches!(token, b"true" | b"false" | b"null") {
        return Cow::Borrowed(raw);
    }
    let blanks = &raw[token.len()..];
    if is_secret {
        return Cow::Owned([HIDDEN, blanks].concat());
    }
    let number = integer_of(token).filter(|_| !is_last);
    let text = number.map_or_else(|| lossy(token), Cow::Owned);
    let shown = mask_text(&text, is_last && blanks.is_empty());
    if shown == text {
        return Cow::Borrowed(raw);
    }
    let is_number = token.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    let shown = if is_number && !shown.is_empty() { write(shown) } else { shown };
    Cow::Owned([shown.as_bytes(), blanks].concat())
}

/// Masks a complete string, including its quotes.
fn string(raw: &[u8], depth: usize) -> Cow<'_, [u8]> {
    let Some(text) = read(raw) else { return Cow::Borrowed(raw) };
    let nested = (depth < MAX_NESTED && is_json(&text)).then(|| masked(text.as_bytes(), depth + 1));
    let inner = nested.map(|bytes| lossy(&bytes).into_owned());
    let judged = judge_text(inner.as_deref().unwrap_or(&text), MASKING).redacted;
    match judged.or(inner).filter(|shown| **shown != *text) {
        Some(shown) => Cow::Owned(write(shown).into_bytes()),
        None => Cow::Borrowed(raw),
    }
}

/// Masks a string whose end was cut off. The result has no closing quote.
fn cut_string(raw: &[u8], is_secret: bool, depth: usize) -> Vec<u8> {
    if is_secret {
        return b"\"***".to_vec();
    }
    let mut quoted = raw.to_vec();
    // Drops an escape that was cut off.
    let escape = quoted.iter().rposition(|byte| *byte == b'\\').filter(|at| quoted.len() - at < 6);
    if let Some(escape) =
        escape.filter(|at| quoted[..*at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0)
    {
        quoted.truncate(escape);
    }
    quoted.push(b'"');
    let text = read(&quoted).unwrap_or_default();
    // Cut-off JSON inside the string may also have members with names of secrets.
    let nested = depth < MAX_NESTED && text.trim_start().starts_with(['{', '[']);
    let inner = nested.then(|| lossy(&masked(text.as_bytes(), depth + 1)).into_owned());
    let mut shown = write(mask_text(inner.as_deref().unwrap_or(&text), true)).into_bytes();
    shown.pop();
    shown
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The letters and digits of a name in lower case: `apiKey`, `api_key` and `API-Key` are equal.
fn letters_of(raw: &[u8]) -> String {
    let name = read(raw).unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

fn is_secret_name(letters: &str) -> bool {
    SECRET_PARTS.iter().any(|part| letters.contains(part)) || SECRET_ENDS.iter().any(|end| letters.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(body: &str) -> String {
        String::from_utf8(mask_json(body.as_bytes())).expect("text")
    }

    #[test]
    fn findings_go_wherever_they_stand_and_the_rest_stays_as_it_was() {
        let body = r#"{"user": "jo@example.com", "n": 1.0, "messages": [{"content": "ask \"jo@example.com\" <b>\u202e</b>"}]}"#;
        let out = shown(body);
        assert_eq!(out.matches("[REDACTED:email]").count(), 2, "{out}");
        assert!(!out.contains("example.com") && out.contains("\"n\": 1.0"));
        serde_json::from_str::<serde_json::Value>(&out).expect("JSON still");
        let plain = r#"{"model":"m","max_tokens":5,"text":"\u00e9 \ud83d\ude00"}"#;
        assert_eq!(shown(plain), plain, "what has nothing to hide is not written anew");
    }

    #[test]
    fn numbers_are_masked_as_strings_are() {
        for (body, wanted) in [
            (
                r#"{"card":4111111111111111,"n":[5500000000000004 , 7]}"#,
                r#"{"card":"[REDACTED:card]","n":["[REDACTED:card]" , 7]}"#,
            ),
            (
                r#"{"password":123456,"pin":{"token":7},"max_tokens":7}"#,
                r#"{"password":"***","pin":{"token":"***"},"max_tokens":7}"#,
            ),
            (r#"{"headers":{"n":3,"is":true}}"#, r#"{"headers":{"n":"***","is":true}}"#),
            (r#"{"n":-4.5e3,"is":true,"none":null}"#, r#"{"n":-4.5e3,"is":true,"none":null}"#),
            ("write to ada@example.org, \"x\"", "write to [REDACTED:email], \"x\""),
        ] {
            assert_eq!(shown(body), wanted);
        }
        let whole = r#"{"a":[1,4111111111111111]}"#;
        for end in 0..whole.len() {
            assert!(!shown(&whole[..end]).contains("411"), "{end}: {}", shown(&whole[..end]));
        }
    }

    #[test]
    fn members_that_are_secrets_by_name_show_nothing() {
        let body = r#"{"authorization":"Bearer abc","headers":{"X-Any":"v","n":3},"tools":[{"api_key":"k","list":["a"]}],
            "password":["a",{"b":"c"}],"arguments":"{\"client_secret\":\"hunter2\",\"city\":\"Graz\"}","empty_token":""}"#;
        let out = shown(body);
        for secret in ["Bearer abc", "\"v\"", "\"k\"", "hunter2", "\"c\""] {
            assert!(!out.contains(secret), "{secret} in {out}");
        }
        assert!(out.contains("Graz") && out.contains(r#""list":["a"]"#) && out.contains(r#""empty_token":"""#));
    }

    #[test]
    fn a_body_that_was_cut_leaves_no_half_of_a_secret() {
        let key = "sk-abcdefghij0123456789ABCDEFGHIJ";
        let whole = format!(r#"{{"content":"the key is {key} and more","password":"hunter2"}}"#);
        for end in 0..whole.len() {
            let out = shown(&whole[..end]);
            assert!(!out.contains("sk-abcdef") && !out.contains("hunter"), "{end}: {out}");
        }
        let nested = r#"{"arguments":"{\"client_secret\":\"hunter2\",\"city\":\"Graz\"}"}"#;
        for end in 0..nested.len() {
            assert!(!shown(&nested[..end]).contains("hunter"), "{end}: {}", shown(&nested[..end]));
        }
        assert!(shown(&whole[..40]).starts_with(r#"{"content":"the key is "#));
        for end in 0..24 {
            let _no_panic = shown(&r#"{"a":"x\ud83d\ude00\\\""#[..end.min(22)]);
        }
        assert_eq!(mask_text("mail jo@example.co", true).find("example"), None);
    }
}
