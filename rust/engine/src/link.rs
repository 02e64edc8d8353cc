//! The link to control: one long poll at a time. It brings the newest snapshot and commands, and tells control what this
//! worker has applied and how it fares. Without control the worker goes on with what it has.

use crate::body::Sliced;
use crate::clock;
use crate::control::LINK;
use crate::live::Live;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::snapshot::Snapshot;
use fairlead_dialect::Pieces;
use http::header::{self, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// Control holds a poll for 2 s; after this long without an answer it counts as absent.
pub const STALE_MS: u64 = 7_000;
const POLL_DEADLINE: Duration = Duration::from_secs(7);
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_millis(250);
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

#[derive(Serialize)]
struct Poll<'a> {
    worker: &'a str,
    pid: u32,
    applied_version: u64,
    done: &'a [u64],
    stats: Stats<'a>,
}

#[derive(Serialize)]
struct Stats<'a> {
    in_flight: usize,
    open_streams: usize,
    requests_total: u64,
    shed_total: u64,
    draining: bool,
    connections: Vec<ConnectionStats<'a>>,
}

#[derive(Serialize)]
struct ConnectionStats<'a> {
    id: &'a str,
    state: &'static str,
    cooling_ms: u64,
    last_error: Option<&'static str>,
    successes: u64,
    failures: u64,
    latency_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    snapshot: Option<&'a RawValue>,
}

/// Why a poll came to nothing.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("control is not reachable")]
    Unreachable,
    #[error("control answered {0}")]
    Status(u16),
    #[error("control's answer cannot be read: {0}")]
    Unreadable(String),
}

/// Loads the snapshot that was kept on disk, so that the worker serves before control does, or without it.
pub fn load_kept(shared: &Shared) {
    let path = shared.config.data_dir.join("snapshot.json");
    let json = match std::fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::error!(%error, "the kept snapshot cannot be read");
            return;
        }
    };
    if let Err(error) = apply(shared, &json) {
        tracing::error!(%error, "the kept snapshot is not used");
    }
}

/// Polls until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let mut retry = RETRY_FIRST;
    loop {
        match poll(&shared).await {
            Ok(()) => {
                shared.link_seen_ms.store(clock::monotonic_ms().max(1), Ordering::Relaxed);
                retry = RETRY_FIRST;
            }
            Err(fault) => {
                tracing::debug!(%fault, "the link has no answer");
                shared.link_seen_ms.store(0, Ordering::Relaxed);
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_LAST);
            }
        }
    }
}

async fn poll(shared: &Shared) -> Result<(), Fault> {
    let body = tell(shared)?;
    let mut request = Request::new(Sliced::new(Pieces::from_iter([Bytes::from(body)])));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/internal/link");
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(LINK, crate::answer::value(shared.config.link_token.expose()));
    // A fresh connection unless one is kept: the poll may wait, so it never shares a pooled one with forwarded requests
    // for longer than its own turn.
    let mut lease = match shared.pool.kept(&shared.control) {
        Some(lease) => lease,
        None => tokio::time::timeout(CONNECT_DEADLINE, shared.pool.fresh(&shared.control))
            .await
            .map_err(|_| Fault::Unreachable)?
            .map_err(|_| Fault::Unreachable)?,
    };
    let answer = async {
        lease.sender.ready().await.map_err(|_| Fault::Unreachable)?;
        let response = lease.sender.send_request(request).await.map_err(|_| Fault::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(Fault::Status(status.as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| Fault::Unreadable(error.to_string()))
    };
    let json = tokio::time::timeout(POLL_DEADLINE, answer).await.map_err(|_| Fault::Unreachable)??;
    shared.pool.give_back(lease);
    let answer: Answer<'_> = serde_json::from_slice(&json).map_err(|error| Fault::Unreadable(error.to_string()))?;
    if let Some(snapshot) = answer.snapshot.filter(|snapshot| snapshot.get() != "null") {
        apply(shared, snapshot.get().as_bytes()).map_err(|error| Fault::Unreadable(error.to_string()))?;
    }
    Ok(())
}

fn apply(shared: &Shared, json: &[u8]) -> Result<(), fairlead_core::snapshot::Unreadable> {
    let snapshot = Snapshot::parse(json)?;
    let before = shared.live.load();
    // A restarted control may offer what is already in use; an older version would bring revoked keys back.
    if snapshot.version > before.snapshot.version {
        let version = snapshot.version;
        shared.live.store(Arc::new(Live::build(snapshot, &before, &shared.config.sealer, &shared.config.version)));
        tracing::debug!(version, "snapshot in use");
    }
    Ok(())
}

fn tell(shared: &Shared) -> Result<Vec<u8>, Fault> {
    let live = shared.live.load();
    let now_ms = clock::monotonic_ms();
    let connections = live
        .targets
        .iter()
        .flatten()
        .map(|target| {
            let cooldown = *target.hot.cooldown.lock();
            ConnectionStats {
                id: &target.connection.id,
                state: if cooldown.is_cooling(now_ms) { "cooling" } else { "active" },
                cooling_ms: cooldown.remaining_ms(now_ms),
                last_error: *target.hot.last_error.lock(),
                successes: target.hot.successes.load(Ordering::Relaxed),
                failures: target.hot.failures.load(Ordering::Relaxed),
                latency_ms: target.hot.latency_ms(),
            }
        })
        .collect();
    let poll = Poll {
        worker: &shared.worker_id,
        pid: std::process::id(),
        applied_version: live.snapshot.version,
        done: &[],
        stats: Stats {
            in_flight: shared.counts.in_flight.load(Ordering::Relaxed),
            open_streams: shared.counts.open_streams.load(Ordering::Relaxed),
            requests_total: shared.counts.requests_total.load(Ordering::Relaxed),
            shed_total: shared.counts.shed_total.load(Ordering::Relaxed),
            draining: shared.drain.is_draining(),
            connections,
        },
    };
    serde_json::to_vec(&poll).map_err(|error| Fault::Unreadable(error.to_string()))
}
