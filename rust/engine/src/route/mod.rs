//! Routing: from the model that a caller names to the connections that are tried, in order.

pub mod affinity;
pub mod choice;
pub mod choose;
pub mod combos;
pub mod model;
