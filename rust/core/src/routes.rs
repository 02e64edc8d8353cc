//! The route table: every door of the gateway, who may pass it, who answers, how large a body it takes.
//!
//! This table is the only one. Routing, authorisation, body limits, the OpenAPI document and the tests are fed from it;
//! a path that is not in it is refused. Decisions are made on the raw path: it is compared byte for byte, never decoded
//! or normalised, so no second spelling of a path exists. One exception: what `{*name}` matches is a name to look up and
//! decides nothing, and clients send it with `%2F` for its slashes, so it is decoded, once.

use std::borrow::Cow;

/// Who may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Anybody.
    Public,
    /// A gateway key, or anybody while keys are not required.
    Inference,
    /// A session, the local token, or a key with the scope `manage`.
    Management,
    /// A session or the local token.
    Session,
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
    Route { method, path, tier: Tier::Inference, answer, endpoint, body_limit_bytes, surface: Surface::OpenAi, summary }
}

const fn management(method: &'static str, path: &'static str, body_limit_bytes: usize, summary: &'static str) -> Route {
    Route {
        method,
        path,
        tier: Tier::Management,
        answer: Answer::Control,
        endpoint: "management",
        body_limit_bytes,
        surface: Surface::Management,
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
    management("GET", "/api/openapi.json", NO_BODY, "This API as an OpenAPI document."),
    management("GET", "/api/keys", NO_BODY, "List API keys."),
    management("POST", "/api/keys", RECORD, "Create an API key; its text is shown once."),
    management("GET", "/api/keys/{id}", NO_BODY, "One API key."),
    management("PATCH", "/api/keys/{id}", RECORD, "Change an API key."),
    management("DELETE", "/api/keys/{id}", NO_BODY, "Revoke an API key."),
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
    management("PUT", "/api/settings", RECORD, "Replace settings."),
    management("PATCH", "/api/settings", RECORD, "Change settings."),
    management("GET", "/api/usage/history", NO_BODY, "Usage over time."),
    management("GET", "/api/usage/logs", NO_BODY, "Settled requests, newest first."),
    management("GET", "/api/usage/request-logs", NO_BODY, "Settled requests in full, newest first."),
    management("GET", "/api/monitoring/health", NO_BODY, "Health of the gateway and its providers."),
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
            let example = route.path.replace("{*id}", "openai/gpt-4o").replace("{id}", "abc-1");
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
