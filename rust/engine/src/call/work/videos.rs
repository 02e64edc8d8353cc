//! Videos as paid requests. The relay parses the model and the requested length, chooses the connections and reserves
//! the price as for any other call. Control starts the video at the first connection that accepts it.

use crate::active_config::ActiveConfig;
use crate::call::choose::{admit_aliases, admit_model};
use crate::clock;
use crate::gate::headers;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::route::model;
use crate::route::permission;
use crate::shared::Shared;
use crate::upstream::slot::{self, Slot};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::routes::Surface;
use fairlead_core::strategy::auto;
use fairlead_core::{model_name, policy, Auth, Connection, Dialect, Error, ErrorKind, Key, Units, DIRECT};
use fairlead_dialect::openai::named;
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::time::Duration;

/// The connections that control tries, in order, as base64 of JSON. The header is for use between the planes only.
const LANES: HeaderName = HeaderName::from_static("x-fairlead-lanes");
/// The default lengths in Google's and in OpenAI's form. Control sends OpenAI's default to the provider explicitly.
const USUAL_SECONDS: u64 = 8;
const OPENAI_USUAL_SECONDS: u64 = 4;
const MAX_SECONDS: u64 = 3_600;
const MAX_SAMPLES: u64 = 16;

/// Chooses the targets that may make the video and reserves its maximum cost.
pub(crate) fn admit_video(shared: &Shared, settlement: &mut Settlement, body: &[u8]) -> Result<Choice, Error> {
    let active = shared.active.load_full();
    let form = VideoForm::of(settlement.admission.route.surface);
    let video = form.read(&settlement.admission.tail, body)?;
    let called = active.snapshot.name(&video.model)?.into_owned();
    let key = settlement.admission.principal.key().cloned();
    let name = match key.as_deref().filter(|_| form == VideoForm::Google) {
        Some(key) => listed(&active, key, &called).unwrap_or(called),
        None => called,
    };
    settlement.model = Some(name.clone());
    let forced = key.as_deref().and_then(|key| key.forced_model.as_ref());
    let meant = forced.or(settlement.admission.route_model.as_ref()).unwrap_or(&name);
    let meant = active.snapshot.name(meant)?;
    if let Some(key) = &key {
        policy::admit_unblocked(key, &meant)?;
    }
    if is_of_no_maker(&active, &meant, form) {
        return Err(unserved(&meant, form));
    }
    let parsed = admit_model(&active, settlement, named::of_form(&name, false, 1)?)?;
    settlement.model = Some(parsed.model.clone());
    let choice = model::choose(shared, &active, &settlement.admission, &parsed.model, b"");
    let mut choice =
        choice.map_err(
            |fault| if fault.kind == ErrorKind::ModelNotFound { unserved(&parsed.model, form) } else { fault },
        )?;
    admit_aliases(settlement, &choice)?;
    let indices: Vec<usize> =
        (0..choice.targets.len()).filter(|&at| form.is_made_by(&choice.targets[at].connection)).collect();
    if indices.is_empty() {
        return Err(unserved(&parsed.model, form));
    }
    if indices.len() < choice.targets.len() {
        choice = choice.narrowed(&indices);
    }
    settlement.set_units(Units { audio_ms: video.seconds.saturating_mul(1_000), ..Units::default() });
    limits::reserve(shared, &active.snapshot, settlement, &parsed, &mut choice)?;
    settlement.note_choice(&choice);
    Ok(choice)
}

/// Waits for capacity at one of the connections. `headers` tell control to try that connection first and then the
/// others with capacity. The slot stays reserved until control has responded.
pub(crate) async fn reserve_capacity(
    shared: &Shared,
    choice: &Choice,
    headers: &mut HeaderMap,
) -> Result<(Choice, Slot), Error> {
    let (mut busy, mut queued) = (None, Duration::ZERO);
    for (at, target) in choice.targets.iter().enumerate() {
        let slot = match slot::acquire(shared, target, &choice.slot_request(at, 0), &mut queued).await {
            Ok(slot) => slot,
            Err(failed) if failed.error.kind == ErrorKind::AccountsBusy => {
                busy = Some(failed.error);
                continue;
            }
            Err(failed) => return Err(failed.error),
        };
        let has_capacity = |&at: &usize| {
            let facts = choice.targets[at].account_facts(choice.upstream_model(at), clock::monotonic_ms());
            !facts.is_shut
        };
        let indices: Vec<usize> = [at].into_iter().chain((at + 1..choice.targets.len()).filter(has_capacity)).collect();
        let choice = choice.narrowed(&indices);
        name_lanes(&choice, headers);
        return Ok((choice, slot));
    }
    Err(busy.unwrap_or_else(|| Error::gateway(ErrorKind::NoRoute, "No connection is available.")))
}

