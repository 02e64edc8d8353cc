//! The canonical name of a model.
//!
//! A provider may accept several spellings of one model: with Google's folder as a prefix, with a trailing space, or
//! with path segments that a URL parser removes. The canonical name decides what a key may call, what a call costs and
//! where it is sent. Every spelling is therefore converted first, and ambiguous ones are refused.
//!
//! There are two sets of rules. [`canonical`] applies to every name that a caller gives, whatever the provider.
//! [`address`] applies to a name that becomes part of a URL, for providers whose addresses contain the model.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Google's folder of models. A name with it and the name without it are the same model.
const FOLDER: &str = "models";

/// Why a name is refused, as the end of a sentence that begins with `model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameFault(pub &'static str);

/// Returns the canonical spelling of `<prefix>/<model>` or `<model>`, without Google's folder.
///
/// The function is idempotent.
pub fn canonical(name: &str) -> Result<Cow<'_, str>, NameFault> {
    check_characters(name)?;
    let Some((prefix, model)) = name.split_once('/').filter(|(prefix, model)| !prefix.is_empty() && !model.is_empty())
    else {
        return Ok(Cow::Borrowed(name));
    };
    if name.split('/').any(str::is_empty) {
        return Err(NameFault("must not have an empty segment between slashes"));
    }
    if name.split('/').any(is_dots) {
        return Err(NameFault("must not have a segment of dots alone"));
    }
    let own = without_folder(model);
    Ok(if own.len() == model.len() { Cow::Borrowed(name) } else { Cow::Owned(format!("{prefix}/{own}")) })
}

/// Removes Google's folder from a provider's name of a model.
#[must_use]
pub fn without_folder(model: &str) -> &str {
    let mut rest = model;
    while let Some((folder, own)) = rest.split_once('/') {
        if own.is_empty() || !folder.eq_ignore_ascii_case(FOLDER) {
            break;
        }
        rest = own;
    }
    rest
}

/// The name without the date suffix that vendors add, such as `-20250929` or `-2024-08-06`; `None` if it has no date.
#[must_use]
pub fn without_date(name: &str) -> Option<&str> {
    let is_digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_year = |text: &str| is_digits(text, 4) && (text.starts_with("19") || text.starts_with("20"));
    let (rest, last) = name.rsplit_once('-')?;
    let undated = if is_digits(last, 8) && last.get(..4).is_some_and(is_year) {
        rest
    } else {
        let (rest, month) = rest.rsplit_once('-')?;
        let (rest, year) = rest.rsplit_once('-')?;
        (is_digits(last, 2) && is_digits(month, 2) && is_year(year)).then_some(rest)?
    };
    (!undated.is_empty()).then_some(undated)
}

/// The most path segments: the longest folder has three, and the model is one.
const MAX_SEGMENTS: usize = 4;
type Segments<'m> = smallvec::SmallVec<[&'m str; MAX_SEGMENTS]>;

/// The path of a model below the provider's base URL, percent-encoded and without a leading slash: `models/<model>`, or
/// one of the few other folders that such providers have.
pub fn address(model: &str) -> Result<String, NameFault> {
    let mut path = String::with_capacity(model.len() + 16);
    for segment in segments(model)? {
        if !path.is_empty() {
            path.push('/');
        }
        for byte in segment.bytes() {
            // A colon separates the action from the model.
            if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
                path.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _written = write!(path, "%{byte:02X}");
            }
        }
    }
    Ok(path)
}

/// Checks that a model has such a path.
pub fn check_address(model: &str) -> Result<(), NameFault> {
    segments(model).map(drop)
}

fn segments(model: &str) -> Result<Segments<'_>, NameFault> {
    let mut segments: Segments<'_> = without_folder(model).split('/').take(MAX_SEGMENTS + 1).collect();
    match segments[..] {
        [_] => segments.insert(0, FOLDER),
        ["tunedModels" | "endpoints", _] | ["publishers", _, FOLDER, _] => {}
        _ => {
            return Err(NameFault(
                "may have no folder at this provider but `models`, `tunedModels`, `endpoints` or `publishers/<name>/models`",
            ))
        }
    }
    segments.iter().try_for_each(|segment| check_segment(segment))?;
    Ok(segments)
}

