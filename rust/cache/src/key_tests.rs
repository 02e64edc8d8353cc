use super::*;
use proptest::prelude::*;
use serde_json::{json, Value};

const SCOPE: KeyScope<'_> = KeyScope {
    principal: "key:1",
    route: "/v1/chat/completions",
    model: "openai/m",
    turns: Turns::Messages,
    headers: &[],
};

fn ask(body: &Value) -> Fingerprint {
    fingerprint(&SCOPE, body.to_string().as_bytes()).expect("has a meaning")
}

fn base() -> Value {
    json!({"model": "m", "temperature": 0, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue?"}]})
}

fn with(path: &str, value: Value) -> Value {
    let mut body = base();
    match path.split_once('.') {
        Some((list, at)) => body[list][at.parse::<usize>().expect("an index")] = value,
        None => body[path] = value,
    }
    body
}

#[test]
fn spelling_does_not_matter() {
    let plain = br#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"a \"b\""}],"seed":7}"#;
    let other =
        br#" { "seed" : 7.0, "messages":[ {"content":"\u0061 \"b\"","role":"user"} ],"temperature":-0.0,"model":"m"}"#;
    let (plain, other) = (fingerprint(&SCOPE, plain), fingerprint(&SCOPE, other));
    assert!(plain.is_some());
    assert_eq!(plain, other);
}

#[test]
fn the_way_it_is_delivered_does_not_matter() {
    let stream = with("stream", json!(true));
    assert_eq!(ask(&stream).key, ask(&base()).key);
    assert_eq!(ask(&with("stream_options", json!({"include_usage": true}))).key, ask(&base()).key);
}

#[test]
fn whatever_can_change_the_answer_makes_another_key_and_another_partition() {
    let differences = [
        with("temperature", json!(0.1)),
        with("top_p", json!(0.5)),
        with("max_tokens", json!(10)),
        with("seed", json!(1)),
        with("stop", json!(["x"])),
        with("tools", json!([{"type": "function", "function": {"name": "f"}}])),
        with("tool_choice", json!("none")),
        with("response_format", json!({"type": "json_object"})),
        with("reasoning_effort", json!("low")),
        with("user", json!("u1")),
        with("unheard_of", json!(true)),
        with("messages.0", json!({"role": "system", "content": "Be long."})),
        with("messages.0", json!({"role": "user", "content": "Be brief."})),
    ];
    let own = ask(&base());
    for body in differences {
        let other = ask(&body);
        assert_ne!(other.key, own.key, "{body}");
        assert_ne!(other.question.map(|q| q.partition), own.question.clone().map(|q| q.partition), "{body}");
    }
    let body = base().to_string();
    for scope in [
        KeyScope { principal: "key:2", ..SCOPE },
        KeyScope { route: "/v1/messages", ..SCOPE },
        KeyScope { model: "openai/n", ..SCOPE },
        KeyScope { headers: &[b"pii-masker"], ..SCOPE },
    ] {
        let other = fingerprint(&scope, body.as_bytes()).expect("has a meaning");
        assert_ne!(other.key, own.key);
        assert_ne!(other.question.map(|q| q.partition), own.question.clone().map(|q| q.partition));
    }
}

#[test]
fn another_last_turn_is_another_key_in_the_same_partition() {
    let (own, other) = (ask(&base()), ask(&with("messages.1", json!({"role": "user", "content": "Is it?"}))));
    assert_ne!(own.key, other.key);
    let (own, other) = (own.question.expect("text"), other.question.expect("text"));
    assert_eq!(own.partition, other.partition);
    assert_eq!(other.text, "Is it?");
}

#[test]
fn only_a_plain_text_of_the_user_is_a_question() {
    let image = json!([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:"}}]);
    for turn in [
        json!({"role": "assistant", "content": "x"}),
        json!({"role": "user", "content": image}),
        json!({"role": "user", "content": "x", "name": "ann"}),
        json!({"role": "user", "content": "   "}),
        json!({"role": "user", "content": "x".repeat(MAX_QUESTION_BYTES + 1)}),
    ] {
        assert_eq!(ask(&with("messages.1", turn)).question, None);
    }
    let parts = with("messages.1", json!({"role": "user", "content": [{"type": "text", "text": "x"}]}));
    assert_eq!(ask(&parts).question.map(|q| q.text).as_deref(), Some("x"));
}

#[test]
fn a_body_without_one_meaning_has_no_key() {
    let huge = br#"{"messages":[{"role":"user","content":"x"}],"seed":18446744073709551617}"#.as_slice();
    let twice = br#"{"messages":[{"role":"user","content":"x"}],"seed":1,"seed":2}"#.as_slice();
    let escaped = br#"{"messages":[{"role":"user","content":"x"}],"a":1,"\u0061":2}"#.as_slice();
    for body in [huge, twice, escaped, b"[]", b"{}", br#"{"messages":[]}"#] {
        assert_eq!(fingerprint(&SCOPE, body), None);
    }
}

#[test]
fn what_a_kept_answer_cannot_give_is_unfit() {
    assert!(!ask(&base()).is_unfit);
    assert!(!ask(&with("n", json!(1))).is_unfit);
    for (name, value) in [("n", json!(2)), ("store", json!(true)), ("web_search_options", json!({}))] {
        assert!(ask(&with(name, value)).is_unfit, "{name}");
    }
    assert!(ask(&base()).is_deterministic);
    assert!(!ask(&with("temperature", json!(0.7))).is_deterministic);
    assert!(!ask(&with("temperature", json!("0"))).is_deterministic);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn two_values_have_one_key_exactly_if_they_are_the_same(a in any_json(), b in any_json()) {
        let key = |value: &Value| ask(&with("extra", value.clone())).key;
        let pretty = serde_json::to_string_pretty(&with("extra", a.clone())).expect("JSON");
        prop_assert_eq!(fingerprint(&SCOPE, pretty.as_bytes()).map(|print| print.key), Some(key(&a)));
        prop_assert_eq!(key(&a) == key(&b), same(&a, &b));
    }
}

/// Whether two values are equal as JSON, with numbers compared by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn of_turns(turns: Turns, body: &Value) -> Fingerprint {
    fingerprint(&KeyScope { turns, ..SCOPE }, body.to_string().as_bytes()).expect("has a meaning")
}

#[test]
fn a_responses_request_is_read_as_others_are() {
    let text = json!({"model": "m", "temperature": 0, "instructions": "Be brief.", "input": "Why?"});
    let list = |content: Value| {
        json!({"model": "m", "temperature": 0, "instructions": "Be brief.",
            "input": [{"role": "user", "type": "message", "content": content}]})
    };
    let print = of_turns(Turns::Input, &text);
    assert!(print.is_deterministic && !print.is_unfit);
    assert_eq!(print.question.as_ref().map(|question| question.text.as_str()), Some("Why?"));
    for content in [json!("Why?"), json!([{"type": "input_text", "text": "Why?"}])] {
        let other = of_turns(Turns::Input, &list(content));
        assert_eq!(other.question, print.question, "the same question in the same partition");
    }
    let with = |name: &str, value: Value| {
        let mut body = text.clone();
        body[name] = value;
        of_turns(Turns::Input, &body)
    };
    for (name, value) in [
        ("background", json!(true)),
        ("conversation", json!("conv_1")),
        ("previous_response_id", json!("resp_1")),
        ("prompt", json!({"id": "p"})),
        ("tools", json!([{"type": "web_search"}])),
        ("tools", json!([{"type": "function", "name": "f"}, {"type": "mcp"}])),
    ] {
        assert!(with(name, value.clone()).is_unfit, "{name} {value}");
    }
    for (name, value) in [
        ("background", json!(false)),
        ("store", json!(true)),
        ("previous_response_id", json!(null)),
        ("tools", json!([{"type": "function", "name": "f"}])),
    ] {
        let one = with(name, value.clone());
        assert!(!one.is_unfit, "{name} {value}");
        assert_ne!(one.key, print.key, "{name}");
    }
    assert_ne!(with("instructions", json!("Be long.")).question, print.question);
    assert!(fingerprint(&KeyScope { turns: Turns::Input, ..SCOPE }, b"{\"input\":{}}").is_none());
}

#[test]
fn a_gemini_request_is_read_as_others_are() {
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Why?"}]}],
        "generationConfig": {"temperature": 0.0, "topP": 0.5}});
    let print = of_turns(Turns::Contents, &body);
    assert!(print.is_deterministic && !print.is_unfit);
    assert_eq!(print.question.as_ref().map(|question| question.text.as_str()), Some("Why?"));
    let with = |path: &str, value: Value| {
        let mut body = body.clone();
        *body.pointer_mut(path).expect("is there") = value;
        of_turns(Turns::Contents, &body)
    };
    assert!(!with("/generationConfig/temperature", json!(0.1)).is_deterministic);
    assert_ne!(with("/generationConfig/topP", json!(0.6)).key, print.key);
    assert_ne!(with("/contents/0/parts", json!([{"text": "How?"}])).key, print.key);
    assert_eq!(with("/contents/0/parts", json!([{"text": "a"}, {"text": "b"}])).question, None);
    assert_eq!(with("/contents/0/role", json!("model")).question, None);
    for (name, value) in [
        ("generationConfig", json!({"temperature": 0, "candidateCount": 2})),
        ("cachedContent", json!("cachedContents/1")),
        ("tools", json!([{"googleSearch": {}}])),
        ("tools", json!([{"functionDeclarations": [], "codeExecution": {}}])),
    ] {
        let mut body = body.clone();
        body[name] = value.clone();
        assert!(of_turns(Turns::Contents, &body).is_unfit, "{name} {value}");
    }
    let mut tools = body.clone();
    tools["tools"] = json!([{"functionDeclarations": [{"name": "f"}]}]);
    assert!(!of_turns(Turns::Contents, &tools).is_unfit);
}
