//! Resolves the model name of a request to targets. An alias stands for another name and a combo for several targets.
//! Any other name is a single model, which the caller can pin to one connection.

use crate::active_config::ActiveConfig;
use crate::clock;
use crate::gate::request::Admission;
use crate::route::bare;
use crate::route::choice::Choice;
use crate::route::choose::{self, RoutingHints};
use crate::route::conversation::{caller, Prompt};
use crate::route::lease;
use crate::route::near_names;
use crate::route::permission::admit;
use crate::route::picture::has_picture;
use crate::route::prompt_use::HeldConversation;
use crate::route::segments::Segments;
use crate::shared::Shared;
use fairlead_core::strategy::{auto, identity, Demand, Strategy};
use fairlead_core::{policy, Error, ErrorKind, Key};
use std::borrow::Cow;

/// The assumed output of a request before the response is known.
const ASSUMED_OUTPUT_TOKENS: u64 = 512;
const BYTES_PER_TOKEN: u64 = 4;
/// The upper bound of an estimate.
const MOST_INPUT_TOKENS: u64 = 100_000;

/// Estimates the tokens of a request of this many bytes, response included. Images and audio have far fewer tokens than
/// bytes.
pub fn estimate(bytes: u64) -> u64 {
    (bytes / BYTES_PER_TOKEN).min(MOST_INPUT_TOKENS) + ASSUMED_OUTPUT_TOKENS
}

/// Text has no run of letters and digits this long; such a run is encoded binary data.
const MIN_BLOB_BYTES: usize = 2_048;

/// The canonical form of a name for records. A name that cannot be resolved is recorded unchanged.
pub fn shown_name(active: &ActiveConfig, name: &str) -> String {
    active.snapshot.name(name).map_or_else(|_| name.to_owned(), Cow::into_owned)
}

/// Returns the name that a call is for, with or without a key. A name without a prefix is resolved to a model first,
/// and the key must be allowed to call the result.
pub fn admitted_name(active: &ActiveConfig, key: Option<&Key>, name: String) -> Result<String, Error> {
    let name = bare::resolve(active, key, &name).unwrap_or(name);
    let Some(key) = key else { return Ok(name) };
    match admit(active, key, &name) {
        Ok(()) => Ok(name),
        Err(fault) if bare::is_known(active, &name) => Err(fault),
        // The message that no provider has the name helps more than a refusal, and it reveals nothing.
        Err(_) if !name.contains('/') && policy::admit_unblocked(key, &name).is_ok() => {
            Err(near_names::suggest(active, Some(key), &name, choose::no_prefix(&name)))
        }
        Err(fault) => Err(near_names::suggest(active, Some(key), &name, fault)),
    }
}

/// Returns the targets of a request in the order to try them.
pub fn choose(
    shared: &Shared,
    active: &ActiveConfig,
    admission: &Admission,
    model: &str,
    body: &[u8],
) -> Result<Choice, Error> {
    let key = admission.principal.key().map(AsRef::as_ref);
    let name = active.snapshot.alias(model).unwrap_or(model);
    let leased = lease::claimed_connection(active, admission)?;
    let session = session(admission, model);
    let prompt = Prompt::new(admission, body);
    let find_last = |session| shared.affinity.find(session, clock::monotonic_ms());
    if let Some(combo) = active.combos.book.find(name) {
        let ready = active.combos.book.get(combo);
        let is_protected = ready.is_some_and(|ready| ready.rules.context_cache_protection);
        let protected = if is_protected { prompt.conversation_with(model) } else { None };
        let last_target = protected.or(session).and_then(find_last);
        let demand = demand(active, Subject { caller: caller(admission), last_target }, body);
        let demand = Demand { pack: admission.routing.pack, ..demand };
        let choice = active.combos.choose(active.reach(), combo, &demand, key)?;
        let mut choice = lease::narrow(choice, leased)?;
        prompt.describe(active, protected.map(|id| HeldConversation { id, last_target }), &mut choice);
        active.outbound.apply(&mut choice, key, ready.map(|ready| ready.id.as_str()));
        return Ok(choice);
    }
    if auto::is_auto(name) || name.starts_with("combo/") {
        return Err(near_names::suggest(active, key, name, no_combo(name)));
    }
    let affinity = if active.accounts.wants_affinity { session.or_else(|| prompt.opening()) } else { None };
    let is_held = prompt.is_held(active, name);
    let place = if is_held { session.or_else(|| prompt.conversation_with(model)) } else { session };
    let last_target = place.and_then(find_last);
    let hints =
        RoutingHints { pin: admission.pin.as_deref(), last_target, leased, affinity, ..RoutingHints::default() };
    let mut choice = choose::choose(active, name, key, hints).map_err(|fault| {
        let is_unknown = fault.kind == ErrorKind::ModelNotFound;
        if is_unknown {
            near_names::suggest(active, key, name, fault)
        } else {
            fault
        }
    })?;
    let hold = place.filter(|_| is_held).map(|id| HeldConversation { id, last_target });
    prompt.describe(active, hold, &mut choice);
    active.outbound.apply(&mut choice, key, None);
    Ok(choice)
}

/// Returns the targets of an extra call that a combo makes for the caller's request. The call is for one model and uses
/// the combo's proxies.
pub fn choose_beside(
    active: &ActiveConfig,
    combo: Option<&str>,
    model: &str,
    key: Option<&Key>,
) -> Result<Choice, Error> {
    if let Some(key) = key {
        policy::admit_unblocked(key, model)?;
    }
    let mut choice = choose::choose(active, model, key, RoutingHints::default())?;
    let ready = combo.and_then(|name| active.combos.book.find(name)).and_then(|at| active.combos.book.get(at));
    active.outbound.apply(&mut choice, key, ready.map(|ready| ready.id.as_str()));
    Ok(choice)
}

/// The caller's data that a decision uses.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub caller: &'a str,
    /// The target that served the session last.
    pub last_target: Option<u64>,
}

/// The demand of a request, estimated before the request is sent.
pub fn demand(active: &ActiveConfig, subject: Subject<'_>, body: &[u8]) -> Demand {
    let wants_affinity = active.combos.book.all().iter().any(|ready| ready.strategy == Strategy::CacheOptimized);
    Demand {
        input_tokens: estimated_tokens(body),
        output_tokens: ASSUMED_OUTPUT_TOKENS,
        affinity: if wants_affinity { Segments::of(body).map(|prompt| prompt.opening(subject.caller)) } else { None },
        last_target: subject.last_target,
        has_picture: has_picture(body),
        pack: None,
    }
}

/// The error for an unknown combo name.
pub fn no_combo(name: &str) -> Error {
    let message = format!("There is no combo `{name}`; `GET /api/combos` lists them.");
    Error::client(ErrorKind::ModelNotFound, message).about("model")
}

/// Estimates the tokens of a body. Images and files in the body are not counted as text.
pub fn estimated_tokens(body: &[u8]) -> u64 {
    if body.len() < MIN_BLOB_BYTES {
        return body.len() as u64 / BYTES_PER_TOKEN;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let runs = body.split(|byte| !is_plain(byte)).map(<[u8]>::len);
    let blobs: usize = runs.filter(|run| *run >= MIN_BLOB_BYTES).sum();
    (body.len() - blobs) as u64 / BYTES_PER_TOKEN
}

/// The identity of this caller's session with this model.
pub fn session(admission: &Admission, model: &str) -> Option<u64> {
    let session = admission.session_id.as_deref()?;
    Some(identity(&[caller(admission), session, model]))
}
