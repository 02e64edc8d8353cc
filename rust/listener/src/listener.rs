//! The listener as Python uses it: start, announce a drain, drain, check whether the drain is complete, stop.

use crate::accept::{self, Acceptor};
use crate::config::{Config, DRAIN_GRACE};
use crate::connection_limit::ConnectionLimit;
use crate::connection_state::CloseMode;
use crate::tls::{Certificate, CertificateError};
use crate::worker::Worker;
use fairlead_engine::{Engine, StartError};
use parking_lot::Mutex;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// How often threads and certificate files are checked.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// The number of file descriptors reserved for everything but connections.
const OWN_DESCRIPTORS: usize = 64;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("the listener's configuration is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Engine(#[from] StartError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot listen on {0}: {1}")]
    Listen(String, io::Error),
    #[error("the listener's threads cannot be started: {0}")]
    Threads(io::Error),
}

/// A listener with its threads and its engine.
#[derive(Debug)]
pub struct Listener {
    engine: Arc<Engine>,
    workers: Arc<[Worker]>,
    quota: Arc<ConnectionLimit>,
    certificate: Option<Arc<Certificate>>,
    accepting: AbortHandle,
    drained_at: Mutex<Option<Instant>>,
    watching: Mutex<Option<(mpsc::Sender<()>, JoinHandle<()>)>>,
}

impl Listener {
    /// Opens the listener. When this returns, connections are accepted.
    pub fn open(engine_json: &[u8], listener_json: &[u8]) -> Result<Self, ListenerError> {
        let config: Config = serde_json::from_slice(listener_json)?;
        let certificate = match (&config.tls_certificate, &config.tls_key) {
            (Some(certificate), Some(key)) => Some(Arc::new(Certificate::load(certificate, key)?)),
            _ => None,
        };
        let quota = ConnectionLimit::new(
            config.max_connections.min(descriptors().saturating_sub(OWN_DESCRIPTORS) / 2).max(1),
            config.max_connections_per_address,
        );
        let listener = accept::bind(&config)
            .map_err(|error| ListenerError::Listen(format!("{} port {}", config.host, config.port), error))?;
        let engine = Arc::new(Engine::start(engine_json)?);
        let workers: Arc<[Worker]> = (1..=config.threads.max(1))
            .map(|number| Worker::start(&engine, number))
            .collect::<Result<Vec<_>, _>>()
            .map_err(ListenerError::Threads)?
            .into();
        let reception = Acceptor {
            shared: Arc::clone(engine.shared()),
            workers: Arc::clone(&workers),
            quota: Arc::clone(&quota),
            certificate: certificate.clone(),
        };
        let accepting = engine.runtime().spawn(reception.run(listener)).abort_handle();
        let watching = watch(&engine, &quota, certificate.clone()).map_err(ListenerError::Threads)?;
        Ok(Self {
            engine,
            workers,
            quota,
            certificate,
            accepting,
            drained_at: Mutex::new(None),
            watching: Mutex::new(Some(watching)),
        })
    }

    /// Announces a drain and continues to serve. HTTP/1.1 connections close after their next answer, and HTTP/2
    /// connections with their current streams. Returns how long to wait before `drain`, in milliseconds.
    pub fn announce_drain(&self) -> u64 {
        let delay_ms = self.engine.announce_drain();
        for worker in self.workers.iter() {
            worker.close_connections(CloseMode::AfterAnswer);
        }
        delay_ms
    }

    /// Accepts no more connections or requests. Open ones may continue until the engine's deadline.
    pub fn drain(&self) {
        let mut drained_at = self.drained_at.lock();
        if drained_at.is_none() {
            *drained_at = Some(Instant::now() + Duration::from_millis(self.engine.drain_ms()));
            self.engine.begin_drain();
            self.accepting.abort();
            for worker in self.workers.iter() {
                worker.close_connections(CloseMode::Graceful);
            }
        }
    }

    /// Whether nothing is open any more, or the deadline has passed. Called a few times a second.
    pub fn is_drained(&self) -> bool {
        let Some(drained_at) = *self.drained_at.lock() else { return false };
        if self.quota.open() == 0 && self.engine.in_flight() == 0 {
            return true;
        }
        let late = Instant::now().saturating_duration_since(drained_at);
        if late > DRAIN_GRACE {
            for worker in self.workers.iter() {
                worker.close_connections(CloseMode::Now);
            }
        }
        late > 2 * DRAIN_GRACE
    }

    /// Reads the certificate files again.
    pub fn reload(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload();
        }
    }

    /// Ends every thread, and with them everything that is open.
    pub fn stop(&self) {
        self.accepting.abort();
        for worker in self.workers.iter() {
            worker.stop();
        }
        let watching = self.watching.lock().take();
        if let Some((stop, thread)) = watching {
            drop(stop);
            if thread.join().is_err() {
                tracing::error!("the watching thread ended with a panic");
            }
        }
        self.engine.stop();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the thread that monitors the others once a second. It does nothing else, so it cannot be stuck together with
/// them.
fn watch(
    engine: &Arc<Engine>,
    quota: &Arc<ConnectionLimit>,
    certificate: Option<Arc<Certificate>>,
) -> io::Result<(mpsc::Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = mpsc::channel();
    let (shared, quota) = (Arc::clone(engine.shared()), Arc::clone(quota));
    let thread = std::thread::Builder::new().name("fairlead-watch".into()).spawn(move || {
        while stopped.recv_timeout(WATCH_EVERY) == Err(RecvTimeoutError::Timeout) {
            shared.threads.watch();
            shared.counts.socket_connections.store(quota.open(), Ordering::Relaxed);
            shared.counts.socket_refused_total.store(quota.refused(), Ordering::Relaxed);
            if let Some(certificate) = &certificate {
                certificate.follow();
            }
        }
    })?;
    Ok((stop, thread))
}

/// The number of file descriptors that the process may have, after raising its soft limit to the hard one.
fn descriptors() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current < maximum || maximum.is_none() {
        // If this is refused, the current limit applies.
        let _raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
