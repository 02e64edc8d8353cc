//! Credentials that are computed at request time: Amazon's signature for each request, and Google's access token for
//! each hour. Fixed credentials are part of the target's headers and cost nothing here.

use crate::clock;
use crate::upstream::connector::Origin;
use crate::upstream::proxy::Proxy;
use crate::upstream::wire::{BodySlices, Pool};
use fairlead_core::aws::{self, Keys, SigningScope, Unsigned};
use fairlead_core::{Auth, Connection, Error, ErrorKind, Retry, Secret, ServiceAccount};
use fairlead_dialect::Pieces;
use http::{header, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// Headers of one request.
pub type Headers = SmallVec<[(HeaderName, HeaderValue); 3]>;

/// A token is replaced before it expires, so that small clock differences do not cause failures.
const RENEW_BEFORE_MS: u64 = 120_000;
/// Google's tokens are valid for an hour. A longer lifetime in the response is capped.
const LONGEST_S: u64 = 3_600;
const EXCHANGE_DEADLINE: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// RFC 7523, section 2.1, form-encoded.
const GRANT: &str = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

/// The reason why a connection cannot be used. The connection is logged and excluded; the others continue to work.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("its base URL is not an http or https URL with a host")]
    BaseUrl,
    #[error("its credential does not open with this data directory's key")]
    Credential,
    #[error("a header of its is not a legal HTTP header")]
    Header,
    #[error("its service account's key or token address cannot be used")]
    ServiceAccount,
}

/// How requests over a connection are authenticated, apart from its fixed headers.
#[derive(Debug, Clone)]
pub enum Proof {
    Fixed,
    Aws { keys: Keys, scope: SigningScope, host: String },
    Google(Box<Google>),
}

/// A service account and its token endpoint.
#[derive(Debug, Clone)]
pub struct Google {
    account: ServiceAccount,
    origin: Arc<Origin>,
    uri: Uri,
    host: HeaderValue,
}

/// The current access token. It survives a new snapshot as long as the connection's credential is unchanged.
#[derive(Debug, Default)]
pub struct AccessToken {
    current: parking_lot::Mutex<Option<Token>>,
    /// Allows one exchange at a time. Concurrent requests wait for its token.
    exchange: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Token {
    value: HeaderValue,
    renew_at_ms: u64,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl Proof {
    pub fn of(
        connection: &Connection,
        host: &str,
        keys: Option<Keys>,
        account: Option<ServiceAccount>,
    ) -> Result<Self, Unusable> {
        match connection.auth {
            Auth::AwsSigv4 => match (keys, connection.aws.clone()) {
                (Some(keys), Some(scope)) => Ok(Self::Aws { keys, scope, host: host.to_owned() }),
                _ => Err(Unusable::Credential),
            },
            Auth::GoogleServiceAccount => {
                Google::of(account.ok_or(Unusable::Credential)?).map(Box::new).map(Self::Google)
            }
            _ => Ok(Self::Fixed),
        }
    }

    /// Returns a copy whose token requests go through a proxy.
    #[must_use]
    pub fn through(&self, proxy: Option<&Arc<Proxy>>) -> Self {
        match self {
            Self::Google(google) => {
                let origin = Arc::new(google.origin.through(proxy));
                Self::Google(Box::new(Google { origin, ..(**google).clone() }))
            }
            other => other.clone(),
        }
    }

    /// Secrets that are masked if the provider echoes them.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (keys, account) = match self {
            Self::Fixed => (None, None),
            Self::Aws { keys, .. } => (Some(keys), None),
            Self::Google(google) => (None, Some(google.account.secret())),
        };
        keys.into_iter().flat_map(Keys::secrets).chain(account)
    }

    /// Returns the headers that authenticate one request.
    pub async fn headers(&self, pool: &Pool, token: &AccessToken, uri: &Uri, body: &Pieces) -> Result<Headers, Error> {
        match self {
            Self::Fixed => Ok(Headers::new()),
            Self::Aws { keys, scope, host } => Ok(sign(keys, scope, host, uri, body)),
            Self::Google(google) => {
                let value = Box::pin(token.get(pool, google)).await?;
                Ok(Headers::from_iter([(header::AUTHORIZATION, value)]))
            }
        }
    }
}

