//! Adapts a request to what a model accepts: reasoning levels, samplers, prompt cache marks. Every writer uses this
//! module.

use fairlead_core::{Level, ModelFacts, Samplers};

use crate::left_out::LeftOut;
use crate::model::{Choice, Content, Effort, Member, Part, Request, Role, Turn};

/// Returns whether the request forces a tool call.
pub(crate) fn forces_tool(request: &Request<'_>) -> bool {
    matches!(request.choice, Some(Choice::Any | Choice::One(_))) && !request.tools.is_empty()
}

/// Returns the accepted level for an effort: the lowest level that is at least the effort, else the highest. `efforts`
/// is sorted.
pub(crate) fn level(efforts: &[Level], effort: Effort) -> Option<Level> {
    let wanted = match effort {
        Effort::Off => return efforts.contains(&Level::None).then_some(Level::None),
        Effort::Minimal => Level::Minimal,
        Effort::Low => Level::Low,
        Effort::Medium => Level::Medium,
        Effort::High => Level::High,
        Effort::Most => Level::Max,
    };
    let mut levels = efforts.iter().copied().filter(|level| *level != Level::None);
    levels.clone().find(|level| *level >= wanted).or_else(|| levels.next_back())
}

/// Returns whether a request can disable the model's reasoning.
pub(crate) fn can_switch_off(facts: &ModelFacts) -> bool {
    facts.efforts.as_ref().is_none_or(|efforts| efforts.contains(&Level::None))
}

/// The samplers to send.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling<'a> {
    pub(crate) temperature: Option<&'a str>,
    pub(crate) top_p: Option<&'a str>,
    pub(crate) top_k: Option<&'a str>,
}

/// Drops the samplers that the model does not accept.
pub(crate) fn sampling<'a>(
    request: &Request<'a>,
    facts: &ModelFacts,
    is_thinking: bool,
    left_out: &mut LeftOut,
) -> Sampling<'a> {
    let requested = Sampling { temperature: request.temperature, top_p: request.top_p, top_k: request.top_k };
    let sent = match facts.samplers.unwrap_or(Samplers::Accepted) {
        Samplers::Refused => Sampling::default(),
        Samplers::WithoutThinking if is_thinking => Sampling::default(),
        Samplers::Accepted | Samplers::WithoutThinking => requested,
        Samplers::One => one_sampler(requested, is_thinking),
    };
    for (member, requested, sent) in [
        (Member::Temperature, requested.temperature, sent.temperature),
        (Member::TopP, requested.top_p, sent.top_p),
        (Member::TopK, requested.top_k, sent.top_k),
    ] {
        if requested.is_some() && sent.is_none() {
            left_out.hint(request.name_of(member));
        }
    }
    sent
}

fn one_sampler(requested: Sampling<'_>, is_thinking: bool) -> Sampling<'_> {
    if !is_thinking {
        let top_p = requested.top_p.filter(|_| requested.temperature.is_none());
        return Sampling { top_p, ..requested };
    }
    let is_wide = |share: &&str| share.parse::<f64>().is_ok_and(|share| share >= 0.95);
    Sampling {
        top_p: requested.top_p.filter(is_wide).filter(|_| requested.temperature.is_none()),
        ..Sampling::default()
    }
}

/// Removes stop sequences beyond the accepted number.
pub(crate) fn limit_stops(request: &mut Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    if let Some(most) = facts.stop_most.filter(|most| request.stop.len() > *most) {
        left_out.hint(request.name_of(Member::Stop));
        request.stop.truncate(most);
    }
}

/// Moves the system prompt to the first turn of the user.
pub(crate) fn move_system(request: &mut Request<'_>) {
    if request.system.is_empty() {
        return;
    }
    match request.turns.first_mut() {
        Some(turn) if turn.role == Role::User => drop(turn.parts.splice(0..0, std::mem::take(&mut request.system))),
        _ => request.turns.insert(0, Turn { role: Role::User, parts: std::mem::take(&mut request.system) }),
    }
}

/// Removes prompt cache marks beyond the accepted number. The first and the last marks are retained: the first one ends
/// the tools or the instructions, and the last ones end the newest turns.
pub(crate) fn limit_cache_marks(request: &mut Request<'_>, most: usize, left_out: &mut LeftOut) {
    let mut marks = Vec::new();
    for tool in &mut request.tools {
        marks.push(&mut tool.cache);
    }
    let turns = request.turns.iter_mut().flat_map(|turn| &mut turn.parts);
    for part in request.system.iter_mut().chain(turns) {
        collect_marks(part, &mut marks);
    }
    marks.retain(|mark| mark.is_some());
    let Some(surplus) = marks.len().checked_sub(most).filter(|surplus| *surplus > 0) else { return };
    left_out.hint("cache_control");
    let first = usize::from(most > 1);
    for mark in marks.iter_mut().skip(first).take(surplus) {
        **mark = None;
    }
}

fn collect_marks<'r, 'a>(part: &'r mut Part<'a>, marks: &mut Vec<&'r mut Option<&'a str>>) {
    if let Content::Result { parts, .. } = &mut part.content {
        for inner in parts {
            collect_marks(inner, marks);
        }
    }
    marks.push(&mut part.cache);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_level_is_sent() {
        use Level::{High, Low, Max, Medium, Minimal, None as Never, Xhigh};
        for (efforts, effort, expected) in [
            (&[Low, Medium, High][..], Effort::Minimal, Some(Low)),
            (&[Low, Medium, High], Effort::Most, Some(High)),
            (&[Low, Medium, High, Max], Effort::Most, Some(Max)),
            (&[Never, Low, Medium, High, Xhigh], Effort::Most, Some(Xhigh)),
            (&[Never, High], Effort::Low, Some(High)),
            (&[Never, High], Effort::Off, Some(Never)),
            (&[Minimal, Low], Effort::Off, None),
            (&[Never], Effort::High, None),
            (&[], Effort::High, None),
        ] {
            assert_eq!(level(efforts, effort), expected, "{efforts:?} {effort:?}");
        }
    }
}
