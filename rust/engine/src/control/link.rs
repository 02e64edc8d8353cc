//! The link to control: one long poll at a time. A poll returns the newest snapshot and commands, and reports what this
//! worker has applied and its state. Without control the worker continues with what it has.

use crate::active_config::ActiveConfig;
use crate::clock;
use crate::control::forward::LINK;
use crate::control::stats::{self, ConnectionStats, ProviderStats};
use crate::leases::{LeaseStats, Leases};
use crate::observe::metrics::Sample;
use crate::observe::refused_callers::RefusedCallers;
use crate::peers::shared_answers;
use crate::shared::Shared;
use crate::upstream::wire::BodySlices;
use bytes::Bytes;
use fairlead_core::{LimitQuestion, LimitScope, LimitUnit, Snapshot, UseByNode};
use fairlead_dialect::Pieces;
use http::header::{self, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

const POLL_DEADLINE: Duration = Duration::from_secs(7);
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_millis(250);
/// The name in the shared store for all nodes that it does not know.
const BEFORE: &str = "before";
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

#[derive(Serialize)]
struct Poll<'a> {
    worker: &'a str,
    pid: u32,
    applied_version: u64,
    done: &'a [crate::control::reports::Report],
    stats: Stats<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<Spent<'a>>,
}

/// The request to control for past usage under limits: the sums of all records that this worker wrote before a segment,
/// and of all records of other workers.
#[derive(Serialize)]
struct Spent<'a> {
    before_segment: u64,
    questions: Vec<SpentQuestion<'a>>,
    /// Nodes for which separate sums are requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
}

#[derive(Serialize)]
struct SpentQuestion<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    unit: LimitUnit,
    from_ms: u64,
    model: Option<&'a str>,
    provider: Option<&'a str>,
}

impl<'a> From<&'a LimitQuestion> for SpentQuestion<'a> {
    fn from(question: &'a LimitQuestion) -> Self {
        let (model, provider) = match &question.limit.scope {
            LimitScope::All => (None, None),
            LimitScope::Model(name) => (Some(name.as_str()), None),
            LimitScope::Provider(name) => (None, Some(name.as_str())),
        };
        let (unit, from_ms) = (question.limit.unit, question.from_ms);
        let id = Some(question.owner_id.as_str());
        let (key_id, group_id) = if question.limit.group.is_some() { (None, id) } else { (id, None) };
        Self { key_id, group_id, unit, from_ms, model, provider }
    }
}

#[derive(Serialize)]
struct Stats<'a> {
    in_flight: usize,
    open_streams: usize,
    requests_total: u64,
    shed_total: u64,
    draining: bool,
    /// Connections of the engine's listener; zero with a different front.
    socket_connections: usize,
    socket_refused_total: u64,
    threads_stuck: usize,
    buffered_body_bytes: usize,
    spool_unwritten_bytes: usize,
    spool_lost_records: u64,
    /// Captures that were dropped.
    bodies_lost_total: u64,
    /// The newest reset that this worker has applied.
    cleared: u64,
    /// Set if limits are shared with other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    leases: Option<LeaseStats>,
    connections: Vec<ConnectionStats<'a>>,
    providers: Vec<ProviderStats<'a>>,
    /// The samples that changed.
    metrics: &'a [Sample],
    /// Refused callers of the last minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused_callers: Vec<RefusedCallers>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    /// Identifies the control process. An older version does not send it and receives everything each time.
    #[serde(default)]
    control: &'a str,
    #[serde(borrow, default)]
    snapshot: Option<&'a RawValue>,
    /// Sums in the order of the questions; `None` while control does not have all records yet.
    #[serde(default)]
    spent: Option<Vec<u64>>,
    /// Sums of each requested node.
    #[serde(default)]
    spent_by_node: Vec<NodeSums>,
    #[serde(borrow, default)]
    commands: Vec<crate::control::commands::Command<'a>>,
}

/// The usage that one node has recorded.
#[derive(Deserialize)]
struct NodeSums {
    node: String,
    /// The node's process has ended, and all its records were ingested.
    has_ended: bool,
    /// Sums in the order of the questions.
    sums: Vec<u64>,
}

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("control is not reachable")]
    Unreachable,
    #[error("control answered {0}")]
    Status(u16),
    #[error("control's answer cannot be read: {0}")]
    Unreadable(String),
}

