use proptest::prelude::*;
use serde_json::{json, Value as Tree};

use super::*;

fn refused(body: &str) -> (String, Option<String>) {
    let error = read(body.as_bytes()).expect_err(body);
    assert_eq!(ErrorKind::InvalidRequest, error.kind);
    (error.message.into_owned(), error.param.map(Cow::into_owned))
}

fn rewritten(body: &str, model: &str) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = read(&body).expect("valid");
    String::from_utf8(rewrite(&body, &request, model).concat()).expect("UTF-8")
}

#[test]
fn reads_what_the_relay_needs() {
    let body = br#"{"stream":true,"model":"acme\/m-1","messages":[{"role":"user","content":"hi"},{}],"stream_options":{"include_usage":true}}"#;

    let request = read(body).expect("valid");
    assert_eq!("acme/m-1", request.model);
    assert!(request.stream && request.requests_usage);
    assert_eq!(2, request.messages);
}

#[test]
fn a_refusal_names_the_member_and_the_rule() {
    let long = format!(r#"{{"model":"{}","messages":[1]}}"#, "m".repeat(301));
    let many = format!(r#"{{"model":"m","messages":[{}0]}}"#, "0,".repeat(10_000));
    let cases = [
        (r#"{"messages":[1]}"#, "model", "`model` is required."),
        (r#"{"model":1,"messages":[1]}"#, "model", "`model` must be a string."),
        (r#"{"model":"","messages":[1]}"#, "model", "`model` must not be empty."),
        (r#"{"model":"a\r\nb","messages":[1]}"#, "model", "`model` must not contain control characters."),
        (&long, "model", "`model` must have at most 300 characters."),
        (r#"{"model":"m"}"#, "messages", "`messages` is required."),
        (r#"{"model":"m","messages":"x"}"#, "messages", "`messages` must be an array."),
        (r#"{"model":"m","messages":[]}"#, "messages", "`messages` must not be empty."),
        (&many, "messages", "`messages` must have at most 10,000 elements."),
        (r#"{"model":"m","messages":[1],"stream":"yes"}"#, "stream", "`stream` must be a boolean."),
        (
            r#"{"model":"m","messages":[1],"stream_options":[]}"#,
            "stream_options",
            "`stream_options` must be an object.",
        ),
        (
            r#"{"model":"m","messages":[1],"stream_options":{"include_usage":1}}"#,
            "stream_options.include_usage",
            "`stream_options.include_usage` must be a boolean.",
        ),
        (
            r#"{"model":"a","model":"b","messages":[1]}"#,
            "model",
            "The body is not valid JSON: a key comes twice at byte 13, in member \"model\".",
        ),
        (
            r#"{"model":"a","messages":[NaN]}"#,
            "messages",
            "The body is not valid JSON: expected a value at byte 25, in member \"messages\".",
        ),
    ];
    for (body, param, message) in cases {
        assert_eq!((message.to_owned(), Some(param.to_owned())), refused(body));
    }
    assert_eq!(("The body is empty; expected a JSON object.".to_owned(), None), refused(""));
    assert_eq!(("The body must be a JSON object.".to_owned(), None), refused("[]"));
    let twice = r#"{"model":"m","messages":[1],"stream_options":{"include_usage":true,"include_usage":false}}"#;
    assert_eq!(Some("stream_options".to_owned()), refused(twice).1);
}

#[test]
fn limits_are_inclusive() {
    let long = format!(r#"{{"model":"{}","messages":[1]}}"#, "é".repeat(300));
    let many = format!(r#"{{"model":"m","messages":[{}0]}}"#, "0,".repeat(9_999));

    assert!(read(long.as_bytes()).is_ok());
    assert_eq!(10_000, read(many.as_bytes()).expect("valid").messages);
}

#[test]
fn a_unary_body_changes_in_its_model_only() {
    assert_eq!(
        r#"{ "messages":[ 1 ], "model" : "m\"1", "stream":false }"#,
        rewritten(r#"{ "messages":[ 1 ], "model" : "p/x", "stream":false }"#, "m\"1"),
    );
}

#[test]
fn a_stream_is_made_to_ask_for_usage() {
    let cases = [
        ("", r#","stream_options":{"include_usage":true}"#),
        (r#","stream_options":null"#, r#","stream_options":{"include_usage":true}"#),
        (r#","stream_options":{ }"#, r#","stream_options":{ "include_usage":true}"#),
        (r#","stream_options":{"x":1}"#, r#","stream_options":{"x":1,"include_usage":true}"#),
        (r#","stream_options":{"include_usage": false ,"x":1}"#, r#","stream_options":{"include_usage": true ,"x":1}"#),
        (r#","stream_options":{"include_usage":null}"#, r#","stream_options":{"include_usage":true}"#),
        (r#","stream_options":{"include_usage":true}"#, r#","stream_options":{"include_usage":true}"#),
    ];
    for (before, after) in cases {
        assert_eq!(
            format!(r#"{{"stream":true,"messages":[1],"model":"m"{after}}}"#),
            rewritten(&format!(r#"{{"stream":true,"messages":[1],"model":"p/m"{before}}}"#), "m"),
        );
    }
    assert_eq!(
        r#"{"stream_options":{"include_usage":true},"stream":true,"messages":[1],"model":"m"}"#,
        rewritten(r#"{"stream_options":null,"stream":true,"messages":[1],"model":"p/m"}"#, "m"),
    );
}

#[test]
fn bytes_that_stay_are_not_copied() {
    let body = Bytes::from_static(br#"{"model":"p/m","messages":[1]}"#);
    let request = read(&body).expect("valid");

    let pieces = rewrite(&body, &request, "m");
    assert_eq!(3, pieces.len());
    assert_eq!(body.as_ptr(), pieces[0].as_ptr());
}

/// The text of a member, or none.
fn member(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::sample::select(values).prop_map(move |value| format!("\"{name}\" :{value}")))
}

prop_compose! {
    fn chat_body()(
        stream in member("stream", &["true", " true", "false", "null"]),
        options in member("stream_options", &[
            "null", "{}", "{ \"include_usage\":false}", "{\"include_usage\" : null , \"x\":{}}",
            "{\"include_usage\":true}", "{\"x\":[1,{\"include_usage\":false}]}",
        ]),
        extra in member("met\\u0061data", &["{\"model\":\"no\",\"stream\":true}", "\"\\ud83d\\ude00 é\"", "1e2"]),
        model in any::<String>().prop_filter("a model", |text| !text.is_empty() && !text.chars().any(char::is_control)),
        padding in "[ \n\t]{0,3}",
        order in Just([0_usize, 1, 2, 3, 4]).prop_shuffle(),
    ) -> String {
        let model: String = model.chars().take(300).collect();
        let members = [
            Some(format!("\"model\":{padding}{}", json!(model))),
            Some("\"messages\":[{\"role\":\"user\",\"content\":\"}\"}]".to_owned()),
            stream, options, extra,
        ];
        let members: Vec<String> = order.iter().filter_map(|index| members[*index].clone()).collect();
        format!("{padding}{{{}{padding}}}{padding}", members.join(&format!(",{padding}")))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn only_the_model_and_the_usage_option_change(text in chat_body(), model in any::<String>()) {
        let body = Bytes::from(text.clone());
        let request = read(&body).expect("valid");
        let pieces = rewrite(&body, &request, &model);

        let mut expected: Tree = serde_json::from_str(&text).expect("JSON");
        expected["model"] = json!(model);
        if expected["stream"] == json!(true) {
            if expected["stream_options"].is_null() {
                expected["stream_options"] = json!({});
            }
            expected["stream_options"]["include_usage"] = json!(true);
        }
        // The indexing above may have added nulls for absent members.
        let nothing = |tree: &Tree, name: &str| tree.get(name).is_none_or(Tree::is_null);
        let result: Tree = serde_json::from_slice(&pieces.concat()).expect("JSON");
        for name in ["model", "messages", "stream", "stream_options", "metadata"] {
            prop_assert!(result.get(name) == expected.get(name) || nothing(&result, name) && nothing(&expected, name));
        }

        // Slices of the body keep their order and omit only the replaced values.
        let base = body.as_ptr() as usize;
        let mut reached = 0;
        let mut skipped = Vec::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            let index = (piece.as_ptr() as usize).wrapping_sub(base);
            if index < body.len() {
                prop_assert!(index >= reached);
                if index > reached {
                    skipped.push(&text[reached..index]);
                }
                reached = index + piece.len();
            }
        }
        prop_assert_eq!(body.len(), reached);
        for value in skipped {
            let replaced: Tree = serde_json::from_str(value).expect("a whole value");
            prop_assert!(replaced == json!(request.model) || replaced.is_null() || replaced == json!(false));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(request) = read(&body) {
            prop_assert!(!request.model.is_empty());
        }
    }
}
