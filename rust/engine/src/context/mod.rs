//! What the stage that makes conversations shorter needs beside the request: [`plans`] (pipelines by their names, prepared from the
//! snapshot) and [`sessions`] (texts that went out in earlier turns). The stage itself is `call/compression.rs`.

pub mod plans;
pub mod sessions;
