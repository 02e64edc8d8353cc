//! Errors for paths without a route and for unsupported methods. They name the path and the base URL or the setting
//! that was probably meant.

use crate::gate::inbound::Inbound;
use fairlead_core::routes::{self, Match, Tier};
use fairlead_core::{Error, ErrorKind};

/// Longer paths are truncated in messages.
const SHOWN_CHARS: usize = 160;

/// The base URLs of the gateway, as the caller reaches it.
struct Address {
    origin: String,
}

impl Address {
    fn new(inbound: &Inbound<'_>, host: &str, trusted_proxies: usize) -> Self {
        let is_tls = inbound.is_tls || trusted_proxies > 0 && is_forwarded_tls(inbound);
        Self { origin: format!("{}://{host}", if is_tls { "https" } else { "http" }) }
    }

    /// A sentence that says what to call instead. It always names a base URL.
    fn advice(&self, path: &str) -> String {
        let origin = &self.origin;
        if let Some(tidy) = tidied(path) {
            return format!(
                "Call `{tidy}`: leave out the extra slashes; a base URL, such as `{origin}/v1`, ends without one."
            );
        }
        let path = path.trim_end_matches('/');
        let first = path.split('/').nth(1).unwrap_or_default();
        let names = |words: &[&str]| words.contains(&first);
        if path == "/v1" || path == "/openai" || path == "/openai/v1" {
            format!("`{origin}/v1` is the base URL for OpenAI clients, not a route: `GET /v1/models` lists the models.")
        } else if path == "/v1beta" || path == "/gemini" || path == "/google" {
            format!("The base URL for Google clients is `{origin}`, without a version: `GET /v1beta/models` lists the models.")
        } else if names(&[
            "health",
            "healthcheck",
            "live",
            "livez",
            "liveness",
            "ping",
            "ready",
            "readiness",
            "status",
            "up",
        ]) {
            format!(
                "`GET {origin}/healthz` reports whether the process runs, `GET {origin}/readyz` whether it is ready."
            )
        } else if names(&[
            "docs",
            "doc",
            "redoc",
            "swagger",
            "swagger-ui",
            "openapi.json",
            "openapi.yaml",
            "openapi",
            "api-docs",
        ]) {
            format!("The OpenAPI document is `GET {origin}/api/openapi.json`; the console is `{origin}/dashboard`.")
        } else if names(&["ui", "admin", "console", "app", "index.html", "home"]) {
            format!("The console is `{origin}/dashboard`. The base URL for OpenAI clients is `{origin}/v1`.")
        } else if path.starts_with("/openai/deployments/") {
            format!("Azure's paths are not served: use the base URL `{origin}/v1` and name the model as `<prefix>/<model>`.")
        } else if first == "v2" {
            format!(
                "The paths of version 2 are Firecrawl's (`POST {origin}/v2/scrape`) and Cohere's `POST /v2/rerank`; \
                 embeddings are `POST {origin}/v1/embeddings`."
            )
        } else {
            self.by_dialect(path)
        }
    }

    /// The base URL for clients that call such paths.
    fn by_dialect(&self, path: &str) -> String {
        let origin = &self.origin;
        let has = |words: &[&str]| words.iter().any(|word| path.contains(word));
        if path == "/ollama" || path.starts_with("/ollama/") {
            format!("The base URL for Ollama clients is `{origin}/ollama`, which serves chat, generate, tags, show and version.")
        } else if has(&["/v1beta", "enerateContent", ":countTokens", ":embedContent", ":batchEmbedContents"]) {
            format!("The base URL for Google clients is `{origin}`; a model is named `models/<prefix>/<model>`.")
        } else if has(&["/messages"]) {
            format!("The base URL for Anthropic clients is `{origin}`, without `/v1`.")
        } else if path == "/api" || path.starts_with("/api/") {
            format!("`GET {origin}/api/openapi.json` lists the management routes. The base URL for OpenAI clients is `{origin}/v1`.")
        } else if path.starts_with("/v1/") {
            format!(
                "The base URL for OpenAI clients is `{origin}/v1`; `GET {origin}/api/openapi.json` lists its routes."
            )
        } else {
            format!(
                "The base URL is `{origin}/v1` for OpenAI clients, `{origin}` for Anthropic and Google clients, and \
                 `{origin}/ollama` for Ollama clients; the console is `{origin}/dashboard`."
            )
        }
    }
}

