//! Renames tools whose names the provider does not accept, and restores the caller's names in the answer. Tools that
//! have another form in the caller's dialect are stored here as well; the writer of the answer restores their form.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use fairlead_core::{Letters, NameRule};

use crate::call_form::CallerTool;
use crate::model::{Answer, Choice, Content, Event, Request};
use crate::portable_id::fitted;
use crate::text::Text;

/// The tools that were sent under other names or in another form, each with the caller's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames(Option<Arc<Vec<CallerTool>>>);

/// The names that most servers of OpenAI's dialects accept.
pub(crate) const OPENAI: NameRule = NameRule { most: 64, letters: Letters::Word };
pub(crate) const ANTHROPIC: NameRule = NameRule { most: 128, letters: Letters::Word };
pub(crate) const GEMINI: NameRule = NameRule { most: 64, letters: Letters::Identifier };

impl ToolNames {
    /// Renames the tools of a request that violate the rule.
    pub(crate) fn fit(request: &mut Request<'_>, rule: NameRule) -> Self {
        let mut renamed = std::mem::take(&mut request.caller_tools);
        for tool in &mut renamed {
            if let Cow::Owned(sent) = fitted(&tool.sent, rule) {
                tool.sent = sent;
            }
        }
        let mut renamed = Renamed { known: renamed.iter().map(|tool| tool.sent.clone()).collect(), tools: renamed };
        for tool in &mut request.tools {
            change(&mut tool.name, rule, &mut renamed);
        }
        if let Some(Choice::One(name)) = &mut request.choice {
            change(name, rule, &mut renamed);
        }
        // Calls of earlier turns may name tools that are no longer offered.
        for part in request.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
            if let Content::Call(call) = &mut part.content {
                change(&mut call.name, rule, &mut renamed);
            }
        }
        Self((!renamed.tools.is_empty()).then(|| Arc::new(renamed.tools)))
    }

    /// Merges both sets of names. If several providers are tried, the answer can come from any of them.
    #[must_use]
    pub fn joined(self, other: &Self) -> Self {
        let (Some(own), Some(others)) = (&self.0, &other.0) else {
            return if self.0.is_some() { self } else { other.clone() };
        };
        if own == others {
            return self;
        }
        Self(Some(Arc::new(own.iter().chain(others.iter()).cloned().collect())))
    }

    /// Returns the caller's name of a renamed tool.
    pub(crate) fn own(&self, sent: &Text<'_>) -> Option<Text<'static>> {
        let tool = self.find(sent).filter(|tool| tool.is_renamed_only())?;
        Some(tool.own.clone().into())
    }

    /// Returns a tool that has another form in the caller's dialect.
    pub(crate) fn caller_tool(&self, sent: &Text<'_>) -> Option<&CallerTool> {
        self.find(sent).filter(|tool| !tool.is_renamed_only())
    }

    fn find(&self, sent: &Text<'_>) -> Option<&CallerTool> {
        let tools = self.0.as_ref()?;
        let sent = sent.decode();
        tools.iter().find(|tool| tool.sent == *sent)
    }

    /// Restores the caller's names in a complete answer.
    pub(crate) fn restore(&self, answer: &mut Answer<'_>) {
        if self.0.is_none() {
            return;
        }
        for part in &mut answer.parts {
            if let Content::Call(call) = &mut part.content {
                if let Some(own) = self.own(&call.name) {
                    call.name = own;
                }
            }
        }
    }
}

/// Completes an event of a stream: adds an id if the provider gave none, and restores the caller's tool names.
pub(crate) fn name_as_caller(event: &mut Event<'_>, id: &str, names: &ToolNames) {
    match event {
        Event::Start { id: own, .. } if own.as_ref().is_none_or(Text::is_empty) => *own = Some(id.to_owned().into()),
        Event::Call { name, .. } => {
            if let Some(own) = names.own(name) {
                *name = own;
            }
        }
        _ => {}
    }
}

/// The tools with another name, and their names at the provider.
struct Renamed {
    known: HashSet<String>,
    tools: Vec<CallerTool>,
}

fn change(name: &mut Text<'_>, rule: NameRule, renamed: &mut Renamed) {
    let own = name.decode();
    let Cow::Owned(sent) = fitted(&own, rule) else { return };
    if renamed.known.insert(sent.clone()) {
        renamed.tools.push(CallerTool::renamed(sent.clone(), own.into_owned()));
    }
    *name = sent.into();
}
