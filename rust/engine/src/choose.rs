//! Which connections a request tries, in order. Decided from the snapshot and hot state alone.

use crate::clock;
use crate::live::Live;
use crate::target::Target;
use fairlead_core::error::{Error, Kind};
use fairlead_core::snapshot::Dialect;
use smallvec::SmallVec;
use std::sync::Arc;

/// More connections than this are not tried for one request.
const MAX_TARGETS: usize = 8;

/// The order in which connections are tried.
#[derive(Debug)]
pub struct Choice {
    pub targets: SmallVec<[Arc<Target>; 4]>,
    /// The model as the provider knows it: the name without its prefix.
    pub upstream_model: String,
}

/// Chooses for `<prefix>/<model>`: connections of the prefix by priority; those that rest come last, and those that a
/// provider has told to wait are left out.
pub fn choose(live: &Live, model: &str) -> Result<Choice, Error> {
    let Some((prefix, upstream_model)) =
        model.split_once('/').filter(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty())
    else {
        return Err(not_found(format!(
            "The model `{model}` has no provider prefix; write `<prefix>/<model>`, as `GET /v1/models` lists them."
        )));
    };
    let candidates = live.snapshot.candidates(prefix);
    if candidates.is_empty() {
        return Err(not_found(format!("No provider has the prefix `{prefix}`; `GET /v1/models` lists what is there.")));
    }
    let now_ms = clock::monotonic_ms();
    let mut ready: SmallVec<[Arc<Target>; 4]> = SmallVec::new();
    let mut resting: SmallVec<[Arc<Target>; 4]> = SmallVec::new();
    let mut soonest_ms = u64::MAX;
    let mut speaks_other = false;
    for target in candidates.iter().filter_map(|&index| live.targets.get(index)?.as_ref()) {
        if target.connection.dialect == Dialect::Gemini {
            speaks_other = true;
            continue;
        }
        let state = *target.hot.cooldown.lock();
        if state.is_closed(now_ms) {
            soonest_ms = soonest_ms.min(state.remaining_ms(now_ms));
        } else if state.is_cooling(now_ms) {
            resting.push(Arc::clone(target));
        } else {
            ready.push(Arc::clone(target));
        }
    }
    resting.sort_by_key(|target| target.hot.cooldown.lock().remaining_ms(now_ms));
    ready.extend(resting);
    ready.truncate(MAX_TARGETS);
    if !ready.is_empty() {
        return Ok(Choice { targets: ready, upstream_model: upstream_model.to_owned() });
    }
    if soonest_ms < u64::MAX {
        let message = format!("Every connection of `{prefix}` was told by its provider to wait.");
        return Err(Error::gateway(Kind::UpstreamRateLimited, message).after_s(soonest_ms.div_ceil(1_000)));
    }
    if speaks_other {
        let message = format!("The provider `{prefix}` speaks a dialect that this endpoint does not translate.");
        return Err(Error::client(Kind::InvalidRequest, message).about("model"));
    }
    Err(Error::gateway(Kind::NoRoute, format!("The provider `{prefix}` has no usable connection.")).after_s(5))
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
        let choice = choose(live, "openai/meta/llama").expect("a choice");
        assert_eq!(choice.upstream_model, "meta/llama");
        choice.targets.iter().map(|target| target.connection.id.clone()).collect()
    }

    fn rest(live: &Live, id: &str, hint_ms: Option<u64>) {
        let target = live.targets.iter().flatten().find(|target| target.connection.id == id).expect("there");
        target.hot.cooldown.lock().fail(Kind::UpstreamReset, hint_ms, clock::monotonic_ms());
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
        let error = choose(&live, "openai/m").expect_err("closed");
        assert_eq!((error.kind, error.retry_after_s), (Kind::UpstreamRateLimited, Some(10)));
    }

    #[test]
    fn a_model_needs_a_prefix_that_somebody_has_and_speaks() {
        let live = live();
        for (model, kind) in [
            ("m", Kind::ModelNotFound),
            ("/m", Kind::ModelNotFound),
            ("openai/", Kind::ModelNotFound),
            ("other/m", Kind::ModelNotFound),
            ("gemini/m", Kind::InvalidRequest),
        ] {
            assert_eq!(choose(&live, model).map(drop).map_err(|error| error.kind), Err(kind), "{model}");
        }
    }
}
