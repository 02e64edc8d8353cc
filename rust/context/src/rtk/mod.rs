//! Filters for the outputs of commands. Those that come with the gateway are data in the folder `filters`; an operator's own are TOML of
//! the same form, and are taken with their hash only.
//!
//! `filter` (one filter, and the choice among them), `output` (a filter at work), `focus` (words that the conversation is about).

mod filter;
mod focus;
mod output;

pub use filter::{built_in_filters, Filter, Filters};
pub(crate) use focus::Focus;
pub(crate) use output::{filtered, Bounds};
