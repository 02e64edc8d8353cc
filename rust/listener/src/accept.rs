//! Accepts connections on the engine's own thread and hands each to the worker that has the fewest.
//!
//! One listener rather than one for each thread: a worker that is stuck gets nothing new, few connections spread evenly, and
//! the limits on their number are exact. What it costs is one change of threads for a connection, none for a request.

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
/// Pause of accepting after the system had no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// Binds the address, beside the supervisor's claim on it and whoever held it before.
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

/// The task that accepts connections, with what it needs to judge and hand them over.
#[derive(Debug)]
pub struct Acceptor {
    pub shared: Arc<Shared>,
    pub workers: Arc<[Worker]>,
    pub quota: Arc<ConnectionLimit>,
    pub certificate: Option<Arc<Certificate>>,
}

impl Acceptor {
    /// Accepts until it is dropped.
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
        // A connection that is gone already.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let peer = peer.ip().to_canonical();
        let Some(permit) = self.quota.take(peer) else { return self.turn_away(stream) };
        let tls = self.certificate.as_ref().map(|certificate| certificate.acceptor());
        let alive = self.workers.iter().filter(|worker| !worker.is_stuck());
        let worker = alive.min_by_key(|worker| worker.open()).or(self.workers.first());
        if let Some(worker) = worker {
            worker.hand_over(NewConnection { stream, peer, tls, permit });
        }
    }

    /// Answers 503 where the limit on connections is reached. Over TLS nothing is said: that would need a handshake first.
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
        // It fits into the empty buffer of a fresh socket, or the caller is gone.
        let _sent = stream.write_all(&text);
        let _ended = stream.shutdown(std::net::Shutdown::Write);
    }
}

/// Whether the connection broke before it was accepted, which is no fault of this side.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
