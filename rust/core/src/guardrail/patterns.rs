//! A kind of finding: the pattern that meets it and the check that believes it.

use regex::Regex;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    pub(super) regex: Regex,
    /// A byte without which the pattern cannot match, so that most texts are not searched.
    pub(super) needs: Option<u8>,
    pub(super) believes: fn(&str) -> bool,
}

impl Pattern {
    /// The patterns stand in the code; one that does not compile is found by the first test.
    pub(super) fn new(kind: &'static str, needs: Option<u8>, regex: &str, believes: fn(&str) -> bool) -> Self {
        match Regex::new(regex) {
            Ok(regex) => Self { kind, regex, needs, believes },
            Err(error) => unreachable!("the pattern of {kind} does not compile: {error}"),
        }
    }

    /// Where it lies in the text.
    pub(super) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
        let there = self.needs.is_none_or(|byte| memchr::memchr(byte, text.as_bytes()).is_some());
        let found = there.then(|| self.regex.find_iter(text));
        found.into_iter().flatten().filter(|found| (self.believes)(found.as_str())).map(|found| found.range())
    }
}

/// For patterns that say enough by themselves.
pub(super) fn always(_: &str) -> bool {
    true
}
