//! What of a conversation is sent: engines that make it shorter, and what must survive them. No I/O, no clock, no runtime.
//!
//! Read in this order: [`compress`](mod@compress) (the face: a body in, a body and a report out), [`plan`] with `level` (modes and pipelines), [`session`] (texts that
//! went out before and stay as they went), `tape` and `read` (a body as a `conversation`), `protect` (spans that no engine may touch),
//! `gate` (what is checked after each engine), `lines` (outputs of commands, line by line), `marker` (what stands where something was left out),
//! `engines` (one file each), `rtk` (filters by command), `raw` (outputs as they came, for who wants to read them whole). Beside compression, by the operator's settings: [`system_prompt`] (text around the
//! caller's own), [`thinking`] (how much a model may think), [`window`] (the oldest messages go until the rest fits); `edit` makes their
//! changes. [`preview`] shows a body before and after. Figures are in docs/explanation/context.md.

#![forbid(unsafe_code)]

pub mod compress;
mod conversation;
mod edit;
mod engines;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod gate;
mod level;
mod lines;
mod marker;
pub mod plan;
pub mod preview;
#[cfg(test)]
mod property_tests;
mod protect;
mod raw;
mod read;
pub mod rtk;
pub mod session;
pub mod system_prompt;
mod tape;
pub mod thinking;
pub mod window;

pub use crate::compress::{compress, Outcome, Report, Unchanged};
pub use crate::conversation::{Piece, Role};
pub use crate::engines::engine_ids;
pub use crate::engines::pack::{packs, Pack};
pub use crate::level::Level;
pub use crate::plan::{Mode, Plan, Stage};
pub use crate::raw::RawOutput;
pub use crate::session::Session;
