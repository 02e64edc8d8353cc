//! Answers that are given again. Who may be answered so and under which key is decided here; `give` answers from what is kept;
//! `flight` lets requests that ask the same at the same time share one call, and keeps what it brings.
//!
//! ```text
//! asked -> look: exact, then near -> given
//!               \-> missed -> fly: first -> the call, kept if it is fit
//!                                  \-> joined to the call under way
//! ```

mod flight;
mod give;

pub use flight::fly;
pub use give::{look, Looked};

use crate::active_config::Live;
use crate::call::coalesce::Twins;
use crate::call::guardrails;
use crate::call::translation::caller_of;
use crate::gate::admission::{Admission, Whole};
use crate::gate::inbound::CacheSheet;
use crate::shared::Shared;
use fairlead_cache::cache::{Bounds, Cache};
use fairlead_cache::entry::Delivery;
use fairlead_cache::key::{self, Digest, Question, Scope, Turns};
use fairlead_core::dialect::Dialect;
use fairlead_core::error::{Error, Kind};
use fairlead_core::json;
use fairlead_core::secret::hex;
use fairlead_core::snapshot::{CacheSettings, Snapshot};
use fairlead_dialect::openai::request::ChatRequest;
use memchr::memmem;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// A larger request is not looked up: reading it whole would hold others up.
const MAX_REQUEST_BYTES: usize = 256 * 1024;

/// A larger one is not read where requests come in.
const MAX_GLANCE_BYTES: usize = 16 * 1024;

/// The cache of this worker.
#[derive(Debug)]
pub struct Answers {
    pub store: Arc<Cache>,
    /// Calls under way that others may join.
    pub flights: Twins,
}

impl Answers {
    pub fn new(cache: Cache) -> Self {
        Self { store: Arc::new(cache), flights: Twins::under_way() }
    }

    /// Puts the operator's settings into force.
    pub fn set(&self, settings: &CacheSettings) {
        self.store.set(Bounds {
            memory_bytes: if settings.is_enabled { settings.memory_bytes } else { 0 },
            disk_bytes: if settings.is_enabled { settings.disk_bytes } else { 0 },
            wants_vectors: settings.is_enabled && settings.wants_vectors,
        });
    }
}

/// `X-Gateway-Cache-Mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not sent: a request of temperature 0 is looked up, in every way that the operator wants.
    #[default]
    Unsaid,
    /// Looked up whatever its temperature, and answered from an equal request only.
    Exact,
    /// Looked up whatever its temperature, and by meaning where the operator allows it.
    Vector,
}

/// What a caller wants of the cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    pub is_declined: bool,
    pub mode: Mode,
    /// No less than this is near.
    pub threshold: Option<f32>,
    /// Headers that change the answer, as they came.
    shape: Vec<Vec<u8>>,
}

impl Wish {
    pub fn read(sheet: &CacheSheet<'_>) -> Result<Self, Error> {
        let wrong = |name: &'static str, rule: &str| {
            Error::client(Kind::InvalidRequest, format!("`{name}` must be {rule}.")).about(name)
        };
        let mode = match sheet.mode {
            None => Mode::Unsaid,
            Some("exact") => Mode::Exact,
            Some("vector") => Mode::Vector,
            Some(_) => return Err(wrong("X-Gateway-Cache-Mode", "`exact` or `vector`")),
        };
        let threshold = match sheet.threshold.map(str::parse::<f32>) {
            None => None,
            Some(Ok(number)) if (0.0..=1.0).contains(&number) => Some(number),
            Some(_) => return Err(wrong("X-Gateway-Cache-Threshold", "a number from 0 to 1")),
        };
        let shape = sheet.no_memory.map(<[u8]>::to_vec).into_iter().collect();
        Ok(Self { is_declined: sheet.no_cache, mode, threshold, shape })
    }
}

/// A request that may be answered from the cache.
#[derive(Debug)]
pub struct Asked {
    pub(crate) key: Digest,
    pub(crate) question: Option<Question>,
    /// What is near enough; `None`: nothing but the same is.
    pub(crate) threshold: Option<f32>,
    pub(crate) form: Dialect,
    /// A Gemini caller reads its stream as one JSON list. What is kept are events.
    pub(crate) reads_list: bool,
    pub(crate) ttl_ms: u64,
    /// Everything that is forgotten after this moment takes the answer along.
    pub(crate) epoch: u64,
}

