//! The route table: every route of the gateway, who may call it, what answers it, and the size of body that it accepts.
//!
//! This is the only table. Routing, authorization, body limits, the OpenAPI document and the tests use it, and a path
//! that is not in it is refused. Decisions use the raw path, which is compared byte by byte and never decoded or
//! normalized, so a path has no second spelling. There is one exception: the part that `{*name}` matches is a name to
//! look up. It does not affect decisions, and clients encode its slashes as `%2F`, so it is decoded once.
//!
//! Routes for clients of models have several paths, because base URLs are written in different ways (`/api/v1/models`,
//! `/models`).
//!
//! `route` is one entry, `table` lists the entries, `builders` creates them, and `other_paths` lists the additional
//! paths. `unserved` names the replacements for provider routes that the gateway does not serve. `relayed` names the
//! calls that change only the model. `scopes` lists what the narrow scopes of keys allow, and `people` lists the fields
//! that only people change.

pub use crate::tier::Tier;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

mod builders;
mod other_paths;
// Fields that only people change, by path.
pub mod people;
mod relayed;
mod route;
// Key scopes are qualified: `scopes::SCOPES`, `scopes::opens`.
pub mod scopes;
mod table;
mod unserved;

pub use relayed::Relayed;
pub use route::{Answer, Body, Ollama, Reach, Route, Surface};
pub use unserved::unserved;

/// The result of looking up a method and a raw path.
#[derive(Debug)]
pub enum Match<'p> {
    Found {
        route: &'static Route,
        /// The part of the path that the last braces matched.
        tail: Cow<'p, str>,
    },
    /// The path exists, but only with these methods.
    OtherMethod(Vec<&'static str>),
    None,
}

/// Every route, in the table's order.
pub fn all() -> impl Iterator<Item = &'static Route> {
    table::TABLES.iter().copied().flatten()
}

/// The table prepared for lookup: paths without braces by name, and the others in sequence.
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

impl Route {
    /// The route's own path, if the caller used another one.
    #[must_use]
    pub fn own_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if matches(self.path, path).is_some() {
            return Cow::Borrowed(path);
        }
        other_paths::rewritten(path).find(|own| matches(self.path, own).is_some()).unwrap_or(Cow::Borrowed(path))
    }

    /// Whether other paths lead to this route. Only routes for clients of models have them.
    fn has_other_paths(&self) -> bool {
        matches!(self.tier, Tier::Inference | Tier::Key)
    }
}

/// The routes at a path, with any method. A route's own path takes precedence over another route's additional paths.
fn routes_at(path: &str) -> impl Iterator<Item = (&'static Route, Cow<'_, str>)> {
    let dropped = other_paths::dropped(path).flat_map(named);
    let moved = other_paths::moved(path)
        .flat_map(|own| named(&own).map(|(route, tail)| (route, Cow::Owned(tail.into_owned()))).collect::<Vec<_>>());
    named(path).chain(dropped.chain(moved).filter(|(route, _)| route.has_other_paths()))
}

/// The routes with this path, literal ones first, because they are more specific than patterns that also match.
fn named(path: &str) -> impl Iterator<Item = (&'static Route, Cow<'_, str>)> {
    let literal = INDEX.literal.get(path).into_iter().flatten().map(|route| (*route, Cow::Borrowed("")));
    literal.chain(INDEX.patterns.iter().filter_map(move |route| Some((*route, matches(route.path, path)?))))
}

/// Finds the route. `path` is the raw path of the request line. `HEAD` is handled as `GET` without a body.
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

/// Whether a server in front of the gateway that decodes the path finds the same route. Otherwise that server would
/// permit one route and the gateway would answer another.
fn is_same_route_decoded(route: &Route, method: &str, path: &str) -> bool {
    let Some(plain) = decode(path) else { return false };
    let mut again = routes_at(&plain).filter(|(again, _)| again.method == method);
    again.next().is_some_and(|(again, _)| again.path == route.path)
}

/// The error format of a path with any method, for errors before routing.
pub fn surface_at(path: &str) -> Option<Surface> {
    routes_at(path).next().map(|(route, _)| route.surface)
}

/// The error format of a path that no route has, if it is below a path of the scraping API: its clients expect one format for
/// every error, such as that of an id with a character that no id has.
pub fn surface_below(path: &str) -> Option<Surface> {
    let is_below = |route: &&Route| {
        let fixed = route.path.split('{').next().unwrap_or_default();
        route.surface == Surface::Scraping && fixed.len() < route.path.len() && path.starts_with(fixed)
    };
    let is_firecrawl = || path.starts_with("/v2/") && unserved(path).is_some();
    (all().any(|route| is_below(&route)) || is_firecrawl()).then_some(Surface::Scraping)
}

/// Who may call a path, with any method.
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
    // A path may name an item within an item. The tail is the first of them.
    let is_rest = if after.contains('{') { matches(after, &rest[end..]).is_some() } else { &rest[end..] == after };
    (is_plain_segment(&rest[..end]) && is_rest).then_some(Cow::Borrowed(&rest[..end]))
}

/// Percent-decodes once; `None` if the text is not valid percent-encoding.
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

/// Whether a segment stays the same under any decoding.
fn is_plain_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment != "."
        && segment != ".."
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,=".contains(&byte))
}

#[cfg(test)]
mod tests;
