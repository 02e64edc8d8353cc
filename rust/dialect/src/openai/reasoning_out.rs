//! The reasoning members of a chat completion request, according to the model's facts.

use fairlead_core::{Error, ForcedTools, Level, ModelFacts, Thinking};

use crate::accepted::{can_switch_off, forces_tool, level};
use crate::left_out::LeftOut;
use crate::model::{wrong, Effort, Member, Request};
use crate::text::Writer;

/// The reasoning members to send.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reasoning {
    effort: Option<&'static str>,
    /// A dedicated member that enables or disables reasoning.
    switch: Option<(Thinking, bool)>,
    /// The model reasons.
    pub(super) is_on: bool,
}

impl Reasoning {
    pub(super) fn of(request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<Self, Error> {
        let is_asked = request.reasoning.is_some_and(|requested| requested != Effort::Off);
        if facts.thinking == Some(Thinking::Never) {
            if is_asked {
                left_out.hint(request.name_of(Member::Reasoning));
            }
            return Ok(Self::default());
        }
        let needs_off = !request.tools.is_empty() && facts.tools_need_thinking_off == Some(true);
        if needs_off && !can_switch_off(facts) {
            return Err(wrong("tools", "are accepted from this model only by the responses API of its provider"));
        }
        let is_off = needs_off || forces_tool(request) && facts.forced_tools == Some(ForcedTools::WithoutThinking);
        if is_off && is_asked {
            left_out.hint(request.name_of(Member::Reasoning));
        }
        let wanted = if is_off { Some(Effort::Off) } else { request.reasoning };
        let is_on = match wanted {
            Some(effort) => effort != Effort::Off,
            None => facts.thinks_by_default == Some(true),
        };
        let switch = facts.thinking.filter(|kind| matches!(kind, Thinking::Switch | Thinking::EnableThinking));
        let effort = wanted.and_then(|wanted| match &facts.efforts {
            Some(efforts) => level(efforts, wanted).map(Level::name),
            None => effort(wanted),
        });
        let switch = switch.filter(|_| wanted.is_some()).map(|kind| (kind, is_on));
        let is_lost = is_asked || request.reasoning == Some(Effort::Off) && facts.thinks_by_default == Some(true);
        if is_lost && !is_off && effort.is_none() && switch.is_none() {
            left_out.hint(request.name_of(Member::Reasoning));
        }
        Ok(Self { effort, switch, is_on })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        if let Some(effort) = self.effort {
            out.key("reasoning_effort").str(effort);
        }
        match self.switch {
            Some((Thinking::EnableThinking, is_on)) => drop(out.key("enable_thinking").flag(is_on)),
            Some((_, is_on)) => {
                out.key("thinking").open(b'{').key("type").str(if is_on { "enabled" } else { "disabled" }).close(b'}');
            }
            None => {}
        }
    }
}

/// Returns the level of an effort. Disabled reasoning has no level, because a model without reasoning rejects the
/// member.
pub(crate) fn effort(effort: Effort) -> Option<&'static str> {
    Some(match effort {
        Effort::Off => return None,
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Most => "xhigh",
    })
}
