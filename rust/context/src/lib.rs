//! What of a conversation is sent: engines that make it shorter, and what must survive them. No I/O, no clock, no runtime.
//!
//! Read in this order: [`compress`](mod@compress) (the face: a body in, a body and a report out), [`plan`] with `level` (modes and pipelines), [`session`] (texts that
//! went out before and stay as they went), `tape` and `read` (a body as a `conversation`), `protect` (spans that no engine may touch),
//! `passes` (the stages at work), `gate` (what is checked after each engine), `lines` (outputs of commands, line by line), `marker` (what stands where something was left out),
//! `engines` (one file each), `rtk` (filters by command), `raw` (outputs as they came, for who wants to read them whole). Beside compression, by the operator's settings: [`system_prompt`] (text around the
//! caller's own), [`thinking`] (how much a model may think), [`window`] (the oldest messages go until the rest fits); `edit` makes their
//! changes. `preview` shows a body before and after. Figures are in docs/explanation/context.md.

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
