//! Selects the connections of a request and their order. The decision reads only the snapshot and in-memory state.

use crate::active_config::ActiveConfig;
use crate::clock;
use crate::route::accounts::Accounts;
use crate::route::choice::Choice;
use crate::route::lease;
use crate::upstream::target::Target;
use fairlead_core::strategy::{identity, Availability, Demand, Facts};
use fairlead_core::{policy, Error, ErrorKind, Key};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most connections that are tried for one request.
const MAX_TARGETS: usize = 8;
/// The most connections of one provider that are considered, in order of preference.
const MAX_CANDIDATES: usize = 4_096;
/// The header that pins a request to one connection.
pub const PIN: &str = "x-gateway-connection";

/// Routing inputs of a request other than its model.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoutingHints<'a> {
    /// The connection that the caller pinned the request to.
    pub pin: Option<&'a str>,
    /// The target that served the session last.
    pub last_target: Option<u64>,
    /// The connection that is leased to the caller. No other connection is tried.
    pub leased: Option<&'a str>,
    /// Skips the lease check. The lease service sets this: it looks for a connection to lease and checks leases itself.
    pub passes_leases: bool,
    /// The request's session, or else its conversation. Set only if a provider's strategy uses it.
    pub affinity: Option<u64>,
}

/// Selects the connections for `<prefix>/<model>` that the key may use. They are ordered by priority, and connections
/// of equal priority by the provider's strategy. Connections in cooldown come last. Connections that the provider told
/// to wait (`Retry-After`) are excluded.
///
/// A pin selects the pinned connection only. The pin is ignored while that connection is in cooldown or waits. A pin to
/// a connection that the prefix does not have or the key may not use is an error.
pub fn choose(active: &ActiveConfig, model: &str, key: Option<&Key>, hints: RoutingHints<'_>) -> Result<Choice, Error> {
    let Some((prefix, upstream_model)) =
        model.split_once('/').filter(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty())
    else {
        return Err(no_prefix(model));
    };
    let upstream_model = active.snapshot.spelling(model).unwrap_or(upstream_model);
    let candidates = active.snapshot.candidates(prefix);
    if candidates.is_empty() {
        return Err(not_found(format!(
            "No provider has the prefix `{prefix}`; `GET /v1/models` lists the available models."
        )));
    }
    let now_ms = clock::monotonic_ms();
    let mut sorted = Candidates::new(upstream_model, hints);
    for target in candidates.iter().take(MAX_CANDIDATES).filter_map(|&index| active.targets.get(index)?.as_ref()) {
        sorted.add(target, key, now_ms);
    }
    sorted.check(prefix)?;
    let targets = sorted.targets(&active.accounts, hints);
    if targets.is_empty() {
        return Err(sorted.none_usable(prefix));
    }
    Ok(Choice { targets, upstream_model: upstream_model.to_owned(), model: model.to_owned(), ..Choice::default() })
}

/// The usable connections of a prefix, and the reasons why others are excluded.
#[expect(clippy::struct_excessive_bools, reason = "independent reasons why a connection is left out")]
struct Candidates<'a> {
    upstream_model: &'a str,
    pin: Option<&'a str>,
    leased: Option<&'a str>,
    passes_leases: bool,
    /// Sorted by priority, then by id.
    open: SmallVec<[&'a Arc<Target>; 4]>,
    /// The facts of each open connection, at the same index.
    facts: SmallVec<[Facts; 4]>,
    /// Milliseconds until the first closed connection opens. `u64::MAX` if an operator must act first.
    soonest_ms: u64,
    is_barred: bool,
    is_leased: bool,
    is_pinned: bool,
    is_closed: bool,
    is_broken: bool,
    /// Why the model name cannot be put into a connection's URL.
    unnameable: Option<Error>,
}

