//! The route table: every route of the gateway, who may pass it, who answers, how large a body it takes.
//!
//! This table is the only one. Routing, authorisation, body limits, the OpenAPI document and the tests are fed from it;
//! a path that is not in it is refused. Decisions are made on the raw path: it is compared byte for byte, never decoded
//! or normalised, so no second spelling of a path exists. One exception: what `{*name}` matches is a name to look up and
//! decides nothing, and clients send it with `%2F` for its slashes, so it is decoded, once.
//!
//! Every route under `/v1/` has a second path under `/api/v1/`: one route, two names.
//!
//! `table` lists the routes, `builders` makes its entries, `relayed` names the calls that pass with only their model changed, `scopes` what narrow
//! scopes of keys open.

use crate::principal::Credentials;
pub use crate::tier::Tier;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

mod builders;
mod relayed;
// Of keys, beside the routes: `scopes::SCOPES`, `scopes::opens`.
pub mod scopes;
mod table;

pub use relayed::Relayed;

/// The part of the gateway that answers a route.
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
    /// A conversation in the dialect of OpenAI's responses.
    Responses,
    /// A conversation in Gemini's dialect, whose address says what its body does not.
    Generate,
    StreamGenerate,
    /// The model list, and one model, in Gemini's words.
    GeminiModels,
    GeminiModel,
    /// The tokens of a messages request, counted by its provider or estimated.
    CountTokens,
    /// A text completion, relayed as a chat completion is.
    Completions,
    /// A call that is passed on with only its model changed.
    Relayed(Relayed),
    /// A call of Ollama's clients.
    Ollama(Ollama),
    /// Frames over a WebSocket, or what they are when asked without one.
    Socket,
    /// A conversation over a WebSocket, passed through to a provider.
    Realtime,
    /// The control plane.
    Control,
    /// The control plane, which gets the one file of a form.
    Upload,
    /// The combos that a caller may call.
    Combos,
    /// The models that a channel of `auto` chooses from.
    Candidates,
    /// A search, which control makes and tells the cost of.
    Search,
    /// A video, which control has made by the connections that the relay has chosen.
    Video,
}

impl Answer {
    pub fn is_control(self) -> bool {
        matches!(self, Self::Control | Self::Upload | Self::Search | Self::Video)
    }

    /// Whether each request is settled: it calls a model, or would have.
    pub fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Chat
                | Self::Responses
                | Self::Generate
                | Self::StreamGenerate
                | Self::CountTokens
                | Self::Completions
                | Self::Relayed(_)
                | Self::Ollama(Ollama::Chat | Ollama::Generate)
                | Self::Search
                | Self::Video
        )
    }

    pub fn is_socket(self) -> bool {
        matches!(self, Self::Socket | Self::Realtime)
    }
}

/// What Ollama's clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ollama {
    Chat,
    /// One prompt, without a conversation.
    Generate,
    /// The model list.
    Tags,
    /// One model.
    Show,
    Version,
}

/// Which error shape the caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    OpenAi,
    Anthropic,
    Gemini,
    /// `{"error": "..."}`.
    Ollama,
    Management,
    /// `{"success": false, "error": "..."}`.
    Scraping,
    /// `{"error": "...", "error_description": "..."}`.
    OAuth,
    /// `{"allowed": false, "error": {"message": "..."}}`.
    Quota,
}

/// What body a route takes. Limits are bytes of the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    None,
    Json {
        limit_bytes: usize,
    },
    /// A form of one of the gateway's own pages, or JSON.
    Form {
        limit_bytes: usize,
    },
    /// A file of bytes (`application/octet-stream`), or JSON.
    File {
        limit_bytes: usize,
    },
    /// A form with files, which may be too large for memory.
    Upload {
        limit_bytes: usize,
    },
    /// A form whose parts fit in memory, or JSON.
    Parts {
        limit_bytes: usize,
    },
    /// Any type: control reads it, and answers what is wrong with it in words of its protocol.
    Unread {
        limit_bytes: usize,
    },
}