/// Whether the answer may well be at hand, as far as a glance tells.
pub fn is_likely(shared: &Shared, whole: &Whole) -> bool {
    let (admission, body) = (&whole.admission, &whole.body);
    let is_small = body.len() <= MAX_GLANCE_BYTES && admission.idempotency_key.is_none();
    // The body is looked into last.
    is_small
        && !admission.bypasses_cache()
        && shared.live.load().snapshot.cache.is_enabled
        && (admission.cache.mode != Mode::Unsaid || has_zero_temperature(caller_of(admission.route), body))
}

/// `None`: the cache has nothing to do with the request.
pub fn ask(shared: &Shared, live: &Live, admission: &Admission, parsed: &ChatRequest, body: &[u8]) -> Option<Asked> {
    let settings = &live.snapshot.cache;
    let wish = &admission.cache;
    let form = caller_of(admission.route);
    // What goes on from an earlier response tells of it.
    if !settings.is_enabled || parsed.previous.is_some() || admission.bypasses_cache() || body.len() > MAX_REQUEST_BYTES
    {
        return None;
    }
    // Looked at first, because most requests have another temperature or none.
    if wish.mode == Mode::Unsaid && !has_zero_temperature(form, body) {
        return None;
    }
    let mut headers: Vec<&[u8]> = wish.shape.iter().map(Vec::as_slice).collect();
    headers.extend([admission.pin.as_deref().unwrap_or_default().as_bytes()]);
    // What guardrails made of an answer is another answer.
    let judged_by = [guardrails::of_answer(live, admission).bytes(), admission.disabled_guardrails.bytes()];
    headers.push(judged_by.as_flattened());
    headers.extend(admission.anthropic_beta.as_ref().map(http::HeaderValue::as_bytes));
    let scope = Scope {
        principal: &admission.principal.to_header(),
        // Gemini's plain and streamed calls have addresses of their own, and the same answers.
        route: if form == Dialect::Gemini { "generateContent" } else { admission.route.path },
        model: &identity(live, &parsed.model),
        turns: match form {
            Dialect::Openai | Dialect::Anthropic => Turns::Messages,
            Dialect::OpenaiResponses => Turns::Input,
            Dialect::Gemini => Turns::Contents,
        },
        headers: &headers,
    };
    let asked = key::read(&scope, body)?;
    let is_meant = asked.is_deterministic || wish.mode != Mode::Unsaid;
    if asked.is_unfit || !is_meant {
        return None;
    }
    let is_near_enough = settings.wants_vectors && wish.mode != Mode::Exact;
    Some(Asked {
        key: asked.key,
        question: asked.question,
        // A caller may be stricter than the operator, never less so.
        threshold: is_near_enough.then(|| wish.threshold.map_or(settings.threshold, |own| own.max(settings.threshold))),
        form,
        reads_list: parsed.reads_list,
        ttl_ms: settings.ttl_ms,
        epoch: shared.cache.store.epoch(),
    })
}

/// How the caller wants it.
pub fn delivery(parsed: &ChatRequest) -> Delivery {
    if parsed.stream {
        Delivery::Stream { asks_usage: parsed.asks_usage }
    } else {
        Delivery::Plain
    }
}

fn has_zero_temperature(form: Dialect, body: &[u8]) -> bool {
    // Most requests name no temperature, which a search tells for less than reading them; a name may be written with escapes.
    if memmem::find(body, b"temperature").is_none() && memchr::memchr(b'\\', body).is_none() {
        return false;
    }
    let body = if form == Dialect::Gemini {
        let Ok(scan) = json::scan_object(body, &["generationConfig", "generation_config"], json::MAX_DEPTH) else {
            return false;
        };
        let config = scan.get("generationConfig").or_else(|| scan.get("generation_config"));
        config.and_then(|config| body.get(config.span())).unwrap_or_default()
    } else {
        body
    };
    let Ok(scan) = json::scan_object(body, &["temperature"], json::MAX_DEPTH) else { return false };
    let text = scan.get("temperature").and_then(|value| std::str::from_utf8(body.get(value.span())?).ok());
    text.and_then(|text| text.parse::<f64>().ok()) == Some(0.0)
}

