//! Ids for calls of tools, in dialects where a call may go without one and its result names the tool alone.

use std::collections::VecDeque;

use crate::text::Text;

/// Calls without an id get one, and the results that follow theirs: by the name, in order.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    /// Before the number of a made id.
    prefix: String,
    made: usize,
    /// Name and id of calls that have no result yet.
    open: VecDeque<(String, Text<'static>)>,
}

impl CallIds {
    /// `of` is what tells this answer from others.
    pub(crate) fn of(of: &str) -> Self {
        let plain: String = of.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').take(40).collect();
        let prefix = if plain.is_empty() { "call_".to_owned() } else { format!("call_{plain}_") };
        Self { prefix, ..Self::default() }
    }

    /// The id of a call, made where it has none.
    pub(crate) fn of_call<'a>(&mut self, id: Option<Text<'a>>, name: &Text<'a>) -> Text<'a> {
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            self.made += 1;
            let prefix = if self.prefix.is_empty() { "call_" } else { &self.prefix };
            format!("{prefix}{}", self.made).into()
        });
        self.open.push_back((name.decode().into_owned(), id.clone().into_owned()));
        id
    }

    /// The id of the call that a result is of, by its id or by its tool's name.
    pub(crate) fn of_result<'a>(&mut self, id: Option<Text<'a>>, name: &Text<'a>) -> Option<Text<'a>> {
        let name = name.decode();
        let is_it = |(called, known): &(String, Text<'static>)| match &id {
            Some(id) => known.decode() == id.decode(),
            None => *called == *name,
        };
        let known = self.open.iter().position(is_it).and_then(|at| self.open.remove(at)).map(|(_, id)| id);
        id.or(known)
    }

    /// The id of the first call that has no result yet, for a result that does not say whose it is.
    pub(crate) fn of_next<'a>(&mut self) -> Option<Text<'a>> {
        self.open.pop_front().map(|(_, id)| id)
    }
}
