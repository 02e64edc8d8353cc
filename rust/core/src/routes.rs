//! The route table: every door of the gateway, who may pass it, who answers, how large a body it takes.
//!
//! This table is the only one. Routing, authorisation, body limits, the OpenAPI document and the tests are fed from it;
//! a path that is not in it is refused. Decisions are made on the raw path: it is compared byte for byte, never decoded
//! or normalised, so no second spelling of a path exists. One exception: what `{*name}` matches is a name to look up and
//! decides nothing, and clients send it with `%2F` for its slashes, so it is decoded, once.

use crate::error::{Error, Kind};
use std::borrow::Cow;

/// Who may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Anybody.
    Public,
    /// A gateway key, or anybody while keys are not required.
    Inference,
    /// A session, the local token, an access token (`read` to read, `write` to change), or a key with the scope `manage`.
    Management,
    /// As `Management`, and an access token needs `admin`.
    Admin,
    /// A session or the local token.
    Session,
    /// A session of any role, or the local token: what people do with their own account.
    Account,
    /// A gateway key, always: the scraping API knows no other caller.
    Key,
}

impl Tier {
    /// A refused credential, as this tier's callers are told of it: where a key is the only credential, one that does
    /// not count is an invalid key (401), whatever the reason.
    #[must_use]
    pub fn tell(self, mut fault: Error) -> Error {
        if self == Self::Key && fault.kind == Kind::Forbidden {
            fault.kind = Kind::Unauthenticated;
        }
        fault
    }
}

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The relay is alive.
    Health,
    /// The relay has a snapshot, and what is known of control.
    Ready,
    /// The model list.
    Models,
    /// One model.
    Model,
    /// A chat completion, relayed to a provider.
    Chat,
    /// The tokens of a messages request, counted by its provider or estimated.
    CountTokens,
    /// The control plane.
    Control,
}

/// Which error shape the caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    OpenAi,
    Anthropic,
    Gemini,
    Management,
    /// `{"success": false, "error": "..."}`.
    Scraping,
}

/// One door.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// Segments in braces match one non-empty segment; `{*name}` as the last one matches one or more.
    pub path: &'static str,
    pub tier: Tier,
    pub answer: Answer,
    /// The category that a key's `allowedEndpoints` speaks of.
    pub endpoint: &'static str,
    pub body_limit_bytes: usize,
    /// The body may be a form of one of the gateway's own pages; else it is JSON.
    pub takes_form: bool,
    pub surface: Surface,
    pub summary: &'static str,
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const NO_BODY: usize = 0;
const FORM: usize = 64 * KIB;
const RECORD: usize = MIB;
const PROMPT: usize = 32 * MIB;

const fn public(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Public,
        answer,
        endpoint: "public",
        body_limit_bytes,
        takes_form: false,
        surface: Surface::Management,
        summary,
    }
}

const fn inference(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body_limit_bytes: usize,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        tier: Tier::Inference,
        answer,
        endpoint,
        body_limit_bytes,
        takes_form: false,
        surface: Surface::OpenAi,
        summary,
    }
}

const fn management(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    Route {
        method,
        path,
        tier: Tier::Management,
        answer: Answer::Control,
        endpoint: "management",
        body_limit_bytes,
        takes_form: false,
        surface: Surface::Management,
        summary,
    }
}

const fn of_tier(tier: Tier, route: Route) -> Route {
    Route { tier, ..route }
}

const fn with_form(route: Route) -> Route {
    Route { takes_form: true, ..route }
}

const fn page(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    with_form(public(method, path, Answer::Control, body_limit_bytes, summary))
}

const fn account(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    of_tier(Tier::Account, management(method, path, body_limit_bytes, summary))
}

const fn session(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    of_tier(Tier::Session, management(method, path, body_limit_bytes, summary))
}

const fn admin(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    of_tier(Tier::Admin, management(method, path, body_limit_bytes, summary))
}

const fn scraping(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    Route {
        method,
        path,
        tier: Tier::Key,
        answer: Answer::Control,
        endpoint: "scraping",
        body_limit_bytes,
        surface: Surface::Scraping,
        takes_form: false,
        summary,
    }
}

