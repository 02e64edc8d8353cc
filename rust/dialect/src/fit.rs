//! Fits a request to the operator's output cap and to servers that control reasoning through the chat template.
//!
//! A translated request is changed in the model. A request that passes through is edited in its bytes: only the
//! affected members are rewritten, and an unaffected request passes unchanged.

use std::ops::Range;

use bytes::Bytes;
use fairlead_core::json::{self, Kind, Value, MAX_DEPTH};
use fairlead_core::{CapMember, Dialect, ModelFacts, Thinking};
use smallvec::SmallVec;

use crate::cache_hints::CacheHints;
use crate::foreign;
use crate::model::{Effort, Request};
use crate::prompt_cache_edits;
use crate::text::Text;

/// The limits and settings of one call that a request must fit. The default changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a call and its connection")]
pub struct Fit {
    /// The maximum output in tokens, for dialects that require one.
    pub most: Option<u64>,
    /// The operator's output cap in tokens. Higher values are lowered to it, and a request without a limit gets it.
    pub cap: Option<u64>,
    /// The server controls reasoning through the chat template. Only for chat completions.
    pub is_templated: bool,
    /// The provider rejects earlier tool calls without the reasoning before them. Only for chat completions.
    pub replays_reasoning: bool,
    /// The gateway wrote the body for a caller of another dialect, so it is adapted to the facts like a translated one.
    pub is_rewritten: bool,
    /// Members that the destination does not accept are dropped instead of rejected, even if that changes the answer.
    pub drops: bool,
    /// How the conversation uses the provider's prompt cache.
    pub cache: CacheHints,
    /// The gateway changed the conversation in a way that differs from turn to turn, so reasoning of earlier turns was
    /// generated for another conversation.
    pub is_edited: bool,
}

impl Fit {
    /// Returns whether the provider would reject the reasoning of earlier turns.
    pub(crate) fn unbinds_thinking(&self, facts: &ModelFacts) -> bool {
        self.is_edited && facts.binds_thinking == Some(true)
    }
}

/// The model that a request is sent to, and what it accepts.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'d> {
    /// The model's name at the provider.
    pub model: &'d str,
    /// The limits of this request.
    pub fit: &'d Fit,
    /// The catalogue's facts about the model.
    pub facts: &'d ModelFacts,
}

/// The bytes that replace a span.
pub(crate) type Edit = (Range<usize>, Bytes);
pub(crate) type Edits = SmallVec<[Edit; 4]>;

/// The start of the instructions with which a coding tool asks a model whether an action is allowed.
const CLASSIFIER: &str = "You are a security monitor for autonomous AI coding agents";
/// The members by which a messages request controls reasoning.
const CONTROLS: [&str; 6] =
    ["thinking", "reasoning", "reasoning_effort", "chat_template_kwargs", "enable_thinking", "output_config"];
const SWITCHES: [&str; 2] = ["thinking", "enable_thinking"];
const SWITCHED_OFF: &str = r#""thinking":false,"enable_thinking":false"#;
/// The minimum reasoning budget in tokens.
const LEAST_BUDGET: u64 = 1_024;

/// Returns the edits to a body that passes through. A member of the wrong type is left for the provider to reject.
pub(crate) fn edits(form: Dialect, is_completion: bool, body: &[u8], to: Destination<'_>) -> Edits {
    let fit = to.fit;
    let mut edits = Edits::new();
    if let Some(cap) = fit.cap {
        match form {
            Dialect::Openai if is_completion => lower(body, &["max_tokens"], cap, &mut edits),
            Dialect::Openai if to.facts.cap_member == Some(CapMember::MaxTokens) => {
                lower(body, &["max_tokens", "max_completion_tokens"], cap, &mut edits);
            }
            Dialect::Openai => lower(body, &["max_completion_tokens", "max_tokens"], cap, &mut edits),
            Dialect::OpenaiResponses => {
                let cap = cap.max(to.facts.output_least.unwrap_or(0));
                lower(body, &["max_output_tokens"], cap, &mut edits);
            }
            Dialect::Anthropic => {
                lower(body, &["max_tokens"], cap, &mut edits);
                lower_budget(body, cap, &mut edits);
            }
            Dialect::Gemini => lower_gemini(body, cap, &mut edits),
        }
    }
    if form == Dialect::Openai && fit.is_templated && !is_completion {
        switch_off(body, &mut edits);
    }
    // Models that always reason, or never do, refuse the switch.
    let has_switch = !matches!(to.facts.thinking, Some(Thinking::Always | Thinking::Never));
    if form == Dialect::Anthropic && has_switch && is_classifier(body) {
        insert(body, r#""thinking":{"type":"disabled"}"#, &mut edits);
    }
    let foreign = match form {
        Dialect::Anthropic if fit.unbinds_thinking(to.facts) => foreign::without_thinking(body).into_iter().collect(),
        _ => foreign::edits(form, body),
    };
    // A conversation without another vendor's reasoning is written again as a whole, and nobody has it cached.
    if foreign.is_empty() && !is_completion {
        edits.extend(prompt_cache_edits::edits(form, body, fit.cache, to.facts));
    }
    edits.extend(foreign);
    edits.sort_by_key(|(span, _)| span.start);
    edits
}

/// Fits a translated request. `cap` is the cap as text.
pub(crate) fn adapt<'a>(request: &mut Request<'a>, body: &[u8], cap: Option<&'a str>) {
    if let Some(cap) = cap {
        let is_less = |limit: &str| limit.parse::<u64>().is_ok_and(|limit| cap.parse().is_ok_and(|cap| limit <= cap));
        request.max_tokens = Some(request.max_tokens.filter(|limit| is_less(limit)).unwrap_or(cap));
    }
    if request.form == Dialect::Anthropic && request.reasoning.is_none() && is_classifier(body) {
        request.reasoning = Some(Effort::Off);
    }
}

