//! System messages inside a conversation.
//!
//! Both OpenAI dialects accept a system message at any position. There it keeps its position, because moving it would
//! change the beginning of the prompt, which the provider has cached. The other dialects have instructions only at the
//! beginning, so their writers get all of them there.

use fairlead_core::Dialect;

use crate::model::{Content, Part, Request, Role, Turn};
use crate::text::Text;

/// The beginning of a system block that Claude Code adds for Anthropic's billing. It differs in each request, so as the
/// first words of a prompt it prevents every cache hit at other providers.
const BILLING: &str = "x-anthropic-billing-header:";

impl<'a> Request<'a> {
    /// Adds a system message at its position. Before the first turn, it is part of the instructions.
    pub(crate) fn push_system(&mut self, mut parts: Vec<Part<'a>>) {
        if self.turns.is_empty() {
            self.system.append(&mut parts);
        } else {
            self.turns.push(Turn { role: Role::System, parts });
        }
    }

    /// Removes what only another provider reads from the instructions, and moves system messages to the beginning if
    /// the provider's dialect has them only there. Returns the number of turns before the last message that was moved:
    /// they were generated for other instructions.
    pub(crate) fn place_system(&mut self, provider: Dialect) -> usize {
        if provider != Dialect::Anthropic {
            self.leave_out_billing();
        }
        if matches!(provider, Dialect::Openai | Dialect::OpenaiResponses) {
            return 0;
        }
        let (mut before, mut turns) = (0, 0);
        for turn in &mut self.turns {
            if turn.role == Role::System {
                self.system.append(&mut turn.parts);
                before = turns;
            } else {
                turns += 1;
            }
        }
        self.turns.retain(|turn| turn.role != Role::System);
        before
    }

    fn leave_out_billing(&mut self) {
        self.system.retain_mut(|part| match &part.content {
            Content::Text(text) if is_billing(text) => match after_first_line(text) {
                Some(rest) => {
                    part.content = Content::Text(rest.into());
                    true
                }
                None => false,
            },
            _ => true,
        });
    }
}

fn is_billing(text: &Text<'_>) -> bool {
    text.decode().trim_start().starts_with(BILLING)
}

fn after_first_line(text: &Text<'_>) -> Option<String> {
    let text = text.decode();
    let (_, rest) = text.trim_start().split_once('\n')?;
    let rest = rest.trim_start();
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
#[path = "system_turns_tests.rs"]
mod tests;
