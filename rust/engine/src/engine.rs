//! The engine's interface for fronts: admit a head and feed a body. The rest happens on the engine's thread.

use crate::cache;
use crate::call::admit;
use crate::call::conversation::count;
use crate::call::ollama;
use crate::call::passthrough;
use crate::call::work::searches;
use crate::config::{Config, ConfigError};
use crate::control::background;
use crate::control::forward;
use crate::control::link;
use crate::control::repeats;
use crate::exchange::Wake;
use crate::front;
use crate::gate::admission::{self, Admitted};
use crate::gate::answer;
use crate::gate::body::{BodyState, Pending};
use crate::gate::inbound::Inbound;
use crate::gate::request::BufferedRequest;
use crate::leases::keeper;
use crate::leases::presence::Presence;
use crate::models;
use crate::observe::capture_writer;
use crate::observe::log;
use crate::observe::spool::Spool;
use crate::observe::threads::Heartbeat;
use crate::observe::trace;
use crate::shared::Shared;
use crate::socket::realtime::Realtime;
use crate::socket::requests::{self, FrameConnection, RequestSocket};
use crate::task;
use crate::upstream::connector::Connector;
use crate::upstream::wire::Pool;
use bytes::Bytes;
use fairlead_cache::{Cache, Opening};
use fairlead_core::routes::{Answer, Ollama};
use fairlead_core::{hex, random_bytes, NoRandomness};
use fairlead_dialect::ollama::{EmbedCall, OllamaCall};
use parking_lot::Mutex;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

const HOUSEKEEPING: Duration = Duration::from_secs(1);
const BEAT: Duration = Duration::from_millis(250);

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error("the spool folder or the runtime cannot be made: {0}")]
    Io(#[from] io::Error),
}

/// The work of a request, polled by the front that owns its connection.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The state of a request after a piece of its body, for a front that polls the work itself.
pub enum PolledBodyState {
    More,
    Work(Work),
    /// The exchange already has its response.
    Answered,
}

impl std::fmt::Debug for PolledBodyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::More => "More",
            Self::Work(_) => "Work",
            Self::Answered => "Answered",
        })
    }
}

/// A place to run work: the engine's thread, or the calling task.
trait Spawn {
    type Spawned;
    /// Whether fast work should run on the calling thread.
    const IS_ELSEWHERE: bool;

    fn start<F: Future<Output = ()> + Send + 'static>(&self, work: F) -> Self::Spawned;

    /// Starts work that probably completes at once, on the calling thread if possible.
    fn spawn_fast<F: Future<Output = ()> + Send + 'static>(&self, work: F) -> Self::Spawned {
        self.start(work)
    }
}

impl Spawn for Handle {
    type Spawned = ();
    const IS_ELSEWHERE: bool = true;

    fn start<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        drop(self.spawn(work));
    }

    fn spawn_fast<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        front::spawn_fast(self, work);
    }
}

/// Returns the work to the caller, who polls it.
struct CurrentTask;

impl Spawn for CurrentTask {
    type Spawned = Work;
    const IS_ELSEWHERE: bool = false;

    fn start<F: Future<Output = ()> + Send + 'static>(&self, work: F) -> Work {
        Box::pin(work)
    }
}

/// The engine of one relay worker: a thread with a runtime, and the state that requests share.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    handle: Handle,
    thread: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    _presence: Option<Presence>,
}