impl Body {
    #[must_use]
    pub const fn limit_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Json { limit_bytes }
            | Self::Form { limit_bytes }
            | Self::File { limit_bytes }
            | Self::Upload { limit_bytes }
            | Self::Parts { limit_bytes }
            | Self::Unread { limit_bytes } => limit_bytes,
        }
    }

    /// The name of the kind in the table that Python reads.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Json { .. } => "json",
            Self::Form { .. } => "form",
            Self::File { .. } => "file",
            Self::Upload { .. } => "upload",
            Self::Parts { .. } => "parts",
            Self::Unread { .. } => "unread",
        }
    }

    /// A form beside the JSON, within the same limit.
    const fn or_form(self) -> Self {
        match self {
            Self::Json { limit_bytes } => Self::Form { limit_bytes },
            other => other,
        }
    }

    /// Any type in place of JSON, within the same limit.
    const fn unread(self) -> Self {
        match self {
            Self::Json { limit_bytes } => Self::Unread { limit_bytes },
            other => other,
        }
    }
}

/// From where a route is as public as its tier says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Anywhere,
    /// From this machine; from elsewhere the route needs a management credential.
    ThisMachine,
}

/// How many bytes are read of a body that the route does not ask for.
const FORGOTTEN_BODY_BYTES: usize = 64 * 1024;

/// One route: who may call it, who answers, and the body that it takes.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// Segments in braces match one non-empty segment; `{*name}` as the last one matches one or more, and what stands after its brace ends
    /// the path, at most one more segment in braces included.
    pub path: &'static str,
    pub tier: Tier,
    pub answer: Answer,
    /// The category that a key's `allowedEndpoints` speaks of.
    pub endpoint: &'static str,
    pub reach: Reach,
    pub body: Body,
    pub surface: Surface,
    pub summary: &'static str,
}

impl Route {
    /// The body may be a file of bytes (`application/octet-stream`); else it is JSON.
    #[must_use]
    pub fn takes_file(&self) -> bool {
        matches!(self.body, Body::File { .. })
    }

    /// The body may be a form of one of the gateway's own pages; else it is JSON.
    #[must_use]
    pub fn takes_form(&self) -> bool {
        matches!(self.body, Body::Form { .. })
    }

    /// The body may be a form with parts (`multipart/form-data`); else it is JSON.
    #[must_use]
    pub fn takes_parts(&self) -> bool {
        matches!(self.body, Body::Parts { .. })
    }

    /// Whether the body is a form with files, which may be too large for memory.
    #[must_use]
    pub fn takes_upload(&self) -> bool {
        matches!(self.body, Body::Upload { .. })
    }

    /// A body is read and forgotten: many clients send `{}` along with a DELETE that needs nothing.
    #[must_use]
    pub fn forgets_body(&self) -> bool {
        self.method == "DELETE" && self.body == Body::None
    }

    /// How large a body may be; 0 where none is taken.
    #[must_use]
    pub fn body_limit_bytes(&self) -> usize {
        self.body.limit_bytes()
    }

    /// How many bytes of a body are read, those of a forgotten one included.
    #[must_use]
    pub fn accepted_bytes(&self) -> usize {
        if self.forgets_body() {
            FORGOTTEN_BODY_BYTES
        } else {
            self.body_limit_bytes()
        }
    }

    /// The tier for whoever calls like this.
    #[must_use]
    pub fn tier_for(&self, shown: &Credentials<'_>) -> Tier {
        // A proxy on this machine that adds no header of its own still passes on by which name it was called.
        let is_here = shown.is_local_peer && shown.is_loopback_host && !shown.is_of_foreign_page;
        if self.reach == Reach::ThisMachine && !is_here {
            Tier::Management
        } else {
            self.tier
        }
    }
}

/// The route of a method and a raw path.
#[derive(Debug)]
pub enum Match<'p> {
    Found {
        route: &'static Route,
        /// The part of the path that the last braces matched.
        tail: Cow<'p, str>,
    },
    /// The path exists with these methods only.
    OtherMethod(Vec<&'static str>),
    None,
}

/// Every route, in the table's order.
pub fn all() -> impl Iterator<Item = &'static Route> {
    table::PARTS.iter().copied().flatten()
}

