//! Support for unit tests of calls: the shared state without an engine, targets, and an admitted call.

use crate::active_config::ActiveConfig;
use crate::call::context::Call;
use crate::config::Config;
use crate::exchange::{Exchange, Wake};
use crate::gate::admission_proof::AdmissionProof;
use crate::gate::preferences::{Accepts, CachePreference, RoutePreference};
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::observe::spool::Spool;
use crate::shared::Shared;
use crate::upstream::connector::Connector;
use crate::upstream::wire::Pool;
use fairlead_cache::{Cache, Opening};
use fairlead_core::guardrail::Disabled;
use fairlead_core::routes::{self, Match};
use fairlead_core::{Principal, Sealer, Snapshot};
use std::sync::Arc;
use std::time::Instant;

/// A front that polls and needs no wake-up.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _: u64) {}
}

/// The shared state of an engine, without the engine.
pub(crate) fn shared(name: &str) -> Arc<Shared> {
    let data_dir = std::env::temp_dir().join(format!("fairlead-{name}-{}", std::process::id()));
    let config = serde_json::json!({
        "data_dir": data_dir, "control_socket": "/nowhere", "link_token": "t",
        "secret_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    });
    let config = Config::parse(config.to_string().as_bytes()).expect("a configuration");
    let spool = Spool::open(&data_dir, "w").expect("a spool");
    let cache = Cache::open(Opening {
        data_dir,
        worker_id: "w".into(),
        sealer: config.sealer.clone(),
        vector_files: None,
        now_ms: crate::clock::unix_ms,
    });
    Arc::new(Shared::new(config, "w".into(), Pool::new(Connector::default()), spool, cache.expect("a cache")))
}

/// A configuration from this document, which must contain its version.
pub(crate) fn active(document: &serde_json::Value) -> ActiveConfig {
    let snapshot = Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot");
    ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
}

/// An admitted chat completion, with nobody at the other end of its exchange.
pub(crate) fn call(shared: &Arc<Shared>) -> Call {
    let Match::Found { route, .. } = routes::find("POST", "/v1/chat/completions") else {
        unreachable!("there is a chat route")
    };
    let admission = Admission {
        route,
        surface: route.surface,
        dialect: route.dialect(),
        tail: String::new(),
        principal: Principal::Anonymous,
        proof: AdmissionProof::default(),
        request_id: "req_1".to_owned(),
        session_tag: None,
        session_id: None,
        pin: None,
        lease: None,
        route_model: None,
        idempotency_key: None,
        is_key_declared: false,
        accepts_events: Accepts::No,
        disabled_guardrails: Disabled::default(),
        reads_list: false,
        anthropic_beta: None,
        wants_progress: false,
        wants_cost: false,
        is_counted: false,
        trace: None,
        compression: None,
        cache: CachePreference::default(),
        routing: RoutePreference::default(),
        started: Instant::now(),
        ts_ms: 0,
    };
    let exchange = Exchange::new(1, Arc::new(Nobody));
    Call::new(Settlement::open(shared, &exchange, admission, 0))
}