impl Engine {
    /// Starts the engine's thread. Call this after any fork, because threads are not inherited.
    pub fn start(config_json: &[u8]) -> Result<Self, StartError> {
        log::start();
        let config = Config::parse(config_json)?;
        let worker_id = hex(&random_bytes::<6>()?);
        let spool = Spool::open(&config.data_dir, &worker_id)?;
        let is_sharing = config.shared_store.is_some();
        let presence = is_sharing.then(|| Presence::take(&config.data_dir, &worker_id)).transpose()?;
        let cache = Cache::open(Opening {
            data_dir: config.data_dir.clone(),
            worker_id: worker_id.clone(),
            sealer: config.sealer.clone(),
            vector_files: config.vectors.clone(),
            now_ms: crate::clock::unix_ms,
        })?;
        let shared = Arc::new(Shared::new(config, worker_id, Pool::new(Connector::default()), spool, cache));
        link::load_kept(&shared);
        let captures = Arc::clone(&shared.captures);
        let writing = capture_writer::start(&shared.config.data_dir, shared.config.sealer.clone(), captures)?;
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(64).build()?;
        let handle = runtime.handle().clone();
        shared.set_runtime(handle.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let own = Arc::clone(&shared);
        let sealing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("fairlead-engine".into()).spawn(move || {
            runtime.block_on(async move {
                let _beating = task::spawn(heartbeat(own.threads.register("engine")));
                let _link = task::spawn(link::run(Arc::clone(&own)));
                let _keeping = task::spawn(keep_house(Arc::clone(&own)));
                let _hearing = own.peers.is_some().then(|| task::spawn(crate::peers::listener::run(Arc::clone(&own))));
                let leasing = own.leases.is_some().then(|| task::spawn(keeper::run(Arc::clone(&own))));
                // Either a stop request or the end of the engine.
                drop(stopped.await);
                if let Some(leasing) = leasing {
                    leasing.abort();
                    keeper::leave(&own).await;
                }
            });
            // Dropping the remaining work settles it. Afterwards the last segment is sealed.
            runtime.shutdown_timeout(Duration::from_secs(1));
            sealing.spool.finish();
            sealing.responses.seal();
            sealing.captures.finish();
            if writing.is_some_and(|writing| writing.join().is_err()) {
                tracing::error!("the thread that keeps bodies ended with a panic");
            }
            sealing.cache.store.close();
        })?;
        Ok(Self { shared, handle, thread: Mutex::new(Some((stop, thread))), _presence: presence })
    }

    /// Admits a head. A pending request must be fed its body.
    pub fn admit(&self, inbound: &Inbound<'_>, wake: Arc<dyn Wake>) -> Admitted {
        admission::admit(&self.shared, inbound, wake)
    }

    /// Admits the head of a WebSocket. A refused request already has its response.
    pub fn admit_socket(
        &self,
        inbound: &Inbound<'_>,
        wake: &Arc<dyn Wake>,
    ) -> Result<Box<dyn FrameConnection>, Box<Admitted>> {
        let mut pending = match admission::admit(&self.shared, inbound, Arc::clone(wake)) {
            Admitted::Pending(pending) if pending.answer().is_some_and(Answer::is_socket) => pending,
            other => return Err(Box::new(other)),
        };
        let exchange = Arc::clone(&pending.exchange);
        let BodyState::Complete(incoming) = pending.feed(b"", false) else {
            return Err(Box::new(Admitted::Answered(exchange)));
        };
        let route = incoming.admission.route;
        let request_id = incoming.admission.request_id.clone();
        let opened = if route.answer == Answer::Realtime {
            Realtime::open(&self.shared, *incoming, inbound.query, Arc::clone(wake))
                .map(|talk| Box::new(talk) as Box<dyn FrameConnection>)
        } else {
            RequestSocket::open(&self.shared, *incoming, Arc::clone(wake))
                .map(|socket| Box::new(socket) as Box<dyn FrameConnection>)
        };
        opened.map_err(|fault| {
            answer::refuse(&self.shared, &exchange, route.surface, &request_id, &fault);
            Box::new(Admitted::Answered(exchange))
        })
    }

    /// Feeds a piece of a body. When the body is complete, the work starts on the engine's thread. Returns `true` if
    /// more is expected.
    pub fn feed(&self, pending: &mut Pending, piece: &[u8], more: bool) -> bool {
        match pending.feed(piece, more) {
            BodyState::More => true,
            BodyState::Refused => false,
            BodyState::Complete(incoming) => {
                self.dispatch(incoming, &self.handle);
                false
            }
        }
    }

    /// Feeds a piece for a front that is a task on a separate runtime. The front polls the work itself, so that a
    /// request stays on the thread of its connection. Large pieces are kept without a copy.
    pub fn feed_here(&self, pending: &mut Pending, piece: &Bytes, more: bool) -> PolledBodyState {
        match pending.feed_bytes(piece, more) {
            BodyState::More => PolledBodyState::More,
            BodyState::Refused => PolledBodyState::Answered,
            BodyState::Complete(incoming) => {
                self.dispatch(incoming, &CurrentTask).map_or(PolledBodyState::Answered, PolledBodyState::Work)
            }
        }
    }

    /// Maps a route to its work; nothing else does. The work ends when its exchange is cancelled, and its guards record
    /// the outcome.
    fn dispatch<S: Spawn>(&self, incoming: Box<BufferedRequest>, start: &S) -> Option<S::Spawned> {
        let shared = Arc::clone(&self.shared);
        let trace = incoming.admission.trace.clone();
        Some(match incoming.admission.route.answer {
            Answer::Control if background::is_job(incoming.admission.route) => {
                start.start(background::serve_job(shared, incoming))
            }
            Answer::Control | Answer::Upload if repeats::may_be_repeated(&incoming.admission) => {
                start.start(repeats::serve_forwarded(shared, incoming, forward::serve))
            }
            Answer::Control | Answer::Upload => start.start(forward::serve(shared, incoming)),
            Answer::Search | Answer::Video => start.start(searches::serve(shared, incoming)),
            answer if background::is_asked(answer, &incoming.body) => start.start(background::serve(shared, incoming)),
            Answer::Relayed(kind) if kind.is_form() => {
                start.start(trace::within(trace, passthrough::serve_form(&shared, incoming)))
            }
            Answer::Socket | Answer::Realtime => {
                requests::describe(&shared, &incoming);
                return None;
            }
            Answer::Ollama(Ollama::Show) => {
                models::ollama::show(&shared, &incoming);
                return None;
            }
            Answer::Ollama(kind) => {
                let call = match kind {
                    Ollama::Embed => ollama::OllamaWork::Embed(EmbedCall::Embed),
                    Ollama::Embeddings => ollama::OllamaWork::Embed(EmbedCall::Embeddings),
                    Ollama::Generate => ollama::OllamaWork::Talk(OllamaCall::Generate),
                    _ => ollama::OllamaWork::Talk(OllamaCall::Chat),
                };
                start.start(trace::within(trace, Box::pin(ollama::serve(shared, incoming, call))))
            }
            Answer::CountTokens => start.start(trace::within(trace, count::serve(&shared, incoming))),
            // Boxed first, because wrapping it unboxed would copy its whole size again.
            _ if S::IS_ELSEWHERE && cache::is_likely(&shared, &incoming) => {
                start.spawn_fast(trace::within(trace, Box::pin(admit::serve(&shared, incoming))))
            }
            _ => start.start(trace::within(trace, Box::pin(admit::serve(&shared, incoming)))),
        })
    }

    /// The state shared by all requests of this worker.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The runtime of the engine's thread.
    pub fn runtime(&self) -> &Handle {
        &self.handle
    }

    /// Announces that this worker will drain, and continues to serve. Returns the time to wait before `begin_drain`, in
    /// milliseconds.
    pub fn announce_drain(&self) -> u64 {
        self.shared.drain.announce();
        self.shared.config.drain_delay_ms
    }

    /// Stops accepting requests. Open requests have until the deadline.
    pub fn begin_drain(&self) {
        self.shared.drain.begin();
        let shared = Arc::clone(&self.shared);
        drop(self.handle.spawn(async move {
            tokio::time::sleep(Duration::from_millis(shared.config.drain_ms)).await;
            shared.drain.expire();
        }));
    }

    /// The number of unfinished requests.
    pub fn in_flight(&self) -> usize {
        self.shared.counts.in_flight.load(Ordering::Acquire)
    }

    pub fn drain_ms(&self) -> u64 {
        self.shared.config.drain_ms
    }

    pub fn body_idle_ms(&self) -> u64 {
        self.shared.config.body_idle_ms
    }

    /// Seals the spool and ends the thread.
    pub fn stop(&self) {
        let running = self.thread.lock().take();
        if let Some((stop, thread)) = running {
            // Sending fails only if the thread has already ended.
            let _sent = stop.send(());
            if thread.join().is_err() {
                tracing::error!("the engine's thread ended with a panic");
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Records the heartbeat of the engine's thread.
async fn heartbeat(heartbeat: Arc<Heartbeat>) {
    let mut every = tokio::time::interval(BEAT);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        heartbeat.record();
    }
}

/// Seals segments and closes idle connections, about once a second.
async fn keep_house(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(HOUSEKEEPING);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        shared.spool.rotate();
        shared.pool.sweep();
        let now_ms = crate::clock::monotonic_ms();
        shared.sessions.sweep(now_ms);
        shared.idempotency.sweep(now_ms);
        shared.cache.calls_under_way.sweep(now_ms);
        shared.raw_outputs.sweep_in_time(shared.active.load().snapshot.context.compression.raw_outputs, now_ms);
    }
}
