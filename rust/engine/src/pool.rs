//! Kept HTTP/1.1 connections, one stack per origin: the connection used last is the one most likely still open.
//!
//! Our own pool rather than a client library's, because an attempt must know whether its connection was fresh or kept (a
//! kept one may turn out closed, and only then is a second try free), and because nothing may retry behind our back.

use crate::body::Sliced;
use crate::connector::{Connector, Origin, Socket};
use crate::task;
use fairlead_core::error::Error;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kept connections per origin; more than this many idle at once are closed.
const MAX_IDLE: usize = 512;
/// How long a connection is kept: below the five seconds after which common servers close theirs.
const MAX_IDLE_AGE: Duration = Duration::from_millis(4_500);
/// The largest header block that is read from a provider.
const MAX_HEADER_BYTES: usize = 64 * 1024;

struct Idle {
    sender: SendRequest<Sliced>,
    since: Instant,
}

/// Threads that have connections of their own; more share.
const MAX_SHELVES: usize = 64;

thread_local! {
    static SHELF: Cell<usize> = const { Cell::new(0) };
}

/// Gives the calling thread connections of its own, by its number from 1: a kept connection is driven by the runtime that
/// dialled it, and a request that borrows it from elsewhere pays for each byte with a wake-up between threads.
pub fn take_shelf(number: usize) {
    SHELF.set(number % MAX_SHELVES);
}

type Shelf = Mutex<HashMap<Arc<Origin>, Vec<Idle>>>;

/// See the module's page.
pub struct Pool {
    connector: Connector,
    idle: [Shelf; MAX_SHELVES],
}

/// A connection checked out for one request. Given back by [`Pool::give_back`]; dropped, it is closed.
#[derive(Debug)]
pub struct Lease {
    pub sender: SendRequest<Sliced>,
    /// It has carried a request before.
    pub is_reused: bool,
    origin: Arc<Origin>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} origins)", self.shelf().lock().len())
    }
}

impl Pool {
    pub fn new(connector: Connector) -> Self {
        Self { connector, idle: std::array::from_fn(|_| Mutex::default()) }
    }

    fn shelf(&self) -> &Shelf {
        &self.idle[SHELF.get()]
    }

    /// A kept connection, if one is open.
    pub fn kept(&self, origin: &Arc<Origin>) -> Option<Lease> {
        let mut idle = self.shelf().lock();
        let stack = idle.get_mut(origin)?;
        while let Some(entry) = stack.pop() {
            if entry.since.elapsed() > MAX_IDLE_AGE {
                // The rest of the stack is older.
                stack.clear();
                return None;
            }
            if !entry.sender.is_closed() {
                return Some(Lease { sender: entry.sender, is_reused: true, origin: Arc::clone(origin) });
            }
        }
        None
    }

    /// A connection that is no HTTP exchange. The caller sets the deadline.
    pub async fn dial(&self, origin: &Arc<Origin>) -> Result<TokioIo<Socket>, Error> {
        self.connector.dial(origin).await
    }

    /// A fresh connection. The caller sets the deadline.
    pub async fn fresh(&self, origin: &Arc<Origin>) -> Result<Lease, Error> {
        let io = self.connector.dial(origin).await?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .max_headers(100)
            .preserve_header_case(false)
            .handshake(io)
            .await
            .map_err(|_| {
                Error::upstream(
                    fairlead_core::error::Kind::UpstreamRefused,
                    fairlead_core::error::Retry::NothingSent,
                    "The provider closed the connection at once.",
                )
            })?;
        // The driver ends by itself when its sender is dropped; its error is seen by whoever waits for the answer.
        task::spawn(async move {
            drop(connection.await);
        });
        Ok(Lease { sender, is_reused: false, origin: Arc::clone(origin) })
    }

    /// Returns a connection whose answer was read to its end.
    pub fn give_back(&self, lease: Lease) {
        if lease.sender.is_closed() {
            return;
        }
        let mut idle = self.shelf().lock();
        let stack = idle.entry(lease.origin).or_default();
        if stack.len() < MAX_IDLE {
            stack.push(Idle { sender: lease.sender, since: Instant::now() });
        }
    }

    /// Closes what has been idle too long. Called about once a second.
    pub fn sweep(&self) {
        for shelf in &self.idle {
            shelf.lock().retain(|_, stack| {
                stack.retain(|entry| entry.since.elapsed() <= MAX_IDLE_AGE && !entry.sender.is_closed());
                !stack.is_empty()
            });
        }
    }
}
