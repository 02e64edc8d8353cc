//! Changes to a body, collected and then applied at once. All other bytes stay unchanged.

use std::ops::Range;

use fairlead_core::json::Kind;

use crate::tape::Tape;

/// Ranges of a body and their replacements. Ranges may touch but never overlap.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn replace(&mut self, tape: &Tape<'_>, index: usize, text: impl Into<String>) {
        if let Some(value) = tape.value(index) {
            self.0.push((value.span(), text.into()));
        }
    }

    /// Inserts a text.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.0.push((at..at, text.into()));
    }

    /// Inserts a member at the beginning of an object.
    pub(crate) fn add_member(&mut self, tape: &Tape<'_>, object: usize, name: &str, value: &str) {
        let Some(whole) = tape.value(object).filter(|value| value.kind == Kind::Object) else { return };
        let comma = if tape.members(object).next().is_some() { "," } else { "" };
        self.insert(whole.start + 1, format!("{}:{value}{comma}", string(name)));
    }

    /// Inserts an element at the beginning of an array.
    pub(crate) fn add_first(&mut self, tape: &Tape<'_>, array: usize, element: &str) {
        let Some(whole) = tape.value(array).filter(|value| value.kind == Kind::Array) else { return };
        let comma = if tape.elements(array).next().is_some() { "," } else { "" };
        self.insert(whole.start + 1, format!("{element}{comma}"));
    }

    /// Inserts an element after another one in its array.
    pub(crate) fn add_after(&mut self, tape: &Tape<'_>, element: usize, text: &str) {
        if let Some(value) = tape.value(element) {
            self.insert(value.end, format!(",{text}"));
        }
    }

    /// Removes members from an object.
    pub(crate) fn remove_members(&mut self, tape: &Tape<'_>, object: usize, is_removed: impl Fn(&str) -> bool) {
        let Some(whole) = tape.value(object) else { return };
        let members: Vec<(bool, Range<usize>)> = tape
            .members(object)
            .filter_map(|(name, value)| {
                let (key, value) = (tape.value(value.checked_sub(1)?)?, tape.value(value)?);
                Some((is_removed(&name), key.start..value.end))
            })
            .collect();
        let Some(first_kept) = members.iter().position(|(is_removed, _)| !is_removed) else {
            if !members.is_empty() {
                self.0.push((whole.start + 1..whole.end.saturating_sub(1), String::new()));
            }
            return;
        };
        for (at, (is_removed, span)) in members.iter().enumerate() {
            if *is_removed && at < first_kept {
                // Includes the comma after it.
                self.0.push((span.start..members[at + 1].1.start, String::new()));
            } else if *is_removed {
                self.0.push((members[at - 1].1.end..span.end, String::new()));
            }
        }
    }

    /// The body after the changes; `None` if there are none.
    pub(crate) fn apply(mut self, body: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by_key(|(span, _)| (span.start, span.end));
        let mut out = Vec::with_capacity(body.len() + self.0.iter().map(|(_, text)| text.len()).sum::<usize>());
        let mut at = 0;
        for (span, text) in &self.0 {
            out.extend_from_slice(body.get(at..span.start)?);
            out.extend_from_slice(text.as_bytes());
            at = span.end;
        }
        out.extend_from_slice(body.get(at..)?);
        Some(out)
    }
}

/// Encodes a text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn removed(body: &str, names: &[&str]) -> String {
        let tape = Tape::read(body.as_bytes()).expect("JSON");
        let mut edits = Edits::default();
        edits.remove_members(&tape, 0, |name| names.contains(&name));
        String::from_utf8(edits.apply(body.as_bytes()).unwrap_or_else(|| body.into())).expect("text")
    }

    #[test]
    fn members_go_with_one_comma() {
        assert_eq!(removed(r#"{"a":1, "b":2,"c":3}"#, &["a"]), r#"{"b":2,"c":3}"#);
        assert_eq!(removed(r#"{"a":1, "b":2,"c":3}"#, &["b"]), r#"{"a":1,"c":3}"#);
        assert_eq!(removed(r#"{"a":1, "b":2,"c":3}"#, &["b", "c"]), r#"{"a":1}"#);
        assert_eq!(removed(r#"{"a":1, "b":2,"c":3}"#, &["a", "b", "c"]), "{}");
        assert_eq!(removed("{}", &["a"]), "{}");
    }

    proptest! {
        #[test]
        fn what_is_left_is_json_with_the_other_members(flags in prop::collection::vec(any::<bool>(), 0..6)) {
            let names: Vec<String> = (0..flags.len()).map(|at| format!("m{at}")).collect();
            let body = format!("{{{}}}", names.iter().map(|name| format!(" \"{name}\" : [1] ")).collect::<Vec<_>>().join(","));
            let gone: Vec<&str> = names.iter().zip(&flags).filter(|(_, gone)| **gone).map(|(name, _)| name.as_str()).collect();
            let left: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&removed(&body, &gone)).expect("JSON");
            prop_assert_eq!(left.len(), names.len() - gone.len());
            prop_assert!(gone.iter().all(|name| !left.contains_key(*name)));
        }
    }
}
