//! A connection prepared for requests: its origin, paths and headers, with the credential decrypted. Targets are built
//! once per snapshot, so requests build none of this.

use crate::clock;
use crate::upstream::address::{chat_uri, origin_of};
use crate::upstream::auth::{AccessToken, Proof, Unusable};
use crate::upstream::cloud_path;
use crate::upstream::connector::Origin;
use crate::upstream::deployment_path;
use crate::upstream::health::{is_own_machine, Condition, Provider};
use crate::upstream::proxy::Proxy;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::{
    aws, model_name, Auth, Connection, Dialect, Error, ErrorKind, Protocol, Resilience, Sealer, Secret, ServiceAccount,
};
use fairlead_dialect::embeddings;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::Uri;
use parking_lot::Mutex;
use serde::Deserialize;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// One connection of the snapshot, prepared for requests.
#[derive(Debug)]
pub struct Target {
    pub connection: Arc<Connection>,
    pub origin: Arc<Origin>,
    /// Path and query of the chat endpoint. For Gemini's dialect it is the part before the model.
    chat_uri: Uri,
    /// Path of the token counting endpoint, if the dialect has one.
    count_uri: Option<Uri>,
    /// The headers of every call: `host`, the credential, the operator's headers and the usual ones.
    pub headers: HeaderMap,
    /// The credential and the operator's header values, which are masked in the provider's messages.
    secrets: Vec<Secret>,
    /// The part of the credential that is computed for each request.
    pub proof: Proof,
    /// Shared between snapshots as long as the connection's id exists.
    pub hot: Arc<ConnectionMeasures>,
    /// Shared between snapshots as long as the provider has a connection.
    pub provider: Arc<Provider>,
    pub resilience: Arc<Resilience>,
    pub is_own_machine: bool,
    /// The connection's other APIs, in the order of [`Connection::apis`].
    pub apis: Box<[Arc<Target>]>,
    /// Variants of this target that use the proxies of keys and combos, created at first use.
    detours: ProxiedTargets,
    /// The variant of this target that uses OpenAI's responses API, created at first use.
    responses: OnceLock<Arc<Target>>,
}

type ProxiedTargets = Mutex<SmallVec<[(Option<Arc<Proxy>>, Arc<Target>); 1]>>;

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// Shorter texts are not masked, because they occur by chance in messages.
const MIN_MASKED_CHARS: usize = 6;

/// Counters and measurements of a connection, collected while it is used.
#[derive(Debug, Default)]
pub struct ConnectionMeasures {
    pub condition: Mutex<Condition>,
    pub successes: AtomicU64,
    pub failures: AtomicU64,
    /// When the connection last succeeded and last failed, UTC; zero until it did.
    pub served_ms: AtomicU64,
    pub failed_ms: AtomicU64,
    pub load: crate::upstream::load::Load,
    pub limiter: crate::upstream::limiter::Limiter,
    pub caps: crate::upstream::target_cap::TargetCaps,
    pub access_token: AccessToken,
    /// Exponentially weighted mean in microseconds; zero until known.
    latency_us: AtomicU64,
}

impl ConnectionMeasures {
    pub fn count(&self, is_success: bool) {
        let (counter, at_ms) =
            if is_success { (&self.successes, &self.served_ms) } else { (&self.failures, &self.failed_ms) };
        counter.fetch_add(1, Ordering::Relaxed);
        at_ms.store(clock::unix_ms(), Ordering::Relaxed);
    }

    /// Adds a latency sample with a weight of one fifth.
    pub fn observe_latency(&self, sample_us: u64) {
        let old = self.latency_us.load(Ordering::Relaxed);
        let new = if old == 0 { sample_us } else { (old * 4 + sample_us) / 5 };
        self.latency_us.store(new.max(1), Ordering::Relaxed);
    }

    pub fn latency_ms(&self) -> Option<f64> {
        match self.latency_us.load(Ordering::Relaxed) {
            0 => None,
            us => Some(us as f64 / 1_000.0),
        }
    }
}

#[derive(Deserialize, Default)]
struct Credentials {
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    aws: Option<aws::Keys>,
    #[serde(default)]
    service_account: Option<ServiceAccount>,
}

impl Target {
    /// The provider's name in responses: the prefix by which models are named.
    pub fn provider_name(&self) -> &str {
        self.connection.prefixes.first().map_or(self.connection.provider.as_str(), String::as_str)
    }