fn name_lanes(choice: &Choice, headers: &mut HeaderMap) {
    let lanes: Vec<Value> = (0..choice.targets.len())
        .map(|at| {
            let target = &choice.targets[at];
            let proxy = target.origin.proxy().map_or(DIRECT, |proxy| &*proxy.id);
            json!({"connection_id": target.connection.id, "model": choice.upstream_model(at), "proxy": proxy})
        })
        .collect();
    headers.insert(LANES, headers::value(STANDARD.encode(Value::from(lanes).to_string())));
}

/// The API form of a video request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VideoForm {
    Google,
    OpenAi,
}

/// The parsed parts of a video request: the model and the length.
#[derive(Debug, PartialEq, Eq)]
struct RequestedVideo {
    model: String,
    seconds: u64,
}

impl VideoForm {
    fn of(surface: Surface) -> Self {
        if surface == Surface::Gemini {
            Self::Google
        } else {
            Self::OpenAi
        }
    }

    fn read(self, tail: &str, body: &[u8]) -> Result<RequestedVideo, Error> {
        match self {
            Self::Google => {
                Ok(RequestedVideo { model: model_name::without_folder(tail).to_owned(), seconds: seconds(body) })
            }
            Self::OpenAi => read_openai(body),
        }
    }

    /// Whether control can use this connection for the request. Vertex uses different URLs for operations, and Amazon a
    /// different format.
    fn is_made_by(self, connection: &Connection) -> bool {
        let is_plain = !matches!(connection.auth, Auth::GoogleServiceAccount | Auth::AwsSigv4);
        match connection.dialect {
            Dialect::Gemini => is_plain,
            Dialect::Openai => is_plain && self == Self::OpenAi,
            _ => false,
        }
    }
}

/// Whether the prefix of a name belongs to no provider of videos. Returns `false` for an alias or a combo.
fn is_of_no_maker(active: &ActiveConfig, model: &str, form: VideoForm) -> bool {
    let Some((prefix, _)) = model.split_once('/').filter(|_| !is_another_name(active, model)) else { return false };
    let mut connections =
        active.snapshot.candidates(prefix).iter().filter_map(|&at| active.snapshot.connections.get(at));
    !connections.any(|connection| form.is_made_by(connection))
}

fn is_another_name(active: &ActiveConfig, model: &str) -> bool {
    active.snapshot.alias(model).is_some() || active.combos.book.find(model).is_some() || auto::is_auto(model)
}

fn unserved(model: &str, form: VideoForm) -> Error {
    let dialects = if form == VideoForm::Google { "in Gemini's dialect" } else { "in OpenAI's or Gemini's dialect" };
    let message = format!("No connection {dialects} serves `{model}`: videos are made by those alone.");
    Error::client(ErrorKind::ModelNotFound, message).about("model")
}

/// Resolves a name without a prefix, as Google's clients send it, to a listed model that the key may call. The most
/// preferred connection that makes videos wins. Returns `None` for a name that already has a meaning.
fn listed(active: &ActiveConfig, key: &Key, model: &str) -> Option<String> {
    if model.contains('/') || is_another_name(active, model) {
        return None;
    }
    let preference = |name: &str| {
        let (prefix, _) = name.split_once('/')?;
        let connections =
            active.snapshot.candidates(prefix).iter().filter_map(|&at| active.snapshot.connections.get(at));
        connections
            .filter(|connection| VideoForm::Google.is_made_by(connection))
            .map(|connection| connection.priority)
            .min()
    };
    let mut found: Vec<(bool, u32, &str)> = active
        .snapshot
        .models_named(model)
        .filter_map(|found| {
            Some((permission::admit(active, key, &found.id).is_err(), preference(&found.id)?, found.id.as_str()))
        })
        .collect();
    // Using a model that the key may not call reports a specific error.
    found.sort_unstable();
    found.first().map(|(_, _, name)| (*name).to_owned())
}

