//! Removes reasoning signed by another vendor from a body that otherwise passes unchanged, and moves images that Claude
//! rejects.
//!
//! A conversation that moves to another provider carries signatures of the first one. A caller sends them back
//! unchanged, and the second provider would reject every further turn. A single search finds bodies without foreign
//! signatures, which are not parsed.

use std::ops::Range;

use bytes::Bytes;
use fairlead_core::Dialect;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::media::LABEL;
use crate::moved_images::{self, Mover};
use crate::signature::{is_foreign_to_gemini, is_foreign_to_messages, is_foreign_to_responses, UNSIGNED};
use crate::text::Writer;

/// Spans of a body and the bytes that replace them.
type Replacements = SmallVec<[(Range<usize>, Bytes); 4]>;

/// Returns the edits that remove other vendors' reasoning from a body for a provider of the same dialect.
pub(crate) fn edits(form: Dialect, body: &[u8]) -> Replacements {
    let mut edits = Replacements::new();
    match form {
        Dialect::Anthropic if has(body, b"\"signature\"", is_foreign_to_messages) || moved_images::has_any(body) => {
            edits.extend(without(body, is_foreign_to_messages));
        }
        Dialect::OpenaiResponses
            if has(body, b"\"encrypted_content\"", is_foreign_to_responses)
                || has_own_image(body)
                || has(body, b"\"id\"", is_own_reasoning) =>
        {
            edits.extend(rebuilt(body, item));
        }
        Dialect::Gemini => {
            for name in [b"\"thoughtSignature\"".as_slice(), b"\"thought_signature\""] {
                for value in values(body, name).filter(|value| is_foreign(body, value, is_foreign_to_gemini)) {
                    edits.push((value, Bytes::from(format!("\"{UNSIGNED}\""))));
                }
            }
        }
        _ => {}
    }
    edits
}

/// Returns the edit that removes all reasoning from a messages request.
pub(crate) fn without_thinking(body: &[u8]) -> Option<(Range<usize>, Bytes)> {
    without(body, |_| true)
}

/// Returns the edit that removes selected reasoning from a messages request, and moves images to the user.
fn without(body: &[u8], is_out: fn(&str) -> bool) -> Option<(Range<usize>, Bytes)> {
    let mut mover = Mover::default();
    rebuilt(body, |raw| message(raw, is_out).and_then(|text| mover.take(text)))
}

fn has(body: &[u8], name: &[u8], is: fn(&str) -> bool) -> bool {
    values(body, name).any(|value| is_foreign(body, &value, is))
}

fn is_foreign(body: &[u8], value: &Range<usize>, is: fn(&str) -> bool) -> bool {
    let inner = body.get(value.start + 1..value.end.saturating_sub(1)).unwrap_or_default();
    std::str::from_utf8(inner).is_ok_and(is)
}

/// Finds the string values of members with this name. Signatures have no escapes. A name inside a JSON string has a
/// backslash before its closing quote, so it does not match.
pub(crate) fn values<'a>(body: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    memmem::find_iter(body, name).filter_map(move |at| {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        let skip = |from: usize| Some(from + body.get(from..)?.iter().position(|byte| !is_blank(byte))?);
        let colon = skip(at + name.len())?;
        let open = skip(colon + 1)?;
        if body.get(colon) != Some(&b':') || body.get(open) != Some(&b'"') {
            return None;
        }
        Some(open..open + 2 + memchr::memchr(b'"', body.get(open + 1..)?)?)
    })
}

/// Rebuilds the conversation's list. `keep` returns the new text of an element, or `None` to remove it.
fn rebuilt(body: &[u8], keep: impl FnMut(&RawValue) -> Option<String>) -> Option<(Range<usize>, Bytes)> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, default, alias = "input")]
        messages: Option<&'a RawValue>,
    }
    let whole: Body<'_> = serde_json::from_slice(body).ok()?;
    let list = whole.messages?.get();
    let elements: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let remaining: Vec<String> = elements.into_iter().filter_map(keep).collect();
    let start = (list.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some((start..start + list.len(), Bytes::from(format!("[{}]", remaining.join(",")))))
}

