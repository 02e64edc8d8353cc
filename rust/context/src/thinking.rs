//! Rewrites the reasoning settings of requests: removes them, or replaces the budget.
//!
//! Only existing settings are rewritten. A request without any, or one that switches reasoning off, is unchanged,
//! because a model without reasoning would reject them. Parameters for a server's chat template are also unchanged
//! (spec 1, reasoning control, rule 4).

use fairlead_core::json::{self, Kind};
use fairlead_core::{Dialect, ThinkingBudget};

use crate::edit::{string, Edits};
use crate::tape::Tape;

/// The smallest budget that Anthropic accepts, in tokens.
const LEAST_BUDGET: u64 = 1_024;
/// The largest budget of each effort level, in tokens, for dialects with effort levels.
const EFFORTS: [(u64, &str); 4] = [(0, "none"), (512, "minimal"), (2_048, "low"), (12_288, "medium")];
/// The adaptive budgets, in tokens: see [`adaptive`].
const STEPS: [u64; 4] = [1_024, 4_096, 12_288, 24_576];
/// A conversation with more messages counts as long.
const MANY_MESSAGES: usize = 10;
/// A last text of more bytes counts as long.
const LONG_TEXT_BYTES: usize = 2_000;

/// The body with the operator's reasoning setting; `None` if nothing changes.
pub fn rewrite_thinking(dialect: Dialect, body: &[u8], mode: ThinkingBudget) -> Option<Vec<u8>> {
    if mode == ThinkingBudget::Passthrough {
        return None;
    }
    let tape = Tape::read(body).ok()?;
    let budget = match mode {
        ThinkingBudget::Passthrough => return None,
        ThinkingBudget::AutoStrip => None,
        ThinkingBudget::Custom { budget_tokens } => Some(budget_tokens),
        ThinkingBudget::Adaptive { budget_tokens } => Some(adaptive(dialect, &tape).min(budget_tokens)),
    };
    let mut rewriter = Rewriter { tape: &tape, budget, edits: Edits::default() };
    match dialect {
        Dialect::Openai => {
            rewriter.effort(0, "reasoning_effort");
            rewriter.reasoning(0);
        }
        Dialect::OpenaiResponses => rewriter.reasoning(0),
        Dialect::Anthropic => rewriter.anthropic(),
        Dialect::Gemini => rewriter.gemini(),
    }
    rewriter.edits.apply(body)
}

/// The adaptive budget: one step more for a long conversation, for tools, and for a long last text.
fn adaptive(dialect: Dialect, tape: &Tape<'_>) -> u64 {
    let list = match dialect {
        Dialect::Openai | Dialect::Anthropic => "messages",
        Dialect::OpenaiResponses => "input",
        Dialect::Gemini => "contents",
    };
    let messages = tape.member(0, list);
    let count = messages.map_or(0, |messages| tape.elements(messages).count());
    let last = messages.and_then(|messages| tape.elements(messages).last());
    let has_tools = tape.member(0, "tools").is_some_and(|tools| tape.elements(tools).next().is_some());
    let is_long = last.is_some_and(|last| tape.raw(last).len() > LONG_TEXT_BYTES);
    STEPS[usize::from(count > MANY_MESSAGES) + usize::from(has_tools) + usize::from(is_long)]
}

/// The effort level for a budget.
fn effort_of(budget: u64) -> &'static str {
    EFFORTS.iter().find(|(most, _)| budget <= *most).map_or("high", |(_, word)| word)
}

struct Rewriter<'t, 'a> {
    tape: &'t Tape<'a>,
    /// In tokens. `None` removes the settings.
    budget: Option<u64>,
    edits: Edits,
}

impl Rewriter<'_, '_> {
    /// Rewrites a member that is an effort level.
    fn effort(&mut self, object: usize, name: &str) {
        let Some(member) = self.tape.member(object, name) else { return };
        match (self.budget, self.tape.text(member).as_deref()) {
            (_, None | Some("none")) => {}
            (None, _) => self.edits.remove_members(self.tape, object, |each| each == name),
            (Some(budget), _) => self.edits.replace(self.tape, member, string(effort_of(budget))),
        }
    }