/// Returns the chat template arguments for a request in another dialect: the caller's own, or those that disable
/// reasoning.
pub(crate) fn template_words<'a>(request: &Request<'a>) -> Option<&'a str> {
    let extra = request.extras.iter().find(|(name, _)| name == "chat_template_kwargs").map(|(_, value)| *value);
    extra.or((request.reasoning == Some(Effort::Off)).then_some(r#"{"thinking":false,"enable_thinking":false}"#))
}

/// Returns whether this is a messages request of a coding tool's classifier without reasoning controls. A single search
/// rules out most bodies.
fn is_classifier(body: &[u8]) -> bool {
    if memchr::memmem::find(body, CLASSIFIER.as_bytes()).is_none() {
        return false;
    }
    let wanted = ["system", CONTROLS[0], CONTROLS[1], CONTROLS[2], CONTROLS[3], CONTROLS[4], CONTROLS[5]];
    let Ok(scan) = json::scan_object(body, &wanted, MAX_DEPTH) else { return false };
    let says = |name: &&str| {
        let Some(value) = scan.get(name).filter(|value| !value.is_null()) else { return false };
        // Only its `effort` controls reasoning; the answer format is in the same member.
        *name != "output_config" || has_effort(body, value)
    };
    if CONTROLS.iter().any(says) {
        return false;
    }
    scan.get("system").and_then(|value| body.get(value.span())).is_some_and(is_marked)
}

fn has_effort(body: &[u8], config: Value) -> bool {
    let inner = body.get(config.span()).unwrap_or_default();
    json::scan_object(inner, &["effort"], MAX_DEPTH)
        .is_ok_and(|scan| scan.get("effort").is_some_and(|effort| !effort.is_null()))
}

/// Returns whether the instructions, a string or text blocks, have a text that starts with the mark.
fn is_marked(system: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Block<'a> {
        #[serde(borrow, default)]
        text: Option<Text<'a>>,
    }
    let begins = |text: &Text<'_>| text.decode().trim_start().starts_with(CLASSIFIER);
    if let Ok(blocks) = serde_json::from_slice::<Vec<Block<'_>>>(system) {
        return blocks.iter().filter_map(|block| block.text.as_ref()).any(begins);
    }
    serde_json::from_slice::<Text<'_>>(system).is_ok_and(|text| begins(&text))
}

