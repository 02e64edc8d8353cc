//! What the families of Claude take of reasoning and sampling, by the name of the model.
//!
//! The rows are those of the vendor's migration guides; a name that is not Claude's has none, and its request keeps the form's plain
//! members.

/// How a family is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Never,
    /// `enabled` with a budget of tokens.
    Budget,
    Adaptive,
    /// The family always thinks, and refuses a request that switches it off.
    Always,
}

/// The facts of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one row of the vendor's table")]
pub(crate) struct Family {
    pub(crate) is_claude: bool,
    pub(crate) thinking: Thinking,
    /// `output_config.effort` is taken.
    pub(crate) has_effort: bool,
    /// The efforts above `high` are taken.
    pub(crate) has_most: bool,
    /// `temperature`, `top_p` and `top_k` are taken.
    pub(crate) has_samplers: bool,
    /// `temperature` and `top_p` are taken together.
    pub(crate) has_both_samplers: bool,
    /// A tool can be forced while the model does not think.
    pub(crate) forces_tools: bool,
    /// A tool can be forced while the model thinks.
    pub(crate) forces_while_thinking: bool,
}

/// A name that is not Claude's.
const PLAIN: Family = Family {
    is_claude: false,
    thinking: Thinking::Adaptive,
    has_effort: true,
    has_most: true,
    has_samplers: true,
    has_both_samplers: true,
    forces_tools: true,
    forces_while_thinking: true,
};

/// The facts of a model by its name at any host: `claude-sonnet-4-5`, `anthropic.claude-opus-4-1-20250805-v1:0`, `claude-3-7-sonnet@20250219`.
pub(crate) fn of(model: &str) -> Family {
    let lower = model.to_ascii_lowercase();
    let Some(at) = lower.find("claude") else { return PLAIN };
    let words: Vec<&str> = lower[at..].split(|char: char| !char.is_ascii_alphanumeric()).collect();
    let mut numbers = words.iter().filter(|word| word.len() <= 2).filter_map(|word| word.parse::<u32>().ok());
    let (major, minor) = (numbers.next(), numbers.next().unwrap_or(0));
    let is = |name: &str| words.contains(&name);
    let version = match major {
        Some(major) => (major, minor),
        // `claude-mythos-preview` and names of tomorrow.
        None => (5, 0),
    };
    let is_always_thinking = is("fable") || is("mythos") || (version >= (5, 5) && !is("haiku"));
    let thinking = match version {
        old if old < (3, 7) => Thinking::Never,
        budget if budget < (4, 6) => Thinking::Budget,
        _ if is_always_thinking => Thinking::Always,
        _ => Thinking::Adaptive,
    };
    Family {
        is_claude: true,
        thinking,
        has_effort: version >= (4, 6) || (version == (4, 5) && is("opus")),
        has_most: version >= (4, 6),
        has_samplers: version < (4, 7),
        has_both_samplers: version < (3, 7),
        forces_tools: !(is_always_thinking && version >= (5, 1)),
        forces_while_thinking: version >= (4, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_host_are_read() {
        for (model, thinking) in [
            ("claude-3-5-haiku-20241022", Thinking::Never),
            ("claude-3-7-sonnet@20250219", Thinking::Budget),
            ("claude-sonnet-4-20250514", Thinking::Budget),
            ("anthropic.claude-opus-4-1-20250805-v1:0", Thinking::Budget),
            ("claude-haiku-4-5", Thinking::Budget),
            ("claude-sonnet-4.5", Thinking::Budget),
            ("us.anthropic.claude-sonnet-4-6-v1:0", Thinking::Adaptive),
            ("claude-opus-4-8", Thinking::Adaptive),
            ("claude-sonnet-5", Thinking::Adaptive),
            ("claude-opus-5-5", Thinking::Always),
            ("claude-haiku-5-5", Thinking::Adaptive),
            ("claude-fable-5-1", Thinking::Always),
            ("claude-mythos-preview", Thinking::Always),
        ] {
            assert_eq!(of(model).thinking, thinking, "{model}");
        }
        assert_eq!(of("MiniMax-M2"), PLAIN);
    }

    #[test]
    fn effort_samplers_and_forced_tools() {
        assert!(!of("claude-sonnet-4-5").has_effort && of("claude-opus-4-5").has_effort);
        assert!(!of("claude-opus-4-5").has_most && of("claude-opus-4-6").has_most);
        assert!(of("claude-opus-4-6").has_samplers && !of("claude-opus-4-7").has_samplers);
        assert!(of("claude-3-5-sonnet-20241022").has_both_samplers && !of("claude-sonnet-4-5").has_both_samplers);
        assert!(of("claude-sonnet-5").forces_tools && !of("claude-sonnet-5-5").forces_tools);
        assert!(of("claude-haiku-5-5").forces_tools && !of("claude-fable-5-2").forces_tools);
        assert!(!of("claude-opus-4-7").forces_while_thinking && of("claude-opus-4-8").forces_while_thinking);
    }
}
