//! Routing, from the model that a caller names to the targets that are tried: [`model`] reads the name, [`bare`] one without a
//! prefix, [`near_names`] finds what was meant by one that nothing has, [`permission`] says which names a key may ask for, [`picture`] looks whether there is one in the request, [`choose`] orders the
//! connections of one model by [`accounts`], [`combos`] those of a combo ([`permitted`]: as far as a key may use them), [`choice`] is the result, [`outbound`] the proxy that it goes
//! through, [`lease`] which connections are one session's alone, [`affinity`] remembers who served a session, [`handover_notes`] what was told to who serves it next.

pub mod accounts;
pub mod affinity;
pub mod bare;
pub mod choice;
pub mod choose;
pub mod combos;
pub mod handover_notes;
pub mod lease;
pub mod model;
pub mod near_names;
pub mod outbound;
pub mod permission;
pub mod permitted;
pub mod picture;
