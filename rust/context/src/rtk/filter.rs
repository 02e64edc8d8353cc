//! A filter, as TOML and in compiled form.

use std::fmt;
use std::sync::LazyLock;

use regex::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

/// The maximum size of the compiled patterns of one list of a filter, in bytes.
const PATTERNS_LIMIT_BYTES: usize = 4 << 20;
/// The number of bytes of an output that a filter may use to recognize it.
const DETECT_BYTES: usize = 600;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    filter: Vec<FilterSource>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterSource {
    id: String,
    /// Prefixes of command lines, in whole words.
    commands: Vec<String>,
    /// Patterns of outputs whose command is unknown.
    #[serde(default)]
    detect: Vec<String>,
    #[serde(default)]
    drop: Vec<String>,
    #[serde(default)]
    keep: Vec<String>,
    #[serde(default)]
    group: Vec<String>,
    #[serde(default)]
    is_text: bool,
    #[serde(default = "max_lines")]
    max_lines: usize,
}

fn max_lines() -> usize {
    120
}

/// A filter: the changes to the output of certain commands.
#[derive(Debug)]
pub struct Filter {
    pub id: String,
    pub commands: Vec<String>,
    detect: RegexSet,
    /// Lines without information.
    pub(crate) drop: RegexSet,
    /// Lines that stay.
    pub(crate) keep: RegexSet,
    /// Similar lines, of which a few are enough.
    pub(crate) group: RegexSet,
    /// The output is text or code, in which no two lines have the same shape.
    pub(crate) is_text: bool,
    pub(crate) max_lines: usize,
}

/// Filters in order of precedence.
#[derive(Debug, Default)]
pub struct Filters {
    list: Vec<Filter>,
}

/// Why filters were rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterError {
    /// The hash of the filters differs from the one that was trusted.
    Untrusted,
    /// Invalid TOML, an unknown field, or an invalid pattern.
    Invalid(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted => {
                write!(f, "the filters are not those that were trusted; look at them and trust their new hash")
            }
            Self::Invalid(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for FilterError {}

impl Filters {
    /// Parses an operator's own filters. `trusted` is the result of [`Filters::hash`] when somebody reviewed them.
    pub fn trusted(toml: &str, trusted: &str) -> Result<Self, FilterError> {
        if Self::hash(toml) != trusted {
            return Err(FilterError::Untrusted);
        }
        Self::read(toml)
    }

    /// The SHA-256 of the text in hexadecimal.
    pub fn hash(toml: &str) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, toml.as_bytes());
        digest.as_ref().iter().fold(String::with_capacity(64), |hex, byte| hex + &format!("{byte:02x}"))
    }

    /// Appends filters after the existing ones.
    pub fn append(&mut self, more: Self) {
        self.list.extend(more.list);
    }

    pub fn list(&self) -> &[Filter] {
        &self.list
    }

    fn read(toml: &str) -> Result<Self, FilterError> {
        let source: Source = toml::from_str(toml).map_err(|error| FilterError::Invalid(error.message().to_owned()))?;
        let list = source.filter.into_iter().map(Filter::new).collect::<Result<_, _>>()?;
        Ok(Self { list })
    }

    /// The filter with the longest prefix of `command`. If no filter matches the command, the first one that recognizes
    /// the output.
    pub(crate) fn of(&self, command: &str, output: &str) -> Option<&Filter> {
        let length =
            |filter: &&Filter| filter.commands.iter().filter(|known| begins(command, known)).map(String::len).max();
        let known =
            self.list.iter().filter_map(|filter| Some((length(&filter)?, filter))).max_by_key(|(length, _)| *length);
        let head = output.get(..DETECT_BYTES).unwrap_or_else(|| {
            let end = (0..=DETECT_BYTES.min(output.len())).rev().find(|end| output.is_char_boundary(*end));
            &output[..end.unwrap_or_default()]
        });
        known.map(|(_, filter)| filter).or_else(|| self.list.iter().find(|filter| filter.detect.is_match(head)))
    }
}

fn begins(command: &str, known: &str) -> bool {
    command.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', '/']))
}

impl Filter {
    fn new(source: FilterSource) -> Result<Self, FilterError> {
        let set = |patterns: &[String]| {
            let built =
                RegexSetBuilder::new(patterns).size_limit(PATTERNS_LIMIT_BYTES).multi_line(true).unicode(false).build();
            built
                .or_else(|_| RegexSetBuilder::new(patterns).size_limit(PATTERNS_LIMIT_BYTES).multi_line(true).build())
                .map_err(|error| FilterError::Invalid(format!("filter {}: {error}", source.id)))
        };
        Ok(Self {
            detect: set(&source.detect)?,
            drop: set(&source.drop)?,
            keep: set(&source.keep)?,
            group: set(&source.group)?,
            id: source.id,
            commands: source.commands,
            is_text: source.is_text,
            max_lines: source.max_lines,
        })
    }
}

static BUILT_IN: LazyLock<Filters> = LazyLock::new(|| {
    let sources = [
        include_str!("../../filters/git.toml"),
        include_str!("../../filters/rust.toml"),
        include_str!("../../filters/javascript.toml"),
        include_str!("../../filters/python.toml"),
        include_str!("../../filters/build.toml"),
        include_str!("../../filters/containers.toml"),
        include_str!("../../filters/system.toml"),
        include_str!("../../filters/files.toml"),
    ];
    let read = sources.iter().filter_map(|source| Filters::read(source).ok());
    Filters { list: read.flat_map(|filters| filters.list).collect() }
});

/// The filters that are included in the gateway.
pub fn built_in_filters() -> &'static Filters {
    &BUILT_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_filters_is_read() {
        let ids: Vec<&str> = built_in_filters().list().iter().map(|filter| filter.id.as_str()).collect();
        assert!(ids.len() >= 40, "{}: {ids:?}", ids.len());
        for id in ["git-diff", "cargo-test", "npm-install", "pytest", "make", "docker-build", "journal", "file"] {
            assert!(ids.contains(&id), "{id}");
        }
        let id = |command| built_in_filters().of(command, "").map(|filter| filter.id.as_str());
        assert_eq!(id("git diff --stat"), Some("git-diff-stat"));
        assert_eq!(id("git diff HEAD"), Some("git-diff"));
        assert_eq!(id("gitk"), None);
    }

    #[test]
    fn own_filters_need_their_hash() {
        let toml = "[[filter]]\nid = \"x\"\ncommands = [\"x\"]\n";
        assert_eq!(Filters::trusted(toml, "").err(), Some(FilterError::Untrusted));
        assert!(Filters::trusted(toml, &Filters::hash(toml)).is_ok());
        let odd = "[[filter]]\nid = \"x\"\ncommands = []\nhead = 1\n";
        assert!(matches!(Filters::trusted(odd, &Filters::hash(odd)), Err(FilterError::Invalid(_))));
    }
}
