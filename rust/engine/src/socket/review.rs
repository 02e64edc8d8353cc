//! Ends a connection of requests when its caller may not call any more, when it has reached its longest life, or with the drain.

use crate::clock;
use crate::gate::request::Admission;
use crate::gate::standing::REVIEW_EVERY;
use crate::shared::Shared;
use crate::socket::outbox::Outbox;
use fairlead_core::{Error, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Close codes (RFC 6455, section 7.4.1).
pub const GOING_AWAY: u16 = 1001;
pub const NOT_ALLOWED: u16 = 1008;
/// How long requests that began before the end of the connection's life may take.
const LAST_REQUESTS: Duration = Duration::from_secs(60);

/// A connection as its review sees it.
pub struct Reviewed {
    pub shared: Arc<Shared>,
    pub admission: Arc<Admission>,
    pub outbox: Arc<Outbox>,
    /// Whether no request runs.
    pub is_idle: Box<dyn Fn() -> bool + Send + Sync>,
    pub opened: Instant,
}

/// Looks at the caller every two seconds. It ends with the connection.
pub async fn run(reviewed: Reviewed) {
    let Reviewed { shared, admission, outbox, is_idle, opened } = reviewed;
    loop {
        tokio::select! {
            () = outbox.closed() => return,
            () = shared.drain.expired() => return outbox.close(GOING_AWAY, "The gateway is shutting down."),
            () = tokio::time::sleep(REVIEW_EVERY.min(life_left(&shared, opened))) => {}
        }
        let renewed = admission.standing.renew(&shared, admission.route, &admission.principal, clock::unix_ms());
        if let Err(fault) = renewed {
            return outbox.close(NOT_ALLOWED, &fault.message);
        }
        let Err(fault) = check_age(&shared, opened) else { continue };
        if is_idle() || opened.elapsed() >= longest(&shared) + LAST_REQUESTS {
            return outbox.close(NOT_ALLOWED, &fault.message);
        }
    }
}

/// The longest that a connection of frames lasts.
pub fn longest(shared: &Shared) -> Duration {
    Duration::from_millis(shared.config.socket_life_ms)
}

/// An error once the connection has reached its longest life.
pub fn check_age(shared: &Shared, opened: Instant) -> Result<(), Error> {
    let longest = longest(shared);
    if opened.elapsed() < longest {
        return Ok(());
    }
    let message = format!("A connection lasts {} s at most: open another.", longest.as_secs_f64());
    Err(Error::client(ErrorKind::RequestTimeout, message))
}

/// Until the end of its life; after that, the usual pause.
fn life_left(shared: &Shared, opened: Instant) -> Duration {
    match longest(shared).saturating_sub(opened.elapsed()) {
        Duration::ZERO => REVIEW_EVERY,
        left => left,
    }
}
