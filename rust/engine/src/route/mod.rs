//! Routing, from the model that a caller names to the targets that are tried: [`model`] reads the name, [`choose`] orders the
//! connections of one model by [`accounts`], [`combos`] those of a combo, [`choice`] is the result, [`outbound`] the proxy that it goes
//! through, [`affinity`] remembers who served a session, [`handover_notes`] what was told to who serves it next.

pub mod accounts;
pub mod affinity;
pub mod choice;
pub mod choose;
pub mod combos;
pub mod handover_notes;
pub mod model;
pub mod outbound;