/// Whether a pattern matches a model in any spelling of its name. `*` matches any number of characters.
#[must_use]
pub fn is_named(pattern: &str, model: &str, case: Case) -> bool {
    let is_match = |text: &str| matches(pattern.as_bytes(), text.as_bytes(), case);
    if !may_end(pattern, model, case) {
        return false;
    }
    let Some((prefix, upstream)) = model.split_once('/') else { return is_match(model) };
    let own = without_folder(upstream);
    let is_bare = own.len() == upstream.len();
    if is_match(model) || !is_bare && is_match(&format!("{prefix}/{own}")) {
        return true;
    }
    // A pattern with the folder matches the name without it, but not names in other folders.
    let has_folder = || pattern.split('/').any(|segment| segment.eq_ignore_ascii_case(FOLDER));
    let is_elsewhere = || ["tunedModels/", "endpoints/", "publishers/"].iter().any(|folder| own.starts_with(folder));
    is_bare && has_folder() && !is_elsewhere() && is_match(&format!("{prefix}/{FOLDER}/{own}"))
}

/// Whether the end of a pattern fits the last segment of a model, which every spelling has. This rejects most names
/// quickly.
fn may_end(pattern: &str, model: &str, case: Case) -> bool {
    let ends = pattern.bytes().rev().zip(model.bytes().rev());
    ends.take_while(|&(p, t)| p != b'*' && t != b'/').all(|(p, t)| case.is_same(p, t))
}

/// Whether a pattern may match a name with this prefix, in any spelling: every spelling has the prefix and its slash.
#[must_use]
pub fn may_begin(pattern: &str, prefix: &str, case: Case) -> bool {
    let mut begins = pattern.bytes().take_while(|&byte| byte != b'*').zip(prefix.bytes());
    begins.all(|(p, t)| case.is_same(p, t))
}

/// Whether a pattern matches every name with this prefix.
#[must_use]
pub fn covers(pattern: &str, prefix: &str, case: Case) -> bool {
    let literal = pattern.trim_end_matches('*');
    literal.len() < pattern.len()
        && literal.len() <= prefix.len()
        && !literal.contains('*')
        && may_begin(literal, prefix, case)
}

/// Whether a comparison ignores case. Block lists ignore it, because a provider may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Exact,
    Ignored,
}

impl Case {
    fn is_same(self, a: u8, b: u8) -> bool {
        match self {
            Self::Exact => a == b,
            Self::Ignored => a.eq_ignore_ascii_case(&b),
        }
    }
}

/// Backtracks to the last star only, so the cost is bounded by the product of the lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && case.is_same(pattern[p], text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            p = star_p + 1;
            t = star_t + 1;
            star = Some((star_p, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

fn check_characters(name: &str) -> Result<(), NameFault> {
    if name.trim().len() != name.len() {
        return Err(NameFault("must not begin or end with white space"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/:@".contains(&byte)) {
        check_rare(name)?;
    }
    Ok(())
}

/// Checks a name that contains unusual characters.
fn check_rare(name: &str) -> Result<(), NameFault> {
    for char in name.chars() {
        if char.is_control() {
            return Err(NameFault("must not contain control characters"));
        }
        if is_invisible(char) || (char.is_whitespace() && char != ' ') {
            return Err(NameFault("must not contain invisible characters, nor white space other than blanks"));
        }
        if is_disguise(char) {
            return Err(NameFault(
                "must not contain a backslash, nor a character that stands for a slash, a dot or ASCII",
            ));
        }
    }
    let bytes = name.as_bytes();
    if bytes.windows(3).any(|three| three[0] == b'%' && three[1..].iter().all(u8::is_ascii_hexdigit)) {
        return Err(NameFault("must not be percent-encoded; write the characters themselves"));
    }
    if name.split('/').any(|segment| segment.trim().len() != segment.len()) {
        return Err(NameFault("must not have white space beside a slash"));
    }
    Ok(())
}

fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
            ..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Characters that a server may read differently if it normalizes Unicode or accepts both kinds of slash.
fn is_disguise(char: char) -> bool {
    matches!(
        char,
        '\\' | '\u{2024}'
            ..='\u{2026}'
                | '\u{2044}'
                | '\u{2215}'
                | '\u{2216}'
                | '\u{2571}'
                | '\u{2572}'
                | '\u{27cb}'
                | '\u{27cd}'
                | '\u{29f5}'
                | '\u{29f8}'
                | '\u{29f9}'
                | '\u{fe50}'..='\u{fe6b}'
                | '\u{ff01}'..='\u{ff5e}'
                | '\u{ff61}'
    )
}

fn check_segment(segment: &str) -> Result<(), NameFault> {
    if segment.is_empty() || is_dots(segment) {
        return Err(NameFault("must have no segment that is empty or of dots alone"));
    }
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@:+,= ".contains(&byte);
    if !segment.bytes().all(is_fine) || segment.trim().len() != segment.len() {
        return Err(NameFault(
            "becomes part of this provider's address, so it is made of letters, digits, blanks inside and `-._~@:+,=` alone",
        ));
    }
    Ok(())
}

fn is_dots(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
#[path = "model_name_tests.rs"]
mod tests;
