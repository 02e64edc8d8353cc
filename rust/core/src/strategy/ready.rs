//! A compiled combo and its candidates.

use super::combo::{Params, Step, Strategy};
use super::facts::Facts;
use super::rules::{Rules, ToolFilter};
use crate::snapshot::Connection;
use std::sync::Arc;

/// The target of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// A model by its name at the provider, over one connection of the snapshot.
    Connection { index: usize, model: Arc<str> },
    /// Another combo, by index in the book.
    Combo(usize),
}

/// One possible target of a combo.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub to: To,
    /// The step of the combo that the candidate comes from.
    pub step: usize,
    /// The model with its prefix, as used in prices and keys, or the name of a nested combo.
    pub name: Arc<str>,
    /// The connection that serves the model, with every prefix of its provider. `None` for a nested combo.
    pub connection: Option<Arc<Connection>>,
    /// The facts that are constant within a snapshot.
    pub known: Facts,
}

/// A compiled combo.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Stable across snapshots.
    pub id: String,
    pub name: String,
    pub strategy: Strategy,
    pub params: Params,
    pub rules: Arc<Rules>,
    /// Selects the tools that are sent, from the combo's rules.
    pub tools: Option<ToolFilter>,
    pub steps: Vec<Step>,
    pub candidates: Vec<Candidate>,
    pub is_auto: bool,
    /// `auto`: the channel had more candidates than fit. A key with restricted models needs a list filled for it
    /// ([`super::Book::of_channel`]).
    pub is_cut: bool,
}