/// Loads the snapshot from disk, so that the worker can serve before control is available, or without it.
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
    match Snapshot::parse(&json) {
        Ok(snapshot) => {
            open_accounts(shared, &snapshot);
            adopt(shared, snapshot);
        }
        Err(error) => tracing::error!(%error, "the kept snapshot is not used"),
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

/// Polls once. If the new configuration has limits with unknown past usage, a second poll requests it before the
/// configuration is used. So a new limit is enforced by the time the write that set it returns.
async fn poll(shared: &Arc<Shared>) -> Result<(), Fault> {
    let json = fetch_snapshot(shared).await?;
    let Some(mut offered) = newer(shared, &json)? else { return Ok(()) };
    let mut fault = None;
    if open_accounts(shared, &offered.snapshot) {
        match fetch_snapshot(shared).await {
            Ok(json) => {
                let newest = newer(shared, &json)?;
                if let Some(newest) = newest.filter(|newest| newest.snapshot.version > offered.snapshot.version) {
                    open_accounts(shared, &newest.snapshot);
                    offered = newest;
                }
            }
            // Control became unavailable in between. The new configuration is used anyway, above all because it may
            // revoke keys.
            Err(reason) => fault = Some(reason),
        }
    }
    let Offered { snapshot, document } = offered;
    if shared.config.keeps_snapshot {
        keep(shared, document).await;
    }
    let before = shared.active.load_full();
    adopt(shared, snapshot);
    shared_answers::apply_settings(shared, &before.snapshot);
    fault.map_or(Ok(()), Err)
}

/// Sends one poll, which includes the request for past usage of limits without accounts.
async fn fetch_snapshot(shared: &Shared) -> Result<Bytes, Fault> {
    let (questions, before_segment) = shared.ledger.limit_questions(clock::moment(), || shared.spool.hold());
    // No further segment is sealed until the response, so that the sums cover exactly the sealed ones.
    let _held = HeldSpool(shared);
    let done = shared.commands.unsent();
    let mut samples = shared.metrics.samples();
    samples.extend(shared.leases.iter().flat_map(Leases::samples));
    samples.extend(shared.peers.iter().flat_map(|peers| peers.answers.samples()));
    let news = shared.counter_reports.news(samples);
    let json = exchange(shared, poll_request(shared, &questions, before_segment, &done, &news)?).await?;
    shared.commands.forget(&done);
    let answer = parse(&json)?;
    if shared.counter_reports.note(answer.control, news) {
        // Pooled connections may lead to the previous process, but requests and reports must reach the same process.
        shared.pool.forget(&shared.control);
    }
    if let Some(sums) = answer.spent {
        match &shared.leases {
            None => shared.ledger.seed(&questions, &sums),
            Some(leases) => {
                shared.ledger.seed_leases(&questions, pasts(&sums, &answer.spent_by_node));
                leases.forget_ended(answer.spent_by_node.iter().filter(|of| of.has_ended).map(|of| of.node.as_str()));
            }
        }
    }
    crate::control::commands::carry_out(shared, answer.commands).await;
    Ok(json)
}

/// Splits each sum by node. The remainder is the usage of all unknown nodes.
fn pasts(sums: &[u64], nodes: &[NodeSums]) -> Vec<UseByNode> {
    let past = |(at, &sum): (usize, &u64)| {
        let mut rest = sum;
        let mut past: UseByNode = Vec::with_capacity(nodes.len() + 1);
        for of in nodes {
            let own = of.sums.get(at).copied().unwrap_or_default();
            rest = rest.saturating_sub(own);
            past.push((of.node.clone(), own, of.has_ended));
        }
        past.push((BEFORE.to_owned(), rest, true));
        past
    };
    sums.iter().enumerate().map(past).collect()
}

struct HeldSpool<'a>(&'a Shared);

impl Drop for HeldSpool<'_> {
    fn drop(&mut self) {
        self.0.spool.release();
    }
}

fn parse(json: &[u8]) -> Result<Answer<'_>, Fault> {
    serde_json::from_slice(json).map_err(|error| Fault::Unreadable(error.to_string()))
}

/// Returns the snapshot in a response if it is newer than the one in use. A restarted control may offer the current
/// version again, and an older version would restore revoked keys.
fn newer(shared: &Shared, json: &Bytes) -> Result<Option<Offered>, Fault> {
    let Some(raw) = parse(json)?.snapshot.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let snapshot = Snapshot::parse(raw.get().as_bytes()).map_err(|error| Fault::Unreadable(error.to_string()))?;
    let document = json.slice_ref(raw.get().as_bytes());
    let offered = Offered { snapshot, document };
    Ok(Some(offered).filter(|offered| offered.snapshot.version > shared.active.load().snapshot.version))
}

/// A snapshot and the bytes from which it was parsed.
struct Offered {
    snapshot: Snapshot,
    document: Bytes,
}