/// The table.
pub static ROUTES: &[Route] = &[
    public("GET", "/healthz", Answer::Health, NO_BODY, "Whether the relay is alive."),
    public("GET", "/readyz", Answer::Ready, NO_BODY, "Whether the relay can serve, and what it knows of control."),
    inference("POST", "/v1/chat/completions", Answer::Chat, "chat", PROMPT, "Chat completion, plain or streamed."),
    // `/v1/messages` is a chat completion in another dialect: the surface says which.
    Route {
        surface: Surface::Anthropic,
        ..inference("POST", "/v1/messages", Answer::Chat, "chat", PROMPT, "Messages, plain or streamed.")
    },
    Route {
        surface: Surface::Anthropic,
        ..inference(
            "POST",
            "/v1/messages/count_tokens",
            Answer::CountTokens,
            "chat",
            PROMPT,
            "How many tokens a messages request has.",
        )
    },
    inference("GET", "/v1/models", Answer::Models, "models", NO_BODY, "The models that the caller may use."),
    inference("GET", "/v1/models/{*id}", Answer::Model, "models", NO_BODY, "One model."),
    public("POST", "/api/auth/login", Answer::Control, FORM, "Sign in."),
    public("POST", "/api/auth/logout", Answer::Control, FORM, "Sign out."),
    // Users and sign-in.
    page("GET", "/", NO_BODY, "The way in."),
    page("GET", "/setup", NO_BODY, "The set-up page."),
    page("POST", "/setup", FORM, "Set up the owner."),
    page("GET", "/login", NO_BODY, "The sign-in page."),
    page("POST", "/login", FORM, "Sign in from the page."),
    page("POST", "/login/2fa", FORM, "Give the second factor from the page."),
    page("POST", "/logout", FORM, "Sign out from the page."),
    public("POST", "/api/auth/login/2fa", Answer::Control, FORM, "Finish signing in with the second factor."),
    public("GET", "/api/auth/status", Answer::Control, NO_BODY, "Which ways to sign in there are."),
    public("GET", "/api/auth/oidc/login", Answer::Control, NO_BODY, "Begin signing in at the identity provider."),
    public(
        "GET",
        "/api/auth/oidc/callback",
        Answer::Control,
        NO_BODY,
        "Where the identity provider sends people back.",
    ),
    account("GET", "/api/auth/me", NO_BODY, "Who is signed in."),
    account("POST", "/api/auth/password", FORM, "Change one's own password."),
    account("GET", "/api/auth/sessions", NO_BODY, "List sessions."),
    account("DELETE", "/api/auth/sessions", NO_BODY, "End all sessions but the one that asks."),
    account("DELETE", "/api/auth/sessions/{id}", NO_BODY, "End a session."),
    account("GET", "/api/auth/2fa", NO_BODY, "Whether a second factor is asked for."),
    account("POST", "/api/auth/2fa/enrol", FORM, "Begin to set up a second factor."),
    account("POST", "/api/auth/2fa/confirm", FORM, "Turn the second factor on."),
    account("POST", "/api/auth/2fa/disable", FORM, "Turn the second factor off."),
    account("POST", "/api/auth/2fa/recovery-codes", FORM, "Make new recovery codes."),
    session("GET", "/api/auth/tokens", NO_BODY, "List management access tokens."),
    session("POST", "/api/auth/tokens", FORM, "Make a management access token; its text is shown once."),
    session("DELETE", "/api/auth/tokens/{id}", NO_BODY, "Revoke a management access token."),
    session("POST", "/api/auth/owner/password", FORM, "Set the owner's password anew, by the local command line only."),
    session("GET", "/api/users", NO_BODY, "List users."),
    session("POST", "/api/users", FORM, "Add a user."),
    session("PATCH", "/api/users/{id}", FORM, "Change a user."),
    session("DELETE", "/api/users/{id}", NO_BODY, "Remove a user."),
    management("GET", "/api/settings/require-login", NO_BODY, "Whether management asks for a sign-in."),
    admin("PUT", "/api/settings/require-login", FORM, "Turn the sign-in for management on or off."),
    management("GET", "/api/openapi.json", NO_BODY, "This API as an OpenAPI document."),
    management("GET", "/api/keys", NO_BODY, "List API keys."),
    management("POST", "/api/keys", RECORD, "Create an API key; its text is shown once."),
    management("GET", "/api/keys/{id}", NO_BODY, "One API key."),
    management("PATCH", "/api/keys/{id}", RECORD, "Change an API key."),
    management("DELETE", "/api/keys/{id}", NO_BODY, "Revoke an API key."),
    management("GET", "/api/combos", NO_BODY, "List combos."),
    management("POST", "/api/combos", RECORD, "Create a combo."),
    management("GET", "/api/combos/{id}", NO_BODY, "One combo."),
    management("PUT", "/api/combos/{id}", RECORD, "Change a combo; a partial body changes only what it names."),
    management("DELETE", "/api/combos/{id}", NO_BODY, "Delete a combo."),
    management("GET", "/api/models/alias", NO_BODY, "List model aliases."),
    management("POST", "/api/models/alias", RECORD, "Make an alias for a model or combo, or point it elsewhere."),
    management("DELETE", "/api/models/alias", NO_BODY, "Delete an alias."),
    management("GET", "/api/provider-nodes", NO_BODY, "List provider nodes."),
    management("POST", "/api/provider-nodes", RECORD, "Create a provider node."),
    management("GET", "/api/provider-nodes/{id}", NO_BODY, "One provider node."),
    management("PUT", "/api/provider-nodes/{id}", RECORD, "Change a provider node."),
    management("DELETE", "/api/provider-nodes/{id}", NO_BODY, "Delete a provider node."),
    management("GET", "/api/providers", NO_BODY, "List provider connections."),
    management("POST", "/api/providers", RECORD, "Create a provider connection."),
    management("POST", "/api/providers/validate", RECORD, "Validate a connection without storing it."),
    management("GET", "/api/providers/{id}", NO_BODY, "One provider connection."),
    management("PUT", "/api/providers/{id}", RECORD, "Change a provider connection."),
    management("DELETE", "/api/providers/{id}", NO_BODY, "Delete a provider connection."),
    management("POST", "/api/providers/{id}/test", RECORD, "Test a provider connection."),
    management("GET", "/api/providers/{id}/models", NO_BODY, "The models of a provider connection."),
    management("GET", "/api/settings", NO_BODY, "Settings and their values."),
    admin("PUT", "/api/settings", RECORD, "Replace settings."),
    admin("PATCH", "/api/settings", RECORD, "Change settings."),
    management("GET", "/api/usage/history", NO_BODY, "Usage over time."),
    management("GET", "/api/usage/logs", NO_BODY, "Settled requests, newest first."),
    management("GET", "/api/usage/request-logs", NO_BODY, "Settled requests in full, newest first."),
    management("GET", "/api/usage/token-limits", NO_BODY, "Token limits of a key, with what is used of them."),
    management("POST", "/api/usage/token-limits", RECORD, "Set a token limit; with an id, change it."),
    management("DELETE", "/api/usage/token-limits", NO_BODY, "Lift a token limit."),
    management("GET", "/api/monitoring/health", NO_BODY, "Health of the gateway and its providers."),
    // Webhooks.
    session("GET", "/api/webhooks", NO_BODY, "List webhook subscriptions."),
    session("POST", "/api/webhooks", RECORD, "Create a webhook subscription; its secret is shown once."),
    session("GET", "/api/webhooks/events", NO_BODY, "The events that can be subscribed to."),
    session("GET", "/api/webhooks/{id}", NO_BODY, "One webhook subscription."),
    session("PUT", "/api/webhooks/{id}", RECORD, "Change a webhook subscription."),
    session("DELETE", "/api/webhooks/{id}", NO_BODY, "Delete a webhook subscription with its history."),
    session("GET", "/api/webhooks/{id}/deliveries", NO_BODY, "Deliveries of a webhook, newest first."),
    session("POST", "/api/webhooks/{id}/redeliver", RECORD, "Deliver one or a range of messages again."),
    session("POST", "/api/webhooks/{id}/rotate-secret", RECORD, "Make a new signing secret; it is shown once."),
    session("POST", "/api/webhooks/{id}/test", RECORD, "Send a test event now."),
    scraping("POST", "/api/scrape", RECORD, "Scrape a page."),
    scraping("POST", "/api/scrape/async", RECORD, "Scrape a page in the background."),
    scraping("GET", "/api/scrape/job/{id}", NO_BODY, "A background scrape and its result."),
    scraping("GET", "/api/scrape/openapi.json", NO_BODY, "The scraping API as an OpenAPI document."),
    scraping("POST", "/api/extract-schema", RECORD, "Extract data of a JSON Schema from a page."),
    scraping("POST", "/api/summarize", RECORD, "Summarize a page."),
    scraping("DELETE", "/api/cache", RECORD, "Forget scraped pages: one address, or all of the caller's."),
    scraping("POST", "/api/crawl", RECORD, "Crawl a site in the background."),
    scraping("POST", "/api/crawl/estimate", RECORD, "What a crawl would come to."),
    scraping("GET", "/api/crawl", NO_BODY, "List crawls."),
    scraping("GET", "/api/crawl/active", NO_BODY, "List crawls that have not ended."),
    scraping("GET", "/api/crawl/{id}", NO_BODY, "A crawl, its progress and its pages."),
    scraping("GET", "/api/crawl/{id}/errors", NO_BODY, "The pages of a crawl that failed."),
    scraping("GET", "/api/crawl/{id}/stream", NO_BODY, "A crawl's progress as it happens (SSE)."),
    scraping("DELETE", "/api/crawl/{id}", NO_BODY, "Cancel a crawl."),
    scraping("POST", "/api/batch/scrape", RECORD, "Scrape a list of pages in the background."),
    scraping("GET", "/api/batch/scrape", NO_BODY, "List batches."),
    scraping("GET", "/api/batch/scrape/{id}", NO_BODY, "A batch, its progress and its pages."),
    scraping("GET", "/api/batch/scrape/{id}/errors", NO_BODY, "The pages of a batch that failed."),
    scraping("GET", "/api/batch/scrape/{id}/stream", NO_BODY, "A batch's progress as it happens (SSE)."),
    scraping("DELETE", "/api/batch/scrape/{id}", NO_BODY, "Cancel a batch."),
    scraping("POST", "/api/map", RECORD, "The addresses of a site."),
    scraping("POST", "/api/search", RECORD, "Search the web, and scrape what is found."),
    scraping("GET", "/api/endpoints", NO_BODY, "List saved endpoints."),
    scraping("POST", "/api/endpoints", RECORD, "Save a scrape or an extraction as an endpoint."),
    scraping("GET", "/api/endpoints/{slug}", NO_BODY, "Run a saved endpoint."),
    scraping("DELETE", "/api/endpoints/{slug}", NO_BODY, "Delete a saved endpoint."),
];

