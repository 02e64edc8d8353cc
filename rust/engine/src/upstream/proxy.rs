//! Outbound proxies. HTTP's CONNECT (RFC 9110, section 9.3.6) and SOCKS5 (RFC 1928, RFC 1929) open a tunnel to the
//! provider's name, which the proxy resolves.
//!
//! A call that requires a proxy never bypasses it. A failing proxy has a separate error kind, and a proxy with an
//! unusable record fails every call.

use crate::clock;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::{Error, ErrorKind, ProxyRecord, ProxyScheme, Retry, Sealer, Secret, SecretHash};
use serde::Deserialize;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The cooldown of a failed proxy, so that the targets behind it fail at once instead of after a timeout each.
const COOLDOWN_MS: u64 = 1_000;
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A proxy with its decrypted credentials. Two proxies are equal if all of their properties are, because the proxy is
/// part of a pool's key.
#[derive(Debug)]
pub struct Proxy {
    pub id: Box<str>,
    pub scheme: ProxyScheme,
    pub host: Box<str>,
    pub port: u16,
    login: Option<Login>,
    /// The reason why the proxy cannot be used at all.
    broken: Option<&'static str>,
    /// Covers all of the fields above.
    identity: SecretHash,
    cooldown_until_ms: AtomicU64,
}

#[derive(Debug, Deserialize)]
struct Login {
    username: Secret,
    password: Secret,
}

impl PartialEq for Proxy {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for Proxy {}

impl Hash for Proxy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity.hash(state);
    }
}

impl Proxy {
    /// Decrypts the credentials of a record. If that fails, the result is a proxy that fails every call.
    pub fn open(record: &ProxyRecord, sealer: &Sealer) -> Self {
        let opened = record.credentials_sealed.as_ref().map(|sealed| {
            let sealed = STANDARD.decode(sealed).ok()?;
            serde_json::from_slice::<Login>(&sealer.open(&record.id, &sealed).ok()?).ok()
        });
        let broken =
            matches!(opened, Some(None)).then_some("its credential does not open with this data directory's key");
        Self::new(record, opened.flatten(), broken)
    }

    /// Returns a proxy that fails every call, for an id without a record.
    pub fn missing(id: &str) -> Self {
        let record = ProxyRecord {
            id: id.to_owned(),
            scheme: ProxyScheme::Http,
            host: String::new(),
            port: 0,
            credentials_sealed: None,
        };
        Self::new(&record, None, Some("there is no record of it"))
    }

    fn new(record: &ProxyRecord, login: Option<Login>, broken: Option<&'static str>) -> Self {
        let (username, password) =
            login.as_ref().map_or(("", ""), |login| (login.username.expose(), login.password.expose()));
        let parts = [&record.id, record.scheme.name(), &record.host, &record.port.to_string(), username, password];
        Self {
            id: record.id.as_str().into(),
            scheme: record.scheme,
            host: record.host.as_str().into(),
            port: record.port,
            identity: SecretHash::of(parts.join("\0").as_bytes()),
            login,
            broken,
            cooldown_until_ms: AtomicU64::new(0),
        }
    }

    /// The reason why no connection can be opened now; `None` if one can.
    pub fn refusal(&self) -> Option<Error> {
        if let Some(reason) = self.broken {
            return Some(failed(reason));
        }
        let is_cooling = clock::monotonic_ms() < self.cooldown_until_ms.load(Ordering::Relaxed);
        is_cooling.then(|| failed("it did not work a moment ago"))
    }

    /// Starts the cooldown of a failed proxy.
    pub fn start_cooldown(&self) {
        self.cooldown_until_ms.store(clock::monotonic_ms() + COOLDOWN_MS, Ordering::Relaxed);
    }

    /// Opens the tunnel over a new connection to the proxy. Nothing of the request has been sent if it fails.
    pub async fn tunnel(&self, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), Error> {
        let made = match self.scheme {
            ProxyScheme::Http => self.connect(stream, host, port).await,
            ProxyScheme::Socks5 => self.socks5(stream, host, port).await,
        };
        made.map_err(|refusal| match refusal {
            Refusal::Unreachable(reason) => unreached(reason),
            Refusal::Forbidden(reason) => failed(reason),
            Refusal::Broken(reason) => {
                self.start_cooldown();
                failed(reason)
            }
            Refusal::Io(error) => {
                self.start_cooldown();
                failed("the connection to it broke").caused_by(error)
            }
        })
    }

    async fn connect(&self, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), Refusal> {
        let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(Login { username, password }) = &self.login {
            let login = STANDARD.encode(format!("{}:{}", username.expose(), password.expose()));
            head.push_str("Proxy-Authorization: Basic ");
            head.push_str(&login);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        match status_of(&read_head(stream).await?) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(Refusal::Broken("it refused the gateway's credentials (407)")),
            Some(500..=599) => Err(Refusal::Unreachable("the proxy could not connect to it")),
            Some(_) => Err(Refusal::Forbidden("it refused to connect to the provider")),
            None => Err(Refusal::Broken("its answer is not HTTP")),
        }
    }