/// The error for a path without a route.
pub fn no_route(inbound: &Inbound<'_>, host: &str, trusted_proxies: usize) -> Error {
    let advice = match routes::unserved(inbound.path) {
        Some(sentence) => sentence.to_owned(),
        None => Address::new(inbound, host, trusted_proxies).advice(inbound.path),
    };
    Error::client(ErrorKind::NotFound, format!("No route has the path `{}`. {advice}", shown(inbound.path)))
}

/// The error for a method that the path does not support.
pub fn other_method(inbound: &Inbound<'_>, methods: &[&'static str]) -> Error {
    let answers = format!("`{}` answers {}.", shown(inbound.path), methods.join(", "));
    let message = match foreign_origin(inbound) {
        Some((origin, method)) if is_for_clients(method, inbound.path) => format!(
            "Web pages of the origin `{origin}` may not call this gateway: an operator allows an origin with the setting \
             `corsOrigins`. {answers}"
        ),
        Some(_) => format!("No web page of another origin may call this path, and the setting `corsOrigins` does not change that. {answers}"),
        None => answers,
    };
    Error::client(ErrorKind::MethodNotAllowed, message)
}

/// The error for a WebSocket on a path that supports requests only. Clients that support both then send a request.
pub fn no_socket(inbound: &Inbound<'_>, methods: &[&'static str]) -> Error {
    let message = format!(
        "`{}` opens no WebSocket: send {} over HTTP. WebSockets are `GET /v1/ws` and `GET /v1/realtime`.",
        shown(inbound.path),
        methods.join(", ")
    );
    Error::client(ErrorKind::UpgradeRefused, message)
}

/// Whether the request asks for a WebSocket.
pub fn requests_websocket(inbound: &Inbound<'_>) -> bool {
    let asks = |(name, value): &(&[u8], &[u8])| {
        *name == b"upgrade" && value.eq_ignore_ascii_case(b"websocket") || *name == b"sec-websocket-key"
    };
    inbound.method == "GET" && inbound.headers.iter().any(asks)
}

/// The origin and the method of a browser's preflight request.
fn foreign_origin<'a>(inbound: &Inbound<'a>) -> Option<(&'a str, &'a str)> {
    let value = |wanted: &[u8]| {
        let found = inbound.headers.iter().find(|(name, _)| *name == wanted)?.1;
        std::str::from_utf8(found)
            .ok()
            .filter(|text| text.len() <= SHOWN_CHARS && text.bytes().all(|b| b.is_ascii_graphic()))
    };
    let method = value(b"access-control-request-method").filter(|_| inbound.method == "OPTIONS")?;
    Some((value(b"origin")?, method))
}

fn is_for_clients(method: &str, path: &str) -> bool {
    matches!(routes::find(method, path), Match::Found { route, .. } if matches!(route.tier, Tier::Inference | Tier::Key))
}

/// Removes extra slashes from a path, if the resulting path has a route.
fn tidied(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let tidy = format!("/{}", segments.join("/"));
    (tidy != path && routes::surface_at(&tidy).is_some()).then_some(tidy)
}

/// The path in a form that is safe in a message.
fn shown(path: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_graphic() && letter != '`' { letter } else { '?' };
    let mut text: String = path.chars().take(SHOWN_CHARS).map(plain).collect();
    if path.chars().nth(SHOWN_CHARS).is_some() {
        text.push_str("...");
    }
    text
}

