//! Removes the members that an operator declared as refused, also from bodies that pass through.

use bytes::Bytes;
use fairlead_core::json::{self, Kind, MAX_DEPTH};
use fairlead_core::{Dialect, Error};
use std::ops::Range;

use crate::fit::{member_at, with_comma, Destination};
use crate::left_out::LeftOut;
use crate::model::is_neutral;
use crate::Pieces;

/// Members that affect only sampling, reasoning, caching, billing or records, in the names of every dialect.
const HINTS: &[&str] = &[
    "enable_thinking",
    "frequencyPenalty",
    "frequency_penalty",
    "labels",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxOutputTokens",
    "metadata",
    "min_p",
    "presencePenalty",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "random_seed",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "stream_options",
    "temperature",
    "thinking",
    "thinkingConfig",
    "topK",
    "topP",
    "top_k",
    "top_p",
    "user",
    "verbosity",
];
/// The object with most of Gemini's members.
const GENERATION_CONFIG: [&str; 2] = ["generationConfig", "generation_config"];

/// Removes the members from the body, and returns their names. A member that changes the answer rejects the request,
/// unless the caller chose to drop such members.
pub(crate) fn strip(form: Dialect, pieces: &mut Pieces, to: Destination<'_>) -> Result<Vec<String>, Error> {
    let is_in = |name: &&String| {
        let quoted = format!("\"{name}\"");
        pieces.iter().any(|piece| memchr::memmem::find(piece, quoted.as_bytes()).is_some())
    };
    let found: Vec<&String> = to.facts.stripped().iter().filter(is_in).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut body = pieces.concat();
    let mut left_out = LeftOut::new(to.fit.drops);
    for name in found {
        remove(&mut body, 0, name, &mut left_out)?;
        if form == Dialect::Gemini {
            if let Some(start) = generation_config(&body) {
                remove(&mut body, start, name, &mut left_out)?;
            }
        }
    }
    *pieces = Pieces::from_iter([Bytes::from(body)]);
    Ok(left_out.into_names())
}

/// Removes a member of the object that starts at this offset.
fn remove(body: &mut Vec<u8>, start: usize, name: &str, left_out: &mut LeftOut) -> Result<(), Error> {
    let Some((value, span)) = member(body, start, name) else { return Ok(()) };
    if !is_neutral(&value) {
        if HINTS.contains(&name) {
            left_out.hint(name);
        } else {
            left_out.refuse(name)?;
        }
    }
    body.drain(span);
    Ok(())
}

/// Returns the value of a member as text, and the span of the member with one comma beside it.
fn member(body: &[u8], start: usize, name: &str) -> Option<(String, Range<usize>)> {
    let object = object_at(body, start)?;
    let wanted = [name];
    let value = json::scan_object(object, &wanted, MAX_DEPTH).ok()?.get(name)?;
    let text = String::from_utf8_lossy(object.get(value.span())?).into_owned();
    let cut = with_comma(object, member_at(object, value)?);
    Some((text, start + cut.start..start + cut.end))
}

/// Returns the bytes of the object that starts at this offset: the whole body, or Gemini's inner object.
fn object_at(body: &[u8], start: usize) -> Option<&[u8]> {
    if start == 0 {
        return Some(body);
    }
    let scan = json::scan_object(body, &GENERATION_CONFIG, MAX_DEPTH).ok()?;
    let config = GENERATION_CONFIG.iter().find_map(|name| scan.get(name)).filter(|value| value.start == start)?;
    body.get(config.span())
}

