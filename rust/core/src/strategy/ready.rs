//! A combo made ready for decisions, and its candidates.

use super::combo::{Params, Step, Strategy};
use super::facts::Facts;
use super::rules::{Rules, ToolFilter};
use crate::snapshot::Connection;
use std::sync::Arc;

/// The target that a candidate stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// A model, as its provider knows it, over one connection of the snapshot.
    Connection { index: usize, model: Arc<str> },
    /// Another combo, by its place in the book.
    Combo(usize),
}

/// One thing that a combo may try.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub to: To,
    /// Which step of the combo it comes from.
    pub step: usize,
    /// The model with its prefix, as prices and keys know it; a nested combo's name.
    pub name: Arc<str>,
    /// The connection that serves it, with every prefix of its provider; none of a nested combo.
    pub connection: Option<Arc<Connection>>,
    /// The facts that do not change while the snapshot is in use.
    pub known: Facts,
}

/// A combo, ready for decisions.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Stays the same over snapshots.
    pub id: String,
    pub name: String,
    pub strategy: Strategy,
    pub params: Params,
    pub rules: Arc<Rules>,
    /// Of the rules: which tools are sent, by name.
    pub tools: Option<ToolFilter>,
    pub steps: Vec<Step>,
    pub candidates: Vec<Candidate>,
    pub is_auto: bool,
    /// `auto`: the channel had more candidates than it has room for, so a key with fewer models needs a list of its own
    /// ([`super::Book::of_channel`]).
    pub is_cut: bool,
}
