//! Closes a connection of requests when its caller loses access, when it reaches its maximum lifetime, or when the
//! gateway drains.

use crate::clock;
use crate::gate::admission_proof::REVIEW_EVERY;
use crate::gate::request::Admission;
use crate::shared::Shared;
use crate::socket::outbox::Outbox;
use fairlead_core::{Error, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Close codes (RFC 6455, section 7.4.1).
pub const GOING_AWAY: u16 = 1001;
pub const NOT_ALLOWED: u16 = 1008;
/// The time limit for requests that started before the end of the connection's lifetime.
const LAST_REQUESTS: Duration = Duration::from_secs(60);

/// The data of a connection that its review needs.
pub struct Reviewed {
    pub shared: Arc<Shared>,
    pub admission: Arc<Admission>,
    pub outbox: Arc<Outbox>,
    /// Whether no request is in progress.
    pub is_idle: Box<dyn Fn() -> bool + Send + Sync>,
    pub opened: Instant,
}

/// Checks the caller every two seconds, until the connection ends.
pub async fn run(reviewed: Reviewed) {
    let Reviewed { shared, admission, outbox, is_idle, opened } = reviewed;
    loop {
        tokio::select! {
            () = outbox.closed() => return,
            () = shared.drain.expired() => return outbox.close(GOING_AWAY, "The gateway is shutting down."),
            () = tokio::time::sleep(REVIEW_EVERY.min(life_left(&shared, opened))) => {}
        }
        let renewed = admission.proof.renew(&shared, admission.route, &admission.principal, clock::unix_ms());
        if let Err(fault) = renewed {
            return outbox.close(NOT_ALLOWED, &fault.message);
        }
        let Err(fault) = check_age(&shared, opened) else { continue };
        if is_idle() || opened.elapsed() >= longest(&shared) + LAST_REQUESTS {
            return outbox.close(NOT_ALLOWED, &fault.message);
        }
    }
}

/// The maximum lifetime of a connection of frames.
pub fn longest(shared: &Shared) -> Duration {
    Duration::from_millis(shared.config.socket_life_ms)
}

/// Returns an error once the connection has reached its maximum lifetime.
pub fn check_age(shared: &Shared, opened: Instant) -> Result<(), Error> {
    let longest = longest(shared);
    if opened.elapsed() < longest {
        return Ok(());
    }
    let message = format!("A connection lasts {} s at most: open another.", longest.as_secs_f64());
    Err(Error::client(ErrorKind::RequestTimeout, message))
}

/// The time left until the maximum lifetime; afterwards the usual interval.
fn life_left(shared: &Shared, opened: Instant) -> Duration {
    match longest(shared).saturating_sub(opened.elapsed()) {
        Duration::ZERO => REVIEW_EVERY,
        left => left,
    }
}