/// Returns a message without the reasoning whose signature `is_out` selects, or `None` if nothing else is left.
/// Redacted reasoning has no signature, so it is treated like an unmarked one.
fn message(raw: &RawValue, is_out: fn(&str) -> bool) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow, default)]
        r#type: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        signature: Option<std::borrow::Cow<'a, str>>,
    }
    let text = raw.get();
    let content = serde_json::from_str::<Message<'_>>(text).ok().and_then(|message| message.content);
    let Some(content) = content else { return Some(text.to_owned()) };
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(content.get()) else { return Some(text.to_owned()) };
    let is_kept = |block: &&&RawValue| {
        serde_json::from_str::<Block<'_>>(block.get()).map_or(true, |block| match block.r#type.as_deref() {
            Some("thinking") => !block.signature.as_deref().is_some_and(is_out),
            Some("redacted_thinking") => !is_out("redacted"),
            _ => true,
        })
    };
    let remaining: Vec<&str> = blocks.iter().filter(is_kept).map(|block| block.get()).collect();
    if remaining.len() == blocks.len() {
        return Some(text.to_owned());
    }
    let start = (content.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let (before, after) = (text.get(..start)?, text.get(start + content.get().len()..)?);
    (!remaining.is_empty()).then(|| format!("{before}[{}]{after}", remaining.join(",")))
}

/// Returns whether a responses request has an image of an answer that the gateway wrote.
fn has_own_image(body: &[u8]) -> bool {
    memmem::find(body, b"\"image_generation_call\"").is_some() && has(body, b"\"id\"", is_own_image)
}

/// Returns whether the gateway made this id of an image. OpenAI's own ids have a single `_`.
fn is_own_image(id: &str) -> bool {
    id.strip_prefix("ig_").is_some_and(|rest| rest.contains('_'))
}

/// Returns whether the gateway made this id for another vendor's reasoning. OpenAI's own ids have a single `_`.
fn is_own_reasoning(id: &str) -> bool {
    id.strip_prefix("rs_").is_some_and(|rest| rest.contains('_'))
}

/// Returns an input item, or `None` for another vendor's reasoning. OpenAI knows only the images that its own models
/// generated, so other ones become images of the user.
fn item(raw: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow, default)]
        r#type: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        id: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        encrypted_content: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        result: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        output_format: Option<std::borrow::Cow<'a, str>>,
    }
    let Ok(item) = serde_json::from_str::<Item<'_>>(raw.get()) else { return Some(raw.get().to_owned()) };
    match item.r#type.as_deref() {
        Some("reasoning") if item.encrypted_content.as_deref().is_some_and(is_foreign_to_responses) => None,
        // Without encrypted content, OpenAI looks for a stored item with this id.
        Some("reasoning") if item.encrypted_content.is_none() && item.id.as_deref().is_some_and(is_own_reasoning) => {
            None
        }
        Some("image_generation_call") if item.id.as_deref().is_some_and(is_own_image) => {
            let format = item.output_format.as_deref().unwrap_or("png");
            item.result.as_deref().map(|data| as_users_image(format, data))
        }
        _ => Some(raw.get().to_owned()),
    }
}

