//! Which connections a request tries, in order. Decided from the snapshot and hot state alone.

use crate::active_config::Live;
use crate::clock;
use crate::route::choice::Choice;
use crate::upstream::target::Target;
use fairlead_core::error::{Error, Kind};
use fairlead_core::policy;
use fairlead_core::snapshot::Key;
use fairlead_core::strategy::{identity, Standing};
use smallvec::SmallVec;
use std::sync::Arc;

/// More connections than this are not tried for one request.
const MAX_TARGETS: usize = 8;
/// The header that pins a request to one connection.
pub const PIN: &str = "x-gateway-connection";

/// A request's wishes beyond its model.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoutingHints<'a> {
    /// The one connection that it is to go over.
    pub pin: Option<&'a str>,
    /// The target that served its session before.
    pub held: Option<u64>,
}

/// Chooses for `<prefix>/<model>`: connections of the prefix that the key may use, by priority; those that rest come last,
/// and those that a provider has told to wait are left out.
///
/// A pin leaves the pinned connection alone, unless that one rests or waits: then it counts for nothing. A pin to what is no
/// connection of the provider that the key may use leaves none, whatever it is.
pub fn choose(live: &Live, model: &str, key: Option<&Key>, hints: RoutingHints<'_>) -> Result<Choice, Error> {
    let Some((prefix, upstream_model)) =
        model.split_once('/').filter(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty())
    else {
        return Err(not_found(format!(
            "The model `{model}` has no provider prefix; write `<prefix>/<model>`, as `GET /v1/models` lists them."
        )));
    };
    let upstream_model = live.snapshot.spelling(model).unwrap_or(upstream_model);
    let candidates = live.snapshot.candidates(prefix);
    if candidates.is_empty() {
        return Err(not_found(format!("No provider has the prefix `{prefix}`; `GET /v1/models` lists what is there.")));
    }
    let now_ms = clock::monotonic_ms();
    let mut sorted = Candidates::new(upstream_model, hints.pin);
    for target in candidates.iter().filter_map(|&index| live.targets.get(index)?.as_ref()) {
        sorted.add(target, key, now_ms);
    }
    sorted.apply(hints, prefix)?;
    let targets = sorted.take_targets();
    if targets.is_empty() {
        return Err(sorted.none_usable(prefix));
    }
    Ok(Choice { targets, upstream_model: upstream_model.to_owned(), model: model.to_owned(), combo: None })
}

/// The connections of a prefix, sorted by how they stand, and why others are not among them.
#[expect(clippy::struct_excessive_bools, reason = "each is a reason of its own why a connection is left out")]
struct Candidates<'a> {
    upstream_model: &'a str,
    pin: Option<&'a str>,
    ready: SmallVec<[Arc<Target>; 4]>,
    /// Milliseconds until each may be used again come first.
    resting: SmallVec<[(u64, Arc<Target>); 4]>,
    /// Milliseconds until the first closed connection opens; `u64::MAX` where none does by itself.
    soonest_ms: u64,
    is_barred: bool,
    is_pinned: bool,
    is_closed: bool,
    is_broken: bool,
    /// Why the addresses of a connection cannot name the model.
    unnameable: Option<Error>,
}

impl<'a> Candidates<'a> {
    fn new(upstream_model: &'a str, pin: Option<&'a str>) -> Self {
        Self {
            upstream_model,
            pin,
            ready: SmallVec::new(),
            resting: SmallVec::new(),
            soonest_ms: u64::MAX,
            is_barred: false,
            is_pinned: false,
            is_closed: false,
            is_broken: false,
            unnameable: None,
        }
    }

    fn add(&mut self, target: &Arc<Target>, key: Option<&Key>, now_ms: u64) {
        if key.is_some_and(|key| !policy::sees_connection(key, &target.connection.id)) {
            self.is_barred = true;
            return;
        }
        if let Err(fault) = target.admit_name(self.upstream_model) {
            self.unnameable = Some(fault);
            return;
        }
        // What no request can be served over is not in the pool that a pin may name.
        self.is_pinned |= self.pin == Some(target.connection.id.as_str()) && !target.is_out_of_pool(now_ms);
        let (standing, rest_ms) = target.standing(self.upstream_model, now_ms);
        match standing {
            Standing::Closed => {
                self.is_closed = true;
                self.is_broken |= target.is_broken(now_ms);
                self.soonest_ms = self.soonest_ms.min(rest_ms);
            }
            Standing::Resting => self.resting.push((rest_ms, Arc::clone(target))),
            Standing::Able | Standing::Probing => self.ready.push(Arc::clone(target)),
        }
    }

    /// Leaves the pinned connection alone, or puts the one first that served the session before.
    fn apply(&mut self, hints: RoutingHints<'_>, prefix: &str) -> Result<(), Error> {
        let is_empty = self.ready.is_empty() && self.resting.is_empty() && !self.is_closed;
        if let Some(fault) = self.unnameable.take().filter(|_| is_empty) {
            return Err(fault);
        }
        if let Some(pin) = hints.pin {
            if !self.is_pinned {
                let message = format!(
                    "No connection of `{prefix}` that this request may use is the one that `X-Gateway-Connection` names; leave \
                     the header out, or name another."
                );
                return Err(Error::client(Kind::InvalidRequest, message).about(PIN));
            }
            if self.ready.iter().any(|target| target.connection.id == pin) {
                self.ready.retain(|target| target.connection.id == pin);
                self.resting.clear();
            }
        } else if let Some(held) = hints.held {
            let is_held = |target: &Arc<Target>| identity(&[&target.connection.id, self.upstream_model]) == held;
            if let Some(at) = self.ready.iter().position(is_held) {
                self.ready[..=at].rotate_right(1);
            }
        }
        Ok(())
    }

