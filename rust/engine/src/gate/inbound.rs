//! The head of a request as a front passes it, and the rules that are checked first.
//!
//! The engine checks these rules instead of the server, so that they are the same behind every front: sizes, `Host`,
//! the coding of the body, and a single credential. Headers are read once and in place; nothing is copied unless
//! needed.

use crate::gate::client_session::ClientSession;
use crate::gate::lease::LeaseHeaders;
use fairlead_core::{host, multipart, Credentials, Error, ErrorKind};
use smallvec::SmallVec;
use std::net::IpAddr;

const MAX_TARGET_BYTES: usize = 8 * 1024;
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 100;
const MAX_TAG_BYTES: usize = 256;

/// Names and values as sent. Names are in lower case, as HTTP/2 and every ASGI server provide them.
pub type HeaderList<'a> = [(&'a [u8], &'a [u8])];

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub struct Inbound<'a> {
    pub method: &'a str,
    /// The path of the request line, not decoded.
    pub path: &'a str,
    pub query: &'a [u8],
    pub headers: &'a HeaderList<'a>,
    /// The host in the request target (absolute form or `:authority`), if the front provides it.
    pub authority: Option<&'a str>,
    /// The peer of the socket; `None` on a Unix socket.
    pub peer: Option<IpAddr>,
    pub is_tls: bool,
    /// A body may follow even if no header announces it.
    pub is_http2: bool,
}

/// The headers that the engine reads.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a head")]
pub struct RequestHeaders<'a> {
    pub credentials: Credentials<'a>,
    /// The name and port by which the gateway is called.
    pub host: &'a str,
    /// `Authorization` has a scheme other than `Bearer`, which matters if the relay checks it.
    pub has_other_scheme: bool,
    pub content_type: Option<&'a [u8]>,
    pub content_length: Option<u64>,
    /// A body is announced.
    pub has_body: bool,
    /// No body is announced, but one may follow.
    pub may_have_body: bool,
    pub if_none_match: Option<&'a [u8]>,
    pub session_tag: Option<&'a str>,
    pub session_id: Option<&'a str>,
    pub pin: Option<&'a str>,
    pub route_model: Option<&'a str>,
    /// `Idempotency-Key`, or else `X-Request-Id`.
    pub idempotency_key: Option<&'a str>,
    /// The caller sent it as an idempotency key, not as an id that many requests may share.
    pub is_key_declared: bool,
    pub accept: Option<&'a [u8]>,
    /// `<link token>:<key id>`, from control only. It is ignored unless the token matches.
    pub on_behalf: Option<&'a str>,
    /// A call of control for a request that was already counted when it was accepted.
    pub is_counted: bool,
    /// `X-Gateway-Progress: true`.
    pub wants_progress: bool,
    /// `X-Gateway-Cost-Comment: true`.
    pub wants_cost: bool,
    pub traceparent: Option<&'a [u8]>,
    pub tracestate: Option<&'a [u8]>,
    /// The compression pipeline.
    pub compression: Option<&'a str>,
    /// Guardrails that the call disables.
    pub disabled_guardrails: Option<&'a str>,
    /// Beta features that an Anthropic client requests. Sent only to providers of that dialect.
    pub anthropic_beta: Option<&'a str>,
    /// The caller is an Anthropic client, whatever the route.
    pub has_anthropic_version: bool,
    /// The caller is a Google client, whatever the route: it identifies itself, or sends its key the way Google's
    /// clients do.
    pub is_google_client: bool,
    pub cache: CacheHeaders<'a>,
    pub routing: RouteHeaders<'a>,
    pub lease: LeaseHeaders<'a>,
}

/// The headers that influence the choice of a target.
#[derive(Debug, Default, Clone, Copy)]
pub struct RouteHeaders<'a> {
    pub mode: Option<&'a str>,
    pub budget: Option<&'a str>,
    pub budget_fallback: Option<&'a str>,
    pub inexpressible: Option<&'a str>,
}

