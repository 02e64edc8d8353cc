//! Decides which part of a conversation is sent: engines that shorten it, and checks of their results. No I/O, no
//! clock, no runtime.
//!
//! Read the modules in this order:
//! - [`compress`](mod@compress): the entry point, which takes a body and returns a body and a report.
//! - [`plan`] and `level`: modes and pipelines.
//! - [`session`]: texts that were sent earlier and must stay unchanged.
//! - `tape`, `read` and `conversation`: a body as the texts in it.
//! - `protect`: spans that no engine may change.
//! - `passes`: runs the stages.
//! - `gate`: the checks after each engine.
//! - `lines`: command output, line by line.
//! - `marker`: the notes in place of removed text.
//! - `engines`: one file per engine.
//! - `rtk`: filters by command.
//! - `raw`: the original output, for readers who want all of it.
//!
//! The operator's other settings: [`system_prompt`] (text around the caller's own), [`thinking`] (the reasoning budget)
//! and [`window`] (removes the oldest messages until the rest fits). `edit` applies their changes. `preview` shows a
//! body before and after. Measurements are in docs/explanation/context.md.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod compress;
mod conversation;
mod edit;
mod engines;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod gate;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod hostile;
mod level;
mod lines;
mod marker;
mod passes;
mod plan;
mod preview;
#[cfg(test)]
mod property_tests;
mod protect;
mod raw;
mod read;
mod rtk;
mod session;
mod system_prompt;
mod tape;
mod thinking;
mod window;

pub use compress::{compress, Outcome, Report, Unchanged};
pub use conversation::{Piece, Role};
pub use engines::{engine_ids, packs, Pack};
pub use level::Level;
pub use plan::{Mode, Plan, Stage};
pub use preview::preview;
pub use raw::RawOutput;
pub use rtk::{built_in_filters, Filter, Filters};
pub use session::Session;
pub use system_prompt::add_system_prompt;
pub use thinking::rewrite_thinking;
pub use window::{trim_window, Trimmed};