fn is_forwarded_tls(inbound: &Inbound<'_>) -> bool {
    inbound.headers.iter().any(|(name, value)| *name == b"x-forwarded-proto" && value.eq_ignore_ascii_case(b"https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbound<'a>(method: &'a str, path: &'a str, headers: &'a [(&'a [u8], &'a [u8])]) -> Inbound<'a> {
        Inbound { method, path, query: b"", headers, authority: None, peer: None, is_tls: false, is_http2: false }
    }

    #[test]
    fn an_unknown_path_is_told_with_the_base_url_that_is_meant() {
        for (path, wanted) in [
            ("/v1", "`http://gw:1/v1` is the base URL"),
            ("/v1/", "`http://gw:1/v1` is the base URL"),
            ("/v1/nothing", "`http://gw:1/v1`"),
            ("/nothing", "`http://gw:1/ollama`"),
            ("/docs", "http://gw:1/api/openapi.json"),
            ("/health", "http://gw:1/healthz"),
            ("/health/liveliness", "http://gw:1/healthz"),
            ("/v1beta/nothing", "Google clients is `http://gw:1`"),
            ("/x/messages", "Anthropic clients is `http://gw:1`"),
            ("/ollama/api/nothing", "`http://gw:1/ollama`"),
            ("/api/nothing", "http://gw:1/api/openapi.json"),
            ("/openai/deployments/d/chat/completions", "Azure"),
            ("/v2/embed", "http://gw:1/v1/embeddings"),
            ("//v1/chat/completions", "Call `/v1/chat/completions`"),
            ("/v1/chat/completions/", "Call `/v1/chat/completions`"),
            ("/v1//models", "Call `/v1/models`"),
        ] {
            let message = no_route(&inbound("POST", path, &[]), "gw:1", 0).message;
            assert!(message.contains(wanted) && message.contains(&format!("`{path}`")), "{path}: {message}");
            assert!(message.contains("http://gw:1"), "{path}: {message}");
        }
    }

    #[test]
    fn a_route_of_a_provider_that_is_not_served_is_told_with_what_is() {
        for path in ["/ollama/api/pull", "/v1/vector_stores", "/api/v1/assistants/a"] {
            let message = no_route(&inbound("POST", path, &[]), "gw:1", 0).message;
            let served = routes::unserved(path).expect("a sentence");
            assert_eq!(message, format!("No route has the path `{path}`. {served}"));
        }
    }

    #[test]
    fn a_proxy_says_that_the_address_is_of_tls_where_it_is_trusted() {
        let headers: [(&[u8], &[u8]); 1] = [(b"x-forwarded-proto", b"https")];
        let behind_proxy = inbound("GET", "/v1", &headers);
        assert!(no_route(&behind_proxy, "gw", 1).message.contains("https://gw/v1"));
        assert!(no_route(&behind_proxy, "gw", 0).message.contains("http://gw/v1"));
    }

    #[test]
    fn a_strange_path_is_cut_and_made_plain() {
        let path = format!("/{}`\u{7}\u{e9}", "a".repeat(SHOWN_CHARS - 2));
        let message = no_route(&inbound("GET", &path, &[]), "gw", 0).message;
        assert!(message.contains("a?...`") && !message.contains('\u{7}') && message.len() < 500, "{message}");
    }

    #[test]
    fn a_browser_is_told_of_the_setting() {
        let headers: [(&[u8], &[u8]); 2] =
            [(b"origin", b"https://app.example"), (b"access-control-request-method", b"POST")];
        let message_of = |path| other_method(&inbound("OPTIONS", path, &headers), &["POST"]).message;
        let open = message_of("/v1/chat/completions");
        assert!(
            open.contains("`https://app.example`") && open.contains("allows an origin with the setting `corsOrigins`"),
            "{open}"
        );
        assert!(message_of("/api/keys").contains("does not change that"));
        let plain = other_method(&inbound("GET", "/v1/responses", &[]), &["POST"]).message;
        assert_eq!(plain, "`/v1/responses` answers POST.");
    }
}