    /// Rewrites the object `reasoning`, which has an effort or a number of tokens, and display options.
    fn reasoning(&mut self, object: usize) {
        let Some(reasoning) = self.tape.member(object, "reasoning") else { return };
        if self.tape.member_text(reasoning, "effort").as_deref() == Some("none") {
            return;
        }
        let Some(budget) = self.budget else {
            return self.edits.remove_members(self.tape, reasoning, |each| matches!(each, "effort" | "max_tokens"));
        };
        self.effort(reasoning, "effort");
        if let Some(tokens) = self.tape.member(reasoning, "max_tokens") {
            if self.tape.kind(tokens) == Some(Kind::Number) {
                self.edits.replace(self.tape, tokens, budget.to_string());
            }
        }
    }

    fn anthropic(&mut self) {
        if let Some(config) = self.tape.member(0, "output_config") {
            self.anthropic_effort(config);
        }
        let Some(thinking) = self.tape.member(0, "thinking") else { return };
        let kind = self.tape.member_text(thinking, "type");
        match (self.budget, kind.as_deref()) {
            (_, None | Some("disabled")) => {}
            (None, _) => self.edits.remove_members(self.tape, 0, |each| each == "thinking"),
            (Some(0), _) => self.edits.replace(self.tape, thinking, r#"{"type":"disabled"}"#),
            (Some(budget), Some("enabled")) => {
                let most = self.tape.member(0, "max_tokens").and_then(|index| self.number(index));
                let budget = most.map_or(budget, |most| budget.min(most.saturating_sub(1))).max(LEAST_BUDGET);
                if let Some(tokens) = self.tape.member(thinking, "budget_tokens") {
                    self.edits.replace(self.tape, tokens, budget.to_string());
                }
            }
            // A model with adaptive reasoning uses the effort.
            (Some(_), Some(_)) => {}
        }
    }

    /// Rewrites Anthropic's effort, which has neither `none` nor `minimal`.
    fn anthropic_effort(&mut self, config: usize) {
        let Some(effort) = self.tape.member(config, "effort") else { return };
        match self.budget {
            None => self.edits.remove_members(self.tape, config, |each| each == "effort"),
            Some(budget) => {
                let word = match effort_of(budget) {
                    "none" | "minimal" => "low",
                    word => word,
                };
                self.edits.replace(self.tape, effort, string(word));
            }
        }
    }

    fn gemini(&mut self) {
        for config in ["generationConfig", "generation_config"] {
            let Some(config) = self.tape.member(0, config) else { continue };
            for name in ["thinkingConfig", "thinking_config"] {
                if let Some(thinking) = self.tape.member(config, name) {
                    self.gemini_thinking(thinking);
                }
            }
        }
    }

    fn gemini_thinking(&mut self, thinking: usize) {
        const NAMES: [&str; 4] = ["thinkingBudget", "thinking_budget", "thinkingLevel", "thinking_level"];
        let Some(budget) = self.budget else {
            return self.edits.remove_members(self.tape, thinking, |each| NAMES.contains(&each));
        };
        for name in &NAMES[..2] {
            let Some(tokens) = self.tape.member(thinking, name) else { continue };
            if self.tape.raw(tokens) != b"0" {
                self.edits.replace(self.tape, tokens, budget.to_string());
            }
        }
        for name in &NAMES[2..] {
            let Some(level) = self.tape.member(thinking, name) else { continue };
            self.edits.replace(self.tape, level, string(&effort_of(budget).replace("none", "minimal").to_uppercase()));
        }
    }

    fn number(&self, index: usize) -> Option<u64> {
        json::as_u64(self.tape.bytes(), self.tape.value(index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(dialect: Dialect, body: &str, mode: ThinkingBudget) -> String {
        let out = rewrite_thinking(dialect, body.as_bytes(), mode).unwrap_or_else(|| body.into());
        String::from_utf8(out).expect("text")
    }

    const CUSTOM: ThinkingBudget = ThinkingBudget::Custom { budget_tokens: 2_000 };
    const OFF: ThinkingBudget = ThinkingBudget::Custom { budget_tokens: 0 };

    #[test]
    fn what_is_said_goes() {
        for (dialect, body, expected) in [
            (Dialect::Openai, r#"{"reasoning_effort":"high","n":1}"#, r#"{"n":1}"#),
            (
                Dialect::Openai,
                r#"{"n":1,"reasoning":{"effort":"high","exclude":true}}"#,
                r#"{"n":1,"reasoning":{"exclude":true}}"#,
            ),
            (
                Dialect::OpenaiResponses,
                r#"{"reasoning":{"effort":"low","summary":"auto"}}"#,
                r#"{"reasoning":{"summary":"auto"}}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"thinking":{"type":"enabled","budget_tokens":9000},"output_config":{"effort":"max"}}"#,
                r#"{"output_config":{}}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"generationConfig":{"thinkingConfig":{"thinkingBudget":-1,"includeThoughts":true}}}"#,
                r#"{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}"#,
            ),
        ] {
            assert_eq!(rewritten(dialect, body, ThinkingBudget::AutoStrip), expected);
        }
    }

    #[test]
    fn another_budget_stands_in_its_place() {
        for (dialect, body, expected) in [
            (Dialect::Openai, r#"{"reasoning_effort":"high"}"#, r#"{"reasoning_effort":"low"}"#),
            (Dialect::Openai, r#"{"reasoning":{"max_tokens":9}}"#, r#"{"reasoning":{"max_tokens":2000}}"#),
            (
                Dialect::Anthropic,
                r#"{"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":9000}}"#,
                r#"{"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":1499}}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}}"#,
                r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}"#,
            ),
        ] {
            assert_eq!(rewritten(dialect, body, CUSTOM), expected);
        }
        let body = r#"{"thinking":{"type":"enabled","budget_tokens":9000}}"#;
        assert_eq!(rewritten(Dialect::Anthropic, body, OFF), r#"{"thinking":{"type":"disabled"}}"#);
        assert_eq!(rewritten(Dialect::Openai, r#"{"reasoning_effort":"low"}"#, OFF), r#"{"reasoning_effort":"none"}"#);
    }

    #[test]
    fn who_says_nothing_or_switches_it_off_is_left_alone() {
        for (dialect, body) in [
            (Dialect::Openai, r#"{"n":1}"#),
            (Dialect::Openai, r#"{"reasoning_effort":"none"}"#),
            (Dialect::Openai, r#"{"chat_template_kwargs":{"thinking":true}}"#),
            (Dialect::Anthropic, r#"{"thinking":{"type":"disabled"}}"#),
            (Dialect::Gemini, r#"{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}"#),
        ] {
            assert_eq!(rewritten(dialect, body, CUSTOM), body);
        }
    }

    #[test]
    fn more_is_thought_where_more_is_asked() {
        let adaptive = ThinkingBudget::Adaptive { budget_tokens: 100_000 };
        let body = |tools: &str, text: &str| {
            format!(
                r#"{{"tools":[{tools}],"max_tokens":64000,"messages":[{{"role":"user","content":"{text}"}}],"thinking":{{"type":"enabled","budget_tokens":5}}}}"#
            )
        };
        let budget = |body: String| rewritten(Dialect::Anthropic, &body, adaptive);
        assert!(budget(body("", "hi")).contains(r#""budget_tokens":1024"#));
        assert!(budget(body("{}", "hi")).contains(r#""budget_tokens":4096"#));
        assert!(budget(body("{}", &"x".repeat(3_000))).contains(r#""budget_tokens":12288"#));
        let least = ThinkingBudget::Adaptive { budget_tokens: 2_000 };
        assert!(rewritten(Dialect::Anthropic, &body("{}", "hi"), least).contains(r#""budget_tokens":2000"#));
    }
}