impl<'a> Candidates<'a> {
    fn new(upstream_model: &'a str, hints: RoutingHints<'a>) -> Self {
        Self {
            upstream_model,
            pin: hints.pin.filter(|_| hints.leased.is_none()),
            leased: hints.leased,
            passes_leases: hints.passes_leases,
            open: SmallVec::new(),
            facts: SmallVec::new(),
            soonest_ms: u64::MAX,
            is_barred: false,
            is_leased: false,
            is_pinned: false,
            is_closed: false,
            is_broken: false,
            unnameable: None,
        }
    }

    fn add(&mut self, target: &'a Arc<Target>, key: Option<&Key>, now_ms: u64) {
        let target = target.calling(self.upstream_model);
        if key.is_some_and(|key| !policy::sees_connection(key, &target.connection.id)) {
            self.is_barred = true;
            return;
        }
        if !self.passes_leases && !lease::is_open(&target.connection, self.leased) {
            self.is_leased = true;
            return;
        }
        if let Err(fault) = target.admit_name(self.upstream_model) {
            self.unnameable = Some(fault);
            return;
        }
        // A pin may name only a connection that is in the pool.
        self.is_pinned |= self.pin == Some(target.connection.id.as_str()) && !target.is_out_of_pool(now_ms);
        let facts = target.account_facts(self.upstream_model, now_ms);
        if facts.availability == Availability::Closed {
            self.is_closed = true;
            self.is_broken |= target.is_broken(now_ms);
            self.soonest_ms = self.soonest_ms.min(facts.cooldown_ms);
            return;
        }
        self.open.push(target);
        self.facts.push(facts);
    }

    /// Returns an error if no connection can serve the model name, or if the pin names none of the connections.
    fn check(&mut self, prefix: &str) -> Result<(), Error> {
        let is_empty = self.open.is_empty() && !self.is_closed;
        if let Some(fault) = self.unnameable.take().filter(|_| is_empty) {
            return Err(fault);
        }
        if self.pin.is_some() && !self.is_pinned {
            let message = format!(
                "No connection of `{prefix}` that this request may use is the one that `X-Gateway-Connection` names; leave \
                 the header out, or name another."
            );
            return Err(Error::client(ErrorKind::InvalidRequest, message).about(PIN));
        }
        Ok(())
    }

    /// Returns the pinned connection alone if it is able to serve, otherwise all connections in the order to try them.
    fn targets(&mut self, accounts: &Accounts, hints: RoutingHints<'_>) -> SmallVec<[Arc<Target>; 4]> {
        let is_pinned = |at: &usize| Some(self.open[*at].connection.id.as_str()) == self.pin;
        let pinned = (0..self.open.len()).find(is_pinned).filter(|&at| self.facts[at].availability.is_able());
        if let Some(at) = pinned {
            return SmallVec::from_iter([Arc::clone(self.open[at])]);
        }
        if let [target] = self.open.as_slice() {
            return SmallVec::from_iter([Arc::clone(target)]);
        }
        let Some(first) = self.open.first() else { return SmallVec::new() };
        if hints.last_target.is_some() || hints.affinity.is_some() {
            for (target, facts) in self.open.iter().zip(&mut self.facts) {
                facts.id = identity(&[&target.connection.id, self.upstream_model]);
            }
        }
        let priorities: SmallVec<[u32; 8]> = self.open.iter().map(|target| target.connection.priority).collect();
        // Session affinity applies only without a pin.
        let last_target = hints.last_target.filter(|_| self.pin.is_none());
        let demand = Demand { last_target, affinity: hints.affinity, ..Demand::default() };
        let order = accounts.order(&first.connection.provider, &self.facts, &priorities, &demand);
        order.iter().take(MAX_TARGETS).map(|&index| Arc::clone(self.open[usize::from(index)])).collect()
    }