    async fn socks5(&self, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), Refusal> {
        let methods: &[u8] = if self.login.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
        stream.write_all(methods).await?;
        match read_array(stream).await? {
            [5, 0] => {}
            [5, 2] if self.login.is_some() => self.log_in(stream).await?,
            [5, _] => return Err(Refusal::Broken("it takes none of the gateway's ways to sign in")),
            _ => return Err(Refusal::Broken("its answer is not SOCKS5")),
        }
        let mut request = vec![5, 1, 0];
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(v4)) => {
                request.push(1);
                request.extend_from_slice(&v4.octets());
            }
            Ok(IpAddr::V6(v6)) => {
                request.push(4);
                request.extend_from_slice(&v6.octets());
            }
            Err(_) => {
                let length = u8::try_from(host.len()).map_err(|_| Refusal::Unreachable("its name is too long"))?;
                request.extend_from_slice(&[3, length]);
                request.extend_from_slice(host.as_bytes());
            }
        }
        request.extend_from_slice(&port.to_be_bytes());
        stream.write_all(&request).await?;
        let [version, reply, _, kind] = read_array(stream).await?;
        if version != 5 {
            return Err(Refusal::Broken("its answer is not SOCKS5"));
        }
        match reply {
            0 => {}
            1 | 3..=6 => return Err(Refusal::Unreachable("the proxy could not connect to it")),
            _ => return Err(Refusal::Forbidden("it refused to connect to the provider")),
        }
        // Skips the address that the proxy calls from.
        let address_bytes = match kind {
            1 => 4,
            4 => 16,
            3 => usize::from(read_array::<1>(stream).await?[0]),
            _ => return Err(Refusal::Broken("its answer is not SOCKS5")),
        };
        stream.read_exact(&mut vec![0; address_bytes + 2]).await?;
        Ok(())
    }

    /// Authenticates with user name and password (RFC 1929), each at most 255 bytes.
    async fn log_in(&self, stream: &mut TcpStream) -> Result<(), Refusal> {
        let Some(Login { username, password }) = &self.login else { return Ok(()) };
        let mut request = vec![1];
        for text in [username.expose(), password.expose()] {
            let length = u8::try_from(text.len()).map_err(|_| Refusal::Broken("a credential of it is too long"))?;
            request.push(length);
            request.extend_from_slice(text.as_bytes());
        }
        stream.write_all(&request).await?;
        match read_array(stream).await? {
            [_, 0] => Ok(()),
            _ => Err(Refusal::Broken("it refused the gateway's credentials")),
        }
    }
}

/// The reason why a proxy opened no tunnel.
enum Refusal {
    /// The proxy works, but cannot reach the provider.
    Unreachable(&'static str),
    /// The proxy works, but refuses to connect to this provider.
    Forbidden(&'static str),
    /// The proxy rejects these settings for every destination.
    Broken(&'static str),
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

async fn read_array<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut read = [0; N];
    stream.read_exact(&mut read).await?;
    Ok(read)
}

/// Reads the head of the proxy's response and no byte after it, because the following bytes come from the provider.
async fn read_head(stream: &mut TcpStream) -> Result<Vec<u8>, Refusal> {
    let mut head = Vec::new();
    let mut ahead = [0; 1024];
    while head.len() < MAX_HEAD_BYTES {
        let seen = stream.peek(&mut ahead).await?;
        if seen == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let known = head.len();
        head.extend_from_slice(&ahead[..seen]);
        let end = memchr::memmem::find(&head, b"\r\n\r\n").map(|at| at + 4);
        head.truncate(end.unwrap_or(head.len()));
        stream.read_exact(&mut ahead[..head.len() - known]).await?;
        if end.is_some() {
            return Ok(head);
        }
    }
    Err(Refusal::Broken("its answer has no end"))
}

fn status_of(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|&byte| byte == b'\r').next()?).ok()?;
    let (version, rest) = line.split_once(' ')?;
    version.starts_with("HTTP/1.").then(|| rest.get(..3)?.parse().ok()).flatten()
}

/// A failure of the proxy rather than the connection: another target may be tried.
pub fn failed(reason: &'static str) -> Error {
    Error::upstream(ErrorKind::ProxyFailed, Retry::NothingSent, format!("The outbound proxy cannot be used: {reason}."))
}

fn unreached(reason: &'static str) -> Error {
    Error::upstream(
        ErrorKind::UpstreamRefused,
        Retry::NothingSent,
        format!("The provider cannot be reached: {reason}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn proxy(scheme: &str, login: Option<(&str, &str)>) -> Proxy {
        let sealer = Sealer::new(&[7; 32]).expect("a key");
        let sealed = login.map(|(username, password)| {
            let plain = serde_json::json!({"username": username, "password": password}).to_string();
            STANDARD.encode(sealer.seal("global:", plain.as_bytes()).expect("sealed"))
        });
        let record = serde_json::json!({
            "id": "global:", "scheme": scheme, "host": "127.0.0.1", "port": 1, "credentials_sealed": sealed
        });
        Proxy::open(&serde_json::from_value(record).expect("a record"), &sealer)
    }

    /// Runs a proxy that expects each request of the script and sends the response beside it. Returns the result of the
    /// tunnel.
    async fn play(proxy: &Proxy, script: Vec<(Vec<u8>, Vec<u8>)>) -> (Result<(), Error>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let playing = crate::task::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            for (expected, answer) in script {
                let mut read = vec![0; expected.len()];
                stream.read_exact(&mut read).await.expect("a request");
                assert_eq!(read, expected);
                stream.write_all(&answer).await.expect("written");
            }
        });
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let made = proxy.tunnel(&mut stream, "provider.example", 443).await;
        let mut rest = Vec::new();
        if made.is_ok() {
            stream.read_to_end(&mut rest).await.expect("the rest");
        }
        drop(stream);
        playing.await.expect("played");
        (made, rest)
    }

