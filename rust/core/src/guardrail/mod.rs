//! Guardrails: what must not be sent to a provider or returned from one, and the action to take.
//!
//! There are three, in order of priority: personal data, prompt injection, credentials. Each is a list of regular
//! expressions that run in linear time. Patterns that random numbers would match also have a check. A guardrail warns
//! (the finding is counted and reported in a header), redacts (the finding is replaced by its kind in brackets) or
//! blocks (the request is refused, or the answer is withheld).
//!
//! [`text`] judges one text. [`body`] judges the texts of a JSON body, which [`walk`] finds by their member [`names`] and
//! `siblings`, and splices the replacements. [`streamed_text`] judges a text that arrives in pieces, with a `scan` for
//! each guardrail, and [`stream`] judges the events that carry them.
//!
//! The findings are defined in `personal`, `injection` and `credential`, as lists of `patterns`. `prefix` recognizes
//! the beginning of a finding, so that streamed text can be held back. `disguise` reads characters that only look
//! different, `number` numbers, `escapes` decodes JSON strings, `encoded` reads text in base64, `lossy` reads bytes that
//! may not be UTF-8, and `event` finds the texts of one stream event. `mask` removes findings from data that is stored
//! for people, and `transcript` assembles a stream for them.

mod body;
mod credential;
mod disguise;
mod encoded;
mod escapes;
mod event;
mod injection;
mod lossy;
mod mask;
mod names;
mod number;
mod patterns;
mod personal;
mod prefix;
mod scan;
mod siblings;
mod stream;
#[cfg(test)]
mod stream_event_tests;
#[cfg(test)]
mod stream_tests;
mod streamed_text;
#[cfg(test)]
mod tests;
mod text;
mod transcript;
mod walk;

pub use body::{judge_body, Judged};
pub use mask::{mask_json, mask_text, MASKING};
pub use stream::{GuardedEvent, StreamGuard};
pub use text::{judge_text, Text};
pub use transcript::Transcript;

use serde::Deserialize;
use smallvec::SmallVec;

/// A guardrail. The variants are in order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guardrail {
    PiiMasker,
    PromptInjection,
    CredentialMasker,
}

impl Guardrail {
    pub const ALL: [Self; 3] = [Self::PiiMasker, Self::PromptInjection, Self::CredentialMasker];

    /// The name that callers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::PiiMasker => "pii-masker",
            Self::PromptInjection => "prompt-injection",
            Self::CredentialMasker => "credential-masker",
        }
    }

    /// A lower value runs first.
    pub fn priority(self) -> u32 {
        match self {
            Self::PiiMasker => 10,
            Self::PromptInjection => 20,
            Self::CredentialMasker => 95,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guardrail| guardrail.name() == name)
    }
}

/// The action on a finding, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    #[default]
    Off,
    Warn,
    Redact,
    Block,
}

impl Action {
    pub const ALL: [Self; 4] = [Self::Off, Self::Warn, Self::Redact, Self::Block];

    /// The name in settings, headers, records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}

/// The guardrails that a call opted out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disabled([bool; 3]);

impl Disabled {
    /// Parses comma-separated names. Unknown names are ignored, because other gateways have other guardrails.
    pub fn parse(text: &str) -> Self {
        Self::of(text.split(',').map(str::trim))
    }

    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut disabled = Self::default();
        for guardrail in names.into_iter().filter_map(Guardrail::from_name) {
            disabled.add(guardrail);
        }
        disabled
    }

    pub fn add(&mut self, guardrail: Guardrail) {
        self.0[guardrail as usize] = true;
    }

    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
        self
    }

    /// Bytes that are equal only for equal sets.
    pub fn bytes(self) -> [u8; 3] {
        self.0.map(u8::from)
    }

    pub fn contains(self, guardrail: Guardrail) -> bool {
        self.0[guardrail as usize]
    }
}

/// The action of each guardrail in one direction: requests or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Actions {
    pub pii_masker: Action,
    pub prompt_injection: Action,
    pub credential_masker: Action,
}

impl Actions {
    /// Parses JSON with an action for each guardrail. An absent guardrail is off.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// Bytes that are equal only for equal actions.
    pub fn bytes(self) -> [u8; 3] {
        [self.pii_masker, self.prompt_injection, self.credential_masker].map(|action| action as u8)
    }

    /// Whether every guardrail is off, so that no text needs to be searched.
    pub fn is_off(self) -> bool {
        self == Self::default()
    }

    pub fn of(self, guardrail: Guardrail) -> Action {
        match guardrail {
            Guardrail::PiiMasker => self.pii_masker,
            Guardrail::PromptInjection => self.prompt_injection,
            Guardrail::CredentialMasker => self.credential_masker,
        }
    }

    /// The stricter action of each guardrail.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        Self {
            pii_masker: self.pii_masker.max(other.pii_masker),
            prompt_injection: self.prompt_injection.max(other.prompt_injection),
            credential_masker: self.credential_masker.max(other.credential_masker),
        }
    }

    #[must_use]
    pub fn without(mut self, disabled: Disabled) -> Self {
        for guardrail in Guardrail::ALL.into_iter().filter(|&guardrail| disabled.contains(guardrail)) {
            match guardrail {
                Guardrail::PiiMasker => self.pii_masker = Action::Off,
                Guardrail::PromptInjection => self.prompt_injection = Action::Off,
                Guardrail::CredentialMasker => self.credential_masker = Action::Off,
            }
        }
        self
    }
}

/// The gateway's guardrails for requests and for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Guardrails {
    pub request: Actions,
    pub answer: Actions,
}

impl Guardrails {
    #[must_use]
    pub fn without(self, disabled: Disabled) -> Self {
        Self { request: self.request.without(disabled), answer: self.answer.without(disabled) }
    }

    /// The stricter action of each guardrail, in both directions.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        Self { request: self.request.strictest(other.request), answer: self.answer.strictest(other.answer) }
    }
}

/// A finding of a guardrail. The text that was found is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    pub guardrail: Guardrail,
    /// The kind of finding, such as `email`.
    pub kind: &'static str,
    pub action: Action,
}

/// Findings, each kind at most once.
pub type Findings = SmallVec<[Finding; 2]>;

/// Adds the findings that are not in the list yet.
pub fn merge(findings: &mut Findings, more: impl IntoIterator<Item = Finding>) {
    for finding in more {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
}

/// The first finding that blocks.
pub fn blocking(findings: &[Finding]) -> Option<Finding> {
    findings.iter().copied().find(|finding| finding.action == Action::Block)
}