fn as_users_image(format: &str, data: &str) -> String {
    let mut out = Writer::with_capacity(data.len() + 192);
    out.open(b'{').key("type").str("message").key("role").str("user").key("content").open(b'[');
    out.open(b'{').key("type").str("input_text").key("text").str(LABEL).close(b'}');
    out.open(b'{').key("type").str("input_image").key("image_url");
    out.joined(&["data:image/", format, ";base64,", data]).close(b'}').close(b']').close(b'}');
    String::from_utf8_lossy(&out.take()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::{self, Pair};

    fn sent(form: Dialect, body: &'static str) -> String {
        let body = Bytes::from_static(body.as_bytes());
        let read = translate::read(form, &body).expect("read");
        let pair = Pair { caller: form, provider: form };
        let pieces = translate::request(pair, &body, &read, "m").expect("written");
        String::from_utf8(pieces.concat()).expect("text")
    }

    #[test]
    fn thinking_of_another_maker_does_not_reach_claude() {
        let body = r#"{"model":"p/m","max_tokens":9,"messages":[
            {"role":"user","content":"a"},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature": "gemini:c2ln"},{"type":"text","text":"b"}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"own","signature":"EuYB"},{"type":"text","text":"c"}]}
        ],"x":1}"#;
        let sent = sent(Dialect::Anthropic, body);
        assert!(!sent.contains("gemini:"), "{sent}");
        assert!(!sent.contains(r#""signature":"""#), "{sent}");
        assert!(sent.contains(r#"{"role":"assistant","content":[{"type":"text","text":"b"}]}"#), "{sent}");
        assert!(sent.contains(r#""signature":"EuYB""#), "{sent}");
        assert!(sent.ends_with(r#","x":1}"#), "{sent}");
        serde_json::from_str::<serde_json::Value>(&sent).expect("JSON");
    }

    #[test]
    fn an_image_of_an_earlier_answer_moves_to_the_user_for_claude() {
        let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"a"}},
            {{"role":"assistant","content":[{{"type":"text","text":"b"}},{image}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"1"}}]}},
            {{"role":"assistant","content":[{image}]}},
            {{"role":"user","content":"c"}}]}}"#
        );
        let sent = sent(Dialect::Anthropic, body.leak());
        let sent: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
        let turns = sent["messages"].as_array().expect("turns");
        assert_eq!(turns.len(), 4, "{sent}");
        assert_eq!(turns[1]["content"], serde_json::json!([{"type": "text", "text": "b"}]));
        let kinds: Vec<_> =
            turns[3]["content"].as_array().expect("blocks").iter().map(|block| &block["type"]).collect();
        assert_eq!(kinds, ["text", "image", "image", "text"]);
        assert_eq!(turns[3]["content"][3]["text"], "c");
    }

    #[test]
    fn a_body_without_them_passes_byte_for_byte() {
        let body =
            r#"{"model":"m","max_tokens":9,"messages":[ {"role":"user","content":"\"signature\":\"gemini:\""} ]}"#;
        assert_eq!(sent(Dialect::Anthropic, body).replace('"', ""), body.replace('"', ""));
    }

    #[test]
    fn reasoning_of_another_maker_does_not_reach_a_responses_provider() {
        let body = r#"{"model":"p/m","input":[
            {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"anthropic:EuYB"},
            {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAAAx"},
            {"type":"reasoning","id":"rs_0a1b_3","summary":[{"type":"summary_text","text":"hm"}]},
            {"type":"message","role":"user","content":"a"}]}"#;
        let sent = sent(Dialect::OpenaiResponses, body);
        assert!(!sent.contains("rs_1") && !sent.contains("rs_0a1b_3"), "{sent}");
        assert!(sent.contains("rs_2") && sent.contains(r#""role":"user""#), "{sent}");
    }

    #[test]
    fn an_image_that_another_maker_generated_moves_to_the_user_for_a_responses_provider() {
        let body = r#"{"model":"p/m","input":[{"type":"message","role":"user","content":"a"},
            {"type":"image_generation_call","id":"ig_0a1b_1","status":"completed","output_format":"webp","result":"AAAA"},
            {"type":"image_generation_call","id":"ig_68c1","status":"completed","result":"BBBB"}]}"#;
        let sent = sent(Dialect::OpenaiResponses, body);
        let sent: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
        let image = &sent["input"][1];
        assert_eq!(image["role"], "user", "{sent}");
        assert_eq!(image["content"][1]["image_url"], "data:image/webp;base64,AAAA");
        assert_eq!(sent["input"][2]["id"], "ig_68c1", "its own image stays");
    }

    #[test]
    fn a_call_that_another_maker_signed_is_marked_for_gemini() {
        let wrapped = crate::signature::for_gemini_caller("EuYBCk");
        let body = format!(
            r#"{{"contents":[{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{}}}},"thoughtSignature":"{wrapped}"}}]}}]}}"#
        );
        let found = edits(Dialect::Gemini, body.as_bytes());
        assert_eq!(found.len(), 1);
        assert_eq!(&*found[0].1, format!("\"{UNSIGNED}\"").as_bytes());
    }
}
