//! The page that browsers receive while management restarts. Programs receive a JSON error instead.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::base_headers;
use crate::gate::headers::number;
use crate::gate::request::Forward;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::{Error, ErrorKind};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

/// The paths that people visit.
const PLACES: [&str; 5] = ["/dashboard", "/login", "/board", "/oauth", "/setup"];
const STYLE: &str = "html{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:34rem;margin:18vh auto;padding:0 1.5rem}h1{font-size:1.25rem}";
/// The hash of [`STYLE`]: the page loads nothing and runs no scripts.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      style-src 'sha256-5yh1XrGLVlRCZP5pCSk3BZr5jUAZfu1YT1DypfNDNiQ='";
const REFERRER: HeaderName = HeaderName::from_static("referrer-policy");
const SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");
/// The interval after which a browser reloads the page, in seconds.
const RELOAD_S: u64 = 1;

/// The page for a request while management is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPage {
    /// A page that reloads itself.
    Reloads,
    /// The page after a form, which only the user may send again.
    AfterForm,
}

impl RestartPage {
    /// Returns `None` for a program, and for requests other than pages.
    pub fn of(forward: &Forward) -> Option<Self> {
        let path = forward.path_and_query.split('?').next().unwrap_or_default();
        let is_below =
            |prefix| path.strip_prefix(prefix).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('/'));
        if !PLACES.into_iter().any(is_below) || !accepts_html(&forward.headers) {
            return None;
        }
        let is_read = matches!(forward.method, Method::GET | Method::HEAD);
        Some(if is_read { Self::Reloads } else { Self::AfterForm })
    }

    /// Ends the exchange with the page. Returns `false` if the error is not about unavailable management.
    pub fn answer(self, shared: &Shared, exchange: &Exchange, request_id: &str, fault: &Error) -> bool {
        if fault.kind != ErrorKind::ControlUnavailable {
            return false;
        }
        let mut headers = base_headers(shared, request_id);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::RETRY_AFTER, number(fault.retry_after_s.unwrap_or(RELOAD_S)));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(REFERRER, HeaderValue::from_static("same-origin"));
        headers.insert(SNIFFING, HeaderValue::from_static("nosniff"));
        exchange.answer(Head { status: StatusCode::SERVICE_UNAVAILABLE, headers }, Bytes::from(self.html()));
        true
    }

    fn html(self) -> String {
        let (reload, words) = match self {
            Self::Reloads => (
                format!("<meta http-equiv=\"refresh\" content=\"{RELOAD_S}\">"),
                "This page reloads when management is ready.",
            ),
            Self::AfterForm => {
                (String::new(), "Your form may not have been processed. Go back, check, and send it again.")
            }
        };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Management is restarting</title>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{reload}<style>{STYLE}</style></head>\
             <body><main><h1>Management is restarting</h1><p>{words}</p>\
             <p>Calls to models are not affected.</p></main></body></html>\n"
        )
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .map(|one| one.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii())
        .any(|kind| kind.eq_ignore_ascii_case(b"text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_for(method: Method, path: &str, accept: &'static str) -> Option<RestartPage> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let path_and_query = path.to_owned();
        RestartPage::of(&Forward {
            method,
            path_and_query,
            headers,
            peer: None,
            is_tls: false,
            host: None,
            is_unread: false,
        })
    }

    #[test]
    fn browsers_get_a_page_and_programs_do_not() {
        let html = "text/html,application/xhtml+xml,*/*;q=0.8";
        for prefix in ["/dashboard", "/dashboard/keys?x=1", "/login?return_to=%2F", "/board/a", "/oauth/authorize"] {
            assert_eq!(page_for(Method::GET, prefix, html), Some(RestartPage::Reloads), "{prefix}");
            assert_eq!(page_for(Method::GET, prefix, "application/json"), None, "{prefix}");
            assert_eq!(page_for(Method::GET, prefix, "*/*"), None, "{prefix}");
        }
        assert_eq!(page_for(Method::POST, "/login", html), Some(RestartPage::AfterForm));
        assert_eq!(page_for(Method::GET, "/dashboards", html), None);
        assert_eq!(page_for(Method::GET, "/api/keys", html), None);
    }

    #[test]
    fn only_a_page_that_was_read_loads_itself_again() {
        assert!(RestartPage::Reloads.html().contains("http-equiv=\"refresh\""));
        assert!(!RestartPage::AfterForm.html().contains("http-equiv"));
    }
}