/// The table as it is searched: paths without braces by name, the others one after another.
struct Index {
    literal: HashMap<&'static str, Vec<&'static Route>>,
    patterns: Vec<&'static Route>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { literal: HashMap::new(), patterns: Vec::new() };
    for route in all() {
        if route.path.contains('{') {
            index.patterns.push(route);
        } else {
            index.literal.entry(route.path).or_default().push(route);
        }
    }
    index
});

/// The prefix of every route's second name.
const ALIAS: &str = "/api";

impl Route {
    /// The path by the route's own name, where the caller used its second one.
    #[must_use]
    pub fn own_path<'p>(&self, path: &'p str) -> &'p str {
        if self.path.starts_with(OWN) {
            alias_of(path).unwrap_or(path)
        } else {
            path
        }
    }
}

/// The prefix of the paths that have a second name.
const OWN: &str = "/v1/";

/// The name that a second name stands for.
fn alias_of(path: &str) -> Option<&str> {
    path.strip_prefix(ALIAS).filter(|own| own.starts_with(OWN))
}

/// The routes at a path whatever their method. A route's own name goes before another route's second one.
fn routes_at(path: &str) -> impl Iterator<Item = (&'static Route, Cow<'_, str>)> {
    let aliased = alias_of(path).into_iter().flat_map(named);
    named(path).chain(aliased.filter(|(route, _)| route.path.starts_with(OWN)))
}

/// The routes of this name, literal ones first: they are closer than patterns that would also match.
fn named(path: &str) -> impl Iterator<Item = (&'static Route, Cow<'_, str>)> {
    let literal = INDEX.literal.get(path).into_iter().flatten().map(|route| (*route, Cow::Borrowed("")));
    literal.chain(INDEX.patterns.iter().filter_map(move |route| Some((*route, matches(route.path, path)?))))
}

/// Finds the route. `path` is the raw path as it was on the request line. `HEAD` is a `GET` whose body is not sent.
pub fn find<'p>(method: &str, path: &'p str) -> Match<'p> {
    let wanted = if method == "HEAD" { "GET" } else { method };
    let mut others = Vec::new();
    for (route, tail) in routes_at(path) {
        if route.method == wanted {
            let is_one_route = !path.contains('%') || is_same_route_decoded(route, wanted, path);
            return if is_one_route { Match::Found { route, tail } } else { Match::None };
        }
        others.push(route.method);
    }
    if others.is_empty() {
        return Match::None;
    }
    if others.contains(&"GET") {
        others.push("HEAD");
    }
    Match::OtherMethod(others)
}

/// Whether a server before this one, which decodes the path, takes it for the same route. If not, what that server lets
/// through as one route would be answered as another.
fn is_same_route_decoded(route: &Route, method: &str, path: &str) -> bool {
    let Some(plain) = decode(path) else { return false };
    let mut again = routes_at(&plain).filter(|(again, _)| again.method == method);
    again.next().is_some_and(|(again, _)| again.path == route.path)
}

/// The error shape of a path, whatever the method: what a refusal before routing is told in.
pub fn surface_at(path: &str) -> Option<Surface> {
    routes_at(path).next().map(|(route, _)| route.surface)
}

/// Who may pass at a path, whatever the method.
pub fn tier_at(path: &str) -> Option<Tier> {
    routes_at(path).next().map(|(route, _)| route.tier)
}

fn matches<'p>(pattern: &str, path: &'p str) -> Option<Cow<'p, str>> {
    let Some(brace) = pattern.find('{') else {
        return (pattern == path).then_some(Cow::Borrowed(""));
    };
    let rest = path.strip_prefix(&pattern[..brace])?;
    let (name, after) = pattern[brace + 1..].split_once('}')?;
    if name.starts_with('*') {
        let (rest, after) = match after.split_once('{') {
            None => (rest, after),
            Some((between, _)) => {
                let (rest, last) = rest.rsplit_once(between)?;
                if !is_plain_segment(last) {
                    return None;
                }
                (rest, "")
            }
        };
        let name = match decode(rest)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.strip_suffix(after)?),
            Cow::Owned(text) => Cow::Owned(text.strip_suffix(after)?.to_owned()),
        };
        return Some(name).filter(|name| name.split('/').all(is_plain_segment));
    }
    let end = rest.find('/').unwrap_or(rest.len());
    // A path may name a thing of a thing; the tail is the first of them.
    let is_rest = if after.contains('{') { matches(after, &rest[end..]).is_some() } else { &rest[end..] == after };
    (is_plain_segment(&rest[..end]) && is_rest).then_some(Cow::Borrowed(&rest[..end]))
}

