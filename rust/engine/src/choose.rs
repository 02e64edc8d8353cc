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
        if target.connection.dialect != Dialect::Openai {
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
        let message =
            format!("The provider `{prefix}` does not speak the OpenAI chat protocol, which this endpoint needs.");
        return Err(Error::client(Kind::InvalidRequest, message).about("model"));
    }
    Err(Error::gateway(Kind::NoRoute, format!("The provider `{prefix}` has no usable connection.")).after_s(5))
}

fn not_found(message: String) -> Error {
    Error::client(Kind::ModelNotFound, message).about("model")
}
