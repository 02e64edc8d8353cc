//! Idle HTTP/1.1 connections, one stack per origin. The connection used last is the most likely to be still open.
//!
//! An attempt must know whether its connection was new or pooled: a pooled one may turn out to be closed, and only then
//! is a retry free. The pool itself retries nothing.

use super::connection::Connection;
use crate::upstream::connector::{Connector, Origin, Socket};
use fairlead_core::Error;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of idle connections per origin; further ones are closed.
const MAX_IDLE: usize = 512;
/// The maximum idle time, below the five seconds after which common servers close connections.
const MAX_IDLE_AGE: Duration = Duration::from_millis(4_500);
/// The number of threads with a separate set of connections. Further threads share a set.
const MAX_SLOTS: usize = 64;

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
    dialled: Instant,
}

/// The idle connections of one origin, the most recently used one last.
#[derive(Debug, Default)]
struct Stack {
    idle: Vec<Idle>,
    /// When the origin's owner changed. Connections opened before lead to the previous owner.
    not_before: Option<Instant>,
}

thread_local! {
    static THREAD_SLOT: Cell<usize> = const { Cell::new(0) };
}

/// Assigns a set of connections to the calling thread, by its number from 1. A connection's events arrive at the
/// runtime that opened it, and using the connection from another thread costs a wake-up between threads for each event.
pub fn use_thread_pool_slot(number: usize) {
    THREAD_SLOT.set(number % MAX_SLOTS);
}

type PoolSlot = Mutex<HashMap<Arc<Origin>, Stack>>;
type PoolSlots = [PoolSlot; MAX_SLOTS];

/// Idle connections to providers, by origin.
#[derive(Debug)]
pub struct Pool {
    connector: Connector,
    slots: Arc<PoolSlots>,
}

/// A connection checked out for one request. It returns to the pool at the end of its response; dropping it closes the
/// connection.
#[derive(Debug)]
pub struct Lease {
    pub(super) connection: Box<Connection>,
    /// Whether the connection has carried a request before.
    pub is_reused: bool,
    dialled: Instant,
    origin: Arc<Origin>,
    slots: Arc<PoolSlots>,
    /// The set of the thread that opened the connection.
    slot: usize,
}

impl Lease {
    /// Returns the connection after its response was read to the end.
    pub(super) fn give_back(mut self) {
        if !self.connection.is_idle() {
            return;
        }
        let Self { connection, origin, slots, slot, dialled, .. } = self;
        let mut stacks = slots[slot].lock();
        let stack = stacks.entry(origin).or_default();
        let is_current = stack.not_before.is_none_or(|not_before| dialled >= not_before);
        if is_current && stack.idle.len() < MAX_IDLE {
            stack.idle.push(Idle { connection, since: Instant::now(), dialled });
        }
    }
}

impl Pool {
    pub fn new(connector: Connector) -> Self {
        Self { connector, slots: Arc::new(std::array::from_fn(|_| Mutex::default())) }
    }

    pub(super) fn lease(&self, connection: Box<Connection>, dialled: Option<Instant>, origin: &Arc<Origin>) -> Lease {
        let (origin, slots) = (Arc::clone(origin), Arc::clone(&self.slots));
        let is_reused = dialled.is_some();
        let dialled = dialled.unwrap_or_else(Instant::now);
        Lease { connection, is_reused, dialled, origin, slots, slot: THREAD_SLOT.get() }
    }

    /// Returns an idle connection, if one is open.
    pub fn idle(&self, origin: &Arc<Origin>) -> Option<Lease> {
        loop {
            let mut stacks = self.slots[THREAD_SLOT.get()].lock();
            let stack = &mut stacks.get_mut(origin)?.idle;
            let mut entry = stack.pop()?;
            if entry.since.elapsed() > MAX_IDLE_AGE {
                // The remaining connections have been idle for even longer.
                stack.clear();
                return None;
            }
            drop(stacks);
            if entry.connection.is_idle() {
                return Some(self.lease(entry.connection, Some(entry.dialled), origin));
            }
        }
    }

    /// Opens a connection for a protocol other than HTTP. The caller sets the deadline.
    pub async fn dial(&self, origin: &Arc<Origin>) -> Result<Socket, Error> {
        self.connector.dial(origin).await
    }

    /// Opens a new connection. The caller sets the deadline.
    pub async fn fresh(&self, origin: &Arc<Origin>) -> Result<Lease, Error> {
        let socket = self.connector.dial(origin).await?;
        Ok(self.lease(Box::new(Connection::new(socket)), None, origin))
    }

    /// Discards all connections of an origin whose owner changed. Connections in use are closed once they are idle.
    pub fn forget(&self, origin: &Arc<Origin>) {
        let not_before = Some(Instant::now());
        for slot in &*self.slots {
            slot.lock().insert(Arc::clone(origin), Stack { idle: Vec::new(), not_before });
        }
    }

    /// Closes connections that exceeded the idle time or that the peer closed. Called about once a second.
    pub fn sweep(&self) {
        for slot in &*self.slots {
            slot.lock().retain(|_, stack| {
                stack.idle.retain_mut(|entry| entry.since.elapsed() <= MAX_IDLE_AGE && entry.connection.is_idle());
                !stack.idle.is_empty() || stack.not_before.is_some()
            });
        }
    }
}
