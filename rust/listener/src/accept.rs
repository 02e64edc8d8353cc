//! Accepts connections on the engine's thread and hands each to the worker with the fewest.
//!
//! There is one listener instead of one per thread. A worker that is stuck gets nothing new, a small number of
//! connections is distributed evenly, and the connection limits are exact. The cost is one thread change per
//! connection, and none per request.

use crate::config::Config;
use crate::connection_limit::ConnectionLimit;
use crate::tls::Certificate;
use crate::worker::{NewConnection, Worker};
use fairlead_core::routes::Surface;
use fairlead_core::{Error, ErrorKind};
use fairlead_engine::{refusal, Shared};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const BACKLOG: i32 = 2048;
/// How long accepting pauses after the system ran out of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Binds the address with `SO_REUSEPORT`, so that it can be shared with the supervisor's socket and with a previous
/// listener.
pub fn bind(config: &Config) -> io::Result<TcpListener> {
    let address = SocketAddr::new(config.host, config.port);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    #[cfg(target_os = "linux")]
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The task that accepts connections and hands them over.
#[derive(Debug)]
pub struct Acceptor {
    pub shared: Arc<Shared>,
    pub workers: Arc<[Worker]>,
    pub quota: Arc<ConnectionLimit>,
    pub certificate: Option<Arc<Certificate>>,
}

impl Acceptor {
    /// Accepts connections until the task is dropped.
    pub async fn run(self, listener: TcpListener) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the listener cannot be waited on"),
        };
        loop {
            let accepted = listener.accept().await;
            match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                Ok((stream, peer)) => self.receive(stream, peer),
                Err(error) if is_of_the_caller(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "no connection can be accepted for a moment");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn receive(&self, stream: TcpStream, peer: SocketAddr) {
        // The connection is already closed.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let peer = peer.ip().to_canonical();
        let Some(permit) = self.quota.take(peer) else { return self.turn_away(stream) };
        let tls = self.certificate.as_ref().map(|certificate| certificate.acceptor());
        let alive = self.workers.iter().filter(|worker| !worker.is_stuck());
        let worker = alive.min_by_key(|worker| worker.open()).or(self.workers.first());
        if let Some(worker) = worker {
            worker.assign(NewConnection { stream, peer, tls, permit });
        }
    }

    /// Answers 503 when a connection limit is reached. Over TLS nothing is sent, because that would need a handshake
    /// first.
    fn turn_away(&self, mut stream: TcpStream) {
        if self.certificate.is_some() {
            return;
        }
        let message = "The gateway has as many connections open as it takes; try again shortly.";
        let fault = Error::gateway(ErrorKind::Overloaded, message).after_s(1);
        let (head, body) = refusal(&self.shared, Surface::Management, "", &fault);
        let mut text =
            format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len()).into_bytes();
        for (name, value) in &head.headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&body);
        // The answer fits into the empty buffer of a new socket, unless the caller has left.
        let _sent = stream.write_all(&text);
        let _ended = stream.shutdown(std::net::Shutdown::Write);
    }
}

/// Whether the connection broke before it was accepted, which is not an error of the server.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
