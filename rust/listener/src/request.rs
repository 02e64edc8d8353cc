//! A request of HTTP/2 as hyper gives it, handed to the engine, and the answer as hyper takes it.

use crate::connection_state::{ConnectionState, Order};
use crate::flight::Flight;
use crate::intake;
use crate::quota::Ticket;
use crate::reply::Reply;
use crate::worker::Counted;
use bytes::Bytes;
use fairlead_engine::engine::{Engine, FedHere};
use fairlead_engine::exchange::{Exchange, Head, Piece, Wake};
use fairlead_engine::gate::admission::Admitted;
use fairlead_engine::gate::inbound::Inbound;
use http::{Method, Request, Response};
use hyper::body::{Body as _, Incoming};
use smallvec::SmallVec;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;

/// There is nobody to answer, or nothing to answer with: the connection ends.
#[derive(Debug, thiserror::Error)]
#[error("the request has no answer")]
pub struct NoAnswer;

/// What the connections of one thread share.
#[derive(Debug)]
pub struct Room {
    pub engine: Arc<Engine>,
    wake: Arc<dyn Wake>,
}

impl Room {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, wake: Arc::new(Unasked) }
    }

    /// Admits a head for a front that polls.
    pub fn admit(&self, inbound: &Inbound<'_>) -> Admitted {
        self.engine.admit(inbound, Arc::clone(&self.wake))
    }
}

/// This front polls.
#[derive(Debug)]
struct Unasked;

impl Wake for Unasked {
    fn wake(&self, _: u64) {}
}

/// Who is at the other end of a connection. It counts as one connection until the last part of it is gone.
#[derive(Debug)]
pub struct Caller {
    pub peer: IpAddr,
    pub is_tls: bool,
    pub state: Arc<ConnectionState>,
    pub counted: (Ticket, Counted),
}

/// Answers one request of HTTP/2. Dropping the future is the caller's leaving.
pub async fn serve(
    room: Arc<Room>,
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, NoAnswer> {
    let (serving, is_last) = caller.state.begin();
    let is_head = request.method() == Method::HEAD;
    let (parts, mut body) = request.into_parts();
    let admitted = with_inbound(&parts, &caller, |inbound| room.admit(inbound));
    drop(parts);
    let mut flight = Flight::new(exchange_of(&admitted), serving);
    if let Admitted::Pending(mut pending) = admitted {
        if pending.wants_body() {
            let read = intake::read(&room.engine, &mut pending, &mut flight, |cx| intake::poll_incoming(&mut body, cx));
            read.await.map_err(|_| NoAnswer)?;
        } else if let FedHere::Work(work) = room.engine.feed_here(&mut pending, &Bytes::new(), false) {
            flight.begin(work);
        }
    }
    if !body.is_end_stream() {
        intake::linger(body);
    }
    let answer = respond(flight, is_head).await?;
    if is_last {
        caller.state.tell(Order::Finish);
    }
    Ok(answer)
}

/// The exchange of a head that was admitted or answered.
pub(crate) fn exchange_of(admitted: &Admitted) -> Arc<Exchange> {
    Arc::clone(match admitted {
        Admitted::Answered(exchange) => exchange,
        Admitted::Pending(pending) => &pending.exchange,
    })
}

async fn respond(mut flight: Flight, is_head: bool) -> Result<Response<Reply>, NoAnswer> {
    let head = flight.head().await.ok_or(NoAnswer)?;
    if is_head {
        // hyper would drop the body of an answer to HEAD, and with it the work.
        while let Piece::Bytes(_) = poll_fn(|cx| flight.poll_piece(cx)).await {}
        return Ok(response(head, Reply::Ended));
    }
    let whole = flight.exchange().take_whole();
    let body = match whole {
        Some(body) => {
            flight.land();
            Reply::whole(body)
        }
        None => Reply::Pieces(Box::new(flight)),
    };
    Ok(response(head, body))
}

fn response(head: Head, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Hands over a head while hyper's own bytes are borrowed.
fn with_inbound<T>(parts: &http::request::Parts, caller: &Caller, work: impl FnOnce(&Inbound<'_>) -> T) -> T {
    let headers: SmallVec<[(&[u8], &[u8]); 32]> =
        parts.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())).collect();
    work(&Inbound {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default().as_bytes(),
        headers: &headers,
        authority: parts.uri.authority().map(http::uri::Authority::as_str),
        peer: Some(caller.peer),
        is_tls: caller.is_tls,
        is_http2: true,
    })
}