    /// The error when no connection of the prefix can serve the request.
    fn none_usable(&self, prefix: &str) -> Error {
        let wait_s = self.soonest_ms.div_ceil(1_000);
        if self.is_closed && self.soonest_ms == u64::MAX {
            let message = format!(
                "No connection of `{prefix}` can be used, because the provider refuses the account or its credential. \
                 An operator must replace the credential, or put the account in order and test the connection."
            );
            return Error::gateway(ErrorKind::NoRoute, message);
        }
        if self.is_broken {
            let message = format!("The provider `{prefix}` is failing; it is tried again in {wait_s} s.");
            return Error::gateway(ErrorKind::NoRoute, message).after_s(wait_s.max(1));
        }
        if self.is_closed {
            let message = format!("The provider rate-limits every connection of `{prefix}`.");
            return Error::gateway(ErrorKind::UpstreamRateLimited, message).after_s(wait_s);
        }
        if self.is_leased {
            return lease::none_open(self.leased);
        }
        if self.is_barred {
            let message =
                format!("This API key may use no connection of the provider `{prefix}` (`allowedConnections`).");
            return Error::client(ErrorKind::Forbidden, message).about("model");
        }
        Error::gateway(ErrorKind::NoRoute, format!("The provider `{prefix}` has no usable connection.")).after_s(5)
    }
}

/// The error for a model name without a prefix.
pub fn no_prefix(model: &str) -> Error {
    not_found(format!(
        "No model that this caller may use is called `{model}` alone; write `<prefix>/<model>`, as `GET /v1/models` lists them."
    ))
}

