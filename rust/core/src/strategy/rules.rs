//! A combo's rules besides its steps and strategy: which targets are allowed, how the request is changed, timeouts and
//! retries, which responses are valid, and which models are called in addition for comparison.

use super::facts::{CandidateOrder, Demand, Facts};
use super::family::is_of_family;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The rules of one combo. A rule that is not set has no effect.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Added before the caller's instructions.
    pub system_message: Option<String>,
    /// Only tools whose names match are sent.
    pub tool_filter_regex: Option<String>,
    /// Allowed providers by prefix. Empty allows all.
    pub allowed_providers: Vec<String>,
    /// Allowed prefixes of model names. Empty allows all.
    pub allowed_model_families: Vec<String>,
    /// The maximum length of a request in tokens.
    pub context_length: Option<u64>,
    /// Keeps a conversation on the target that served its last turn while that target is able, because the provider may
    /// have the conversation in its prompt cache. Takes precedence over the strategy, nested combos and
    /// `prefers_large`. Works without a session id.
    pub context_cache_protection: bool,
    pub context: ContextRule,
    /// The timeout of one target, in milliseconds: for the whole response, or for the response headers of a stream.
    pub target_timeout_ms: Option<u64>,
    /// The timeout of a provider's targets by prefix, which overrides `target_timeout_ms`.
    pub provider_timeouts_ms: HashMap<String, u64>,
    /// The timeout of all targets together, from the arrival of the request.
    pub combo_timeout_ms: Option<u64>,
    /// How often a target is retried after a transient failure before the next target is tried.
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    /// How often all targets are tried again after all have failed.
    pub max_set_retries: u32,
    pub set_retry_delay_ms: u64,
    /// If all targets are in cooldown, the request waits for one until the request is this old. 0 disables waiting.
    pub cooldown_wait_ms: u64,
    /// The most requests that wait for a connection at its limits. Absent: the connection's setting applies.
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

/// The context windows that a combo requires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContextRule {
    pub min_window: u64,
    /// Targets with larger windows come first.
    pub prefers_large: bool,
    /// Excludes targets with a too small or unknown window instead of trying them last.
    pub is_strict: bool,
}

/// The conditions that a response must meet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Validation {
    /// Buffers streams until they are known to be valid. Otherwise streams are not validated.
    pub holds_streams: bool,
    pub forbidden_substrings: Vec<String>,
    pub required_substrings: Vec<String>,
    /// In characters.
    pub min_content_length: usize,
    pub predicates: Vec<Predicate>,
}

/// A condition on the response text, parsed as JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Predicate {
    /// Member names and indices separated by dots: `items.0.name`.
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

/// Models that are called in addition to the combo's targets, only for comparison.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Shadow {
    /// Models with their prefixes.
    pub targets: Vec<String>,
    /// The share of requests that are shadowed, 0 to 1.
    pub sample_rate: f64,
    /// The most shadow calls for one request.
    pub max_targets: usize,
    pub timeout_ms: u64,
}

/// A combo's settings for waiting at a connection's limits. They override the connection's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueRule {
    /// The most requests that wait.
    pub depth: Option<u32>,
    pub timeout_ms: Option<u64>,
}

/// Why a combo's rules exclude a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    Provider,
    Family,
    /// The model's context window, if known, and the tokens that are needed.
    Window(Option<u64>, u64),
    /// The request has an image, and `auto` skips models that do not accept images.
    Picture,
}

/// Selects the tools that are sent, by name.
#[derive(Debug, Clone)]
pub struct ToolFilter(Option<Regex>);

impl ToolFilter {
    /// Compiles the pattern. The control plane has validated it; if it is invalid anyway, no tool is sent.
    pub fn new(pattern: &str) -> Self {
        Self(compile(pattern).ok())
    }

    pub fn admits(&self, tool: &str) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(tool))
    }
}

/// Returns why a tool name pattern is invalid; `None` if it is valid.
pub fn pattern_fault(pattern: &str) -> Option<String> {
    compile(pattern).err().map(|fault| fault.to_string().lines().last().unwrap_or_default().to_owned())
}

/// The maximum size of a compiled tool name pattern. The library's default is 10 MiB, and every relay and control
/// process compiles the patterns of all combos.
const TOOL_PATTERN_MAX_BYTES: usize = 512 * 1024;

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(TOOL_PATTERN_MAX_BYTES).build()
}

impl Rules {
    /// Returns whether the rules can exclude a target.
    pub fn bar_any(&self) -> bool {
        !self.allowed_providers.is_empty() || !self.allowed_model_families.is_empty() || self.context.is_strict
    }

    pub fn queue(&self) -> QueueRule {
        QueueRule { depth: self.queue_depth, timeout_ms: self.queue_timeout_ms }
    }

    /// Returns the timeout of a target whose provider has these prefixes.
    pub fn timeout_ms_of(&self, prefixes: &[String]) -> Option<u64> {
        let own = prefixes.iter().find_map(|prefix| self.provider_timeouts_ms.get(prefix));
        own.copied().or(self.target_timeout_ms)
    }

    /// Returns why a target is excluded. `prefixes` are all prefixes of its provider.
    pub fn obstacle(&self, prefixes: &[String], model: &str, facts: &Facts, demand: &Demand) -> Option<Obstacle> {
        let is_named = |prefix: &String| self.allowed_providers.iter().any(|allowed| allowed == prefix);
        if !self.allowed_providers.is_empty() && !prefixes.iter().any(is_named) {
            return Some(Obstacle::Provider);
        }
        let families = &self.allowed_model_families;
        if !families.is_empty() && !families.iter().any(|family| is_of_family(model, family)) {
            return Some(Obstacle::Family);
        }
        let needed = self.context.needed(demand);
        (self.context.is_strict && self.context.is_too_small(facts, demand))
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

    /// Puts larger windows first if preferred, and too small windows last. Equal targets keep their order.
    pub fn arrange(&self, facts: &[Facts], demand: &Demand, ordered: &mut CandidateOrder) {
        if self.prefers_large {
            ordered.sort_by_key(|&index| {
                let one = &facts[usize::from(index)];
                (!one.availability.is_able(), Reverse(one.context_window.unwrap_or(0)))
            });
        }
        if self.is_set() {
            ordered.sort_by_key(|&index| self.is_too_small(&facts[usize::from(index)], demand));
        }
    }

    fn needed(&self, demand: &Demand) -> u64 {
        self.min_window.max(demand.input_tokens)
    }

    /// Returns whether a window is too small for the request, or unknown while `is_strict` is set.
    pub fn is_too_small(&self, facts: &Facts, demand: &Demand) -> bool {
        match facts.context_window {
            Some(window) => self.is_set() && window < self.needed(demand),
            None => self.is_strict,
        }
    }
}

impl Validation {
    /// Returns whether any text with this beginning is valid.
    pub fn is_met_by_beginning(&self, text: &str) -> bool {
        self.forbidden_substrings.is_empty() && self.predicates.is_empty() && self.fault(text).is_none()
    }

    /// Describes the rule that this text violates, if any.
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
        let demand = Demand { input_tokens: 9_000, ..Demand::default() };
        let prefixes = ["lab".to_owned(), "n1".to_owned()];
        let obstacle = |json: &str, window| rules(json).obstacle(&prefixes, "org/Claude-4", &facts(window), &demand);
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
            lenient.context.is_too_small(&facts(Some(9_500)), &demand)
                && !lenient.context.is_too_small(&facts(None), &demand)
        );
        assert_eq!(lenient.obstacle(&prefixes, "m", &facts(Some(9_500)), &demand), None);
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
