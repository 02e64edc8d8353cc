//! Filters for the output of commands. Built-in filters are data files in the folder `filters`. An operator's own
//! filters are TOML in the same format, and are accepted only with their hash.
//!
//! `filter` is one filter and the choice among them, `output` applies a filter, and `focus` finds the words that the
//! conversation is about.

mod filter;
mod focus;
mod output;

pub use filter::{built_in_filters, Filter, Filters};
pub(crate) use focus::Focus;
pub(crate) use output::{filtered, Bounds};
