use super::*;
use crate::fit::Destination;
use crate::translate::{read_at, request_for, Pair};
use crate::url_params::UrlParams;
use fairlead_core::ModelFacts;
use serde_json::{json, Value as Json};

fn sent(caller: Dialect, provider: Dialect, body: &Json, fit: &Fit) -> Json {
    let body = Bytes::from(body.to_string());
    let url_params = UrlParams { model: "x", ..UrlParams::default() };
    let read = read_at(caller, &body, url_params).expect("a request");
    let sent = request_for(Pair { caller, provider }, &body, &read, to(fit)).expect("can be said");
    serde_json::from_slice(&sent.pieces.concat()).expect("JSON")
}

/// A model without known facts.
fn to(fit: &Fit) -> Destination<'_> {
    static UNKNOWN: std::sync::LazyLock<ModelFacts> = std::sync::LazyLock::new(ModelFacts::default);
    Destination { model: "x", fit, facts: &UNKNOWN }
}

fn request(form: Dialect, more: &Json) -> Json {
    let mut body = match form {
        Dialect::Openai => json!({"model": "x", "messages": [{"role": "user", "content": "hi"}]}),
        Dialect::OpenaiResponses => json!({"model": "x", "input": "hi", "store": false}),
        Dialect::Anthropic => json!({"model": "x", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}),
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    };
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

/// Builds a request with an output limit in this dialect.
fn limited(form: Dialect, most: u64) -> Json {
    let more = match form {
        Dialect::Openai => json!({"max_completion_tokens": most}),
        Dialect::OpenaiResponses => json!({"max_output_tokens": most}),
        Dialect::Anthropic => json!({"max_tokens": most}),
        Dialect::Gemini => json!({"generationConfig": {"maxOutputTokens": most}}),
    };
    request(form, &more)
}

fn limit(form: Dialect, body: &Json) -> &Json {
    match form {
        Dialect::Openai => &body["max_completion_tokens"],
        Dialect::OpenaiResponses => &body["max_output_tokens"],
        Dialect::Anthropic => &body["max_tokens"],
        Dialect::Gemini => &body["generationConfig"]["maxOutputTokens"],
    }
}

#[test]
fn a_cap_holds_between_any_two_dialects() {
    let fit = Fit { cap: Some(50), ..Fit::default() };
    for &caller in Dialect::ALL {
        for &provider in Dialect::ALL {
            for (cap, got) in [(10, 10), (50, 50), (51, 50), (4_000, 50)] {
                let body = sent(caller, provider, &limited(caller, cap), &fit);
                assert_eq!(limit(provider, &body), got, "{caller:?} to {provider:?}, {cap}: {body}");
            }
            let body = sent(caller, provider, &request(caller, &json!({})), &fit);
            assert_eq!(limit(provider, &body), 50, "{caller:?} to {provider:?}, not asked: {body}");
        }
    }
}

#[test]
fn without_a_cap_a_body_passes_byte_for_byte() {
    for &form in Dialect::ALL {
        let body = Bytes::from(format!(" {} ", limited(form, 7)));
        let read = read_at(form, &body, UrlParams { model: "x", ..UrlParams::default() }).expect("a request");
        let pieces = request_for(Pair { caller: form, provider: form }, &body, &read, to(&Fit::default()));
        assert_eq!(pieces.expect("said").pieces.concat(), body, "{form:?}");
    }
}

#[test]
fn every_name_of_a_limit_is_held_to_the_cap() {
    let fit = Fit { cap: Some(50), ..Fit::default() };
    let chat = |more| sent(Dialect::Openai, Dialect::Openai, &request(Dialect::Openai, &more), &fit);
    let both = chat(json!({"max_tokens": 60, "max_completion_tokens": 70}));
    assert_eq!((&both["max_tokens"], &both["max_completion_tokens"]), (&json!(50), &json!(50)));
    let old = chat(json!({"max_tokens": 60}));
    assert_eq!((&old["max_tokens"], old.get("max_completion_tokens")), (&json!(50), None));
    assert_eq!(chat(json!({"max_completion_tokens": null}))["max_completion_tokens"], 50);
    assert_eq!(chat(json!({"max_tokens": "many"}))["max_tokens"], "many", "the provider's to refuse");

    let gemini = |config| sent(Dialect::Gemini, Dialect::Gemini, &request(Dialect::Gemini, &config), &fit);
    let fitted = gemini(json!({"generationConfig": {"topK": 3, "maxOutputTokens": 80}}));
    assert_eq!(fitted["generationConfig"], json!({"topK": 3, "maxOutputTokens": 50}));
    assert_eq!(gemini(json!({"generation_config": {"topK": 3}}))["generation_config"]["maxOutputTokens"], 50);
    assert_eq!(gemini(json!({"generationConfig": null}))["generationConfig"]["maxOutputTokens"], 50);

    let thinks = json!({"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 8_000}});
    let fit = Fit { cap: Some(2_000), ..Fit::default() };
    let body = sent(Dialect::Anthropic, Dialect::Anthropic, &request(Dialect::Anthropic, &thinks), &fit);
    assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(2_000), &json!(1_999)));
}

#[test]
fn a_template_is_told_to_be_without_thinking() {
    let fit = Fit { is_templated: true, ..Fit::default() };
    let off = json!({"thinking": false, "enable_thinking": false});
    let chat = |more| sent(Dialect::Openai, Dialect::Openai, &request(Dialect::Openai, &more), &fit);
    let none = chat(json!({"reasoning_effort": "none"}));
    assert_eq!((&none["chat_template_kwargs"], none.get("reasoning_effort")), (&off, None));
    for words in [json!({}), json!(null)] {
        let body = chat(json!({"reasoning_effort": "none", "chat_template_kwargs": words}));
        assert_eq!((&body["chat_template_kwargs"], body.get("reasoning_effort")), (&off, None), "{words}");
    }
    let beside = chat(json!({"reasoning_effort": "none", "chat_template_kwargs": {"a": [1]}, "user": "u"}));
    assert_eq!(beside["chat_template_kwargs"], json!({"a": [1], "thinking": false, "enable_thinking": false}));
    assert_eq!((&beside["user"], beside.get("reasoning_effort")), (&json!("u"), None));

    // The caller's own template arguments are unchanged.
    let own = json!({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": true}});
    let own = chat(own);
    assert_eq!(own["chat_template_kwargs"], json!({"enable_thinking": true}));
    assert_eq!(own.get("reasoning_effort"), None);

    for more in [json!({"reasoning_effort": "low"}), json!({}), json!({"reasoning_effort": null})] {
        assert_eq!(chat(more.clone()), request(Dialect::Openai, &more), "any other effort stays as it is");
    }
    let plain = sent(
        Dialect::Openai,
        Dialect::Openai,
        &request(Dialect::Openai, &json!({"reasoning_effort": "none"})),
        &Fit::default(),
    );
    assert_eq!((&plain["reasoning_effort"], plain.get("chat_template_kwargs")), (&json!("none"), None));
}

#[test]
fn a_member_leaves_with_its_comma_wherever_it_stands() {
    let fit = Fit { is_templated: true, ..Fit::default() };
    let talk = r#""messages":[{"role":"user","content":"a, \"reasoning_effort\": x"}]"#;
    let words = r#""chat_template_kwargs":{"thinking":true}"#;
    for body in [
        format!(r#"{{"reasoning_effort" : "none" , "model":"x",{talk},{words}}}"#),
        format!(r#"{{"model":"x",{talk},{words} , "reasoning_effort":"none" }}"#),
        format!(r#"{{"model":"x","reasoning_effort":"none",{talk},{words}}}"#),
    ] {
        let body = Bytes::from(body);
        let read = read_at(Dialect::Openai, &body, UrlParams::default()).expect("a request");
        let pair = Pair { caller: Dialect::Openai, provider: Dialect::Openai };
        let adapted = request_for(pair, &body, &read, to(&fit)).expect("said").pieces.concat();
        let adapted: Json = serde_json::from_slice(&adapted).expect("still JSON");
        assert_eq!(adapted.as_object().expect("an object").len(), 3, "{adapted}");
    }
}

#[test]
fn callers_of_other_dialects_switch_a_template_too() {
    let fit = Fit { is_templated: true, ..Fit::default() };
    let off = json!({"thinking": false, "enable_thinking": false});
    for (caller, more) in [
        (Dialect::Anthropic, json!({"thinking": {"type": "disabled"}})),
        (Dialect::OpenaiResponses, json!({"reasoning": {"effort": "none"}})),
        (Dialect::Gemini, json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}})),
    ] {
        let body = sent(caller, Dialect::Openai, &request(caller, &more), &fit);
        assert_eq!(body["chat_template_kwargs"], off, "{caller:?}");
        let plain = sent(caller, Dialect::Openai, &request(caller, &more), &Fit::default());
        assert_eq!(plain.get("chat_template_kwargs"), None, "{caller:?}");
        let silent = sent(caller, Dialect::Openai, &request(caller, &json!({})), &fit);
        assert_eq!(silent.get("chat_template_kwargs"), None, "{caller:?}");
    }
    let own = json!({"thinking": {"type": "disabled"}, "chat_template_kwargs": {"enable_thinking": true}});
    let body = sent(Dialect::Anthropic, Dialect::Openai, &request(Dialect::Anthropic, &own), &fit);
    assert_eq!(body["chat_template_kwargs"], json!({"enable_thinking": true}));
}

const MARK: &str = "You are a security monitor for autonomous AI coding agents.\n\n## Context";

#[test]
fn a_classifier_thinks_only_where_it_asks_to() {
    let fit = Fit { is_templated: true, ..Fit::default() };
    let off = json!({"thinking": false, "enable_thinking": false});
    for system in [json!(MARK), json!([{"type": "text", "text": "billing"}, {"type": "text", "text": MARK}])] {
        let original = request(Dialect::Anthropic, &json!({"system": system}));
        assert_eq!(sent(Dialect::Anthropic, Dialect::Openai, &original, &fit)["chat_template_kwargs"], off);
        assert_eq!(
            sent(Dialect::Anthropic, Dialect::Openai, &original, &Fit::default()).get("chat_template_kwargs"),
            None
        );
        let native = sent(Dialect::Anthropic, Dialect::Anthropic, &original, &Fit::default());
        assert_eq!(native["thinking"], json!({"type": "disabled"}));
    }
    for control in [
        json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}}),
        json!({"thinking": {"type": "adaptive"}}),
        json!({"output_config": {"effort": "low"}}),
    ] {
        let mut original = request(Dialect::Anthropic, &control);
        original["system"] = json!(MARK);
        assert_eq!(
            sent(Dialect::Anthropic, Dialect::Anthropic, &original, &Fit::default()),
            original,
            "its own words stay"
        );
        assert_eq!(
            sent(Dialect::Anthropic, Dialect::Openai, &original, &fit).get("chat_template_kwargs"),
            None,
            "{control}"
        );
    }
}

#[test]
fn nobody_else_is_taken_for_a_classifier() {
    let quoted = json!({"system": "Be brief.", "messages": [{"role": "user", "content": MARK}]});
    let within = json!({"system": format!("Translate: {MARK}")});
    for more in [quoted, within, json!({"system": "Be brief."}), json!({"system": [{"type": "text", "text": "a"}]})] {
        let original = request(Dialect::Anthropic, &more);
        assert_eq!(sent(Dialect::Anthropic, Dialect::Anthropic, &original, &Fit::default()), original);
    }
    let chat = json!({"messages": [{"role": "system", "content": MARK}, {"role": "user", "content": "a"}]});
    let original = request(Dialect::Openai, &chat);
    let fit = Fit { is_templated: true, ..Fit::default() };
    assert_eq!(
        sent(Dialect::Openai, Dialect::Openai, &original, &fit),
        original,
        "messages requests alone are looked at"
    );
}
