//! The task that maintains the store connections, receives notices from other workers, and publishes this worker's
//! cooldowns and session targets.

use crate::clock;
use crate::peers::cooldowns::SharedCooldowns;
use crate::peers::{
    reasoning, session_targets, shared_answers, Peers, COOLDOWNS, EVICTIONS, REASONING, SESSION_TARGETS,
};
use crate::shared::Shared;
use crate::shared_store::StoreConnection;
use futures_util::StreamExt as _;
use redis::{Msg, RedisError};
use std::sync::Arc;
use std::time::Duration;

const RETRY: Duration = Duration::from_secs(1);
/// How often a worker checks for new cooldowns.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often session targets are published, all in one message. The next turn of a session takes longer than this.
const SESSION_TARGETS_EVERY: Duration = Duration::from_secs(1);

/// Maintains the connections, publishes and receives notices until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let mut cooldowns = SharedCooldowns::default();
    let mut turn = 0;
    loop {
        if let Err(fault) = serve(&shared, peers, &mut cooldowns, turn).await {
            // The limits report that the store is unavailable. The error text may contain credentials from the store's
            // address, so only its category is logged.
            tracing::debug!(fault = fault.category(), "the connection to the other workers failed");
        }
        *peers.connection.lock() = None;
        turn += 1;
        tokio::time::sleep(RETRY).await;
    }
}

async fn serve(
    shared: &Arc<Shared>,
    peers: &Peers,
    cooldowns: &mut SharedCooldowns,
    turn: usize,
) -> Result<(), RedisError> {
    let mut connection = peers.config.connect().await?;
    let mut subscription = peers.config.subscribe(&[COOLDOWNS, SESSION_TARGETS, EVICTIONS, REASONING], turn).await?;
    *peers.connection.lock() = Some(connection.clone());
    let mut messages = subscription.on_message();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut session_target_ticks = tokio::time::interval(SESSION_TARGETS_EVERY);
    session_target_ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = peers.disconnected.notified() => return Ok(()),
            () = peers.probe_requested.notified() => redis::cmd("PING").query_async::<()>(&mut connection).await?,
            message = messages.next() => match message {
                Some(message) => handle_message(shared, peers, cooldowns, &message),
                None => return Ok(()),
            },
            _ = look.tick() => {
                if let Some(news) = cooldowns.take_notices(&shared.active.load(), &peers.worker, clock::monotonic_ms()) {
                    publish(&mut connection, COOLDOWNS, news).await?;
                }
            }
            _ = session_target_ticks.tick() => {
                if let Some(news) = session_targets::take_notices(&shared.affinity, &peers.worker) {
                    publish(&mut connection, SESSION_TARGETS, news).await?;
                }
            }
        }
    }
}

/// Publishes one message. The connection's own deadline bounds the call.
async fn publish(connection: &mut StoreConnection, channel: &str, news: Vec<u8>) -> Result<(), RedisError> {
    redis::cmd("PUBLISH").arg(channel).arg(news).query_async::<()>(connection).await
}

fn handle_message(shared: &Arc<Shared>, peers: &Peers, cooldowns: &mut SharedCooldowns, message: &Msg) {
    let (payload, now_ms) = (message.get_payload_bytes(), clock::monotonic_ms());
    match message.get_channel_name() {
        SESSION_TARGETS => session_targets::apply_notice(&shared.affinity, &peers.worker, payload, now_ms),
        REASONING => reasoning::on_notice(shared, &peers.worker, payload),
        EVICTIONS => shared_answers::on_notice(shared, peers, payload),
        _ => cooldowns.apply_notice(&shared.active.load(), &peers.worker, payload, now_ms),
    }
}
