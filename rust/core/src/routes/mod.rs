//! The route table: every route of the gateway, who may pass it, who answers, how large a body it takes.
//!
//! This table is the only one. Routing, authorisation, body limits, the OpenAPI document and the tests are fed from it;
//! a path that is not in it is refused. Decisions are made on the raw path: it is compared byte for byte, never decoded
//! or normalised, so no second spelling of a path exists. One exception: what `{*name}` matches is a name to look up and
//! decides nothing, and clients send it with `%2F` for its slashes, so it is decoded, once.
//!
//! Routes that clients of models call have other paths, for base URLs that are written in other ways (`/api/v1/models`, `/models`):
//! one route, several paths.
//!
//! `route` is one entry, `table` lists them, `builders` makes its entries, `other_paths` lists the other paths, `unserved` says what is
//! served in place of the providers' routes that are not, `relayed` names the calls that pass with only their model changed, `scopes` lists
//! what narrow scopes of keys open, `people` which fields only people change.

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
// Of keys, beside the routes: `scopes::SCOPES`, `scopes::opens`.
pub mod scopes;
mod table;
mod unserved;

pub use relayed::Relayed;
pub use route::{Answer, Body, Ollama, Reach, Route, Surface};
pub use unserved::unserved;

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

impl Route {
    /// The route's own path, where the caller used another one.
    #[must_use]
    pub fn own_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if matches(self.path, path).is_some() {
            return Cow::Borrowed(path);
        }
        other_paths::rewritten(path).find(|own| matches(self.path, own).is_some()).unwrap_or(Cow::Borrowed(path))
    }

    /// Whether other paths lead to it: only calls of clients of models have them.
    fn has_other_paths(&self) -> bool {
        matches!(self.tier, Tier::Inference | Tier::Key)
    }
}

/// The routes at a path whatever their method. A route's own path goes before another route's other paths.
fn routes_at(path: &str) -> impl Iterator<Item = (&'static Route, Cow<'_, str>)> {
    let dropped = other_paths::dropped(path).flat_map(named);
    let moved = other_paths::moved(path)
        .flat_map(|own| named(&own).map(|(route, tail)| (route, Cow::Owned(tail.into_owned()))).collect::<Vec<_>>());
    named(path).chain(dropped.chain(moved).filter(|(route, _)| route.has_other_paths()))
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
mod tests;