/// The headers that control the response cache.
#[derive(Debug, Default, Clone, Copy)]
pub struct CacheHeaders<'a> {
    pub no_cache: bool,
    pub mode: Option<&'a str>,
    pub threshold: Option<&'a str>,
    pub no_memory: Option<&'a [u8]>,
}

impl<'a> CacheHeaders<'a> {
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        match name {
            b"x-gateway-no-cache" => self.no_cache = value.trim_ascii().eq_ignore_ascii_case(b"true"),
            b"x-gateway-cache-mode" => self.mode = Some(tag(value, "X-Gateway-Cache-Mode")?),
            b"x-gateway-cache-threshold" => self.threshold = Some(tag(value, "X-Gateway-Cache-Threshold")?),
            b"x-gateway-no-memory" => self.no_memory = Some(value),
            _ => {}
        }
        Ok(())
    }
}

/// Checks the head and extracts what the engine needs.
pub fn read<'a>(inbound: &Inbound<'a>) -> Result<RequestHeaders<'a>, Error> {
    if inbound.path.len() + inbound.query.len() > MAX_TARGET_BYTES {
        return Err(Error::client(
            ErrorKind::UriTooLong,
            "The request target is longer than 8 KiB; send data in the body.",
        ));
    }
    if inbound.headers.len() > MAX_HEADERS {
        return Err(Error::client(ErrorKind::HeadersTooLarge, "There are more than 100 header lines."));
    }
    let mut reader = HeadReader::default();
    for &(name, value) in inbound.headers {
        reader.take(name, value)?;
    }
    reader.finish(inbound)
}

/// The headers read so far, and those that are checked after all are read.
#[derive(Default)]
struct HeadReader<'a> {
    headers: RequestHeaders<'a>,
    total_bytes: usize,
    host: Option<&'a [u8]>,
    origin: Option<&'a [u8]>,
    fetch_site: Option<&'a [u8]>,
    /// `X-Request-Id`, if it is a valid idempotency key.
    request_id: Option<&'a str>,
    client_session: ClientSession<'a>,
    /// The request came through a proxy.
    is_forwarded: bool,
    is_chunked: bool,
}

