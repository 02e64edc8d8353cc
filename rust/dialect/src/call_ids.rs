//! Assigns ids to tool calls in dialects where a call can lack an id and its result refers to the tool's name.

use std::collections::{HashMap, VecDeque};

use crate::text::Text;

/// Assigns ids to calls without one, and the same ids to their results, matched by name in order.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    /// The prefix of generated ids.
    prefix: String,
    made: usize,
    /// The ids of all calls; `None` for those with a result.
    calls: Vec<Option<Text<'static>>>,
    /// The first call that may be without a result.
    first: usize,
    /// The calls of each name and of each id, in order. Some have a result.
    by_name: HashMap<String, VecDeque<usize>>,
    by_id: HashMap<String, VecDeque<usize>>,
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
        let at = self.calls.len();
        self.by_name.entry(name.decode().into_owned()).or_default().push_back(at);
        self.by_id.entry(id.decode().into_owned()).or_default().push_back(at);
        self.calls.push(Some(id.clone().into_owned()));
        id
    }

    /// Returns the id of the call that a result belongs to, by the result's id or its tool's name.
    pub(crate) fn of_result<'a>(&mut self, id: Option<Text<'a>>, name: &Text<'a>) -> Option<Text<'a>> {
        let same = match &id {
            Some(id) => self.by_id.get_mut(&*id.decode()),
            None => self.by_name.get_mut(&*name.decode()),
        };
        let calls = &mut self.calls;
        let known = same.and_then(|same| std::iter::from_fn(|| same.pop_front()).find_map(|at| calls[at].take()));
        id.or(known)
    }

    /// Returns the id of the first call without a result, for a result that does not identify its call.
    pub(crate) fn of_next<'a>(&mut self) -> Option<Text<'a>> {
        while let Some(call) = self.calls.get_mut(self.first) {
            self.first += 1;
            if let Some(id) = call.take() {
                return Some(id);
            }
        }
        None
    }
}
