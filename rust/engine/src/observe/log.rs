//! The engine's log: JSON lines on standard error, which the supervisor collects. It contains only rare and notable
//! events; each request has a usage record instead.

use tracing::level_filters::LevelFilter;

/// Initializes the log of this process. An existing log remains in use.
pub fn start() {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(LevelFilter::INFO)
        .with_writer(std::io::stderr)
        .finish();
    // An error means that a log already exists.
    let _kept = tracing::subscriber::set_global_default(subscriber);
}
