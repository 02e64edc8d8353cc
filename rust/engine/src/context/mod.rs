//! Data for compression: [`plans`] (pipelines by name, prepared from the snapshot), [`sessions`] (compressed texts of
//! earlier turns) and [`raw_outputs`] (original command outputs for their owners). The compression stage itself is
//! `call/conversation/compression.rs`.

pub mod plans;
pub mod raw_outputs;
pub mod sessions;