/// Stores a snapshot for a start without control. This happens before control learns that it is in use, so that a
/// revoked key does not work again after a restart. On the same machine control stores the snapshot itself.
async fn keep(shared: &Shared, document: Bytes) {
    let folder = shared.config.data_dir.clone();
    // Workers of one node write the same file.
    let new = folder.join(format!("snapshot.json.{}", shared.worker_id));
    let writing = crate::blocking::disk(move || {
        let written = write_whole(&new, &document).and_then(|()| std::fs::rename(&new, folder.join("snapshot.json")));
        written.and_then(|()| std::fs::File::open(&folder)?.sync_all())
    });
    match writing.await {
        Ok(Ok(())) => {}
        // A full disk must not keep a revoked key valid, so the snapshot is used even if it was not stored.
        Ok(Err(error)) => tracing::error!(%error, "the snapshot is in use and cannot be kept for a restart"),
        Err(error) => tracing::error!(%error, "the snapshot is in use and was not kept for a restart"),
    }
}

fn write_whole(path: &Path, document: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(document)?;
    file.sync_all()
}

/// Opens accounts for the limits of a snapshot. Returns whether past usage must be requested for one of them.
fn open_accounts(shared: &Shared, snapshot: &Snapshot) -> bool {
    let active = shared.active.load();
    // Without a previous configuration, a previous worker may have served any key and group.
    let before = &active.snapshot;
    let is_new = |id: &str| before.version > 0 && !before.has_group(id) && !before.keys().any(|key| key.id == id);
    shared.ledger.open(snapshot.keys(), is_new, clock::moment())
}

fn adopt(shared: &Shared, snapshot: Snapshot) {
    let version = snapshot.version;
    let before = shared.active.load();
    shared.cache.set(&snapshot.cache);
    shared.active.store(Arc::new(ActiveConfig::build(
        snapshot,
        &before,
        &shared.config.sealer,
        &shared.config.version,
    )));
    shared.ledger.close_others(shared.active.load().snapshot.keys());
    tracing::debug!(version, "snapshot in use");
}

async fn exchange(shared: &Shared, body: Vec<u8>) -> Result<Bytes, Fault> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/internal/link");
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(LINK, crate::gate::headers::value(shared.config.link_token.expose()));
    // Uses an idle connection or opens a new one. The poll may wait for long, so it does not share a connection with
    // forwarded requests beyond its own turn.
    let lease = match shared.pool.idle(&shared.control) {
        Some(lease) => lease,
        None => tokio::time::timeout(CONNECT_DEADLINE, shared.pool.fresh(&shared.control))
            .await
            .map_err(|_| Fault::Unreachable)?
            .map_err(|_| Fault::Unreachable)?,
    };
    let answer = async {
        let body = BodySlices::new(Pieces::from_iter([Bytes::from(body)]));
        let response = lease.send(&request.into_parts().0, body).await.map_err(|_| Fault::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(Fault::Status(status.as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| Fault::Unreadable(error.to_string()))
    };
    tokio::time::timeout(POLL_DEADLINE, answer).await.map_err(|_| Fault::Unreachable)?
}

fn poll_request(
    shared: &Shared,
    questions: &[LimitQuestion],
    before_segment: u64,
    done: &[crate::control::reports::Report],
    news: &[Sample],
) -> Result<Vec<u8>, Fault> {
    let active = shared.active.load();
    let (spool_unwritten_bytes, spool_lost_records) = shared.spool.troubles();
    let (connections, providers) = stats::of(&active);
    let poll = Poll {
        worker: &shared.worker_id,
        pid: std::process::id(),
        applied_version: active.snapshot.version,
        done,
        stats: Stats {
            in_flight: shared.counts.in_flight.load(Ordering::Relaxed),
            open_streams: shared.counts.open_streams.load(Ordering::Relaxed),
            requests_total: shared.counts.requests_total.load(Ordering::Relaxed),
            shed_total: shared.counts.shed_total.load(Ordering::Relaxed),
            draining: shared.drain.is_announced(),
            socket_connections: shared.counts.socket_connections.load(Ordering::Relaxed),
            socket_refused_total: shared.counts.socket_refused_total.load(Ordering::Relaxed),
            threads_stuck: shared.threads.stuck().len(),
            buffered_body_bytes: shared.counts.buffered_body_bytes.load(Ordering::Relaxed),
            spool_unwritten_bytes,
            spool_lost_records,
            bodies_lost_total: shared.captures.lost(),
            metrics: news,
            refused_callers: shared.refused_callers.report(),
            cleared: active.snapshot.resilience.newest_clear(),
            leases: shared.leases.as_ref().map(|leases| leases.stats(shared.ledger.lease_summary())),
            connections,
            providers,
        },
        spent: (!questions.is_empty()).then(|| Spent {
            before_segment,
            questions: questions.iter().map(SpentQuestion::from).collect(),
            nodes: shared.leases.as_ref().map(Leases::known_nodes).unwrap_or_default(),
        }),
    };
    serde_json::to_vec(&poll).map_err(|error| Fault::Unreadable(error.to_string()))
}
