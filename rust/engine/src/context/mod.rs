//! What the stage that makes conversations shorter needs beside the request: [`plans`] (pipelines by their names, prepared from the
//! snapshot), [`sessions`] (texts that went out in earlier turns) and [`raw_outputs`] (outputs as they came, for their owners). The stage
//! itself is `call/compression.rs`.

pub mod plans;
pub mod raw_outputs;
pub mod sessions;