fn sign(keys: &Keys, scope: &SigningScope, host: &str, uri: &Uri, body: &Pieces) -> Headers {
    let mut hash = Context::new(&SHA256);
    for piece in body {
        hash.update(piece);
    }
    let mut body_hash = [0; 32];
    body_hash.copy_from_slice(hash.finish().as_ref());
    let request =
        Unsigned { method: "POST", host, path: uri.path(), query: uri.query().unwrap_or_default(), body_hash };
    let signed = aws::sign(keys, scope, request, clock::unix_s());
    let made = signed.into_iter().filter_map(|(name, text)| {
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_static(name), value))
    });
    made.collect()
}

impl Google {
    fn of(account: ServiceAccount) -> Result<Self, Unusable> {
        let uri: Uri = account.token_uri.parse().map_err(|_| Unusable::ServiceAccount)?;
        let authority = uri.authority().ok_or(Unusable::ServiceAccount)?.clone();
        let tls = uri.scheme_str() == Some("https");
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let origin = Arc::new(Origin::Tcp { host: authority.host().into(), port, tls, proxy: None });
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Unusable::ServiceAccount)?;
        // A key that cannot sign is reported now, not at the first request.
        account.assertion(0).map_err(|_| Unusable::ServiceAccount)?;
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let uri = path.parse().map_err(|_| Unusable::ServiceAccount)?;
        Ok(Self { account, origin, uri, host })
    }

    /// Exchanges an assertion for an access token.
    async fn exchange(&self, pool: &Pool) -> Result<Token, Error> {
        let asked_ms = clock::monotonic_ms();
        let assertion = self.account.assertion(clock::unix_s()).map_err(|error| {
            Error::gateway(ErrorKind::Internal, format!("The service account signs nothing: {error}."))
        })?;
        let mut request = Request::new(());
        let form = BodySlices::new(Pieces::from_iter([format!("{GRANT}{assertion}").into()]));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.host.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let lease = pool.fresh(&self.origin).await.map_err(|error| {
            if error.kind == ErrorKind::ProxyFailed {
                return error;
            }
            let message = "The token service of the connection's service account cannot be reached.";
            Error { message: message.into(), ..error }
        })?;
        let answer = lease.send(&request.into_parts().0, form).await.map_err(|_| refused("the connection broke"))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
        if !status.is_success() {
            return Err(refused(&format!("it answered {}", status.as_u16())));
        }
        let body = body.map_err(|_| refused("its answer broke off"))?.to_bytes();
        let granted: Granted = serde_json::from_slice(&body).map_err(|_| refused("its answer is no token"))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", granted.access_token))
            .map_err(|_| refused("its answer is no token"))?;
        value.set_sensitive(true);
        let lifetime_ms = granted.expires_in.min(LONGEST_S) * 1_000;
        // A short-lived token is renewed after half of its lifetime.
        let renew_at_ms = asked_ms + lifetime_ms.saturating_sub(RENEW_BEFORE_MS.min(lifetime_ms / 2));
        Ok(Token { value, renew_at_ms })
    }
}

impl AccessToken {
    /// Returns a valid token. Concurrent callers share one exchange.
    async fn get(&self, pool: &Pool, google: &Google) -> Result<HeaderValue, Error> {
        if let Some(value) = self.fresh() {
            return Ok(value);
        }
        let work = async {
            let _turn = self.exchange.lock().await;
            if let Some(value) = self.fresh() {
                return Ok(value);
            }
            let token = google.exchange(pool).await?;
            let value = token.value.clone();
            *self.current.lock() = Some(token);
            Ok(value)
        };
        let late = |_| refused("it did not answer in time");
        tokio::time::timeout(EXCHANGE_DEADLINE, work).await.map_err(late)?
    }

    fn fresh(&self) -> Option<HeaderValue> {
        let current = self.current.lock();
        current.as_ref().filter(|token| clock::monotonic_ms() < token.renew_at_ms).map(|token| token.value.clone())
    }

    /// Discards a token that the provider rejected. The next request obtains a new one.
    pub fn forget(&self) {
        *self.current.lock() = None;
    }
}

/// The provider itself received nothing, so another connection may be tried.
fn refused(reason: &str) -> Error {
    let message = format!("The token service of the connection's service account gave no token: {reason}.");
    Error::upstream(ErrorKind::UpstreamAuth, Retry::NothingSent, message)
}