    pub fn build(
        connection: Arc<Connection>,
        sealer: &Sealer,
        hot: Arc<ConnectionMeasures>,
        version: &str,
    ) -> Result<Self, Unusable> {
        let base: Uri = connection.base_url.parse().map_err(|_| Unusable::BaseUrl)?;
        let authority = base.authority().ok_or(Unusable::BaseUrl)?;
        let origin = origin_of(&base)?;
        let is_own_machine = matches!(&origin, Origin::Tcp { host, .. } if is_own_machine(host));
        let chat_uri = chat_uri(&connection, &base)?;
        let count_path = match connection.dialect {
            // The clouds count tokens by other requests, so the gateway estimates.
            _ if connection.protocol != Protocol::Own => None,
            Dialect::Anthropic => Some("/count_tokens"),
            Dialect::OpenaiResponses => Some("/input_tokens"),
            Dialect::Openai | Dialect::Gemini => None,
        };
        let count_uri = count_path.map(|path| format!("{}{path}", chat_uri.path()).parse());
        let count_uri = count_uri.transpose().map_err(|_| Unusable::BaseUrl)?;
        let credentials = open(&connection, sealer)?;
        let headers = headers(&connection, &credentials, authority.as_str(), version)?;
        let texts = credentials.api_key.into_iter().chain(credentials.headers.into_values());
        let mut secrets: Vec<Secret> = texts.filter(|text| text.len() >= MIN_MASKED_CHARS).map(Secret::from).collect();
        let proof = Proof::of(&connection, authority.as_str(), credentials.aws, credentials.service_account)?;
        secrets.extend(proof.secrets().cloned());
        Ok(Self {
            connection,
            origin: Arc::new(origin),
            chat_uri,
            count_uri,
            headers,
            secrets,
            proof,
            hot,
            provider: Arc::default(),
            resilience: Arc::default(),
            is_own_machine,
            apis: Box::default(),
            detours: ProxiedTargets::default(),
            responses: OnceLock::new(),
        })
    }

    /// Returns this connection as it calls a model, by the model's name at the provider: through the API that serves
    /// the model, if the provider has several.
    pub fn calling<'t>(self: &'t Arc<Self>, upstream_model: &str) -> &'t Arc<Self> {
        if self.apis.is_empty() {
            return self;
        }
        self.connection.api_of(upstream_model).and_then(|at| self.apis.get(at)).unwrap_or(self)
    }

    /// Returns this target with the given proxy, or without one. Returns itself if that is its route already.
    pub fn through(self: &Arc<Self>, proxy: Option<&Arc<Proxy>>) -> Arc<Self> {
        if self.origin.proxy() == proxy {
            return Arc::clone(self);
        }
        let mut detours = self.detours.lock();
        if let Some((_, detour)) = detours.iter().find(|(known, _)| known.as_ref() == proxy) {
            return Arc::clone(detour);
        }
        let made = Arc::new(self.routed(proxy));
        detours.push((proxy.cloned(), Arc::clone(&made)));
        made
    }

    /// Returns a copy that uses this proxy. Health and load belong to the connection and are shared.
    fn routed(&self, proxy: Option<&Arc<Proxy>>) -> Self {
        Self {
            connection: Arc::clone(&self.connection),
            origin: Arc::new(self.origin.through(proxy)),
            chat_uri: self.chat_uri.clone(),
            count_uri: self.count_uri.clone(),
            headers: self.headers.clone(),
            secrets: self.secrets.clone(),
            proof: self.proof.through(proxy),
            hot: Arc::clone(&self.hot),
            provider: Arc::clone(&self.provider),
            resilience: Arc::clone(&self.resilience),
            is_own_machine: self.is_own_machine,
            apis: self.apis.iter().map(|api| Arc::new(api.routed(proxy))).collect(),
            detours: ProxiedTargets::default(),
            responses: OnceLock::new(),
        }
    }

    /// Returns this target with OpenAI's responses API instead of chat completions. `None` if its provider speaks
    /// another dialect, or if the operator set the path of the calls.
    pub fn with_responses(self: &Arc<Self>) -> Option<Arc<Self>> {
        let connection = &self.connection;
        if connection.dialect != Dialect::Openai || connection.chat_path.is_some() {
            return None;
        }
        if let Some(made) = self.responses.get() {
            return Some(Arc::clone(made));
        }
        let version = connection.api_version.as_deref();
        if version.is_some_and(|version| !deployment_path::has_responses(version)) {
            return None;
        }
        // The body names the deployment.
        let chat_uri = self.uri_of("/responses", "").ok()?;
        let count_uri = match version {
            Some(_) => None,
            None => Some(format!("{}/input_tokens", chat_uri.path()).parse().ok()?),
        };
        let connection = Arc::new(Connection { dialect: Dialect::OpenaiResponses, ..(**connection).clone() });
        let made = Self { connection, chat_uri, count_uri, ..self.routed(self.origin.proxy()) };
        Some(Arc::clone(self.responses.get_or_init(|| Arc::new(made))))
    }

    /// Sends every call of the connection through this proxy.
    pub fn set_proxy(&mut self, proxy: &Arc<Proxy>) {
        self.origin = Arc::new(self.origin.through(Some(proxy)));
        self.proof = self.proof.through(Some(proxy));
    }
}

