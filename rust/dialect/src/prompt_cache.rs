//! Adds what lets a provider read a conversation from its prompt cache on the next turn: a cache key in both OpenAI
//! dialects, cache marks in messages and at chat providers that accept them.
//!
//! A request in which the caller controls the cache itself is not changed. In a translated request the marks are set in
//! the model; a body that passes through gets them as insertions.

use std::borrow::Cow;

use fairlead_core::{Dialect, ModelFacts};

use crate::cache_hints::{KEY, MARK, USUAL_MARKS};
use crate::model::{Content, Part, Request, Role};
use crate::portable_id::is_blank;

/// The newest user turns that get a mark. The last one is for the next request, the one before it is the last one of
/// the previous request, so it is read now.
const MARKED_TURNS: usize = 2;

/// Adds the key and the marks to a translated request, unless the caller has set one of them. `key` is from
/// `CacheHints::key_for`, `most` is the number of marks from `CacheHints::marks_for`.
pub(crate) fn add<'a>(
    request: &mut Request<'a>,
    provider: Dialect,
    facts: &ModelFacts,
    most: usize,
    key: Option<&'a str>,
) {
    if let Some(key) = key.filter(|_| !request.shared.iter().any(|(name, _)| name == KEY)) {
        request.shared.push((Cow::Borrowed(KEY), key));
    }
    let automatic = take_automatic(request, provider, facts);
    let most = automatic.map_or(most, |_| facts.cache_marks.unwrap_or(USUAL_MARKS).min(USUAL_MARKS));
    if most > 0 && !has_marks(request) {
        Marks { left: most, text: automatic.unwrap_or(MARK), is_chat: provider == Dialect::Openai }.set(request);
    }
}

/// Removes the caller's top-level `cache_control`, which leaves the placement of marks to the provider, and returns its
/// value. Only for a provider that accepts marks.
fn take_automatic<'a>(request: &mut Request<'a>, provider: Dialect, facts: &ModelFacts) -> Option<&'a str> {
    let has_marks = match provider {
        Dialect::Anthropic => true,
        Dialect::Openai => facts.cache_marks.is_some_and(|most| most > 0),
        _ => false,
    };
    let at = request.extras.iter().position(|(name, _)| name == "cache_control").filter(|_| has_marks)?;
    Some(request.extras.remove(at).1)
}

fn has_marks(request: &Request<'_>) -> bool {
    let of_part = |part: &Part<'_>| {
        part.cache.is_some()
            || matches!(&part.content, Content::Result { parts, .. } if parts.iter().any(|part| part.cache.is_some()))
    };
    request.tools.iter().any(|tool| tool.cache.is_some())
        || request.system.iter().any(of_part)
        || request.turns.iter().flat_map(|turn| &turn.parts).any(of_part)
}

/// The marks to set.
struct Marks<'m> {
    left: usize,
    text: &'m str,
    /// A chat provider has marks only in text parts.
    is_chat: bool,
}

impl<'a> Marks<'a> {
    /// Sets the marks: after the newest user turns, then after the instructions and the tools.
    fn set(mut self, request: &mut Request<'a>) {
        // Consecutive user turns are one message at the provider.
        let mut runs: Vec<_> = request.turns.chunk_by_mut(|one, next| one.role == next.role).collect();
        let newest = runs.iter_mut().rev().filter(|run| run.first().is_some_and(|turn| turn.role == Role::User));
        for run in newest.take(MARKED_TURNS) {
            let mut parts = run.iter_mut().rev().flat_map(|turn| turn.parts.iter_mut().rev());
            let _is_set = parts.any(|part| self.set_on(part));
        }
        let _is_set = request.system.iter_mut().rev().any(|part| self.set_on(part));
        if let Some(tool) = request.tools.last_mut().filter(|_| self.left > 0 && !self.is_chat) {
            tool.cache = Some(self.text);
        }
    }

    /// Returns whether the part got the mark.
    fn set_on(&mut self, part: &mut Part<'a>) -> bool {
        if self.left == 0 {
            return true;
        }
        let is_fit = match &mut part.content {
            Content::Text(text) => !is_blank(text),
            Content::Result { parts, .. } if self.is_chat => {
                return parts.iter_mut().rev().any(|part| self.set_on(part));
            }
            Content::Result { .. } | Content::Image(_) | Content::Document { .. } => !self.is_chat,
            _ => false,
        };
        if is_fit {
            part.cache = Some(self.text);
            self.left -= 1;
        }
        is_fit
    }
}

#[cfg(test)]
#[path = "prompt_cache_tests.rs"]
mod tests;