    /// Those that are ready, then those that rest, the soonest first.
    fn take_targets(&mut self) -> SmallVec<[Arc<Target>; 4]> {
        let mut targets = std::mem::take(&mut self.ready);
        self.resting.sort_by_key(|(rest_ms, _)| *rest_ms);
        targets.extend(self.resting.drain(..).map(|(_, target)| target));
        targets.truncate(MAX_TARGETS);
        targets
    }

    /// Why no connection of the prefix can serve the request.
    fn none_usable(&self, prefix: &str) -> Error {
        let wait_s = self.soonest_ms.div_ceil(1_000);
        if self.is_closed && self.soonest_ms == u64::MAX {
            let message = format!(
                "No connection of `{prefix}` can be used, because the provider refuses the account or its credential. \
                 An operator must replace the credential, or put the account in order and test the connection."
            );
            return Error::gateway(Kind::NoRoute, message);
        }
        if self.is_broken {
            let message = format!("The provider `{prefix}` fails; it is asked again in {wait_s} s.");
            return Error::gateway(Kind::NoRoute, message).after_s(wait_s.max(1));
        }
        if self.is_closed {
            let message = format!("Every connection of `{prefix}` was told by its provider to wait.");
            return Error::gateway(Kind::UpstreamRateLimited, message).after_s(wait_s);
        }
        if self.is_barred {
            let message =
                format!("This API key may use no connection of the provider `{prefix}` (`allowedConnections`).");
            return Error::client(Kind::Forbidden, message).about("model");
        }
        Error::gateway(Kind::NoRoute, format!("The provider `{prefix}` has no usable connection.")).after_s(5)
    }
}

fn not_found(message: String) -> Error {
    Error::client(Kind::ModelNotFound, message).about("model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::secret::Sealer;
    use fairlead_core::snapshot::Snapshot;

    fn live() -> Live {
        let connection = |id: &str, priority: u32, dialect: &str| {
            format!(
                r#"{{"id":"{id}","provider":"n","prefixes":["{dialect}"],"dialect":"{dialect}","base_url":"http://{id}","auth":"none","priority":{priority}}}"#
            )
        };
        let connections =
            [connection("b", 2, "openai"), connection("a", 1, "openai"), connection("g", 1, "gemini")].join(",");
        let json = format!(r#"{{"version":1,"connections":[{connections}]}}"#);
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        Live::build(snapshot, &Live::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
    }

    fn order(live: &Live) -> Vec<String> {
        let choice = choose(live, "openai/meta/llama", None, RoutingHints::default()).expect("a choice");
        assert_eq!(choice.upstream_model, "meta/llama");
        choice.targets.iter().map(|target| target.connection.id.clone()).collect()
    }

    fn rest(live: &Live, id: &str, hint_ms: Option<u64>) {
        let target = live.targets.iter().flatten().find(|target| target.connection.id == id).expect("there");
        target.blame(Kind::UpstreamReset, hint_ms);
    }

    #[test]
    fn priority_decides_and_what_rests_comes_last() {
        let live = live();
        assert_eq!(order(&live), ["a", "b"]);
        rest(&live, "a", None);
        assert_eq!(order(&live), ["b", "a"]);
        rest(&live, "b", None);
        assert_eq!(order(&live).len(), 2, "when all rest, all are tried");
    }

    #[test]
    fn what_a_provider_closed_is_left_out_until_its_time() {
        let live = live();
        rest(&live, "a", Some(60_000));
        assert_eq!(order(&live), ["b"]);
        rest(&live, "b", Some(9_500));
        let error = choose(&live, "openai/m", None, RoutingHints::default()).expect_err("closed");
        assert_eq!((error.kind, error.retry_after_s), (Kind::UpstreamRateLimited, Some(10)));
    }

    fn pinned(live: &Live, id: &str) -> Result<Vec<String>, Kind> {
        let wish = RoutingHints { pin: Some(id), held: None };
        let choice = choose(live, "openai/m", None, wish).map_err(|error| error.kind)?;
        Ok(choice.targets.iter().map(|target| target.connection.id.clone()).collect())
    }

    #[test]
    fn a_pin_is_strict_until_its_connection_rests() {
        let live = live();
        assert_eq!(pinned(&live, "b"), Ok(vec!["b".into()]));
        for other in ["g", "nothing", ""] {
            assert_eq!(pinned(&live, other), Err(Kind::InvalidRequest), "another provider's and none are the same");
        }
        rest(&live, "b", None);
        assert_eq!(pinned(&live, "b"), Ok(vec!["a".into(), "b".into()]));
        rest(&live, "b", Some(60_000));
        assert_eq!(pinned(&live, "b"), Ok(vec!["a".into()]));
    }

    #[test]
    fn a_session_stays_where_it_was() {
        let live = live();
        let held = Some(identity(&["b", "m"]));
        let choice = choose(&live, "openai/m", None, RoutingHints { pin: None, held }).expect("a choice");
        assert_eq!(choice.targets.iter().map(|target| target.connection.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(choice.identity(0), held);
    }

    #[test]
    fn a_model_needs_a_prefix_that_somebody_has() {
        let live = live();
        for (model, kind) in [
            ("m", Kind::ModelNotFound),
            ("/m", Kind::ModelNotFound),
            ("openai/", Kind::ModelNotFound),
            ("other/m", Kind::ModelNotFound),
        ] {
            assert_eq!(
                choose(&live, model, None, RoutingHints::default()).map(drop).map_err(|error| error.kind),
                Err(kind),
                "{model}"
            );
        }
    }
}
