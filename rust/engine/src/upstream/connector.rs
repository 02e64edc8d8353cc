//! Opens connections to providers: it resolves the name, checks every address against the egress policy, connects to a
//! checked address or through the required proxy, and performs the TLS handshake for the name. All outgoing connections
//! of the relay start here.

use crate::upstream::proxy::{self, Proxy};
use crate::upstream::resolver::Resolver;
use fairlead_core::{EgressPolicy, Error, ErrorKind, Retry};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::TlsConnector;

/// How long one of several addresses may take.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(1);

const FORBIDDEN: &str = "the address is one that the gateway never dials (link-local, metadata, multicast)";

/// The destination of a connection, and the key of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// If a proxy is set, every connection goes through it.
    Tcp {
        host: Box<str>,
        port: u16,
        tls: bool,
        proxy: Option<Arc<Proxy>>,
    },
    Unix(PathBuf),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port, tls, .. } => write!(f, "{}://{host}:{port}", if *tls { "https" } else { "http" }),
            Self::Unix(_) => f.write_str("control"),
        }
    }
}

impl Origin {
    /// The proxy of the connections, if any.
    pub fn proxy(&self) -> Option<&Arc<Proxy>> {
        match self {
            Self::Tcp { proxy, .. } => proxy.as_ref(),
            Self::Unix(_) => None,
        }
    }

    /// Returns this origin with a different proxy, or without one.
    #[must_use]
    pub fn through(&self, proxy: Option<&Arc<Proxy>>) -> Self {
        match self {
            Self::Tcp { host, port, tls, .. } => {
                Self::Tcp { host: host.clone(), port: *port, tls: *tls, proxy: proxy.cloned() }
            }
            Self::Unix(path) => Self::Unix(path.clone()),
        }
    }

    /// The error when no connection was established within the connect timeout.
    pub fn late(&self, connect_ms: u64) -> Error {
        if let Some(proxy) = self.proxy() {
            proxy.start_cooldown();
            return proxy::failed("it made no connection in time");
        }
        let message = format!("The provider did not take the connection within {connect_ms} ms.");
        Error::upstream(ErrorKind::UpstreamRefused, Retry::NothingSent, message)
    }
}

/// A byte stream to an origin.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// Opens connections for all pools.
pub struct Connector {
    tls: TlsConnector,
    resolver: Resolver,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl Default for Connector {
    /// Trusts the system's certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` are supported), or the built-in set of
    /// Mozilla if the system has none.
    fn default() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = match ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
            Ok(builder) => builder.with_root_certificates(roots).with_no_client_auth(),
            // The TLS provider supports both protocol versions; only a broken build fails here.
            Err(error) => unreachable!("the TLS provider lacks the default versions: {error}"),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { tls: TlsConnector::from(Arc::new(config)), resolver: Resolver::default() }
    }
}

impl Connector {
    /// Opens a connection. Every failure means that nothing was sent.
    pub async fn dial(&self, origin: &Origin) -> Result<Socket, Error> {
        Ok(match origin {
            Origin::Unix(path) => Socket::Unix(UnixStream::connect(path).await.map_err(|_| {
                Error::gateway(
                    ErrorKind::ControlUnavailable,
                    "Management is starting or has stopped; model calls continue. Try again in a moment.",
                )
            })?),
            Origin::Tcp { host, port, tls, proxy } => {
                let stream = match proxy {
                    Some(proxy) => self.connect_through(proxy, host, *port).await?,
                    None => self.connect(host, *port).await?,
                };
                stream.set_nodelay(true).map_err(|error| refused("the connection broke at once").caused_by(error))?;
                if *tls {
                    let name = ServerName::try_from(host.to_string())
                        .map_err(|error| refused("the name cannot have a certificate").caused_by(error))?;
                    let stream = self
                        .tls
                        .connect(name, stream)
                        .await
                        .map_err(|error| refused(tls_reason(&error)).caused_by(error))?;
                    Socket::Tls(Box::new(stream))
                } else {
                    Socket::Tcp(stream)
                }
            }
        })
    }

    /// Opens a tunnel to the host. The proxy resolves names; a literal address is checked against the policy here.
    async fn connect_through(&self, proxy: &Proxy, host: &str, port: u16) -> Result<TcpStream, Error> {
        if let Some(refusal) = proxy.refusal() {
            return Err(refusal);
        }
        if host.parse().is_ok_and(|address: IpAddr| !EgressPolicy::Operator.allows(address)) {
            return Err(refused(FORBIDDEN));
        }
        let mut stream = self.connect(&proxy.host, proxy.port).await.map_err(|error| {
            proxy.start_cooldown();
            proxy::failed("it cannot be reached").caused_by(error)
        })?;
        proxy.tunnel(&mut stream, host, port).await?;
        Ok(stream)
    }

    /// Resolves the name once and tries only addresses that the policy allows, in the resolver's order.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Error> {
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self
                .resolver
                .resolve(host)
                .await
                .map_err(|error| refused("the name does not resolve").caused_by(error))?,
        };
        let mut failure = refused("the name has no address");
        let mut left = addresses.len();
        for address in addresses {
            left -= 1;
            if !EgressPolicy::Operator.allows(address) {
                failure = refused(FORBIDDEN);
                continue;
            }
            // An unreachable address must not use up the time of the next ones. The last address gets all remaining
            // time.
            let patience = if left > 0 { NEXT_ADDRESS_AFTER } else { Duration::MAX };
            match tokio::time::timeout(patience, TcpStream::connect((address, port))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = refused(connect_reason(&error)).caused_by(error),
                Err(_) => failure = refused("the connection timed out"),
            }
        }
        Err(failure)
    }
}

fn refused(reason: &'static str) -> Error {
    Error::upstream(
        ErrorKind::UpstreamRefused,
        Retry::NothingSent,
        format!("The provider cannot be reached: {reason}."),
    )
}

fn connect_reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused",
        io::ErrorKind::TimedOut => "the connection timed out",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "the network is unreachable",
        _ => "the connection failed",
    }
}

fn tls_reason(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => "its certificate is not valid for this name",
        _ => "the TLS handshake failed",
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
