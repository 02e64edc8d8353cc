//! Idempotency keys across workers. The worker that holds the claim performs the call and stores its response for
//! repeats.
//!
//! A claim is a value in the store that expires if its worker dies. It begins with a header that identifies the request
//! and the claim. The response follows once it exists, sealed like everything that leaves this process.
//!
//! ```text
//! (none) -> in progress, renewed -> completed, stored 5 s -> (none)
//!                                \-> failed -> (none)
//! ```

use crate::call::idempotency::recording::{self, Recording, WINDOW_MS};
use crate::call::idempotency::ticket::Ticket;
use crate::exchange::{Exchange, Head};
use crate::shared::Shared;
use crate::shared_store::StoreConnection;
use bytes::Bytes;
use fairlead_core::{random_bytes, Error};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

const UNDER_WAY: u8 = b'u';
const ANSWERED: u8 = b'a';
/// The state, the digest of the request, and the claim's own id.
const HEAD_BYTES: usize = 1 + 32 + 16;
/// The first interval between polls for a call that another worker performs. Later intervals are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A caller who has waited this long for another worker's response is asked to retry.
const WAITING: Duration = Duration::from_secs(300);
/// Renewals within the lifetime of a claim.
const RENEWALS: u64 = 3;

/// Replaces a claim with a value, or removes it. `KEYS[1]` is the key; the arguments are the claim's current value, the
/// new value or an empty string, and its lifetime in milliseconds.
const SETTLE: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end \
if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end \
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1";
/// Extends a claim. `KEYS[1]` is the key; the arguments are the claim's current value and its lifetime in milliseconds.
const RENEW: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end \
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

/// The state of a request in the store.
#[derive(Debug)]
pub enum Ruling {
    /// This worker performs the call.
    Ours(Claim),
    /// Another worker has completed the call.
    Done(KeptAnswer),
    /// Another worker is performing the call.
    UnderWay,
    /// The key was used with a different request.
    OtherRequest,
    /// The store is unavailable, so each worker decides alone.
    Alone,
}

impl Ruling {
    /// Returns the stored response, or the error for a call that another worker owns.
    pub fn answer(self) -> Result<KeptAnswer, Error> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::OtherRequest => Err(recording::other_request()),
            Self::UnderWay | Self::Ours(_) | Self::Alone => Err(recording::under_way()),
        }
    }
}

/// A response that another worker stored.
#[derive(Debug)]
pub struct KeptAnswer {
    pub head: Head,
    pub body: Bytes,
}

#[derive(Serialize, Deserialize)]
struct KeptHead {
    status: u16,
    headers: Vec<(String, String)>,
}

impl KeptAnswer {
    /// Encodes the response as a length, the head as JSON, and the body.
    fn write(recording: &Recording) -> Option<Vec<u8>> {
        let (status, headers, chunks) = recording.answer()?;
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)));
        let head = serde_json::to_vec(&KeptHead { status: status.as_u16(), headers: headers.collect() }).ok()?;
        let mut out = u32::try_from(head.len()).ok()?.to_be_bytes().to_vec();
        out.extend(head);
        for chunk in chunks {
            out.extend_from_slice(&chunk);
        }
        Some(out)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (head, body) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let head: KeptHead = serde_json::from_slice(head).ok()?;
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for (name, value) in head.headers {
            headers.append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
        }
        let head = Head { status: StatusCode::from_u16(head.status).ok()?, headers };
        Some(Self { head, body: Bytes::copy_from_slice(body) })
    }
}

/// A claim of this worker, renewed until it is settled. Dropping it releases the claim.
#[derive(Debug)]
pub struct Claim {
    shared: Arc<Shared>,
    key: String,
    /// The current value of the claim in the store.
    value: Vec<u8>,
    renewing: AbortHandle,
    is_settled: bool,
}

/// Returns the claim of a call that this worker performs, `None` if no store is available, or else the reason why
/// another worker owns the call.
pub async fn claim_of(shared: &Arc<Shared>, ticket: Option<&Ticket>) -> Result<Option<Claim>, Ruling> {
    let Some(ticket) = ticket else { return Ok(None) };
    match claim(shared, ticket).await {
        Ruling::Ours(claim) => Ok(Some(claim)),
        Ruling::Alone => Ok(None),
        ruling => Err(ruling),
    }
}

/// Waits for a call that another worker performs. Returns the claim if that call fails or its worker dies, and
/// otherwise the stored response or the reason why there is none. Returns soon after the caller has left.
pub async fn claim_when_free(
    shared: &Arc<Shared>,
    ticket: Option<&Ticket>,
    exchange: &Exchange,
) -> Result<Option<Claim>, Ruling> {
    let mut pause = FIRST_PAUSE;
    let until = Instant::now() + WAITING;
    while !exchange.is_cancelled() && Instant::now() < until {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match claim_of(shared, ticket).await {
            Err(Ruling::UnderWay) => {}
            ruling => return ruling,
        }
    }
    Err(Ruling::UnderWay)
}