/// Returns the offset of Gemini's inner object.
fn generation_config(body: &[u8]) -> Option<usize> {
    let scan = json::scan_object(body, &GENERATION_CONFIG, MAX_DEPTH).ok()?;
    let config = GENERATION_CONFIG.iter().find_map(|name| scan.get(name))?;
    (config.kind == Kind::Object).then_some(config.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts_tests::{chat, messages, parsed, with, written, CHAT, MESSAGES};
    use crate::fit::Fit;
    use crate::translate::Pair;
    use fairlead_core::ModelFacts;
    use serde_json::{json, Value};

    const OWN: Pair = Pair { caller: CHAT, provider: CHAT };

    fn refusing(names: &[&str]) -> ModelFacts {
        serde_json::from_value(json!({"refused": names, "strips_refused": true})).expect("facts")
    }

    fn sent(pair: Pair, body: &Value, names: &[&str], drops: bool) -> Result<(Value, Vec<String>), Error> {
        let fit = Fit { drops, ..Fit::default() };
        written(pair, body, &refusing(names), &fit).map(|sent| (parsed(&sent), sent.left_out))
    }

    #[test]
    fn stated_members_are_removed_from_a_body_that_passes_through() {
        let extra = json!({"seed": 1, "top_k": 2, "user": "u", "logit_bias": {}});
        let body = chat(&extra);
        let (found, left_out) = sent(OWN, &body, &["seed", "user", "logit_bias", "store"], false).expect("sent");
        let expected = with(chat(&json!({"top_k": 2})), &json!({}));
        assert_eq!(found["top_k"], expected["top_k"]);
        for name in ["seed", "user", "logit_bias"] {
            assert!(found.get(name).is_none(), "{name}");
        }
        assert_eq!(left_out, ["seed", "user"], "a neutral value is not listed");
    }

    #[test]
    fn every_member_can_be_removed_wherever_it_is() {
        for text in
            [r#"{"seed":1,"user":"u"}"#, r#"{ "seed" : 1 , "user" : "u" , "a":[] }"#, r#"{"a":{"seed":3},"user":"u"}"#]
        {
            let mut body = text.as_bytes().to_vec();
            let mut left_out = LeftOut::new(false);
            for name in ["seed", "user"] {
                remove(&mut body, 0, name, &mut left_out).expect("removed");
            }
            let found: Value = serde_json::from_slice(&body).expect("JSON");
            assert!(found.get("seed").is_none() && found.get("user").is_none(), "{text}");
        }
    }

    #[test]
    fn a_member_that_changes_the_answer_is_refused_or_dropped() {
        let body = chat(&json!({"response_format": {"type": "json_object"}}));
        let refused = sent(OWN, &body, &["response_format"], false).expect_err("refused");
        assert_eq!(refused.param.as_deref(), Some("response_format"));
        let (found, left_out) = sent(OWN, &body, &["response_format"], true).expect("sent");
        assert!(found.get("response_format").is_none());
        assert_eq!(left_out, ["response_format"]);
    }

    #[test]
    fn stated_members_are_removed_from_a_translated_body() {
        let body = messages(&json!({"temperature": 0.5}));
        let (found, left_out) =
            sent(Pair { caller: MESSAGES, provider: CHAT }, &body, &["temperature"], false).expect("sent");
        assert!(found.get("temperature").is_none());
        assert_eq!(left_out, ["temperature"]);
    }

    #[test]
    fn members_of_gemini_are_in_its_inner_object() {
        let pair = Pair { caller: Dialect::Gemini, provider: Dialect::Gemini };
        let body = json!({
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"topK": 3, "maxOutputTokens": 9},
        });
        let (found, left_out) = sent(pair, &body, &["topK"], false).expect("sent");
        assert_eq!(found["generationConfig"], json!({"maxOutputTokens": 9}));
        assert_eq!(left_out, ["topK"]);
    }

    #[test]
    fn facts_of_the_catalogue_leave_a_body_that_passes_through() {
        let facts: ModelFacts = serde_json::from_value(json!({"refused": ["seed"]})).expect("facts");
        let sent = written(OWN, &chat(&json!({"seed": 1})), &facts, &Fit::default()).expect("sent");
        assert_eq!(parsed(&sent)["seed"], 1);
    }
}
