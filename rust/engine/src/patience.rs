//! How long callers are waited for, by whichever front they came.

use std::time::Duration;

/// A caller that takes no byte of what is to be sent for this long has left.
pub const SEND_PATIENCE: Duration = Duration::from_secs(SEND_PATIENCE_S);
pub const SEND_PATIENCE_S: u64 = 300;
/// A body may be silent for its idle time; over its whole length it must also come at this rate.
pub const MIN_BODY_BYTES_PER_S: u64 = 1024;