/// Percent-decodes, once; `None` for what is no encoding of a text.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
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
    use proptest::prelude::*;

    fn path_of(method: &str, path: &str) -> Option<&'static str> {
        match find(method, path) {
            Match::Found { route, .. } => Some(route.path),
            _ => None,
        }
    }

    #[test]
    fn a_path_tells_in_which_form_its_errors_are() {
        assert_eq!(surface_at("/api/crawl/x/errors"), Some(Surface::Scraping));
        assert_eq!(surface_at("/api/keys"), Some(Surface::Management));
        assert_eq!(surface_at("/api/crawler"), None);
    }

    #[test]
    fn every_route_finds_itself() {
        for route in all() {
            let example =
                route.path.replace("{*id}", "openai/gpt-4o").replace("{id}", "abc-1").replace("{slug}", "abc");
            let example = example.replace("{operation}", "abc2").replace("{name}", "abc").replace("{*tool}", "abc");
            let example =
                example.replace("{provider}", "openai").replace("{key_id}", "k-1").replace("{user_id}", "u-1");
            assert_eq!(path_of(route.method, &example), Some(route.path));
        }
    }

    #[test]
    fn a_literal_wins_over_a_pattern() {
        assert_eq!(path_of("POST", "/api/providers/validate"), Some("/api/providers/validate"));
        assert_eq!(path_of("GET", "/api/providers/validate"), Some("/api/providers/{id}"));
    }

    #[test]
    fn a_path_may_name_a_thing_of_a_thing() {
        let pattern = "/api/me/groups/{id}/keys/{key_id}/regenerate";
        let Match::Found { route, tail } = find("POST", "/api/me/groups/g/keys/k/regenerate") else {
            panic!("not found")
        };
        assert_eq!((route.path, &*tail), (pattern, "g"));
        assert_eq!(path_of("PATCH", "/api/me/groups/g/keys/k"), Some("/api/me/groups/{id}/keys/{key_id}"));
        assert_eq!(path_of("DELETE", "/api/groups/g/members/u"), Some("/api/groups/{id}/members/{user_id}"));
        for path in [
            "/api/me/groups//keys/k",
            "/api/me/groups/g/keys/",
            "/api/me/groups/g/keys/..",
            "/api/groups/g/members/u/x",
        ] {
            assert!(!matches!(find("DELETE", path), Match::Found { .. }), "{path}");
        }
    }

    #[test]
    fn doors_under_v1_have_a_second_name() {
        let Match::Found { route, tail } = find("GET", "/api/v1/models/a%2Fb") else { panic!("not found") };
        assert_eq!((route.path, &*tail), ("/v1/models/{*id}", "a/b"));
        assert_eq!(route.own_path("/api/v1/models/a%2Fb"), "/v1/models/a%2Fb");
        assert_eq!(route.own_path("/v1/models/api/v1/x"), "/v1/models/api/v1/x");
        assert_eq!(path_of("POST", "/api/v1/messages"), Some("/v1/messages"));
        assert_eq!(surface_at("/api/v1/messages"), Some(Surface::Anthropic));
        assert!(matches!(find("DELETE", "/api/v1/models"), Match::OtherMethod(_)));
        for path in ["/api/api/v1/models", "/api/v1", "/api/v1/", "/api/v1/keys", "/api/healthz", "/api/V1/models"] {
            assert_eq!(path_of("GET", path), None, "{path}");
        }
        // A route of the name itself keeps it.
        assert_eq!(find_own("/api/keys"), "/api/keys");
    }

    fn find_own(path: &'static str) -> &'static str {
        let Match::Found { route, .. } = find("GET", path) else { panic!("not found") };
        route.own_path(path)
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
    fn an_operation_stands_behind_a_models_name() {
        let Match::Found { route, tail } = find("GET", "/v1beta/models/google%2Fveo/operations/a1") else {
            panic!("not found")
        };
        assert_eq!((route.path, &*tail), ("/v1beta/models/{*id}/operations/{operation}", "google/veo"));
        for path in [
            "/v1beta/models/veo/operations",
            "/v1beta/models/veo/operations/",
            "/v1beta/models//operations/a1",
            "/v1beta/models/veo%2Foperations%2Fa1",
            "/v1beta/models/operations/a1",
        ] {
            assert_ne!(path_of("GET", path), Some(route.path), "{path}");
        }
        assert_eq!(path_of("GET", "/v1beta/models/veo/operations/a%2Fb"), Some("/v1beta/models/{*id}"));
        // Decoded, these are the operation's path: they are neither its nor a model's.
        for path in ["/v1beta/models/veo%2Foperations%2Fa1", "/v1beta/models/veo/operations/%2ea1"] {
            assert_eq!(path_of("GET", path), None, "{path}");
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        let Match::OtherMethod(methods) = find("DELETE", "/v1/models") else { panic!("no methods") };
        assert_eq!(methods, ["GET", "HEAD"]);
        assert!(matches!(find("HEAD", "/v1/models"), Match::Found { .. }));
        assert!(matches!(find("get", "/v1/models"), Match::OtherMethod(_)));
    }

    /// What servers that stand before or behind a gateway make of a path.
    fn folded(path: &str) -> String {
        let decoded = decode(path).map_or_else(|| path.to_owned(), Cow::into_owned);
        let mut segments: Vec<&str> = Vec::new();
        for segment in decoded.split(['/', '\\']) {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        format!("/{}", segments.join("/"))
    }

    #[test]
    fn fuzz_routes() {
        let doors: Vec<&'static str> = all().map(|route| route.path).collect();
        let spelling = prop::sample::select(vec![
            "/",
            "//",
            "/./",
            "/../",
            "%2F",
            "%2f",
            "%2e",
            "%2E%2e",
            "\\",
            ";x",
            "%00",
            "%25",
            "?",
            "#",
            " ",
            "models",
            "/api",
            "/v1",
            ":generateContent",
            "%6D",
            "\u{e9}",
            "\u{ff0f}",
        ]);
        let piece = prop_oneof![3 => spelling.prop_map(str::to_owned), 1 => any::<String>(), 1 => "[ -~]{0,4}"];
        let path = (
            prop::sample::select(doors),
            prop::collection::vec((piece, any::<prop::sample::Index>()), 0..4),
            any::<bool>(),
        );
        let path = path.prop_map(|(door, pieces, aliased)| {
            let mut path = format!("{}{}", if aliased { "/api" } else { "" }, door.replace(['{', '}', '*'], ""));
            for (piece, at) in pieces {
                let mut at = at.index(path.len() + 1);
                while !path.is_char_boundary(at) {
                    at -= 1;
                }
                path.insert_str(at, &piece);
            }
            path
        });
        let methods = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get", "", "TRACE"]);
        crate::fuzz::check(&(methods, path), |(method, path)| {
            let Match::Found { route, tail } = find(method, &path) else { return Ok(()) };
            prop_assert_eq!(route.method, if method == "HEAD" { "GET" } else { method });
            prop_assert!(
                path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#;\\\"<>^`{|}".contains(&byte)),
                "{}",
                path
            );
            prop_assert!(tail.is_empty() || tail.split('/').all(is_plain_segment), "{}", tail);
            prop_assert!(!path.contains("//") && path.split('/').all(|segment| segment != "." && segment != ".."));
            // However the path is folded on its way, it is this route.
            let canonical = folded(&path);
            prop_assert_eq!(&canonical, &folded(&canonical));
            if let Match::Found { route: again, tail: same } = find(method, &canonical) {
                // Some routes have a second one, of the same tier, with a slash behind it.
                let (own, again_path) = (route.path.trim_end_matches('/'), again.path.trim_end_matches('/'));
                prop_assert_eq!((again_path, &*same, again.tier), (own, &*tail, route.tier), "{}", path);
            } else {
                prop_assert!(false, "{} is a route and {} is none", path, canonical);
            }
            Ok(())
        });
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