/// The headers of every request over a connection: the usual ones, the operator's, and the credential.
fn headers(
    connection: &Connection,
    credentials: &Credentials,
    authority: &str,
    version: &str,
) -> Result<HeaderMap, Unusable> {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::HOST, value(authority)?);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The usage is read from the response, so it must not be content-coded. A coded response is rejected.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(header::USER_AGENT, value(&format!("fairlead/{version}"))?);
    if connection.dialect == Dialect::Anthropic && connection.protocol == Protocol::Own {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2023-06-01"));
    }
    for (name, text) in &credentials.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unusable::Header)?;
        headers.insert(name, sensitive(text)?);
    }
    let Some(secret) = &credentials.api_key else { return Ok(headers) };
    match connection.auth {
        Auth::Bearer => drop(headers.insert(header::AUTHORIZATION, sensitive(&format!("Bearer {secret}"))?)),
        Auth::XApiKey => drop(headers.insert("x-api-key", sensitive(secret)?)),
        Auth::XGoogApiKey => drop(headers.insert("x-goog-api-key", sensitive(secret)?)),
        Auth::ApiKey => drop(headers.insert("api-key", sensitive(secret)?)),
        Auth::None | Auth::AwsSigv4 | Auth::GoogleServiceAccount => {}
    }
    Ok(headers)
}

impl Target {
    /// Checks whether the provider's URLs can contain the model's name. The error names the rule that it violates.
    pub fn admit_name(&self, model: &str) -> Result<(), Error> {
        match self.connection.dialect {
            Dialect::Gemini => model_name::check_address(self.stripped(model)).map_err(|fault| self.nameless(fault)),
            _ => Ok(()),
        }
    }

    /// Returns the URI for a call to a model, given the provider's name for the model.
    pub fn uri(&self, model: &str, is_stream: bool) -> Result<Uri, Error> {
        if let Some(path) = cloud_path::of(self.connection.protocol, self.stripped(model), is_stream) {
            let address = format!("{}{path}", self.chat_uri.path().trim_end_matches('/'));
            return address.parse().map_err(|_| Error::gateway(ErrorKind::Internal, "The model has no address."));
        }
        match (self.connection.dialect, is_stream) {
            (Dialect::Gemini, true) => self.model_uri(model, ":streamGenerateContent?alt=sse"),
            (Dialect::Gemini, false) => self.model_uri(model, ":generateContent"),
            (Dialect::Openai, _) if self.connection.api_version.is_some() => self.uri_of("/chat/completions", model),
            _ => Ok(self.chat_uri.clone()),
        }
    }

    /// Returns the URI of the token counting endpoint, if the dialect has one.
    pub fn count_uri(&self, model: &str) -> Result<Option<Uri>, Error> {
        match self.connection.dialect {
            Dialect::Gemini => self.model_uri(model, ":countTokens").map(Some),
            _ => Ok(self.count_uri.clone()),
        }
    }

    /// Returns the URI for embeddings in this form.
    pub fn embedding_uri(&self, form: embeddings::EmbeddingCall, model: &str) -> Result<Uri, Error> {
        match form {
            embeddings::EmbeddingCall::OpenAi => self.uri_of("/embeddings", model),
            embeddings::EmbeddingCall::One => self.model_uri(model, ":embedContent"),
            embeddings::EmbeddingCall::Many => self.model_uri(model, ":batchEmbedContents"),
        }
    }

    fn nameless(&self, fault: model_name::NameFault) -> Error {
        let message =
            format!("`model` {fault}. It is a part of the request URL of the provider `{}`.", self.provider_name());
        Error::client(ErrorKind::InvalidRequest, message).about("model")
    }

