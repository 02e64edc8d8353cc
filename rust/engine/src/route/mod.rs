//! Routing, from the model name in a request to the ordered targets.
//!
//! - [`model`] resolves the name; [`bare`] resolves a name without a prefix.
//! - [`near_names`] suggests names for an unknown one.
//! - [`permission`] checks which names a key may call.
//! - [`picture`] detects images in a request.
//! - [`choose`] orders the connections of one model with the strategies of [`accounts`].
//! - [`combos`] orders the targets of a combo; [`permitted`] restricts them to a key.
//! - [`choice`] is the result.
//! - [`outbound`] selects the outbound proxy.
//! - [`lease`] handles connections that are leased to one session.
//! - [`segments`] reads a prompt as hashes; [`conversation`] identifies a conversation, and those that stay with the
//!   connection that has them cached; [`prompt_use`] is what a choice keeps of it.
//! - [`affinity`] remembers which target served a session; [`handoff_notes`] stores the notes for the next target.

pub mod accounts;
pub mod affinity;
pub mod bare;
pub mod choice;
pub mod choose;
pub mod combos;
pub mod conversation;
pub mod handoff_notes;
pub mod lease;
pub mod model;
pub mod near_names;
pub mod outbound;
pub mod permission;
pub mod permitted;
pub mod picture;
pub mod prompt_use;
pub mod segments;
