//! The task that maintains the store connections, receives notices from other workers, and publishes this worker's
//! cooldowns and session targets.

use crate::clock;
use crate::peers::rests::Rests;
use crate::peers::{places, shared_answers, thoughts, Peers, FORGOTTEN, PLACES, RESTS, THOUGHTS};
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
const TELL_PLACES_EVERY: Duration = Duration::from_secs(1);

/// Maintains the connections, publishes and receives notices until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let mut rests = Rests::default();
    let mut turn = 0;
    loop {
        if let Err(fault) = serve(&shared, peers, &mut rests, turn).await {
            // The limits report that the store is unavailable. The error text may contain credentials from the store's
            // address, so only its category is logged.
            tracing::debug!(fault = fault.category(), "other workers are not heard");
        }
        *peers.connection.lock() = None;
        turn += 1;
        tokio::time::sleep(RETRY).await;
    }
}

async fn serve(shared: &Arc<Shared>, peers: &Peers, rests: &mut Rests, turn: usize) -> Result<(), RedisError> {
    let mut connection = peers.config.connect().await?;
    let mut subscription = peers.config.subscribe(&[RESTS, PLACES, FORGOTTEN, THOUGHTS], turn).await?;
    *peers.connection.lock() = Some(connection.clone());
    let mut messages = subscription.on_message();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut tell_places = tokio::time::interval(TELL_PLACES_EVERY);
    tell_places.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = peers.lost.notified() => return Ok(()),
            () = peers.doubted.notified() => redis::cmd("PING").query_async::<()>(&mut connection).await?,
            message = messages.next() => match message {
                Some(message) => hear(shared, peers, rests, &message),
                None => return Ok(()),
            },
            _ = look.tick() => {
                if let Some(news) = rests.news(&shared.live.load(), &peers.worker, clock::monotonic_ms()) {
                    publish(&mut connection, RESTS, news).await?;
                }
            }
            _ = tell_places.tick() => {
                if let Some(news) = places::news(&shared.affinity, &peers.worker) {
                    publish(&mut connection, PLACES, news).await?;
                }
            }
        }
    }
}

/// Publishes one message. The connection's own deadline bounds the call.
async fn publish(connection: &mut StoreConnection, channel: &str, news: Vec<u8>) -> Result<(), RedisError> {
    redis::cmd("PUBLISH").arg(channel).arg(news).query_async::<()>(connection).await
}

fn hear(shared: &Arc<Shared>, peers: &Peers, rests: &mut Rests, message: &Msg) {
    let (payload, now_ms) = (message.get_payload_bytes(), clock::monotonic_ms());
    match message.get_channel_name() {
        PLACES => places::hear(&shared.affinity, &peers.worker, payload, now_ms),
        THOUGHTS => thoughts::hear(shared, &peers.worker, payload),
        FORGOTTEN => shared_answers::hear(shared, peers, payload),
        _ => rests.hear(&shared.live.load(), &peers.worker, payload, now_ms),
    }
}
