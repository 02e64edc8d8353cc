//! The operator's rules of a combo beyond its steps and its strategy: who may serve it, what a request becomes on its way, how long it
//! may take, what counts as an answer, and who is asked beside.

use super::facts::{CandidateOrder, Demand, Facts};
use super::family::is_of_family;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Rules of one combo. Each that is not set changes nothing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Said before the caller's own instructions.
    pub system_message: Option<String>,
    /// Only tools whose names it matches are sent.
    pub tool_filter_regex: Option<String>,
    /// Providers by prefix; empty allows all.
    pub allowed_providers: Vec<String>,
    /// Beginnings of models' names; empty allows all.
    pub allowed_model_families: Vec<String>,
    /// Tokens of the longest request that is taken.
    pub context_length: Option<u64>,
    /// A conversation stays with the target that served its last turn, whose provider may have it in its prompt cache, for as long as
    /// that one is able: whatever the strategy, nested combos and wishes for large windows say. It is known without a session, too.
    pub context_cache_protection: bool,
    pub context: ContextRule,
    /// How long one target has: for a whole answer, or for the head of a stream.
    pub target_timeout_ms: Option<u64>,
    /// How long a target of a provider has, by prefix; goes before the one for all.
    pub provider_timeouts_ms: HashMap<String, u64>,
    /// How long all targets have together, from the request's arrival.
    pub combo_timeout_ms: Option<u64>,
    /// As often one target is asked again after a failure that may pass, before the next one is.
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    /// As often all targets are tried again when none has answered.
    pub max_set_retries: u32,
    pub set_retry_delay_ms: u64,
    /// Targets that all wait for their providers are waited for until a request is this old; 0: not at all.
    pub cooldown_wait_ms: u64,
    /// Requests that may wait for a connection that is at its limits; absent, as the connection says.
    pub queue_depth: Option<u32>,
    pub queue_timeout_ms: Option<u64>,
    pub validation: Option<Validation>,
    pub shadow: Option<Shadow>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            system_message: None,
            tool_filter_regex: None,
            allowed_providers: Vec::new(),
            allowed_model_families: Vec::new(),
            context_length: None,
            context_cache_protection: false,
            context: ContextRule::default(),
            target_timeout_ms: None,
            provider_timeouts_ms: HashMap::new(),
            combo_timeout_ms: None,
            max_retries: 0,
            retry_delay_ms: 2_000,
            max_set_retries: 0,
            set_retry_delay_ms: 2_000,
            cooldown_wait_ms: 0,
            queue_depth: None,
            queue_timeout_ms: None,
            validation: None,
            shadow: None,
        }
    }
}

/// The context windows that a combo's targets must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContextRule {
    pub min_window: u64,
    /// Larger windows come first.
    pub prefers_large: bool,
    /// Targets with too small or unknown windows are left out, rather than tried last.
    pub is_strict: bool,
}

/// What an answer must be like.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Validation {
    /// Streams are held back until they are known to be so; else they pass unjudged.
    pub holds_streams: bool,
    pub forbidden_substrings: Vec<String>,
    pub required_substrings: Vec<String>,
    /// Characters.
    pub min_content_length: usize,
    pub predicates: Vec<Predicate>,
}

/// A condition on the JSON that an answer's text is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Predicate {
    /// Members and places with dots between them: `items.0.name`.
    pub path: String,
    pub condition: Condition,
    #[serde(default)]
    pub value: serde_json::Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    Exists,
    NonEmpty,
    Equals,
    NotEquals,
}

/// Models that are asked beside the combo's own, for comparison alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Shadow {
    /// Models with their prefixes.
    pub targets: Vec<String>,
    /// The share of requests that are shadowed, 0 to 1.
    pub sample_rate: f64,
    /// Shadows of one request.
    pub max_targets: usize,
    pub timeout_ms: u64,
}

/// What a combo says of waiting for connections that are at their limits, in place of what they say themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueRule {
    /// Requests that may wait.
    pub depth: Option<u32>,
    pub timeout_ms: Option<u64>,
}

/// Why a combo's rules leave a target out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    Provider,
    Family,
    /// The model's window, if it is known, and the tokens that are needed.
    Window(Option<u64>, u64),
    /// `auto` sends no picture to a model that reads none.
    Picture,
}

/// Which tools are sent, by name.
#[derive(Debug, Clone)]
pub struct ToolFilter(Option<Regex>);

