//! One of the listener's threads: it has its own runtime, serves the connections that it was given, and checks all of
//! them four times a second.

use crate::caller::{Caller, EngineHandle, OpenConnection};
use crate::connection;
use crate::connection_limit::Permit;
use crate::connection_state::{Clock, CloseMode, ConnectionState, TICK};
use fairlead_engine::{task, use_thread_pool_slot, Engine, Heartbeat};
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

/// The maximum number of threads of one worker for blocking work: files of uploads and of the cache, name resolution.
const BLOCKING_THREADS: usize = 16;

/// A connection to be served by a worker.
pub struct NewConnection {
    pub stream: TcpStream,
    pub peer: IpAddr,
    pub tls: Option<TlsAcceptor>,
    pub permit: Permit,
}

impl std::fmt::Debug for NewConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewConnection({})", self.peer)
    }
}

enum Message {
    Connection(NewConnection),
    Close(CloseMode),
    Stop,
}

/// A thread with the connections that it serves.
#[derive(Debug)]
pub struct Worker {
    messages: UnboundedSender<Message>,
    open: Arc<AtomicUsize>,
    heartbeat: Arc<Heartbeat>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts the thread. `number` counts from 1 and names it.
    pub fn start(engine: &Arc<Engine>, number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
        let (messages, received) = unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let heartbeat = engine.shared().threads.register(format!("worker-{number}"));
        let engine = Arc::new(EngineHandle::new(Arc::clone(engine)));
        let (counting, beating) = (Arc::clone(&open), Arc::clone(&heartbeat));
        let thread = std::thread::Builder::new().name(format!("fairlead-work-{number}")).spawn(move || {
            use_thread_pool_slot(number);
            runtime.block_on(run(received, engine, counting, beating));
            // Open connections are dropped here and settle.
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        Ok(Self { messages, open, heartbeat, thread: Mutex::new(Some(thread)) })
    }

    /// The number of open connections on this thread.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub fn is_stuck(&self) -> bool {
        self.heartbeat.is_stuck()
    }

    /// Hands a connection over. A worker that has ended drops it, which closes it.
    pub fn assign(&self, arrived: NewConnection) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let _sent = self.messages.send(Message::Connection(arrived));
    }

    /// Sets how every current and later connection of the thread should close.
    pub fn close_connections(&self, mode: CloseMode) {
        let _sent = self.messages.send(Message::Close(mode));
    }

    /// Ends the thread and everything on it.
    pub fn stop(&self) {
        let _sent = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.lock().take() {
            if thread.join().is_err() {
                tracing::error!("a thread of the listener ended with a panic");
            }
        }
    }
}

async fn run(
    mut received: UnboundedReceiver<Message>,
    engine: Arc<EngineHandle>,
    open: Arc<AtomicUsize>,
    heartbeat: Arc<Heartbeat>,
) {
    let clock = Arc::new(Clock::default());
    let mut states: Vec<Arc<ConnectionState>> = Vec::new();
    let mut close_mode = CloseMode::Open;
    let mut every = tokio::time::interval(TICK);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = received.recv() => match message {
                Some(Message::Connection(arrived)) => {
                    let state = ConnectionState::new(Arc::clone(&clock));
                    state.close(close_mode);
                    states.push(Arc::clone(&state));
                    begin(arrived, state, &engine, &open);
                }
                Some(Message::Close(mode)) => {
                    close_mode = mode;
                    for state in &states {
                        state.close(mode);
                    }
                }
                Some(Message::Stop) | None => return,
            },
            _ = every.tick() => {
                heartbeat.record();
                clock.tick();
                // A connection that only this list refers to has ended.
                states.retain(|state| Arc::strong_count(state) > 1);
                for state in &states {
                    state.check_timeouts();
                }
            }
        }
    }
}

fn begin(arrived: NewConnection, state: Arc<ConnectionState>, engine: &Arc<EngineHandle>, open: &Arc<AtomicUsize>) {
    let open = OpenConnection::new(Arc::clone(open));
    let NewConnection { stream, peer, tls, permit } = arrived;
    let stream = match tokio::net::TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::error!(%error, "a connection could not be taken");
            return;
        }
    };
    let caller = Caller { peer, is_tls: tls.is_some(), state, permits: (permit, open) };
    // The task ends with its connection, or at the latest with the thread.
    drop(task::spawn(connection::serve(stream, tls, caller, Arc::clone(engine))));
}
