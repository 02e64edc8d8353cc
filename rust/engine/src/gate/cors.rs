//! Cross-origin requests from pages of origins that the operator named (`corsOrigins`): preflight responses, and the
//! headers that allow a page to read a response.
//!
//! This applies only to routes with the tiers `inference` and `key`, where the caller shows a key. No cookie is used,
//! so neither `Access-Control-Allow-Credentials` nor an allowed origin of `*` is ever sent. For all other routes and
//! origins the gateway responds as if CORS were not supported.

use crate::gate::inbound::Inbound;
use fairlead_core::routes::{self, Match, Tier};
use http::header::{
    self, HeaderMap, HeaderName, HeaderValue, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};

/// How long a browser may cache a preflight response.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");
/// Without this header a page can read only the body and seven headers. `*` means every header if no credentials are
/// sent.
const EXPOSED: HeaderValue = HeaderValue::from_static("*");
const VARY: HeaderValue = HeaderValue::from_static("Origin");

/// The cross-origin headers of a response.
#[derive(Debug, Clone)]
pub enum Cors {
    /// The response differs for a page of a named origin, so caches must store the two separately.
    Varies,
    /// A page of this origin may read the response.
    Readable(HeaderValue),
}

impl Cors {
    /// Returns the headers of a request; `None` if no page of another origin may read its response.
    pub fn of(named: &[String], inbound: &Inbound<'_>) -> Option<Self> {
        if named.is_empty() || !is_open(wanted_method(inbound), inbound.path) {
            return None;
        }
        let origin = one(inbound, b"origin").filter(|origin| named.iter().any(|name| name.as_bytes() == *origin));
        let value = origin.and_then(|origin| HeaderValue::from_bytes(origin).ok());
        Some(value.map_or(Self::Varies, Self::Readable))
    }

    /// Adds the headers to a response.
    pub fn mark(self, headers: &mut HeaderMap) {
        headers.append(header::VARY, VARY);
        if let Self::Readable(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// Returns the headers of a preflight response. `None` if the request is not a preflight or the page may not call.
pub fn preflight(inbound: &Inbound<'_>, is_readable_elsewhere: bool, mut headers: HeaderMap) -> Option<HeaderMap> {
    if inbound.method != "OPTIONS" || !is_readable_elsewhere {
        return None;
    }
    let method = HeaderValue::from_bytes(one(inbound, b"access-control-request-method")?).ok()?;
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method);
    // The headers of a call are checked when it arrives; none of them changes which caller it belongs to.
    let wanted =
        one(inbound, b"access-control-request-headers").filter(|names| names.iter().copied().all(is_name_byte));
    if let Some(names) = wanted.and_then(|names| HeaderValue::from_bytes(names).ok()) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    headers.append(header::VARY, HeaderValue::from_name(HeaderName::from_static("access-control-request-headers")));
    Some(headers)
}

/// The method of the call, or the method that a preflight asks for.
fn wanted_method<'a>(inbound: &Inbound<'a>) -> &'a str {
    if inbound.method != "OPTIONS" {
        return inbound.method;
    }
    one(inbound, b"access-control-request-method").and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("OPTIONS")
}

fn is_open(method: &str, path: &str) -> bool {
    match routes::find(method, path) {
        Match::Found { route, .. } => matches!(route.tier, Tier::Inference | Tier::Key),
        // A page should be able to read the error.
        Match::OtherMethod(_) => {
            method != "OPTIONS" && routes::tier_at(path).is_some_and(|tier| matches!(tier, Tier::Inference | Tier::Key))
        }
        Match::None => false,
    }
}

/// The value of a header that was sent exactly once.
fn one<'a>(inbound: &Inbound<'a>, wanted: &[u8]) -> Option<&'a [u8]> {
    let mut values = inbound.headers.iter().filter(|(name, _)| *name == wanted).map(|&(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Exchange, Head, Wake};
    use http::StatusCode;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self, _: u64) {}
    }

    const APP: &str = "https://app.example";

    fn inbound<'a>(method: &'a str, path: &'a str, headers: &'a [(&'a [u8], &'a [u8])]) -> Inbound<'a> {
        Inbound { method, path, query: b"", headers, authority: None, peer: None, is_tls: false, is_http2: false }
    }

    fn head_of(path: &str, method: &str, origin: &str) -> Option<Head> {
        let headers: [(&[u8], &[u8]); 3] = [
            (b"origin", origin.as_bytes()),
            (b"access-control-request-method", method.as_bytes()),
            (b"access-control-request-headers", b"authorization, content-type"),
        ];
        let question = inbound("OPTIONS", path, &headers);
        let exchange = Exchange::new(1, Arc::new(Nobody));
        exchange.set_cors(Cors::of(&[APP.to_owned()], &question));
        let headers = preflight(&question, exchange.is_readable_elsewhere(), HeaderMap::new())?;
        exchange.answer(Head { status: StatusCode::NO_CONTENT, headers }, bytes::Bytes::new());
        exchange.take_head()
    }

    #[test]
    fn a_named_origin_may_call_with_a_key() {
        for (path, method) in [("/v1/chat/completions", "POST"), ("/v1/models", "GET"), ("/api/scrape", "POST")] {
            let head = head_of(path, method, APP).expect(path);
            assert_eq!(head.status, StatusCode::NO_CONTENT);
            assert_eq!(head.headers[ACCESS_CONTROL_ALLOW_ORIGIN], APP);
            assert_eq!(head.headers[ACCESS_CONTROL_ALLOW_METHODS], method);
            assert_eq!(head.headers[ACCESS_CONTROL_ALLOW_HEADERS], "authorization, content-type");
            assert!(!head.headers.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
        }
    }

    #[test]
    fn no_other_origin_and_no_other_tier_is_let_in() {
        for origin in ["https://other.example", "https://app.example.", "http://app.example", "null", "*", ""] {
            assert!(head_of("/v1/chat/completions", "POST", origin).is_none(), "{origin}");
        }
        for (path, method) in [
            ("/api/keys", "GET"),
            ("/oauth/authorize", "GET"),
            ("/oauth/token", "POST"),
            ("/mcp/rpc", "POST"),
            ("/api/keys", "DELETE"),
            ("/nowhere", "GET"),
        ] {
            assert!(head_of(path, method, APP).is_none(), "{method} {path}");
        }
    }

    #[test]
    fn an_answer_says_who_may_read_it_and_that_it_depends() {
        let named = [APP.to_owned()];
        let marked = |origins: &[(&[u8], &[u8])]| {
            let mut headers = HeaderMap::new();
            Cors::of(&named, &inbound("POST", "/v1/chat/completions", origins)).expect("open").mark(&mut headers);
            headers
        };
        let own = marked(&[(b"origin", APP.as_bytes())]);
        assert_eq!((&own[ACCESS_CONTROL_ALLOW_ORIGIN], &own[header::VARY]), (&HeaderValue::from_static(APP), &VARY));
        let twice: [(&[u8], &[u8]); 2] = [(b"origin", APP.as_bytes()), (b"origin", APP.as_bytes())];
        for origins in [&[][..], &[(&b"origin"[..], &b"null"[..])], &twice] {
            let headers = marked(origins);
            assert!(headers.contains_key(header::VARY) && !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
        }
        assert!(Cors::of(&[], &inbound("POST", "/v1/chat/completions", &[(b"origin", APP.as_bytes())])).is_none());
    }
}