    fn connect_head(authorization: &str) -> Vec<u8> {
        format!("CONNECT provider.example:443 HTTP/1.1\r\nHost: provider.example:443\r\n{authorization}\r\n").into()
    }

    #[tokio::test]
    async fn connect_leaves_what_the_provider_says_first() {
        let login = "Proxy-Authorization: Basic dTpw\r\n";
        let answer = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello".to_vec();
        let (made, rest) = play(&proxy("http", Some(("u", "p"))), vec![(connect_head(login), answer)]).await;
        assert_eq!((made, rest), (Ok(()), b"hello".to_vec()));
    }

    #[tokio::test]
    async fn a_refusal_says_who_is_to_blame() {
        for (status, kind, cooldowns) in [
            ("407", ErrorKind::ProxyFailed, true),
            ("403", ErrorKind::ProxyFailed, false),
            ("502", ErrorKind::UpstreamRefused, false),
        ] {
            let proxy = proxy("http", None);
            let answer = format!("HTTP/1.0 {status} No\r\n\r\n").into_bytes();
            let (made, _) = play(&proxy, vec![(connect_head(""), answer)]).await;
            let error = made.expect_err(status);
            assert_eq!((error.kind, error.retry), (kind, Retry::NothingSent), "{status}");
            assert_eq!(proxy.refusal().is_some(), cooldowns, "{status}");
        }
        let noise = proxy("http", None);
        assert!(play(&noise, vec![(connect_head(""), b"SSH-2.0\r\n\r\n".to_vec())]).await.0.is_err());
    }

    #[tokio::test]
    async fn socks5_signs_in_and_names_the_host() {
        let request = [&[5, 1, 0, 3, 16][..], b"provider.example", &[1, 187]].concat();
        let script = vec![
            (vec![5, 2, 0, 2], vec![5, 2]),
            (vec![1, 1, b'u', 1, b'p'], vec![1, 0]),
            (request.clone(), [&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"hi"].concat()),
        ];
        let (made, rest) = play(&proxy("socks5", Some(("u", "p"))), script).await;
        assert_eq!((made, rest), (Ok(()), b"hi".to_vec()));
        for (reply, kind) in [(2, ErrorKind::ProxyFailed), (5, ErrorKind::UpstreamRefused)] {
            let script = vec![(vec![5, 1, 0], vec![5, 0]), (request.clone(), vec![5, reply, 0, 1, 0, 0, 0, 0, 0, 0])];
            assert_eq!(play(&proxy("socks5", None), script).await.0.map_err(|error| error.kind), Err(kind));
        }
        let refused = vec![(vec![5, 2, 0, 2], vec![5, 2]), (vec![1, 1, b'u', 1, b'p'], vec![1, 1])];
        let made = play(&proxy("socks5", Some(("u", "p"))), refused).await.0;
        assert_eq!(made.map_err(|error| error.kind), Err(ErrorKind::ProxyFailed));
    }

    #[test]
    fn one_that_cannot_be_opened_fails_every_call_and_tells_no_secret() {
        let record = r#"{"id": "global:", "scheme": "http", "host": "h", "port": 1, "credentials_sealed": "AAAA"}"#;
        let record = serde_json::from_str(record).expect("a record");
        let broken = Proxy::open(&record, &Sealer::new(&[7; 32]).expect("a key"));
        assert_eq!(broken.refusal().map(|error| error.kind), Some(ErrorKind::ProxyFailed));
        assert!(Proxy::missing("key:x").refusal().is_some());
        let shown = format!("{:?}", proxy("http", Some(("user-canary", "password-canary"))));
        assert!(!shown.contains("canary"), "{shown}");
        assert_ne!(proxy("http", None), proxy("http", Some(("u", "p"))));
        assert_eq!(proxy("http", Some(("u", "p"))), proxy("http", Some(("u", "p"))));
    }
}