    fn model_uri(&self, model: &str, action: &str) -> Result<Uri, Error> {
        let path = model_name::address(self.stripped(model)).map_err(|fault| self.nameless(fault))?;
        let address = format!("{}/{path}{action}", self.chat_uri.path().trim_end_matches('/'));
        // The path was encoded above, so parsing does not fail.
        address.parse().map_err(|_| Error::gateway(ErrorKind::Internal, "The model has no address."))
    }

    /// Returns the model's name without the prefix that URLs do not contain.
    fn stripped<'m>(&self, model: &'m str) -> &'m str {
        self.connection.strip.as_deref().and_then(|prefix| model.strip_prefix(prefix)).unwrap_or(model)
    }

    /// Returns the path of another endpoint of the same provider, for example `/embeddings`, for a call to a model.
    pub fn uri_of(&self, path: &str, model: &str) -> Result<Uri, Error> {
        let wrong = || Error::gateway(ErrorKind::Internal, "The endpoint has no path.");
        if let Some(own) = self.connection.paths.get(path) {
            return own.parse().map_err(|_| wrong());
        }
        let base = self.connection.base_url.parse::<Uri>();
        let base = base.as_ref().map_or("", |base| base.path().trim_end_matches('/'));
        // The base URL was parsed before, so this is a valid path.
        if let Some(version) = &self.connection.api_version {
            let path = deployment_path::of(version, path, self.connection.called_name(model));
            return format!("{base}{path}").parse().map_err(|_| wrong());
        }
        format!("{base}{path}").parse().map_err(|_| wrong())
    }

    /// Masks the connection's secrets in a text, in case a provider echoes them.
    pub fn mask(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "***"))
    }

    pub fn is_revealed_in(&self, bytes: &[u8]) -> bool {
        self.secrets.iter().any(|secret| memchr::memmem::find(bytes, secret.expose().as_bytes()).is_some())
    }
}

fn value(text: &str) -> Result<HeaderValue, Unusable> {
    HeaderValue::from_str(text).map_err(|_| Unusable::Header)
}

/// Creates a header value that does not appear in debug output.
fn sensitive(text: &str) -> Result<HeaderValue, Unusable> {
    let mut value = value(text)?;
    value.set_sensitive(true);
    Ok(value)
}