/// Tries to claim a ticket's call in one round trip. Returns [`Ruling::Alone`] if the store is unavailable.
async fn claim(shared: &Arc<Shared>, ticket: &Ticket) -> Ruling {
    let Some(peers) = shared.peers.as_ref() else { return Ruling::Alone };
    let (Some(mut connection), Ok(own)) = (peers.connection(), random_bytes::<16>()) else { return Ruling::Alone };
    let ttl_ms = peers.config.lease_ms;
    let mut claim = vec![UNDER_WAY];
    claim.extend(ticket.digest);
    claim.extend(own);
    let mut command = redis::cmd("SET");
    command.arg(&ticket.key).arg(&claim).arg("NX").arg("GET").arg("PX").arg(ttl_ms);
    let reply =
        tokio::time::timeout(peers.config.deadline(), command.query_async::<Option<Vec<u8>>>(&mut connection)).await;
    let Ok(Ok(known)) = reply else {
        peers.disconnect();
        return Ruling::Alone;
    };
    match known {
        Some(known) => judge(shared, ticket, &known),
        None => Ruling::Ours(Claim::new(shared, ticket, claim, connection, ttl_ms)),
    }
}

fn judge(shared: &Shared, ticket: &Ticket, known: &[u8]) -> Ruling {
    let Some((head, sealed)) = known.split_at_checked(HEAD_BYTES) else { return Ruling::Alone };
    if head[1..33] != ticket.digest {
        return Ruling::OtherRequest;
    }
    if head[0] == UNDER_WAY {
        return Ruling::UnderWay;
    }
    let opened = shared.config.sealer.open(&ticket.key, sealed).ok();
    // A response that this version cannot read does not count as completed.
    opened.and_then(|bytes| KeptAnswer::read(&bytes)).map_or(Ruling::Alone, Ruling::Done)
}

impl Claim {
    fn new(shared: &Arc<Shared>, ticket: &Ticket, claim: Vec<u8>, connection: StoreConnection, ttl_ms: u64) -> Self {
        let (key, own) = (ticket.key.clone(), claim.clone());
        // Dropping the claim aborts this task.
        let renewing = crate::task::spawn(renew(connection, key, own, ttl_ms)).abort_handle();
        Self { shared: Arc::clone(shared), key: ticket.key.clone(), value: claim, renewing, is_settled: false }
    }

    /// Stores the response for repeats of the request, if the call succeeded and the response is complete.
    pub fn settle(mut self, recording: &Recording) {
        let answer = KeptAnswer::write(recording);
        let sealed = answer.and_then(|answer| self.shared.config.sealer.seal(&self.key, &answer).ok());
        self.end(sealed);
    }

    fn end(&mut self, sealed: Option<Vec<u8>>) {
        self.is_settled = true;
        self.renewing.abort();
        let (shared, key, claim) = (Arc::clone(&self.shared), std::mem::take(&mut self.key), self.value.clone());
        let value = sealed.map_or_else(Vec::new, |sealed| {
            let mut value = claim.clone();
            value[0] = ANSWERED;
            value.extend(sealed);
            value
        });
        // The write has its own deadline. A worker whose runtime has ended lets the claim expire.
        if let Some(runtime) = self.shared.runtime() {
            drop(runtime.spawn(async move { write(&shared, &key, &claim, &value).await }));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_settled {
            self.end(None);
        }
    }
}

async fn write(shared: &Shared, key: &str, claim: &[u8], value: &[u8]) {
    let Some(peers) = shared.peers.as_ref() else { return };
    let Some(mut connection) = peers.connection() else { return };
    let mut command = redis::cmd("EVAL");
    command.arg(SETTLE).arg(1).arg(key).arg(claim).arg(value).arg(WINDOW_MS);
    let done = tokio::time::timeout(peers.config.deadline(), command.query_async::<u64>(&mut connection)).await;
    if !matches!(done, Ok(Ok(_))) {
        peers.disconnect();
    }
}

async fn renew(mut connection: StoreConnection, key: String, claim: Vec<u8>, ttl_ms: u64) {
    loop {
        tokio::time::sleep(Duration::from_millis(ttl_ms / RENEWALS)).await;
        let mut command = redis::cmd("EVAL");
        command.arg(RENEW).arg(1).arg(&key).arg(&claim).arg(ttl_ms);
        if command.query_async::<u64>(&mut connection).await.unwrap_or_default() == 0 {
            // The store lost the claim. The call continues, and a repeat of the request performs the call again.
            return;
        }
    }
}