impl<'a> HeadReader<'a> {
    /// Reads one header line.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        self.total_bytes += name.len() + value.len();
        match name.strip_prefix(b"x-omniroute-") {
            Some(end) => self.read_alike(end, value),
            None => self.read(name, value),
        }
    }

    /// Reads a header under the prefix that clients of another gateway use. Credentials have one name only.
    fn read_alike(&mut self, end: &[u8], value: &'a [u8]) -> Result<(), Error> {
        match end {
            b"cli-token" => Ok(()),
            b"session" => self.read(b"x_session_id", value),
            _ => {
                let mut name: SmallVec<[u8; 64]> = SmallVec::from_slice(b"x-gateway-");
                name.extend_from_slice(end);
                self.read(&name, value)
            }
        }
    }

    /// Reads a header by its name.
    // Long: a single match, so that each name is looked up once.
    fn read(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        let headers = &mut self.headers;
        match name {
            b"host" if self.host.is_some() => return Err(bad_host("There is more than one Host header.")),
            b"host" => self.host = Some(value),
            b"authorization" | b"x-api-key" | b"x-goog-api-key" | b"cookie" | b"x-gateway-cli-token" => {
                headers.is_google_client |= name == b"x-goog-api-key";
                self.take_credential(name, value)?;
            }
            b"content-length" | b"transfer-encoding" | b"content-encoding" => self.take_framing(name, value)?,
            b"content-type" => headers.content_type = Some(value),
            b"if-none-match" => headers.if_none_match = Some(value),
            b"x-gateway-session-id" => headers.session_tag = Some(tag(value, "X-Gateway-Session-Id")?),
            // Two spellings of one header: the one with hyphens takes precedence.
            b"x-session-id" => headers.session_id = Some(tag(value, "X-Session-Id")?),
            b"x_session_id" | b"x-codex-session-id" if headers.session_id.is_none() => {
                headers.session_id = Some(tag(value, "X-Session-Id")?);
            }
            b"x-claude-code-session-id"
            | b"x-qwen-code-session-id"
            | b"session_id"
            | b"session-id"
            | b"conversation_id"
            | b"thread_id"
            | b"thread-id" => self.client_session.take(name, value),
            b"x-gateway-connection" => headers.pin = Some(tag(value, "X-Gateway-Connection")?),
            b"x-route-model" => headers.route_model = Some(tag(value, "X-Route-Model")?),
            b"accept" => headers.accept = Some(value),
            b"idempotency-key" => headers.idempotency_key = Some(tag(value, "Idempotency-Key")?),
            // Proxies send arbitrary values under this name, so only a valid key is used.
            b"x-request-id" => self.request_id = text(value).filter(|id| (1..=MAX_TAG_BYTES).contains(&id.len())),
            b"x-fairlead-on-behalf" => headers.on_behalf = text(value),
            b"x-fairlead-counted" => headers.is_counted = value == b"true",
            b"x-gateway-disabled-guardrails" => {
                headers.disabled_guardrails = Some(tag(value, "X-Gateway-Disabled-Guardrails")?);
            }
            b"x-disabled-guardrails" if headers.disabled_guardrails.is_none() => {
                headers.disabled_guardrails = Some(tag(value, "X-Disabled-Guardrails")?);
            }
            b"x-gateway-mode" => headers.routing.mode = Some(tag(value, "X-Gateway-Mode")?),
            b"x-gateway-budget" => headers.routing.budget = Some(tag(value, "X-Gateway-Budget")?),
            b"x-gateway-budget-fallback" => {
                headers.routing.budget_fallback = Some(tag(value, "X-Gateway-Budget-Fallback")?);
            }
            b"x-gateway-inexpressible" => {
                headers.routing.inexpressible = Some(tag(value, "X-Gateway-Inexpressible")?);
            }
            b"x-gateway-compression" => headers.compression = Some(tag(value, "X-Gateway-Compression")?),
            b"anthropic-version" => headers.has_anthropic_version = true,
            b"x-goog-api-client" => headers.is_google_client = true,
            b"anthropic-beta" => headers.anthropic_beta = text(value),
            b"x-gateway-cost-comment" => headers.wants_cost = value.eq_ignore_ascii_case(b"true"),
            b"x-gateway-progress" => headers.wants_progress = value.eq_ignore_ascii_case(b"true"),
            b"traceparent" => headers.traceparent = Some(value),
            b"tracestate" => headers.tracestate = Some(value),
            b"origin" => self.origin = Some(value),
            b"sec-fetch-site" => self.fetch_site = Some(value),
            b"forwarded" | b"via" | b"x-real-ip" | b"x-client-ip" | b"true-client-ip" | b"cf-connecting-ip"
            | b"cf-ray" => self.is_forwarded = true,
            _ if name.starts_with(b"x-forwarded-") => self.is_forwarded = true,
            _ if name.starts_with(b"x-gateway-lease-") => headers.lease.take(name, tag(value, "X-Gateway-Lease")?),
            _ if name.starts_with(b"x-gateway-") => headers.cache.take(name, value)?,
            _ => {}
        }
        Ok(())
    }

    fn take_credential(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        let headers = &mut self.headers;
        match name {
            b"authorization" => {
                if let Some(token) = bearer(value) {
                    show(&mut headers.credentials, token);
                } else if !value.is_empty() {
                    headers.has_other_scheme = true;
                }
            }
            b"cookie" => headers.credentials.cookie = cookie(value).or(headers.credentials.cookie),
            b"x-gateway-cli-token" => headers.credentials.local_token = Some(text(value).unwrap_or("")),
            _ => {
                let message = "A key is visible ASCII.";
                let token = text(value).ok_or_else(|| Error::client(ErrorKind::Unauthenticated, message))?;
                show(&mut headers.credentials, token);
            }
        }
        Ok(())
    }

    /// Reads the headers that determine the end and the coding of the body.
    fn take_framing(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Error> {
        match name {
            b"content-length" => {
                self.headers.content_length = text(value).and_then(|digits| digits.parse().ok());
                self.headers.has_body = self.headers.content_length != Some(0);
            }
            b"transfer-encoding" => {
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    let message = "The only transfer coding is `chunked`, once.";
                    return Err(Error::client(ErrorKind::InvalidRequest, message).about("Transfer-Encoding"));
                }
                self.headers.has_body = true;
                self.is_chunked = true;
            }
            _ if !value.eq_ignore_ascii_case(b"identity") && !value.is_empty() => {
                let message = "Compressed request bodies are not read: send the body without `Content-Encoding`. In Codex, set `enable_request_compression = false` under `[features]`.";
                return Err(Error::client(ErrorKind::UnsupportedMediaType, message).about("Content-Encoding"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks everything that needs the whole head: its size, the framing of the body, the host, and the origin of the
    /// request.
    fn finish(self, inbound: &Inbound<'a>) -> Result<RequestHeaders<'a>, Error> {
        let mut headers = self.headers;
        headers.session_id = headers.session_id.or(self.client_session.id());
        headers.is_key_declared = headers.idempotency_key.is_some_and(|key| !key.is_empty());
        headers.idempotency_key = headers.idempotency_key.or(self.request_id).filter(|key| !key.is_empty());
        if inbound.is_http2 && headers.content_length.is_none() && !matches!(inbound.method, "GET" | "HEAD") {
            headers.may_have_body = true;
        }
        if self.total_bytes > MAX_HEADER_BYTES {
            return Err(Error::client(ErrorKind::HeadersTooLarge, "The headers are larger than 32 KiB."));
        }
        if self.is_chunked && headers.content_length.is_some() {
            // A body with two framings can be used to smuggle requests past a proxy.
            let message = "`Content-Length` and `Transfer-Encoding` exclude each other.";
            return Err(Error::client(ErrorKind::InvalidRequest, message).about("Content-Length"));
        }
        // HTTP/2 sends the host in `:authority`, and `Host` may be missing (RFC 9113, 8.3.1).
        let authority = inbound.authority.map(str::as_bytes).filter(|_| inbound.is_http2);
        headers.host = check_host(self.host.or(authority))?;
        if inbound.authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(headers.host)) {
            // It is unknown which of the two a proxy in front of the gateway used.
            return Err(bad_host("The Host header and the request target name different hosts."));
        }
        let is_unsafe = !matches!(inbound.method, "GET" | "HEAD" | "OPTIONS");
        let is_ours = is_same_origin(headers.host, self.origin, self.fetch_site, inbound.is_tls);
        let is_page = self.fetch_site.is_some() || self.origin.is_some();
        let credentials = &mut headers.credentials;
        credentials.is_local_peer =
            !self.is_forwarded && inbound.peer.is_none_or(|peer| peer.to_canonical().is_loopback());
        credentials.is_loopback_host = host::is_loopback(headers.host);
        credentials.is_cross_site = is_unsafe && !is_ours;
        credentials.is_of_foreign_page = (is_page && !is_ours) || !host::is_unrebindable(headers.host);
        Ok(headers)
    }
}

/// The refusal of a scheme other than `Bearer`.
pub fn other_scheme() -> Error {
    Error::client(ErrorKind::Unauthenticated, "`Authorization` must be `Bearer <key>`.").about("Authorization")
}

fn show<'a>(credentials: &mut Credentials<'a>, token: &'a str) {
    match credentials.bearer {
        Some(other) if other != token => credentials.ambiguous = true,
        _ => credentials.bearer = Some(token),
    }
}

fn bearer(value: &[u8]) -> Option<&str> {
    let (scheme, token) = text(value)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

/// Accepts visible ASCII only, so that the value can appear in logs and headers.
fn text(value: &[u8]) -> Option<&str> {
    value.iter().all(|byte| (0x20..0x7f).contains(byte)).then(|| std::str::from_utf8(value).ok()).flatten()
}

fn cookie(value: &[u8]) -> Option<&str> {
    text(value)?.split(';').find_map(|pair| pair.trim_start().strip_prefix("auth_token="))
}

fn tag<'a>(value: &'a [u8], name: &'static str) -> Result<&'a str, Error> {
    text(value).filter(|text| text.len() <= MAX_TAG_BYTES).ok_or_else(|| {
        Error::client(ErrorKind::InvalidRequest, format!("`{name}` must be at most 256 visible ASCII characters."))
            .about(name)
    })
}

fn bad_host(message: &'static str) -> Error {
    Error::client(ErrorKind::InvalidRequest, message).about("Host")
}

/// Accepts `name`, `name:port`, `[v6]` or `[v6]:port` only.
fn check_host(host: Option<&[u8]>) -> Result<&str, Error> {
    let host =
        host.and_then(text).filter(|host| !host.is_empty()).ok_or_else(|| bad_host("The Host header is missing."))?;
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(|| bad_host("The Host header is not a host."))?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(bad_host("The Host header is not a host."));
            }
            (address, port)
        }
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let port_is_fine = port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok());
    let name_is_fine = !name.is_empty()
        && name.len() <= 253
        && (host.starts_with('[') || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)));
    if port_is_fine && name_is_fine {
        Ok(host)
    } else {
        Err(bad_host("The Host header is not a host."))
    }
}