/// What a method and a raw path come to.
#[derive(Debug)]
pub enum Match<'p> {
    Found {
        route: &'static Route,
        /// What the last braces matched.
        tail: Cow<'p, str>,
    },
    /// The path exists with these methods only.
    OtherMethod(Vec<&'static str>),
    None,
}

/// Finds the door. `path` is the raw path as it was on the request line. `HEAD` is a `GET` whose body is not sent.
pub fn find<'p>(method: &str, path: &'p str) -> Match<'p> {
    let wanted = if method == "HEAD" { "GET" } else { method };
    let mut others = Vec::new();
    // Literal routes stand before patterns that would also match, so the first hit is the closest.
    for route in ROUTES {
        if let Some(tail) = matches(route.path, path) {
            if route.method == wanted {
                return Match::Found { route, tail };
            }
            others.push(route.method);
        }
    }
    if others.is_empty() {
        return Match::None;
    }
    if others.contains(&"GET") {
        others.push("HEAD");
    }
    Match::OtherMethod(others)
}

/// The error shape of a path, whatever the method: what a refusal before routing is told in.
pub fn surface_at(path: &str) -> Option<Surface> {
    ROUTES.iter().find(|route| matches(route.path, path).is_some()).map(|route| route.surface)
}

fn matches<'p>(pattern: &str, path: &'p str) -> Option<Cow<'p, str>> {
    let Some(brace) = pattern.find('{') else {
        return (pattern == path).then_some(Cow::Borrowed(""));
    };
    let rest = path.strip_prefix(&pattern[..brace])?;
    let (name, after) = pattern[brace + 1..].split_once('}')?;
    if name.starts_with('*') {
        return decode(rest).filter(|name| name.split('/').all(is_plain_segment));
    }
    let end = rest.find('/').unwrap_or(rest.len());
    (is_plain_segment(&rest[..end]) && &rest[end..] == after).then_some(Cow::Borrowed(&rest[..end]))
}

