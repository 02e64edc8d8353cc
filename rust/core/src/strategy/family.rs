//! Groups models into families by name, the only data that every provider gives.

use std::collections::BTreeMap;

/// The most families with an `auto` channel. Families with the most models have precedence.
const MAX_FAMILIES: usize = 48;
/// The minimum length of a family name.
const MIN_LETTERS: usize = 2;

/// Returns the last path segment of a model's name, without vendor prefixes (`anthropic.claude-...`,
/// `us.meta.llama...`).
fn own_name(model: &str) -> &str {
    let mut name = model.rsplit('/').next().unwrap_or(model);
    while let Some((vendor, rest)) = name.split_once('.') {
        let is_vendor = !vendor.is_empty() && letters(vendor) == vendor.len();
        if !is_vendor || letters(rest) < MIN_LETTERS {
            break;
        }
        name = rest;
    }
    name
}

/// Returns the number of leading letters of a name.
fn letters(name: &str) -> usize {
    name.bytes().take_while(u8::is_ascii_alphabetic).count()
}

/// Returns whether a model's own name starts with the family's name.
pub fn is_of_family(model: &str, family: &str) -> bool {
    own_name(model).get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family))
}

/// Returns a model's family, the letters that its name starts with after path and vendor: `claude` of
/// `claude-opus-4-1`.
pub fn family_of(model: &str) -> Option<String> {
    let name = own_name(model);
    let word = &name[..letters(name)];
    (word.len() >= MIN_LETTERS).then(|| word.to_ascii_lowercase())
}

/// Returns the families that have a channel, each with the indices of its models.
pub fn families<'a>(models: impl Iterator<Item = &'a str>) -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, model) in models.enumerate() {
        if let Some(family) = family_of(model) {
            found.entry(family).or_default().push(index);
        }
    }
    if found.len() > MAX_FAMILIES {
        let mut largest: Vec<(String, Vec<usize>)> = found.into_iter().collect();
        // The sort is stable: among equal sizes, the first by name are selected.
        largest.sort_by_key(|(_, indices)| std::cmp::Reverse(indices.len()));
        largest.truncate(MAX_FAMILIES);
        found = largest.into_iter().collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_family() {
        for (model, family) in [
            ("anthropic/claude-opus-4-1", Some("claude")),
            ("bedrock/us.anthropic.claude-3-5-sonnet-v2:0", Some("claude")),
            ("openrouter/openai/GPT-4.1", Some("gpt")),
            ("groq/llama3-70b", Some("llama")),
            ("a/qwen2.5-coder", Some("qwen")),
            ("bedrock/deepseek.r1-v1:0", Some("deepseek")),
            ("openai/o3-mini", None),
            ("a/7b", None),
            ("a/", None),
            ("a/.claude", None),
            ("a/claude.", Some("claude")),
        ] {
            assert_eq!(family_of(model).as_deref(), family, "{model}");
        }
        assert!(is_of_family("meta.llama3-8b", "Llama3") && !is_of_family("a/gpt-4.1", "1"));
    }

    #[test]
    fn the_largest_families_are_kept() {
        let letters = |number: usize| {
            format!("{}{}", char::from(b'a' + (number / 26) as u8), char::from(b'a' + (number % 26) as u8))
        };
        let mut models: Vec<String> = (0..60).map(|number| format!("p/{}-1", letters(number))).collect();
        models.push(format!("p/{}-2", letters(59)));
        let found = families(models.iter().map(String::as_str));
        assert_eq!(found.len(), MAX_FAMILIES);
        assert_eq!(found.get(&letters(59)), Some(&vec![59, 60]));
        assert!(found.contains_key(&letters(0)) && !found.contains_key(&letters(58)));
    }
}