fn open(connection: &Connection, sealer: &Sealer) -> Result<Credentials, Unusable> {
    let Some(sealed) = &connection.credentials_sealed else {
        return Ok(Credentials::default());
    };
    let sealed = STANDARD.decode(sealed).map_err(|_| Unusable::Credential)?;
    let plain = sealer.open(&connection.id, &sealed).map_err(|_| Unusable::Credential)?;
    serde_json::from_slice(&plain).map_err(|_| Unusable::Credential)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz;
    use proptest::prelude::*;

    fn connection(base_url: &str, extra: &str) -> Arc<Connection> {
        let json = format!(
            r#"{{"id":"c","provider":"p","prefixes":["p"],"dialect":"openai","base_url":"{base_url}","auth":"bearer"{extra}}}"#
        );
        Arc::new(serde_json::from_str(&json).expect("a connection"))
    }

    fn build(connection: Arc<Connection>) -> Result<Target, Unusable> {
        let sealer = Sealer::new(&[1; 32]).expect("a key");
        Target::build(connection, &sealer, Arc::default(), "0")
    }

    #[test]
    fn the_endpoint_follows_the_base_url() {
        for (base_url, extra, origin, uri) in [
            ("http://127.0.0.1:8000/v1", "", "http://127.0.0.1:8000", "/v1/chat/completions"),
            ("https://api.example/v1/", "", "https://api.example:443", "/v1/chat/completions"),
            ("https://api.example", "", "https://api.example:443", "/chat/completions"),
            ("http://[::1]:9/x", r#","chat_path":"chat""#, "http://::1:9", "/x/chat"),
        ] {
            let target = build(connection(base_url, extra)).expect("usable");
            assert_eq!((target.origin.to_string().as_str(), target.chat_uri.to_string().as_str()), (origin, uri));
        }
        assert!(matches!(build(connection("ftp://x", "")), Err(Unusable::BaseUrl)));
    }

    #[test]
    fn the_dialect_names_the_endpoint_and_its_version() {
        let json = r#"{"id":"c","provider":"p","prefixes":["p"],"dialect":"anthropic","base_url":"http://h/v1","auth":"x-api-key"}"#;
        let target = build(Arc::new(serde_json::from_str(json).expect("a connection"))).expect("usable");
        assert_eq!(target.chat_uri, "/v1/messages");
        assert_eq!(target.count_uri("m"), Ok(Some("/v1/messages/count_tokens".parse().expect("a path"))));
        assert_eq!(target.headers["anthropic-version"], "2023-06-01");
    }

    #[test]
    fn the_responses_api_is_beside_chat_completions() {
        let base = Arc::new(build(connection("https://api.example/v1", "")).expect("usable"));
        let variant = base.with_responses().expect("a variant");
        assert_eq!(variant.uri("m", true).expect("a path"), "/v1/responses");
        let count = variant.count_uri("m").expect("a path").expect("counts");
        assert_eq!(count, "/v1/responses/input_tokens");
        assert_eq!(variant.connection.dialect, Dialect::OpenaiResponses);
        assert!(Arc::ptr_eq(&variant.hot, &base.hot) && Arc::ptr_eq(&variant, &base.with_responses().expect("one")));
        assert!(variant.with_responses().is_none());
        let own = Arc::new(build(connection("http://h", r#","chat_path":"chat""#)).expect("usable"));
        assert!(own.with_responses().is_none());
    }

    #[test]
    fn a_gemini_model_stands_in_the_address() {
        let json = r#"{"id":"c","provider":"p","prefixes":["p"],"dialect":"gemini","base_url":"http://h/v1beta/","auth":"x-goog-api-key"}"#;
        let target = build(Arc::new(serde_json::from_str(json).expect("a connection"))).expect("usable");
        let uri = |model: &str, stream| target.uri(model, stream).expect("an address").to_string();
        assert_eq!(uri("gemini-3-pro", false), "/v1beta/models/gemini-3-pro:generateContent");
        assert_eq!(uri("models/gemini-3-pro", false), "/v1beta/models/gemini-3-pro:generateContent");
        assert_eq!(uri("tunedModels/a b", true), "/v1beta/tunedModels/a%20b:streamGenerateContent?alt=sse");
        assert_eq!(uri("x:countTokens", false), "/v1beta/models/x%3AcountTokens:generateContent");
        let count = target.count_uri("x").expect("addressable").expect("has one");
        assert_eq!(count, "/v1beta/models/x:countTokens");
        for model in ["../../admin", "g-1/../x", "a/b", "x%2Fy", "x?y", ""] {
            let fault = target.uri(model, false).expect_err(model);
            assert_eq!((fault.kind, fault.param.as_deref()), (ErrorKind::InvalidRequest, Some("model")), "{model}");
            assert!(target.count_uri(model).is_err() && target.admit_name(model).is_err());
            assert!(target.embedding_uri(embeddings::EmbeddingCall::One, model).is_err());
        }
    }

    #[test]
    fn fuzz_model_address() {
        let json = r#"{"id":"c","provider":"p","prefixes":["p"],"dialect":"gemini","base_url":"http://h/v1beta/","auth":"x-goog-api-key"}"#;
        let target = build(Arc::new(serde_json::from_str(json).expect("a connection"))).expect("usable");
        fuzz::check(&"(models/|tunedModels/|\\.\\.|/|%2[fF]|[ -~]|\\PC){0,12}", |model| {
            let Ok(uri) = target.uri(&model, false) else { return Ok(()) };
            let path = uri.path().to_owned();
            let rest = path.strip_prefix("/v1beta/").and_then(|rest| rest.strip_suffix(":generateContent"));
            let rest: Vec<&str> = rest.expect("stands below the base").split('/').collect();
            let is_place =
                matches!(rest[..], ["models" | "tunedModels" | "endpoints", _] | ["publishers", _, "models", _]);
            prop_assert!(is_place && uri.query().is_none(), "{}", uri);
            prop_assert!(rest.iter().all(|segment| !segment.is_empty() && *segment != "." && *segment != ".."));
            prop_assert!(!path.contains("%2F") && !path.contains("%25") && !path.contains("%2E"));
            Ok(())
        });
    }

    #[test]
    fn the_credential_is_opened_and_stands_in_no_debug_text() {
        let sealer = Sealer::new(&[1; 32]).expect("a key");
        let plain = br#"{"api_key":"sk-canary","headers":{"x-org":"acme"}}"#;
        let sealed = STANDARD.encode(sealer.seal("c", plain).expect("sealed"));
        let target = build(connection("http://h", &format!(r#","credentials_sealed":"{sealed}""#))).expect("usable");
        assert_eq!(target.headers["authorization"], "Bearer sk-canary");
        assert_eq!(target.headers["x-org"], "acme");
        assert!(!format!("{target:?}").contains("canary"));
        assert!(matches!(build(connection("http://h", r#","credentials_sealed":"AAAA""#)), Err(Unusable::Credential)));
    }
}
