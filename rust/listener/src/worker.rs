//! One of the listener's threads: a runtime of its own, the connections that it was handed, and a look at all of them four times a
//! second.

use crate::connection;
use crate::connection_state::{Clock, ConnectionState, Order, TICK};
use crate::quota::Ticket;
use crate::request::{Caller, Room};
use fairlead_engine::engine::Engine;
use fairlead_engine::observe::threads::Beat;
use fairlead_engine::task;
use fairlead_engine::upstream::wire;
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;

/// Threads of one worker for work that blocks: files of uploads and of the cache, names.
const BLOCKING_THREADS: usize = 16;

/// A connection on its way to its thread.
pub struct Arrived {
    pub stream: TcpStream,
    pub peer: IpAddr,
    pub tls: Option<TlsAcceptor>,
    pub ticket: Ticket,
}

impl std::fmt::Debug for Arrived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrived({})", self.peer)
    }
}

enum Told {
    Arrived(Arrived),
    Order(Order),
    Stop,
}

/// See the module's page.
#[derive(Debug)]
pub struct Worker {
    told: UnboundedSender<Told>,
    open: Arc<AtomicUsize>,
    beat: Arc<Beat>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// `number` counts from 1.
    pub fn start(engine: &Arc<Engine>, number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
        let (told, telling) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let beat = engine.shared().threads.enlist(format!("worker-{number}"));
        let room = Arc::new(Room::new(Arc::clone(engine)));
        let (counting, beating) = (Arc::clone(&open), Arc::clone(&beat));
        let thread = std::thread::Builder::new().name(format!("fairlead-work-{number}")).spawn(move || {
            wire::take_shelf(number);
            runtime.block_on(run(telling, room, counting, beating));
            // What is still open is dropped here, and settles as it goes.
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        Ok(Self { told, open, beat, thread: Mutex::new(Some(thread)) })
    }

    /// Connections that it has.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub fn is_stuck(&self) -> bool {
        self.beat.is_stuck()
    }

    /// Hands a connection over. A worker that has ended forgets it, which closes it.
    pub fn take(&self, arrived: Arrived) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let _taken = self.told.send(Told::Arrived(arrived));
    }

    /// Tells every connection, and those that come after it.
    pub fn order(&self, order: Order) {
        let _told = self.told.send(Told::Order(order));
    }

    /// Ends the thread and what is on it.
    pub fn stop(&self) {
        let _told = self.told.send(Told::Stop);
        if let Some(thread) = self.thread.lock().take() {
            if thread.join().is_err() {
                tracing::error!("a thread of the listener ended with a panic");
            }
        }
    }
}

async fn run(mut telling: UnboundedReceiver<Told>, room: Arc<Room>, open: Arc<AtomicUsize>, beat: Arc<Beat>) {
    let clock = Arc::new(Clock::default());
    let mut pulses: Vec<Arc<ConnectionState>> = Vec::new();
    let mut standing = Order::None;
    let mut every = tokio::time::interval(TICK);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            told = telling.recv() => match told {
                Some(Told::Arrived(arrived)) => {
                    let state = ConnectionState::new(Arc::clone(&clock));
                    state.tell(standing);
                    pulses.push(Arc::clone(&state));
                    begin(arrived, state, &room, &open);
                }
                Some(Told::Order(order)) => {
                    standing = order;
                    for state in &pulses {
                        state.tell(order);
                    }
                }
                Some(Told::Stop) | None => return,
            },
            _ = every.tick() => {
                beat.record();
                clock.tick();
                // One that only this list knows is over.
                pulses.retain(|state| Arc::strong_count(state) > 1);
                for state in &pulses {
                    state.judge();
                }
            }
        }
    }
}

fn begin(arrived: Arrived, state: Arc<ConnectionState>, room: &Arc<Room>, open: &Arc<AtomicUsize>) {
    let counted = Counted(Arc::clone(open));
    let Arrived { stream, peer, tls, ticket } = arrived;
    let stream = match tokio::net::TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::error!(%error, "a connection could not be taken");
            return;
        }
    };
    let caller = Caller { peer, is_tls: tls.is_some(), state, counted: (ticket, counted) };
    // It ends with its connection, at the latest with the thread.
    drop(task::spawn(connection::serve(stream, tls, caller, Arc::clone(room))));
}

/// A connection of this worker's, until it is dropped.
#[derive(Debug)]
pub struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
