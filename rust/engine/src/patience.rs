//! Time limits for callers, whichever front they use.

use std::time::Duration;

/// A caller that reads nothing for this long counts as gone.
pub const SEND_PATIENCE: Duration = Duration::from_secs(SEND_PATIENCE_S);
pub const SEND_PATIENCE_S: u64 = 300;
/// The minimum average rate of a request body. A body may pause for its idle timeout, but must also arrive at this rate
/// overall.
pub const MIN_BODY_BYTES_PER_S: u64 = 1024;