/// What a model's name leads to: where an alias points elsewhere, a combo is changed or a provider moves, it is another.
fn identity(live: &Live, model: &str) -> String {
    let name = live.snapshot.alias(model).unwrap_or(model);
    let mut identity = format!("{model}\n{name}\n");
    if live.combos.book.find(name).is_some() {
        identity.push_str(&live.places);
    } else {
        let prefix = name.split_once('/').map_or(name, |(prefix, _)| prefix);
        of_prefix(&live.snapshot, prefix, &mut identity);
    }
    identity
}

/// The places where models of a prefix are served, each once.
fn of_prefix(snapshot: &Snapshot, prefix: &str, out: &mut String) {
    let places: BTreeSet<(&str, Option<&str>)> = snapshot
        .candidates(prefix)
        .iter()
        .map(|&index| &snapshot.connections[index])
        .map(|connection| (connection.base_url.as_str(), connection.chat_path.as_deref()))
        .collect();
    for (base_url, chat_path) in places {
        // Writing into a text cannot fail.
        let _written = writeln!(out, "{base_url} {}", chat_path.unwrap_or_default());
    }
}

/// A digest of everything that a combo may lead to.
pub fn places(snapshot: &Snapshot) -> String {
    let mut text = format!("{:?}\n", snapshot.combos);
    let prefixes: BTreeSet<&String> = snapshot.connections.iter().flat_map(|connection| &connection.prefixes).collect();
    for prefix in prefixes {
        text.push_str(prefix);
        text.push('\n');
        of_prefix(snapshot, prefix, &mut text);
    }
    for model in &snapshot.models {
        text.push_str(&model.id);
        text.push('\n');
    }
    hex(&key::digest(&[text.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures() {
        for zero in ["0", "0.0", "-0", "0e3"] {
            let body = format!("{{\"a\":1,\"temperature\":{zero}}}");
            assert!(has_zero_temperature(Dialect::Openai, body.as_bytes()), "{zero}");
            assert!(!has_zero_temperature(Dialect::Gemini, body.as_bytes()), "{zero}");
            let body = format!("{{\"contents\":[],\"generationConfig\":{body}}}");
            assert!(has_zero_temperature(Dialect::Gemini, body.as_bytes()), "{zero}");
        }
        assert!(has_zero_temperature(Dialect::Openai, br#"{"\u0074emperature":0}"#));
        for other in ["0.1", "1", "null", "\"0\"", "false", "[0]"] {
            assert!(
                !has_zero_temperature(Dialect::Openai, format!("{{\"temperature\":{other}}}").as_bytes()),
                "{other}"
            );
        }
        assert!(!has_zero_temperature(Dialect::Openai, b"{}") && !has_zero_temperature(Dialect::Gemini, b"{}"));
    }

    #[test]
    fn a_wish_is_read_or_refused() {
        let read = |mode, threshold| Wish::read(&CacheSheet { mode, threshold, ..CacheSheet::default() });
        assert_eq!(read(None, None).map(|wish| wish.mode).ok(), Some(Mode::Unsaid));
        assert_eq!(read(Some("vector"), Some("0.95")).map(|wish| wish.threshold).ok(), Some(Some(0.95)));
        for (mode, threshold) in [(Some("semantic"), None), (None, Some("2")), (None, Some("NaN")), (None, Some(""))] {
            assert!(read(mode, threshold).is_err(), "{mode:?} {threshold:?}");
        }
    }

    #[test]
    fn a_combo_that_leads_elsewhere_is_another() {
        let places_of = |json: &str| places(&Snapshot::parse(json.as_bytes()).expect("a snapshot"));
        let connection =
            r#"{"id":"a","provider":"n","prefixes":["n"],"dialect":"openai","base_url":"http://x","auth":"none"}"#;
        let twice = connection.replace(r#""id":"a""#, r#""id":"b""#);
        let moved = connection.replace("http://x", "http://y");
        let with = |connections: &str, combos: &str| {
            places_of(&format!(r#"{{"version":1,"connections":[{connections}],"combos":[{combos}]}}"#))
        };
        let combo = r#"{"id":"c","name":"c","strategy":"priority","steps":[{"kind":"model","model":"n/m"}]}"#;
        let own = with(connection, combo);
        assert_eq!(with(&format!("{connection},{twice}"), combo), own, "another credential at the same place");
        assert_ne!(with(&moved, combo), own);
        assert_ne!(with(connection, &combo.replace("n/m", "n/o")), own);
    }
}
