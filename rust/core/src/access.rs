//! Which models, combos and connections one level allows. A level is a key or a group that the key is in. A request
//! must be allowed by every level of its key.

use crate::model_name::{self, Case};
use serde::Deserialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    #[default]
    All,
    Restricted,
}

/// The access rules of one level. Patterns are exact names or names with `*`, matched in linear time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Access {
    #[serde(default)]
    pub model_access_mode: AccessMode,
    #[serde(default)]
    pub allowed_models: Vec<String>,
    #[serde(default)]
    pub blocked_models: Vec<String>,
    /// An empty list allows every combo if the level may call every model. A level with restricted models may then call
    /// only the combos that `allowed_models` names, and `auto`.
    #[serde(default)]
    pub allowed_combos: Vec<String>,
    #[serde(default)]
    pub connection_access_mode: AccessMode,
    #[serde(default)]
    pub allowed_connections: Vec<String>,
}

impl Access {
    /// Returns whether the model is blocked.
    pub fn blocks(&self, model: &str) -> bool {
        self.blocked_models.iter().any(|pattern| model_name::is_named(pattern, model, Case::Ignored))
    }

    /// Returns whether the level may call the model. A block overrides an allowance.
    pub fn admits_model(&self, model: &str) -> bool {
        !self.blocks(model)
            && (self.model_access_mode == AccessMode::All
                || self.allowed_models.iter().any(|pattern| model_name::is_named(pattern, model, Case::Exact)))
    }

    /// Returns whether the level may call the combo. A block has precedence, then the list of combos. Without that
    /// list, a level with restricted models may call the combos that `allowed_models` names, and `auto`, which then
    /// selects among the allowed models only.
    pub fn admits_combo(&self, name: &str, is_auto: bool) -> bool {
        let is_it = |listed: &String| listed == name || listed.strip_prefix("combo/") == Some(name);
        let spelled = format!("combo/{name}");
        let names_it = |pattern: &String| matches_pattern(pattern, name) || matches_pattern(pattern, &spelled);
        let is_listed = if self.allowed_combos.is_empty() {
            is_auto || self.model_access_mode == AccessMode::All || self.allowed_models.iter().any(names_it)
        } else {
            self.allowed_combos.iter().any(is_it)
        };
        is_listed && !self.blocks(name) && !self.blocks(&spelled)
    }

    /// Returns whether the level can deny targets of a combo.
    pub fn closes_targets(&self) -> bool {
        self.model_access_mode == AccessMode::Restricted
            || self.connection_access_mode == AccessMode::Restricted
            || !self.blocked_models.is_empty()
    }

    pub fn admits_connection(&self, id: &str) -> bool {
        self.connection_access_mode == AccessMode::All || self.allowed_connections.iter().any(|allowed| allowed == id)
    }

    /// Returns the rules for the models of one prefix. `prefix` includes the slash.
    pub fn of_prefix(&self, prefix: &str) -> PrefixAccess<'_> {
        let blocked = about(&self.blocked_models, prefix, Case::Ignored);
        let allowed = match self.model_access_mode {
            AccessMode::All => Patterns::All,
            AccessMode::Restricted => about(&self.allowed_models, prefix, Case::Exact),
        };
        PrefixAccess { blocked, allowed }
    }

    /// Returns whether the level can deny a model or a combo.
    pub fn is_narrow(&self) -> bool {
        self.model_access_mode == AccessMode::Restricted
            || !self.blocked_models.is_empty()
            || !self.allowed_combos.is_empty()
    }
}

/// The rules for the models of one prefix, reduced to the patterns that can match them. Filtering a long list of models
/// with them is much faster than with all patterns.
#[derive(Debug, Clone)]
pub struct PrefixAccess<'a> {
    blocked: Patterns<'a>,
    allowed: Patterns<'a>,
}

#[derive(Debug, Clone)]
enum Patterns<'a> {
    /// One pattern matches every model of the prefix.
    All,
    Some(Vec<&'a str>),
}

impl PrefixAccess<'_> {
    /// Returns whether the model may be called. The model must have the prefix.
    pub fn admits_model(&self, model: &str) -> bool {
        !self.blocked.name(model, Case::Ignored) && self.allowed.name(model, Case::Exact)
    }

    /// Returns whether every model of the prefix may be called.
    pub fn admits_all(&self) -> bool {
        matches!((&self.blocked, &self.allowed), (Patterns::Some(blocked), Patterns::All) if blocked.is_empty())
    }
}

impl Patterns<'_> {
    fn name(&self, model: &str, case: Case) -> bool {
        match self {
            Self::All => true,
            Self::Some(patterns) => patterns.iter().any(|pattern| model_name::is_named(pattern, model, case)),
        }
    }
}

fn about<'a>(patterns: &'a [String], prefix: &str, case: Case) -> Patterns<'a> {
    if patterns.iter().any(|pattern| model_name::covers(pattern, prefix, case)) {
        return Patterns::All;
    }
    let some = patterns.iter().map(String::as_str).filter(|pattern| model_name::may_begin(pattern, prefix, case));
    Patterns::Some(some.collect())
}

/// Matches a pattern in which `*` stands for any run of characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    model_name::matches(pattern.as_bytes(), text.as_bytes(), Case::Exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("openai/*", "openai/gpt-4o", true),
            ("openai/*", "openai", false),
            ("*", "anything", true),
            ("*mini", "openai/gpt-4o-mini", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("openai/gpt", "openai/gpt-4o", false),
            ("", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn what_holds_of_a_prefix_is_what_holds_of_each_of_its_models() {
        let patterns = [
            "",
            "*",
            "**",
            "p/*",
            "P/*",
            "p/",
            "p/m",
            "p*",
            "q/*",
            "*m",
            "*M",
            "p/models/*",
            "*/models/m",
            "p/*-mini",
            "*ode*",
            "p/x*/y",
            "p/m/*",
            "x/models/m*",
            "*/m",
            "models/*",
        ];
        let models = [
            "p/m",
            "p/M",
            "p/models/m",
            "p/MODELS/models/m",
            "p/a-mini",
            "p/x1/y",
            "p/m/y",
            "p/publishers/g/models/m",
            "p/",
            "p/tunedModels/m",
            "P/m",
            "pp/m",
        ];
        let list = |pattern: &str| vec![pattern.to_owned()];
        for (blocked, allowed) in patterns.iter().flat_map(|one| patterns.iter().map(move |other| (one, other))) {
            for model_access_mode in [AccessMode::All, AccessMode::Restricted] {
                let access = Access {
                    model_access_mode,
                    allowed_models: list(allowed),
                    blocked_models: list(blocked),
                    ..Access::default()
                };
                for model in models {
                    let (prefix, _) = model.split_once('/').expect("a prefix");
                    let of_prefix = access.of_prefix(&format!("{prefix}/"));
                    let case = format!("{model_access_mode:?} {blocked:?} {allowed:?} {model}");
                    assert_eq!(of_prefix.admits_model(model), access.admits_model(model), "{case}");
                    assert!(!of_prefix.admits_all() || access.admits_model(model), "{case}");
                }
            }
        }
    }
}
