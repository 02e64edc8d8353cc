//! Tests of translated requests: which body each target gets, and which targets remain.

use super::*;
use crate::route::choose;
use fairlead_core::{Sealer, Snapshot};

/// One prefix whose connections use two dialects.
fn choice() -> Choice {
    let connection = |dialect: &str| {
        format!(
            r#"{{"id":"{dialect}","provider":"n","prefixes":["n"],"dialect":"{dialect}","base_url":"http://{dialect}","auth":"none"}}"#
        )
    };
    let connections =
        [connection("openai"), connection("anthropic"), connection("gemini"), connection("openai-responses")].join(",");
    let json = format!(r#"{{"version":1,"connections":[{connections}]}}"#);
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let active = ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0");
    choose::choose(&active, "n/m", None, choose::RoutingHints::default()).expect("a choice")
}

fn prepare(body: &'static str, choice: &mut Choice) -> Result<Translation, Error> {
    let body = Bytes::from_static(body.as_bytes());
    let parsed = translate::read(Dialect::Openai, &body).expect("a request");
    Translation::prepare(Dialect::Openai, &body, &parsed, choice, &Snapshot::default())
}

#[test]
fn each_connection_gets_the_body_of_its_dialect() {
    let mut choice = choice();
    let body = r#"{"model":"n/m","messages":[{"role":"user","content":"hi"}]}"#;
    let wording = prepare(body, &mut choice).expect("can be said");
    assert_eq!(choice.targets.len(), 4);
    for target in &choice.targets {
        let sent = String::from_utf8(wording.body(target, "m").concat()).expect("text");
        assert_eq!(sent.contains("max_tokens"), target.connection.dialect == Dialect::Anthropic, "{sent}");
        assert_eq!(sent.contains(r#""model":"m""#), target.connection.dialect != Dialect::Gemini, "{sent}");
        assert_eq!(sent.contains("contents"), target.connection.dialect == Dialect::Gemini, "{sent}");
    }
}

#[test]
fn a_provider_that_must_be_told_a_limit_is_told_the_models_own() {
    let body = Bytes::from_static(br#"{"model":"n/m","messages":[{"role":"user","content":"hi"}]}"#);
    let parsed = translate::read(Dialect::Openai, &body).expect("a request");
    let listed = br#"{"version":1,"models":[{"id":"n/m","provider":"n","max_output_tokens":1234}]}"#;
    for (snapshot, limit) in [(Snapshot::parse(listed).expect("a snapshot"), 1234), (Snapshot::default(), 4096)] {
        let mut choice = choice();
        choice.targets.retain(|target| target.connection.dialect == Dialect::Anthropic);
        let wording =
            Translation::prepare(Dialect::Openai, &body, &parsed, &mut choice, &snapshot).expect("can be said");
        let sent = String::from_utf8(wording.body(&choice.targets[0], "m").concat()).expect("text");
        assert!(sent.contains(&format!(r#""max_tokens":{limit},"#)), "{sent}");
    }
}

#[test]
fn connections_of_one_dialect_differ_in_what_they_are_asked() {
    let connection = |id: &str, extra: &str| {
        format!(
            r#"{{"id":"{id}","provider":"n","prefixes":["n"],"dialect":"openai","base_url":"http://{id}","auth":"none"{extra}}}"#
        )
    };
    let connections = [
        connection("a", r#","chat_template_models":["m"]"#),
        connection("b", r#","output_caps":{"m":7},"chat_template_models":["other"]"#),
    ];
    let json = format!(r#"{{"version":1,"connections":[{}]}}"#, connections.join(","));
    let snapshot = Snapshot::parse(json.as_bytes()).expect("a snapshot");
    let active = ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0");
    let mut choice = choose::choose(&active, "n/m", None, choose::RoutingHints::default()).expect("a choice");
    let body = r#"{"model":"n/m","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"none"}"#;
    let wording = prepare(body, &mut choice).expect("can be said");
    for target in &choice.targets {
        let sent = String::from_utf8(wording.body(target, "m").concat()).expect("text");
        let is_first = target.connection.id == "a";
        assert_eq!(sent.contains("enable_thinking"), is_first, "{sent}");
        assert_eq!(sent.contains(r#""max_completion_tokens":7"#), !is_first, "{sent}");
    }
}

#[test]
fn a_connection_that_cannot_be_told_leaves_the_choice() {
    let mut choice = choice();
    let body = r#"{"model":"n/m","n":2,"messages":[{"role":"user","content":"hi"}]}"#;
    prepare(body, &mut choice).expect("one can");
    assert_eq!(choice.targets.len(), 1);
    choice.targets.retain(|target| target.connection.dialect == Dialect::Anthropic);
    assert!(choice.targets.is_empty());

    let mut alone = self::choice();
    alone.targets.retain(|target| target.connection.dialect == Dialect::Anthropic);
    let fault = prepare(body, &mut alone).map(drop).expect_err("none can");
    assert_eq!(fault.param.as_deref(), Some("n"));
}
