//! The names of the tools that a request offers, to find a tool among many in constant time. A caller can send as many
//! tools as fit into the body.

use std::collections::{HashMap, HashSet};

use crate::call_form::{CallForm, CallerTool};

#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// The names of all tools, as the provider gets them.
    names: HashSet<String>,
    /// Positions in `caller_tools`, by namespace, form and the caller's name.
    caller_tools: HashMap<(Option<String>, CallForm, String), usize>,
}

impl Offered {
    /// Returns whether a tool has this name at the provider.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the position of a tool that has another name or form in the caller's dialect.
    pub(crate) fn caller_tool(&self, namespace: Option<&str>, form: CallForm, own: &str) -> Option<usize> {
        self.caller_tools.get(&(namespace.map(str::to_owned), form, own.to_owned())).copied()
    }

    /// Adds the name of a tool at the provider.
    pub(crate) fn insert(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// Adds the caller's name of a tool, and its position in `caller_tools`.
    pub(crate) fn insert_caller_tool(&mut self, tool: &CallerTool, at: usize) {
        self.caller_tools.insert((tool.namespace.clone(), tool.form, tool.own.clone()), at);
    }
}