impl ToolFilter {
    /// Control has judged the pattern; where it is none all the same, no tool is sent.
    pub fn new(pattern: &str) -> Self {
        Self(compile(pattern).ok())
    }

    pub fn admits(&self, tool: &str) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(tool))
    }
}

/// Why a pattern of tools' names is none; `None` for one that is.
pub fn pattern_fault(pattern: &str) -> Option<String> {
    compile(pattern).err().map(|fault| fault.to_string().lines().last().unwrap_or_default().to_owned())
}

/// The most that a compiled pattern of tools' names may take. The default of the library is 10 MiB, and each relay and control
/// compile every combo's.
const TOOL_PATTERN_MAX_BYTES: usize = 512 * 1024;

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(TOOL_PATTERN_MAX_BYTES).build()
}

impl Rules {
    /// Whether they may leave any target out.
    pub fn bar_any(&self) -> bool {
        !self.allowed_providers.is_empty() || !self.allowed_model_families.is_empty() || self.context.is_strict
    }

    pub fn queue(&self) -> QueueRule {
        QueueRule { depth: self.queue_depth, timeout_ms: self.queue_timeout_ms }
    }

    /// How long a target with these prefixes has.
    pub fn timeout_ms_of(&self, prefixes: &[String]) -> Option<u64> {
        let own = prefixes.iter().find_map(|prefix| self.provider_timeouts_ms.get(prefix));
        own.copied().or(self.target_timeout_ms)
    }

    /// Why a target is left out. `prefixes` are all names of its provider.
    pub fn obstacle(&self, prefixes: &[String], model: &str, facts: &Facts, ask: &Demand) -> Option<Obstacle> {
        let is_named = |prefix: &String| self.allowed_providers.iter().any(|allowed| allowed == prefix);
        if !self.allowed_providers.is_empty() && !prefixes.iter().any(is_named) {
            return Some(Obstacle::Provider);
        }
        let families = &self.allowed_model_families;
        if !families.is_empty() && !families.iter().any(|family| is_of_family(model, family)) {
            return Some(Obstacle::Family);
        }
        let needed = self.context.needed(ask);
        (self.context.is_strict && self.context.is_too_small(facts, ask))
            .then_some(Obstacle::Window(facts.context_window, needed))
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Provider => f.write_str("its provider is not among `allowedProviders`"),
            Self::Picture => f.write_str("the request has a picture, and its model reads none"),
            Self::Family => f.write_str("its model is of none of `allowedModelFamilies`"),
            Self::Window(Some(window), needed) => {
                write!(f, "its context window of {window} tokens is smaller than the {needed} that are needed")
            }
            Self::Window(None, _) => {
                f.write_str("its context window is not known, and `contextFilterMode` is `strict`")
            }
        }
    }
}

impl ContextRule {
    pub fn is_set(&self) -> bool {
        self.min_window > 0 || self.prefers_large || self.is_strict
    }

    /// Puts larger windows first where that is wanted, and those that are too small last. Equal ones keep their order.
    pub fn arrange(&self, facts: &[Facts], ask: &Demand, placed: &mut CandidateOrder) {
        if self.prefers_large {
            placed.sort_by_key(|&place| {
                let one = &facts[usize::from(place)];
                (!one.standing.is_able(), Reverse(one.context_window.unwrap_or(0)))
            });
        }
        if self.is_set() {
            placed.sort_by_key(|&place| self.is_too_small(&facts[usize::from(place)], ask));
        }
    }

    fn needed(&self, ask: &Demand) -> u64 {
        self.min_window.max(ask.input_tokens)
    }

    /// Whether a window is too small for the request, or, under strict rules, not known.
    pub fn is_too_small(&self, facts: &Facts, ask: &Demand) -> bool {
        match facts.context_window {
            Some(window) => self.is_set() && window < self.needed(ask),
            None => self.is_strict,
        }
    }
}

impl Validation {
    /// Whether a text that begins like this is as it must be, whatever follows.
    pub fn is_met_by_beginning(&self, text: &str) -> bool {
        self.forbidden_substrings.is_empty() && self.predicates.is_empty() && self.fault(text).is_none()
    }