/// Lowers limits above the cap. If no member sets a limit, the first one is set to the cap.
fn lower<const N: usize>(body: &[u8], names: &[&str; N], cap: u64, edits: &mut Edits) {
    let Ok(scan) = json::scan_object(body, names, MAX_DEPTH) else { return };
    let mut is_said = false;
    for value in names.iter().filter_map(|name| scan.get(name)) {
        if value.is_null() {
            continue;
        }
        is_said = true;
        if json::as_u64(body, value).is_some_and(|limit| limit > cap) {
            edits.push((value.span(), number(cap)));
        }
    }
    if is_said {
        return;
    }
    match names.iter().find_map(|name| scan.get(name)) {
        Some(null) => edits.push((null.span(), number(cap))),
        None => insert(body, &format!(r#""{}":{cap}"#, names[0]), edits),
    }
}

/// Lowers the reasoning budget, which is part of the output and must be below the output limit.
fn lower_budget(body: &[u8], cap: u64, edits: &mut Edits) {
    let Ok(scan) = json::scan_object(body, &["thinking"], MAX_DEPTH) else { return };
    let Some(thinking) = scan.get("thinking").filter(|value| value.kind == Kind::Object) else { return };
    let inner = body.get(thinking.span()).unwrap_or_default();
    let Ok(scan) = json::scan_object(inner, &["budget_tokens"], MAX_DEPTH) else { return };
    let Some(budget) = scan.get("budget_tokens") else { return };
    if cap > LEAST_BUDGET && json::as_u64(inner, budget).is_some_and(|budget| budget >= cap) {
        edits.push((thinking.start + budget.start..thinking.start + budget.end, number(cap - 1)));
    }
}

fn lower_gemini(body: &[u8], cap: u64, edits: &mut Edits) {
    let wanted = ["generationConfig", "generation_config"];
    let Ok(scan) = json::scan_object(body, &wanted, MAX_DEPTH) else { return };
    let config = wanted.iter().find_map(|name| scan.get(name));
    match config {
        None => insert(body, &format!(r#""generationConfig":{{"maxOutputTokens":{cap}}}"#), edits),
        Some(null) if null.is_null() => {
            edits.push((null.span(), Bytes::from(format!(r#"{{"maxOutputTokens":{cap}}}"#))));
        }
        Some(config) if config.kind == Kind::Object => {
            let mut inner = Edits::new();
            let names = ["maxOutputTokens", "max_output_tokens"];
            lower(body.get(config.span()).unwrap_or_default(), &names, cap, &mut inner);
            edits.extend(inner.into_iter().map(|(span, text)| {
                let range = config.start + span.start..config.start + span.end;
                (range, text)
            }));
        }
        Some(_) => {}
    }
}

/// Replaces an effort of `none` by template arguments that disable reasoning, unless the caller sets them.
fn switch_off(body: &[u8], edits: &mut Edits) {
    let wanted = ["reasoning_effort", "chat_template_kwargs"];
    let Ok(scan) = json::scan_object(body, &wanted, MAX_DEPTH) else { return };
    let Some(effort) = scan.get("reasoning_effort") else { return };
    if json::as_str(body, effort).is_none_or(|effort| effort != "none") {
        return;
    }
    let Some(member) = member_at(body, effort) else { return };
    let words = scan.get("chat_template_kwargs");
    let Some(words) = words else {
        let text = format!(r#""chat_template_kwargs":{{{SWITCHED_OFF}}}"#);
        return edits.push((member, Bytes::from(text)));
    };
    let inner = body.get(words.span()).unwrap_or_default();
    if words.is_null() {
        edits.push((words.span(), Bytes::from(format!("{{{SWITCHED_OFF}}}"))));
    } else if let Ok(switches) = json::scan_object(inner, &SWITCHES, MAX_DEPTH) {
        if SWITCHES.iter().all(|name| switches.get(name).is_none()) {
            let text = if switches.is_empty() { SWITCHED_OFF.to_owned() } else { format!(",{SWITCHED_OFF}") };
            let range = words.start + switches.close();
            edits.push((range..range, Bytes::from(text)));
        }
    }
    edits.push((with_comma(body, member), Bytes::new()));
}

/// Returns the span of the member with this value, including its name. The name must have no escapes.
pub(crate) fn member_at(body: &[u8], value: Value) -> Option<Range<usize>> {
    let before = body.get(..value.start)?;
    let colon = memchr::memrchr(b':', before)?;
    let close = memchr::memrchr(b'"', before.get(..colon)?)?;
    let open = memchr::memrchr(b'"', before.get(..close)?)?;
    Some(open..value.end)
}

/// Extends a member's span by one adjacent comma.
pub(crate) fn with_comma(body: &[u8], member: Range<usize>) -> Range<usize> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let after = body.get(member.end..).unwrap_or_default();
    let next = after.iter().position(|byte| !is_blank(byte)).unwrap_or(0);
    if after.get(next) == Some(&b',') {
        return member.start..member.end + next + 1;
    }
    let before = body.get(..member.start).unwrap_or_default();
    match before.iter().rposition(|byte| !is_blank(byte)) {
        Some(comma) if before.get(comma) == Some(&b',') => comma..member.end,
        _ => member,
    }
}

/// Inserts a member at the end of the body's object.
pub(crate) fn insert(body: &[u8], member: &str, edits: &mut Edits) {
    let Ok(scan) = json::scan_object(body, &[""; 0], MAX_DEPTH) else { return };
    let comma = if scan.is_empty() { "" } else { "," };
    edits.push((scan.close()..scan.close(), Bytes::from(format!("{comma}{member}"))));
}

fn number(value: u64) -> Bytes {
    Bytes::from(value.to_string())
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
