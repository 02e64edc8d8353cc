//! Kept HTTP/1.1 connections, one stack per origin: the connection used last is the one most likely still open.
//!
//! An attempt must know whether its connection was fresh or kept (a kept one may turn out closed, and only then is a second
//! try free), and nothing may retry behind our back.

use super::connection::Connection;
use crate::upstream::connector::{Connector, Origin, Socket};
use fairlead_core::Error;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kept connections per origin; more than this many idle at once are closed.
const MAX_IDLE: usize = 512;
/// How long a connection is kept: below the five seconds after which common servers close theirs.
const MAX_IDLE_AGE: Duration = Duration::from_millis(4_500);
/// Threads that have connections of their own; more share.
const MAX_SHELVES: usize = 64;

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
    dialled: Instant,
}

/// The idle connections towards one origin, the one used last at the end.
#[derive(Debug, Default)]
struct Stack {
    idle: Vec<Idle>,
    /// When the origin changed hands: a connection that was dialled before leads to somebody who serves it no more.
    not_before: Option<Instant>,
}

thread_local! {
    static SHELF: Cell<usize> = const { Cell::new(0) };
}

/// Gives the calling thread connections of its own, by its number from 1: a connection is told of its bytes by the runtime that
/// dialled it, and a request that borrows it from elsewhere pays for each of them with a wake-up between threads.
pub fn take_shelf(number: usize) {
    SHELF.set(number % MAX_SHELVES);
}

type Shelf = Mutex<HashMap<Arc<Origin>, Stack>>;
type Shelves = [Shelf; MAX_SHELVES];

/// Connections to providers that are open and idle, by origin.
#[derive(Debug)]
pub struct Pool {
    connector: Connector,
    shelves: Arc<Shelves>,
}

/// A connection checked out for one request. It goes back with the end of its answer; dropped, it is closed.
#[derive(Debug)]
pub struct Lease {
    pub(super) connection: Box<Connection>,
    /// Whether the connection has carried a request before.
    pub is_reused: bool,
    dialled: Instant,
    origin: Arc<Origin>,
    shelves: Arc<Shelves>,
    /// Where it was dialled.
    shelf: usize,
}

impl Lease {
    /// The answer was read to its end.
    pub(super) fn give_back(mut self) {
        if !self.connection.is_idle() {
            return;
        }
        let Self { connection, origin, shelves, shelf, dialled, .. } = self;
        let mut stacks = shelves[shelf].lock();
        let stack = stacks.entry(origin).or_default();
        let is_current = stack.not_before.is_none_or(|not_before| dialled >= not_before);
        if is_current && stack.idle.len() < MAX_IDLE {
            stack.idle.push(Idle { connection, since: Instant::now(), dialled });
        }
    }
}

impl Pool {
    pub fn new(connector: Connector) -> Self {
        Self { connector, shelves: Arc::new(std::array::from_fn(|_| Mutex::default())) }
    }

    pub(super) fn lease(&self, connection: Box<Connection>, dialled: Option<Instant>, origin: &Arc<Origin>) -> Lease {
        let (origin, shelves) = (Arc::clone(origin), Arc::clone(&self.shelves));
        let is_reused = dialled.is_some();
        let dialled = dialled.unwrap_or_else(Instant::now);
        Lease { connection, is_reused, dialled, origin, shelves, shelf: SHELF.get() }
    }

    /// A kept connection, if one is open.
    pub fn idle(&self, origin: &Arc<Origin>) -> Option<Lease> {
        loop {
            let mut stacks = self.shelves[SHELF.get()].lock();
            let stack = &mut stacks.get_mut(origin)?.idle;
            let mut entry = stack.pop()?;
            if entry.since.elapsed() > MAX_IDLE_AGE {
                // The rest of the stack is older.
                stack.clear();
                return None;
            }
            drop(stacks);
            if entry.connection.is_idle() {
                return Some(self.lease(entry.connection, Some(entry.dialled), origin));
            }
        }
    }

    /// A connection that is no HTTP exchange. The caller sets the deadline.
    pub async fn dial(&self, origin: &Arc<Origin>) -> Result<Socket, Error> {
        self.connector.dial(origin).await
    }

    /// A fresh connection. The caller sets the deadline.
    pub async fn fresh(&self, origin: &Arc<Origin>) -> Result<Lease, Error> {
        let socket = self.connector.dial(origin).await?;
        Ok(self.lease(Box::new(Connection::new(socket)), None, origin))
    }

    /// The origin is served by somebody else now: what was dialled so far is closed, once it is idle.
    pub fn forget(&self, origin: &Arc<Origin>) {
        let not_before = Some(Instant::now());
        for shelf in &*self.shelves {
            shelf.lock().insert(Arc::clone(origin), Stack { idle: Vec::new(), not_before });
        }
    }

    /// Closes what has been idle too long, or was closed by the other side. Called about once a second.
    pub fn sweep(&self) {
        for shelf in &*self.shelves {
            shelf.lock().retain(|_, stack| {
                stack.idle.retain_mut(|entry| entry.since.elapsed() <= MAX_IDLE_AGE && entry.connection.is_idle());
                !stack.idle.is_empty() || stack.not_before.is_some()
            });
        }
    }
}