    /// The rule that an answer with this text breaks, in words.
    pub fn fault(&self, text: &str) -> Option<String> {
        if text.chars().take(self.min_content_length).count() < self.min_content_length {
            return Some(format!("has less than {} characters", self.min_content_length));
        }
        if let Some(at) = self.forbidden_substrings.iter().position(|forbidden| text.contains(forbidden.as_str())) {
            return Some(format!("has the forbidden text number {}", at + 1));
        }
        if let Some(at) = self.required_substrings.iter().position(|required| !text.contains(required.as_str())) {
            return Some(format!("lacks the required text number {}", at + 1));
        }
        if self.predicates.is_empty() {
            return None;
        }
        let Ok(json) = serde_json::from_str::<serde_json::Value>(text.trim()) else {
            return Some("is not JSON".to_owned());
        };
        let broken = self.predicates.iter().find(|predicate| !predicate.holds(&json))?;
        Some(format!("breaks the rule for `{}`", broken.path))
    }
}

impl Predicate {
    fn holds(&self, json: &serde_json::Value) -> bool {
        use serde_json::Value;
        let found = self.path.split('.').try_fold(json, |value, name| match value {
            Value::Object(members) => members.get(name),
            Value::Array(list) => list.get(name.parse::<usize>().ok()?),
            _ => None,
        });
        match self.condition {
            Condition::Exists => found.is_some(),
            Condition::NonEmpty => found.is_some_and(|value| match value {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(list) => !list.is_empty(),
                Value::Object(members) => !members.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            }),
            Condition::Equals => found == Some(&self.value),
            Condition::NotEquals => found != Some(&self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: &str) -> Rules {
        serde_json::from_str(json).expect("rules")
    }

    #[test]
    fn providers_families_and_windows_leave_targets_out() {
        let facts = |window| Facts { context_window: window, ..Facts::default() };
        let ask = Demand { input_tokens: 9_000, ..Demand::default() };
        let prefixes = ["lab".to_owned(), "n1".to_owned()];
        let obstacle = |json: &str, window| rules(json).obstacle(&prefixes, "org/Claude-4", &facts(window), &ask);
        assert_eq!(obstacle("{}", None), None);
        assert_eq!(obstacle(r#"{"allowed_providers":["n1"]}"#, None), None);
        assert_eq!(obstacle(r#"{"allowed_providers":["n2"]}"#, None), Some(Obstacle::Provider));
        assert_eq!(obstacle(r#"{"allowed_model_families":["gpt","claude"]}"#, None), None);
        assert_eq!(obstacle(r#"{"allowed_model_families":["gpt"]}"#, None), Some(Obstacle::Family));
        let strict = r#"{"context":{"min_window":5000,"is_strict":true}}"#;
        assert_eq!(obstacle(strict, Some(9_000)), None);
        assert_eq!(obstacle(strict, Some(8_000)), Some(Obstacle::Window(Some(8_000), 9_000)), "what it asks counts");
        assert_eq!(obstacle(strict, None), Some(Obstacle::Window(None, 9_000)));
        let lenient = rules(r#"{"context":{"min_window":10000}}"#);
        assert!(
            lenient.context.is_too_small(&facts(Some(9_500)), &ask)
                && !lenient.context.is_too_small(&facts(None), &ask)
        );
        assert_eq!(lenient.obstacle(&prefixes, "m", &facts(Some(9_500)), &ask), None);
    }

    #[test]
    fn an_answer_is_held_to_its_rules() {
        let fault = |json: &str, text: &str| serde_json::from_str::<Validation>(json).expect("rules").fault(text);
        assert_eq!(fault(r#"{"min_content_length":3}"#, "äöü"), None);
        assert!(fault(r#"{"min_content_length":3}"#, "äö").is_some());
        assert!(fault(r#"{"forbidden_substrings":["sorry"]}"#, "so sorry").is_some());
        assert!(fault(r#"{"required_substrings":["yes"]}"#, "no").is_some());
        let at = |condition: &str, value: &str| {
            let json = format!(r#"{{"predicates":[{{"path":"a.0.b","condition":"{condition}","value":{value}}}]}}"#);
            [r#"{"a":[{"b":1}]}"#, r#"{"a":[{"b":""}]}"#, "{}", "text"].map(|text| fault(&json, text).is_none())
        };
        assert_eq!(at("exists", "null"), [true, true, false, false]);
        assert_eq!(at("nonEmpty", "null"), [true, false, false, false]);
        assert_eq!(at("equals", "1"), [true, false, false, false]);
        assert_eq!(at("notEquals", "1"), [false, true, true, false]);
    }
}
