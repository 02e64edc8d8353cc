//! Guardrails: what must not go to a provider, or come back from one, and what is done about it.
//!
//! Three of them, run in the order of their priority: personal data, attempts to take over the model, credentials. Each
//! is a list of patterns on an engine whose time is linear in the text, with a check behind every pattern that numbers
//! alone would meet by chance. A guardrail warns (the finding is counted and told in a header), redacts (the finding is
//! replaced by its kind in brackets) or blocks (the request is refused, or the answer is withheld).
//!
//! [`text`] judges one text; [`body`] judges the texts of a JSON body, which [`walk`] finds by the [`names`] above them, and splices what changes;
//! [`streamed_text`] judges a text that comes in pieces, and [`stream`] the events that bring them.
//!
//! What they look for: `personal`, `injection` and `credential`, lists of `patterns`. How a text that comes in pieces is held back:
//! `prefix` (what may begin a finding). How texts are found: `escapes` (JSON strings), `event` (the texts of one stream event).
//! `mask` makes what is kept for people to read free of findings, and `transcript` puts a stream together for them.

mod body;
mod credential;
mod escapes;
mod event;
mod injection;
mod mask;
mod names;
mod patterns;
mod personal;
mod prefix;
mod stream;
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

/// One guardrail. Their order is that of their priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guardrail {
    PiiMasker,
    PromptInjection,
    CredentialMasker,
}

impl Guardrail {
    pub const ALL: [Self; 3] = [Self::PiiMasker, Self::PromptInjection, Self::CredentialMasker];

    /// As callers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PiiMasker => "pii-masker",
            Self::PromptInjection => "prompt-injection",
            Self::CredentialMasker => "credential-masker",
        }
    }

    /// Lower comes first.
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

/// The action on a finding, the strictest last.
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

    /// As settings, headers, records and metrics say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}

/// Which guardrails a call opted out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disabled([bool; 3]);

impl Disabled {
    /// Of names separated by commas. Names that are no guardrail's disable nothing: other gateways have others.
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

    /// A number that is equal for equal sets of guardrails, and for no others.
    pub fn bytes(self) -> [u8; 3] {
        self.0.map(u8::from)
    }

    pub fn contains(self, guardrail: Guardrail) -> bool {
        self.0[guardrail as usize]
    }
}

/// What each guardrail does, on one way: requests or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Actions {
    pub pii_masker: Action,
    pub prompt_injection: Action,
    pub credential_masker: Action,
}

impl Actions {
    /// Of JSON with an action for each guardrail; one that is absent is off.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// A number that is equal for equal actions, and for no others.
    pub fn bytes(self) -> [u8; 3] {
        [self.pii_masker, self.prompt_injection, self.credential_masker].map(|action| action as u8)
    }

    /// Nothing is done: no text needs to be looked at.
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

/// The guardrails of the gateway: what is done with requests, and with answers.
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

    /// The stricter action of each guardrail, both ways.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        Self { request: self.request.strictest(other.request), answer: self.answer.strictest(other.answer) }
    }
}

/// Something that a guardrail found. What it found is nowhere kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    pub guardrail: Guardrail,
    /// The kind of what was found, such as `email`.
    pub kind: &'static str,
    pub action: Action,
}

/// Findings, each kind once.
pub type Findings = SmallVec<[Finding; 2]>;

/// Adds what is not there yet.
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
