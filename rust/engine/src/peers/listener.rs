//! The task that keeps the connections to the store, hears other workers and tells them what rests here and where sessions were served.

use crate::clock;
use crate::peers::rests::Rests;
use crate::peers::{places, Peers};
use crate::shared::Shared;
use futures_util::StreamExt as _;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Msg, RedisError};
use std::sync::Arc;
use std::time::Duration;

const RETRY: Duration = Duration::from_secs(1);
/// How often a worker looks at what rests.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often places of sessions are told, as one message: a session's next turn takes longer.
const TELL_PLACES_EVERY: Duration = Duration::from_secs(1);
/// Two versions that say other things use other names.
const RESTS: &str = "fairlead:1:rests";
const PLACES: &str = "fairlead:1:places";

/// Keeps the connections, tells and hears, until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let mut rests = Rests::default();
    loop {
        if let Err(fault) = serve(&shared, peers, &mut rests).await {
            // That the store is away is told by those who keep limits in it. The fault's text may name what its address does.
            tracing::debug!(fault = fault.category(), "other workers are not heard");
        }
        *peers.connection.lock() = None;
        tokio::time::sleep(RETRY).await;
    }
}

async fn serve(shared: &Shared, peers: &Peers, rests: &mut Rests) -> Result<(), RedisError> {
    let deadline = peers.deadline();
    let late = |_| RedisError::from((redis::ErrorKind::Io, "late"));
    let client = Client::open(peers.config.url.expose())?;
    let options =
        AsyncConnectionConfig::new().set_connection_timeout(Some(deadline)).set_response_timeout(Some(deadline));
    let connecting = client.get_multiplexed_async_connection_with_config(&options);
    let mut connection = tokio::time::timeout(deadline, connecting).await.map_err(late)??;
    let mut subscription = tokio::time::timeout(deadline, client.get_async_pubsub()).await.map_err(late)??;
    tokio::time::timeout(deadline, subscription.subscribe(&[RESTS, PLACES])).await.map_err(late)??;
    *peers.connection.lock() = Some(connection.clone());
    let mut heard = subscription.on_message();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut tell_places = tokio::time::interval(TELL_PLACES_EVERY);
    tell_places.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = peers.lost.notified() => return Ok(()),
            message = heard.next() => match message {
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

/// Within the connection's deadline.
async fn publish(connection: &mut MultiplexedConnection, channel: &str, news: Vec<u8>) -> Result<(), RedisError> {
    redis::cmd("PUBLISH").arg(channel).arg(news).query_async::<()>(connection).await
}

fn hear(shared: &Shared, peers: &Peers, rests: &mut Rests, message: &Msg) {
    if message.get_channel_name() == PLACES {
        return places::hear(&shared.affinity, &peers.worker, message.get_payload_bytes(), clock::monotonic_ms());
    }
    rests.hear(&shared.live.load(), &peers.worker, message.get_payload_bytes(), clock::monotonic_ms());
}
