//! Callers' regular expressions for the addresses of a site. They are compiled once, with a limit on the compiled size,
//! because the time of a match grows with the product of program and text, and only the text is short.

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};

/// The maximum size of one compiled pattern: enough for ten `\w` with all Unicode letters, or a thousand `[a-z]`.
const PATTERN_MAX_BYTES: usize = 512 * 1024;
/// The maximum size of the patterns of one list together.
const LIST_MAX_BYTES: usize = 3 * 1024 * 1024;
/// The memory for cached search states. With too little a search is slower but correct.
const SEARCH_MEMORY_BYTES: usize = 1024 * 1024;

/// Why a pattern was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternFault {
    /// The pattern with this number is not a valid regular expression, or uses look-around or back-references.
    Unreadable(usize),
    /// The pattern with this number exceeds the memory limit for one pattern.
    TooLarge(usize),
    /// Each pattern is small enough, but all of them together are not.
    TooLargeTogether,
}

/// The four lists of a crawl or map. The lists of `paths` match the path of an address, the others the whole address.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatternLists<'a> {
    pub include_paths: &'a [String],
    pub exclude_paths: &'a [String],
    pub include: &'a [String],
    pub exclude: &'a [String],
}

/// The compiled lists. An address is accepted if an including pattern matches it or there is none, and no excluding
/// pattern matches it.
#[derive(Debug)]
pub struct AddressPatterns {
    include_paths: RegexSet,
    exclude_paths: RegexSet,
    include: RegexSet,
    exclude: RegexSet,
    takes_all: bool,
}

impl AddressPatterns {
    /// Compiles the lists. The number in an error counts the patterns of all lists, in the order of the fields.
    ///
    /// # Errors
    /// [`PatternFault`] if a pattern is invalid or too large.
    pub fn new(lists: PatternLists<'_>) -> Result<Self, PatternFault> {
        let all = [lists.include_paths, lists.exclude_paths, lists.include, lists.exclude];
        for (number, pattern) in all.into_iter().flatten().enumerate() {
            let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_MAX_BYTES).build();
            compiled.map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternFault::TooLarge(number),
                _ => PatternFault::Unreadable(number),
            })?;
        }
        Ok(Self {
            include_paths: set(lists.include_paths)?,
            exclude_paths: set(lists.exclude_paths)?,
            include: set(lists.include)?,
            exclude: set(lists.exclude)?,
            takes_all: lists.include_paths.is_empty() && lists.include.is_empty(),
        })
    }

    /// Whether the address with this path is accepted.
    #[must_use]
    pub fn accepts(&self, address: &str, path: &str) -> bool {
        (self.takes_all || self.include_paths.is_match(path) || self.include.is_match(address))
            && !self.exclude_paths.is_match(path)
            && !self.exclude.is_match(address)
    }
}

/// Compiles a set of patterns. Each was compiled alone before, so only their total can be too large.
fn set(patterns: &[String]) -> Result<RegexSet, PatternFault> {
    RegexSetBuilder::new(patterns)
        .size_limit(LIST_MAX_BYTES)
        .dfa_size_limit(SEARCH_MEMORY_BYTES)
        .build()
        .map_err(|_| PatternFault::TooLargeTogether)
}

#[cfg(test)]
mod tests {
    use super::{AddressPatterns, PatternFault, PatternLists};
    use crate::growth;

    fn texts(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    fn including(patterns: &[&str]) -> Result<AddressPatterns, PatternFault> {
        AddressPatterns::new(PatternLists { include: &texts(patterns), ..PatternLists::default() })
    }

    #[test]
    fn lists_choose_by_path_and_by_whole_address() {
        let (paths, not_paths) = (texts(&["^/blog/"]), texts(&["draft$"]));
        let (whole, not_whole) = (texts(&[r"shop\.example"]), texts(&[r"\?print="]));
        let patterns = AddressPatterns::new(PatternLists {
            include_paths: &paths,
            exclude_paths: &not_paths,
            include: &whole,
            exclude: &not_whole,
        })
        .unwrap();
        for (address, path, is_accepted) in [
            ("https://a.example/blog/1", "/blog/1", true),
            ("https://a.example/blog/draft", "/blog/draft", false),
            ("https://shop.example/x", "/x", true),
            ("https://shop.example/x?print=1", "/x", false),
            ("https://a.example/x", "/x", false),
        ] {
            assert_eq!(patterns.accepts(address, path), is_accepted, "{address}");
        }
        assert!(AddressPatterns::new(PatternLists::default()).unwrap().accepts("https://a.example/", "/"));
    }

    #[test]
    fn patterns_of_real_sites_fit() {
        let real = [
            r"^https?://(?:www\.)?example\.com/(?:blog|news)/\d{4}/\d{2}/\d{2}/[\w-]+/?$",
            r"(?i)\.(?:pdf|docx?|xlsx?|pptx?|zip|png|jpe?g|gif|svg|webp|mp4)(?:\?.*)?$",
            r"/products?/[a-z0-9-]{3,80}/reviews",
            r"/(?:en|de|fr|es|it|pt|ja|zh)(?:-[A-Z]{2})?/docs/.*",
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"\w+/\w+/\w+",
            r"/caf(?:é|%C3%A9)/[äöü]?",
        ];
        assert!(including(&real).is_ok());
        let all: Vec<String> = (0..25).map(|number| format!(r"^/part{number}/[\w-]+/\d{{4}}/[^/]+\.html$")).collect();
        assert!(AddressPatterns::new(PatternLists { include_paths: &all, ..PatternLists::default() }).is_ok());
    }

    #[test]
    fn a_pattern_that_grows_is_refused_before_it_has_grown() {
        let spent_ns = growth::cpu_ns(refuse_patterns_that_grow);
        assert!(spent_ns < 2_000_000_000, "{spent_ns}");
    }

    fn refuse_patterns_that_grow() {
        for pattern in [r"\w{200}", r"(?:a{99}){99}{99}", r"(?:a|\w){180}!", r"(?:[^a]{90}){90}"] {
            assert_eq!(including(&["ok", pattern]).unwrap_err(), PatternFault::TooLarge(1), "{pattern}");
        }
        assert_eq!(including(&["(?=a)"]).unwrap_err(), PatternFault::Unreadable(0));
        assert_eq!(including(&["("]).unwrap_err(), PatternFault::Unreadable(0));
        let many: Vec<String> = (0..25).map(|number| format!(r"\w{{8}}{number}")).collect();
        let many = AddressPatterns::new(PatternLists { exclude: &many, ..PatternLists::default() });
        assert_eq!(many.unwrap_err(), PatternFault::TooLargeTogether);
    }
}
