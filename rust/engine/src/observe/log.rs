//! The engine's own log: JSON lines on standard error, which the supervisor carries away. Only what is rare and worth a
//! look is logged; what happens per request is a usage record.

use tracing::level_filters::LevelFilter;

/// Starts the log of this process. A process that has one already keeps it.
pub fn start() {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(LevelFilter::INFO)
        .with_writer(std::io::stderr)
        .finish();
    // An error means that there is one already.
    let _kept = tracing::subscriber::set_global_default(subscriber);
}