#[derive(Deserialize)]
struct VideoFields {
    #[serde(default)]
    instances: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
}

/// Returns the requested length in seconds. A provider may accept either spelling of a parameter, so the larger value
/// counts. Control rejects values that cannot be parsed.
fn seconds(body: &[u8]) -> u64 {
    let Ok(fields) = serde_json::from_slice::<VideoFields>(body) else { return USUAL_SECONDS };
    let parameters = fields.parameters.unwrap_or_default();
    let most = |names: &[&str], usual: u64, most: u64| {
        names.iter().filter_map(|name| parameters.get(*name).and_then(count)).max().unwrap_or(usual).min(most)
    };
    let length = most(&["durationSeconds", "duration_seconds"], USUAL_SECONDS, MAX_SECONDS);
    let samples = most(&["sampleCount", "sample_count", "numberOfVideos", "number_of_videos"], 1, MAX_SAMPLES);
    length * samples * (fields.instances.len() as u64).clamp(1, MAX_SAMPLES)
}

#[derive(Deserialize)]
struct OpenAiVideoFields {
    #[serde(default)]
    model: Value,
    #[serde(default)]
    seconds: Value,
}

fn read_openai(body: &[u8]) -> Result<RequestedVideo, Error> {
    let wrong =
        |message: &'static str, about: &'static str| Error::client(ErrorKind::InvalidRequest, message).about(about);
    let fields: OpenAiVideoFields =
        serde_json::from_slice(body).map_err(|_| wrong("The body must be a JSON object.", "body"))?;
    let Value::String(model) = fields.model else { return Err(wrong("`model` is required: a name.", "model")) };
    let seconds = match &fields.seconds {
        Value::Null => Some(OPENAI_USUAL_SECONDS),
        value => count(value).filter(|&seconds| seconds <= MAX_SECONDS),
    };
    let seconds = seconds.ok_or_else(|| wrong("`seconds` must be a whole number from 1 to 3600.", "seconds"))?;
    Ok(RequestedVideo { model, seconds })
}

/// Parses a number of at least one, which may be a string of digits.
fn count(number: &Value) -> Option<u64> {
    let found = match number {
        Value::String(text) if text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|it| *it >= 1.0).map(|it| it.ceil() as u64))
        }
        _ => None,
    };
    found.filter(|&count| count >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_is_as_long_as_all_of_its_samples() {
        for (body, expected) in [
            (r#"{"instances":[{}]}"#, 8),
            (r#"{"instances":[{},{}],"parameters":{"durationSeconds":"6","sampleCount":2}}"#, 24),
            (r#"{"instances":[{}],"parameters":{"durationSeconds":4,"duration_seconds":5,"numberOfVideos":4}}"#, 20),
            (r#"{"instances":[{}],"parameters":{"durationSeconds":-4,"sampleCount":true}}"#, 8),
            (r#"{"instances":[{}],"parameters":{"durationSeconds":1e300,"sampleCount":4.5}}"#, 3_600 * 5),
            (r#"{"instances":[{}],"parameters":null}"#, 8),
            ("[]", 8),
        ] {
            assert_eq!(seconds(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn a_video_in_openais_words_says_its_model_and_length() {
        for (body, expected) in [
            (r#"{"model":"p/m"}"#, Ok(4)),
            (r#"{"model":"p/m","seconds":null}"#, Ok(4)),
            (r#"{"model":"p/m","seconds":"12"}"#, Ok(12)),
            (r#"{"model":"p/m","seconds":8}"#, Ok(8)),
            (r#"{"model":"p/m","seconds":"0"}"#, Err("seconds")),
            (r#"{"model":"p/m","seconds":"eight"}"#, Err("seconds")),
            (r#"{"model":"p/m","seconds":3601}"#, Err("seconds")),
            (r#"{"seconds":"4"}"#, Err("model")),
            (r#"{"model":7}"#, Err("model")),
        ] {
            let read = VideoForm::OpenAi.read("", body.as_bytes());
            match expected {
                Ok(seconds) => {
                    assert_eq!(read.expect("read"), RequestedVideo { model: "p/m".into(), seconds }, "{body}");
                }
                Err(about) => assert_eq!(read.expect_err("refused").param.as_deref(), Some(about), "{body}"),
            }
        }
    }
}
