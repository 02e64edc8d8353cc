//! Adapts the calls of earlier turns in a request that passes through to another generation of Gemini's models. The
//! second generation rejects call ids, and the third rejects the first call of a step without a signature.

use bytes::Bytes;
use fairlead_core::json::{self, Value, MAX_DEPTH};
use fairlead_core::ModelFacts;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fit::{member_at, with_comma, Edits};
use crate::signature::UNSIGNED;

/// The members of a part with a call or its result.
const CALLS: [&str; 4] = ["functionCall", "function_call", "functionResponse", "function_response"];
const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    contents: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

/// Adds the edits, for models whose rule for call ids is known. Most bodies have no calls and are not parsed.
pub(crate) fn edits(body: &[u8], facts: &ModelFacts, edits: &mut Edits) {
    let Some(rule) = facts.call_ids else { return };
    if CALLS.iter().take(2).all(|name| memmem::find(body, name.as_bytes()).is_none()) {
        return;
    }
    let Ok(whole) = serde_json::from_slice::<Body<'_>>(body) else { return };
    for content in whole.contents {
        let mut has_call = false;
        for part in content.parts {
            let Some(at) = (part.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize) else { continue };
            let inner = part.get().as_bytes();
            if rule.most == 0 {
                without_id(inner, at, edits);
            } else if !has_call {
                has_call = sign(inner, at, edits);
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
}

/// Removes the id of a call or a result.
fn without_id(part: &[u8], at: usize, edits: &mut Edits) {
    let Ok(scan) = json::scan_object(part, &CALLS, MAX_DEPTH) else { return };
    for call in CALLS.iter().filter_map(|name| scan.get(name)) {
        let inner = part.get(call.span()).unwrap_or_default();
        let Ok(members) = json::scan_object(inner, &["id"], MAX_DEPTH) else { continue };
        let member = members.get("id").and_then(|id: Value| member_at(inner, id));
        if let Some(member) = member {
            let span = with_comma(inner, member);
            let start = at + call.start;
            edits.push((start + span.start..start + span.end, Bytes::new()));
        }
    }
}

/// Marks a call without a signature as one of another vendor. Returns whether the part is a call.
fn sign(part: &[u8], at: usize, edits: &mut Edits) -> bool {
    let wanted = [CALLS[0], CALLS[1], SIGNATURES[0], SIGNATURES[1]];
    let Ok(scan) = json::scan_object(part, &wanted, MAX_DEPTH) else { return false };
    if CALLS.iter().take(2).all(|name| scan.get(name).is_none()) {
        return false;
    }
    if SIGNATURES.iter().all(|name| scan.get(name).is_none()) {
        // The comma is valid because the part has a member.
        edits.push((at + 1..at + 1, Bytes::from(format!("\"{}\":\"{UNSIGNED}\",", SIGNATURES[0]))));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::{Letters, NameRule};

    const BODY: &str = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},
        {"role":"model","parts":[{"text":"b"},{"functionCall":{"id":"c1","name":"f","args":{"id":"x"}}},{"functionCall":{"name":"f","id":"c2"}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{},"id":"c1"}},{"functionResponse":{"id":"c2","name":"f"}}]},
        {"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"own"}]}]}"#;

    fn sent(most: usize) -> serde_json::Value {
        let facts = ModelFacts { call_ids: Some(NameRule { most, letters: Letters::Any }), ..ModelFacts::default() };
        let mut found = Edits::new();
        edits(BODY.as_bytes(), &facts, &mut found);
        let mut out = BODY.to_owned();
        found.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        for (span, text) in found {
            out.replace_range(span, std::str::from_utf8(&text).expect("text"));
        }
        serde_json::from_str(&out).expect("JSON")
    }

    #[test]
    fn the_second_generation_gets_no_ids() {
        let sent = sent(0);
        let text = sent.to_string();
        assert!(!text.contains("c1") && !text.contains("c2"), "{text}");
        assert_eq!(sent["contents"][1]["parts"][1]["functionCall"]["args"]["id"], "x");
        assert!(!text.contains(UNSIGNED), "{text}");
    }

    #[test]
    fn the_third_generation_gets_a_signature_for_the_first_call_of_a_step() {
        let sent = sent(64);
        let parts = &sent["contents"][1]["parts"];
        assert_eq!(parts[1]["thoughtSignature"], UNSIGNED);
        assert!(parts[0].get("thoughtSignature").is_none() && parts[2].get("thoughtSignature").is_none());
        assert_eq!(parts[2]["functionCall"]["id"], "c2");
        assert_eq!(sent["contents"][3]["parts"][0]["thoughtSignature"], "own");
    }
}