fn not_found(message: String) -> Error {
    Error::client(ErrorKind::ModelNotFound, message).about("model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fairlead_core::{Sealer, Snapshot};
    use std::collections::{HashMap, HashSet};

    fn active() -> ActiveConfig {
        let connection = |id: &str, priority: u32, dialect: &str| {
            format!(
                r#"{{"id":"{id}","provider":"n","prefixes":["{dialect}"],"dialect":"{dialect}","base_url":"http://{id}","auth":"none","priority":{priority}}}"#
            )
        };
        let connections =
            [connection("b", 2, "openai"), connection("a", 1, "openai"), connection("g", 1, "gemini")].join(",");
        let json = format!(r#"{{"version":1,"connections":[{connections}]}}"#);
        let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
        ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
    }

    fn order(active: &ActiveConfig) -> Vec<String> {
        let choice = choose(active, "openai/meta/llama", None, RoutingHints::default()).expect("a choice");
        assert_eq!(choice.upstream_model, "meta/llama");
        choice.targets.iter().map(|target| target.connection.id.clone()).collect()
    }

    fn rest(active: &ActiveConfig, id: &str, hint_ms: Option<u64>) {
        let target = active.targets.iter().flatten().find(|target| target.connection.id == id).expect("there");
        target.blame(ErrorKind::UpstreamReset, hint_ms);
    }

    #[test]
    fn priority_decides_and_what_rests_comes_last() {
        let active = active();
        assert_eq!(order(&active), ["a", "b"]);
        rest(&active, "a", None);
        assert_eq!(order(&active), ["b", "a"]);
        rest(&active, "b", None);
        assert_eq!(order(&active).len(), 2, "when all rest, all are tried");
    }

    #[test]
    fn what_a_provider_closed_is_left_out_until_its_time() {
        let active = active();
        rest(&active, "a", Some(60_000));
        assert_eq!(order(&active), ["b"]);
        rest(&active, "b", Some(9_500));
        let error = choose(&active, "openai/m", None, RoutingHints::default()).expect_err("closed");
        assert_eq!((error.kind, error.retry_after_s), (ErrorKind::UpstreamRateLimited, Some(10)));
    }

    fn pinned(active: &ActiveConfig, id: &str) -> Result<Vec<String>, ErrorKind> {
        let wish = RoutingHints { pin: Some(id), ..RoutingHints::default() };
        let choice = choose(active, "openai/m", None, wish).map_err(|error| error.kind)?;
        Ok(choice.targets.iter().map(|target| target.connection.id.clone()).collect())
    }

    #[test]
    fn a_pin_is_strict_until_its_connection_rests() {
        let active = active();
        assert_eq!(pinned(&active, "b"), Ok(vec!["b".into()]));
        for other in ["g", "nothing", ""] {
            assert_eq!(
                pinned(&active, other),
                Err(ErrorKind::InvalidRequest),
                "another provider's and none are the same"
            );
        }
        rest(&active, "b", None);
        assert_eq!(pinned(&active, "b"), Ok(vec!["a".into(), "b".into()]));
        rest(&active, "b", Some(60_000));
        assert_eq!(pinned(&active, "b"), Ok(vec!["a".into()]));
    }

    /// Counts the first choices of two hundred calls over five connections: four of equal priority and one of lower
    /// priority.
    fn firsts(strategies: &str, hints: RoutingHints<'_>) -> HashMap<String, usize> {
        let connection = |(id, priority): (&str, u32)| {
            format!(
                r#"{{"id":"{id}","provider":"n","prefixes":["n"],"dialect":"openai","base_url":"http://{id}","auth":"none","priority":{priority},"weight":{}}}"#,
                u32::from(id != "b")
            )
        };
        let connections = [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 2)].map(connection).join(",");
        let json = format!(r#"{{"version":1,"connections":[{connections}],"account_strategies":{strategies}}}"#);
        let active = testing::active(&serde_json::from_str(&json).expect("JSON"));
        let mut counts = HashMap::new();
        for _ in 0..200 {
            let choice = choose(&active, "n/m", None, hints).expect("a choice");
            assert_eq!((choice.targets.len(), choice.targets[4].connection.id.as_str()), (5, "e"));
            *counts.entry(choice.targets[0].connection.id.clone()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn equals_share_the_calls_as_their_provider_is_set_to() {
        let by_default = firsts("{}", RoutingHints::default());
        assert!(
            by_default.len() == 4 && by_default.values().all(|&count| (15..=85).contains(&count)),
            "{by_default:?}"
        );
        let in_turn = firsts(r#"{"default":"sticky","providers":{"n":"round-robin"}}"#, RoutingHints::default());
        assert!(in_turn.len() == 4 && in_turn.values().all(|&count| count == 50), "{in_turn:?}");
        let by_weight = firsts(r#"{"default":"weighted"}"#, RoutingHints::default());
        assert!(by_weight.len() == 3 && !by_weight.contains_key("b"), "{by_weight:?}");
        assert_eq!(firsts(r#"{"default":"fill-first"}"#, RoutingHints::default())["a"], 200);
        let homes: HashSet<String> = (0..50)
            .map(|session| {
                let hints = RoutingHints { affinity: Some(session), ..RoutingHints::default() };
                let counts = firsts(r#"{"default":"sticky"}"#, hints);
                assert_eq!(counts.len(), 1, "one session, one connection: {counts:?}");
                counts.into_keys().next().expect("one")
            })
            .collect();
        assert_eq!(homes.len(), 4);
    }

    #[test]
    fn a_session_stays_where_it_was() {
        let active = active();
        let last_target = Some(identity(&["b", "m"]));
        let choice = choose(&active, "openai/m", None, RoutingHints { last_target, ..RoutingHints::default() })
            .expect("a choice");
        assert_eq!(choice.targets.iter().map(|target| target.connection.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(choice.identity(0), last_target);
    }

    #[test]
    fn a_model_needs_a_prefix_that_somebody_has() {
        let active = active();
        for (model, kind) in [
            ("m", ErrorKind::ModelNotFound),
            ("/m", ErrorKind::ModelNotFound),
            ("openai/", ErrorKind::ModelNotFound),
            ("other/m", ErrorKind::ModelNotFound),
        ] {
            assert_eq!(
                choose(&active, model, None, RoutingHints::default()).map(drop).map_err(|error| error.kind),
                Err(kind),
                "{model}"
            );
        }
    }
}