fn is_same_origin(host: &str, origin: Option<&[u8]>, fetch_site: Option<&[u8]>, is_tls: bool) -> bool {
    if let Some(site) = fetch_site {
        return site == b"same-origin" || site == b"none";
    }
    let scheme = if is_tls { "https://" } else { "http://" };
    origin
        .and_then(text)
        .and_then(|origin| origin.strip_prefix(scheme))
        .is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

/// Reads the keys of a query (`?key=`) as credentials, as Google's services do.
pub fn show_query_keys<'a>(credentials: &mut Credentials<'a>, query: &'a [u8]) {
    query.split(|&byte| byte == b'&').filter_map(key_in).for_each(|key| show(credentials, key));
}

/// Returns the query without its keys, so that the address can be shared.
pub fn without_keys(query: &[u8]) -> Vec<u8> {
    let pairs: Vec<&[u8]> = query.split(|&byte| byte == b'&').filter(|pair| !pair.starts_with(KEY)).collect();
    pairs.join(&b'&')
}

const KEY: &[u8] = b"key=";

fn key_in(pair: &[u8]) -> Option<&str> {
    pair.strip_prefix(KEY).and_then(text).filter(|key| !key.is_empty())
}

/// Whether the query of a Gemini call requests events.
pub fn requests_events(query: &[u8]) -> bool {
    query.split(|&byte| byte == b'&').any(|pair| pair == b"alt=sse")
}

/// Checks the content type of a body that must be JSON.
pub fn check_json(content_type: Option<&[u8]>) -> Result<(), Error> {
    let essence = content_type.and_then(text).map(|value| value.split(';').next().unwrap_or("").trim());
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case("application/json") => Ok(()),
        _ => Err(Error::client(ErrorKind::UnsupportedMediaType, "Send JSON with `Content-Type: application/json`.")
            .about("Content-Type")),
    }
}

/// Whether the body is binary.
pub fn is_file(content_type: Option<&[u8]>) -> bool {
    content_type.and_then(text).is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/octet-stream"))
}

/// Returns the boundary of a body that must be a form with files.
pub fn boundary(content_type: Option<&[u8]>) -> Result<&str, Error> {
    content_type.and_then(text).and_then(multipart::boundary_of).ok_or_else(|| {
        Error::client(
            ErrorKind::UnsupportedMediaType,
            "Send a form with `Content-Type: multipart/form-data; boundary=...`.",
        )
        .about("Content-Type")
    })
}

/// Whether the body has a type that an HTML form sends.
pub fn is_form(content_type: Option<&[u8]>) -> bool {
    let essence = content_type.and_then(text).map_or("", |value| value.split(';').next().unwrap_or("").trim());
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