/// Percent-decodes, once; `None` for what is no encoding of a text.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// A segment that means the same before and after any decoding.
fn is_plain_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment != "."
        && segment != ".."
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(method: &str, path: &str) -> Option<&'static str> {
        match find(method, path) {
            Match::Found { route, .. } => Some(route.path),
            _ => None,
        }
    }

    #[test]
    fn every_route_finds_itself() {
        for route in ROUTES {
            let example =
                route.path.replace("{*id}", "openai/gpt-4o").replace("{id}", "abc-1").replace("{slug}", "abc");
            assert_eq!(path_of(route.method, &example), Some(route.path));
        }
    }

    #[test]
    fn a_literal_wins_over_a_pattern() {
        assert_eq!(path_of("POST", "/api/providers/validate"), Some("/api/providers/validate"));
        assert_eq!(path_of("GET", "/api/providers/validate"), Some("/api/providers/{id}"));
    }

    #[test]
    fn other_spellings_are_other_paths() {
        for path in [
            "/V1/models",
            "//v1/models",
            "/v1//models",
            "/v1/./models",
            "/v1%2fmodels",
            "/v1/models/",
            "/v1/models/..",
            "/v1/models/%2e%2e",
            "/v1/models/a%2F%2e%2e%2fb",
            "/v1/models/a%2F",
            "/v1/models/a%252Fb",
            "/v1/models/a%2",
            "/v1/models/%ff",
            "/v1/models;x",
            "/v1/models/a%00b",
            "/v1\\models",
            "v1/models",
            "/api/keys/a/b",
            "/api/keys/a%2fb",
            "/api/keys/",
            "",
            "*",
        ] {
            assert!(!matches!(find("GET", path), Match::Found { .. }), "{path}");
        }
    }

    #[test]
    fn a_refused_credential_is_an_invalid_key_where_only_keys_count() {
        let fault = || Error::client(Kind::Forbidden, "The API key is banned.");
        assert_eq!(Tier::Key.tell(fault()).kind, Kind::Unauthenticated);
        assert_eq!(Tier::Inference.tell(fault()).kind, Kind::Forbidden);
        assert_eq!(surface_at("/api/crawl/x/errors"), Some(Surface::Scraping));
        assert_eq!(surface_at("/api/keys"), Some(Surface::Management));
        assert_eq!(surface_at("/api/crawler"), None);
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        let Match::OtherMethod(methods) = find("DELETE", "/v1/models") else { panic!("no methods") };
        assert_eq!(methods, ["GET", "HEAD"]);
        assert!(matches!(find("HEAD", "/v1/models"), Match::Found { .. }));
        assert!(matches!(find("get", "/v1/models"), Match::OtherMethod(_)));
    }

    #[test]
    fn the_tail_of_a_model_keeps_its_slashes() {
        let Match::Found { tail, .. } = find("GET", "/v1/models/openrouter/meta/llama-3:free") else {
            panic!("not found")
        };
        assert_eq!(tail, "openrouter/meta/llama-3:free");
        let Match::Found { tail, .. } = find("GET", "/v1/models/openrouter%2Fmeta%2fllama-3%3Afree") else {
            panic!("not found")
        };
        assert_eq!(tail, "openrouter/meta/llama-3:free");
    }
}
