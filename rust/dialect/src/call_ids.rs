//! Assigns ids to tool calls in dialects where a call can lack an id and its result refers to the tool's name.

use std::collections::VecDeque;

use crate::text::Text;

/// Assigns ids to calls without one, and the same ids to their results, matched by name in order.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    /// The prefix of generated ids.
    prefix: String,
    made: usize,
    /// The names and ids of calls without a result so far.
    open: VecDeque<(String, Text<'static>)>,
}

impl CallIds {
    /// `of` distinguishes the ids of this answer from those of others.
    pub(crate) fn of(of: &str) -> Self {
        let plain: String = of.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').take(40).collect();
        let prefix = if plain.is_empty() { "call_".to_owned() } else { format!("call_{plain}_") };
        Self { prefix, ..Self::default() }
    }

    /// Returns the id of a call. Generates one if the call has none.
    pub(crate) fn of_call<'a>(&mut self, id: Option<Text<'a>>, name: &Text<'a>) -> Text<'a> {
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            self.made += 1;
            let prefix = if self.prefix.is_empty() { "call_" } else { &self.prefix };
            format!("{prefix}{}", self.made).into()
        });
        self.open.push_back((name.decode().into_owned(), id.clone().into_owned()));
        id
    }

    /// Returns the id of the call that a result belongs to, by the result's id or its tool's name.
    pub(crate) fn of_result<'a>(&mut self, id: Option<Text<'a>>, name: &Text<'a>) -> Option<Text<'a>> {
        let name = name.decode();
        let is_it = |(called, known): &(String, Text<'static>)| match &id {
            Some(id) => known.decode() == id.decode(),
            None => *called == *name,
        };
        let known = self.open.iter().position(is_it).and_then(|at| self.open.remove(at)).map(|(_, id)| id);
        id.or(known)
    }

    /// Returns the id of the first call without a result, for a result that does not identify its call.
    pub(crate) fn of_next<'a>(&mut self) -> Option<Text<'a>> {
        self.open.pop_front().map(|(_, id)| id)
    }
}
