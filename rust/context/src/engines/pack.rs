//! Rule packs: for each language, phrases without content and phrases with a shorter form. They are data files in the
//! folder `packs`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

/// A pack as stored in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    language: String,
    /// How much of the language the lists cover: `complete` or `partial`.
    coverage: String,
    /// Common words that identify the language.
    signs: Vec<String>,
    drop: Vec<String>,
    #[serde(default)]
    shorten: HashMap<String, String>,
    /// Words of little weight, for token scoring.
    #[serde(default)]
    light: Vec<String>,
}

/// One phrase and its replacement.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) words: Vec<String>,
    pub(crate) replacement: String,
}

/// A pack prepared for the search: rules by their first word (or first character in a language without spaces), longest
/// first.
#[derive(Debug)]
pub struct Pack {
    pub language: String,
    /// `complete`, or `partial` if the lists do not cover the language.
    pub coverage: String,
    pub(crate) signs: HashSet<String>,
    pub(crate) rules: HashMap<String, Vec<Rule>>,
    pub(crate) light: HashSet<String>,
    /// The language has no spaces, so rules consist of characters.
    pub(crate) is_unspaced: bool,
}

impl Pack {
    /// Each phrase with its replacement; empty if the phrase is removed.
    pub fn rules(&self) -> impl Iterator<Item = (String, &str)> {
        let space = if self.is_unspaced { "" } else { " " };
        self.rules.values().flatten().map(move |rule| (rule.words.join(space), rule.replacement.as_str()))
    }
}

static PACKS: LazyLock<Vec<Pack>> = LazyLock::new(|| {
    let sources = [
        include_str!("../../packs/en.toml"),
        include_str!("../../packs/es.toml"),
        include_str!("../../packs/pt-BR.toml"),
        include_str!("../../packs/de.toml"),
        include_str!("../../packs/fr.toml"),
        include_str!("../../packs/id.toml"),
        include_str!("../../packs/ja.toml"),
        include_str!("../../packs/zh.toml"),
    ];
    sources.iter().filter_map(|source| toml::from_str(source).ok()).map(built).collect()
});

/// Every pack.
pub fn packs() -> &'static [Pack] {
    &PACKS
}

fn built(source: Source) -> Pack {
    let is_unspaced = matches!(source.language.as_str(), "ja" | "zh");
    let mut rules: HashMap<String, Vec<Rule>> = HashMap::new();
    let dropped = source.drop.into_iter().map(|phrase| (phrase, String::new()));
    for (phrase, replacement) in dropped.chain(source.shorten) {
        let words: Vec<String> = if is_unspaced {
            phrase.chars().map(String::from).collect()
        } else {
            phrase.split_whitespace().map(|word| bare(word).to_lowercase()).collect()
        };
        if let Some(first) = words.first().cloned() {
            rules.entry(first).or_default().push(Rule { words, replacement });
        }
    }
    for list in rules.values_mut() {
        list.sort_by_key(|rule| std::cmp::Reverse(rule.words.len()));
    }
    let light = source.light.into_iter().collect();
    Pack {
        language: source.language,
        coverage: source.coverage,
        signs: source.signs.into_iter().collect(),
        rules,
        light,
        is_unspaced,
    }
}

/// The number of words that are used to detect the language.
const SAMPLE_WORDS: usize = 400;

/// The pack of a text's language; `None` if the language is not clear.
pub(crate) fn pack_of(text: &str) -> Option<&'static Pack> {
    let is_kana = |c: char| ('\u{3040}'..='\u{30ff}').contains(&c);
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let sample = || text.chars().take(2_000);
    let wide = sample().filter(|c| is_kana(*c) || is_han(*c)).count();
    if wide >= 8 {
        let language = if sample().any(is_kana) { "ja" } else { "zh" };
        return packs().iter().find(|pack| pack.language == language);
    }
    let words: Vec<String> = text.split_whitespace().take(SAMPLE_WORDS).map(|word| bare(word).to_lowercase()).collect();
    let hits = |pack: &Pack| words.iter().filter(|word| pack.signs.contains(word.as_str())).count();
    let best =
        packs().iter().filter(|pack| !pack.is_unspaced).map(|pack| (hits(pack), pack)).max_by_key(|(hits, _)| *hits)?;
    (best.0 >= 2).then_some(best.1)
}

/// A word without the punctuation around it.
pub(crate) fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_is_read() {
        let languages: Vec<&str> = packs().iter().map(|pack| pack.language.as_str()).collect();
        assert_eq!(languages, ["en", "es", "pt-BR", "de", "fr", "id", "ja", "zh"]);
        for pack in packs() {
            let is_partial = pack.coverage == "partial";
            assert_eq!(is_partial, pack.is_unspaced, "{}", pack.language);
        }
    }

    #[test]
    fn languages_are_told_apart() {
        let language = |text| pack_of(text).map(|pack| pack.language.as_str());
        assert_eq!(language("Could you please take a look at the order that is late"), Some("en"));
        assert_eq!(language("Ich möchte bitte nur kurz wissen, ob das Rad noch da ist und was es kostet"), Some("de"));
        assert_eq!(language("0x1f 22 33"), None);
    }
}
