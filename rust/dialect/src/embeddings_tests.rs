use super::*;
use serde_json::{json, Value};

fn requested(caller: EmbeddingCall, to_google: bool, body: &Value) -> Result<(EmbeddingCall, Value), Error> {
    let body = Bytes::from(body.to_string());
    let read = match caller {
        EmbeddingCall::OpenAi => crate::openai::named::of_form("x", false, 1)?,
        _ => read_gemini(&body, "models/x")?,
    };
    let letter = letter(caller, to_google, &body, &read, "m")?;
    Ok((letter.form, serde_json::from_slice(&letter.body.concat()).expect("JSON")))
}

#[test]
fn a_request_is_said_in_googles_words() {
    let one = json!({"model": "x", "input": "a\n", "dimensions": 3, "user": "u", "encoding_format": "base64"});
    let expected = json!({"content": {"parts": [{"text": "a\n"}]}, "outputDimensionality": 3});
    assert_eq!(requested(EmbeddingCall::OpenAi, true, &one).expect("said"), (EmbeddingCall::One, expected));
    let many = json!({"model": "x", "input": ["a", "b"]});
    let each = |text: &str| json!({"model": "models/m", "content": {"parts": [{"text": text}]}});
    let expected = json!({"requests": [each("a"), each("b")]});
    assert_eq!(requested(EmbeddingCall::OpenAi, true, &many).expect("said"), (EmbeddingCall::Many, expected));
}

#[test]
fn a_request_of_googles_is_said_in_openais_words() {
    let one =
        json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "taskType": "RETRIEVAL_QUERY", "title": "t"});
    let expected = json!({"model": "m", "input": ["a\nb"], "encoding_format": "float"});
    assert_eq!(requested(EmbeddingCall::One, false, &one).expect("said"), (EmbeddingCall::OpenAi, expected));
    let each =
        |text: &str| json!({"model": "models/x", "content": {"parts": [{"text": text}]}, "outputDimensionality": 2});
    let many = json!({"requests": [each("a"), each("b")]});
    let expected = json!({"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2});
    assert_eq!(requested(EmbeddingCall::Many, false, &many).expect("said"), (EmbeddingCall::OpenAi, expected));
}

#[test]
fn a_request_of_googles_to_google_gets_the_models_name_alone() {
    let each = |model: &str| json!({"model": model, "content": {"parts": [{"text": "a"}]}, "more": [1.0]});
    let many = json!({"requests": [each("models/x"), each("models/y")]});
    let expected = json!({"requests": [each("models/m"), each("models/m")]});
    assert_eq!(requested(EmbeddingCall::Many, true, &many).expect("said"), (EmbeddingCall::Many, expected));
    let one = json!({"content": {"parts": []}});
    assert_eq!(requested(EmbeddingCall::One, true, &one).expect("said"), (EmbeddingCall::One, one));
}

#[test]
fn what_cannot_be_said_is_named() {
    for (caller, body, param) in [
        (EmbeddingCall::OpenAi, json!({"input": [1, 2]}), "input[0]"),
        (EmbeddingCall::OpenAi, json!({"input": [[1]]}), "input[0]"),
        (EmbeddingCall::OpenAi, json!({"input": []}), "input"),
        (EmbeddingCall::OpenAi, json!({"input": 7}), "input"),
        (EmbeddingCall::OpenAi, json!({"input": "a", "dimensions": "3"}), "dimensions"),
        (EmbeddingCall::OpenAi, json!({"input": "a", "encoding_format": "int8"}), "encoding_format"),
        (EmbeddingCall::OpenAi, json!({"input": "a", "later": 1}), "later"),
    ] {
        let fault = requested(caller, true, &body).expect_err("refused");
        assert_eq!(fault.param.as_deref(), Some(param), "{body}");
    }
    let image = json!({"content": {"parts": [{"inlineData": {"data": ""}}]}});
    let dimensions = |count: u64| json!({"content": {"parts": [{"text": "a"}]}, "outputDimensionality": count});
    for (caller, body, param) in [
        (EmbeddingCall::One, image, "content.parts[0].inlineData"),
        (EmbeddingCall::One, json!({"content": {"parts": []}}), "content"),
        (EmbeddingCall::One, json!({"contents": []}), "content"),
        (EmbeddingCall::Many, json!({"requests": [dimensions(1), dimensions(2)]}), "requests[1].outputDimensionality"),
        (EmbeddingCall::Many, json!({"requests": []}), "requests"),
    ] {
        let fault = requested(caller, false, &body).expect_err("refused");
        assert_eq!(fault.param.as_deref(), Some(param), "{body}");
    }
}

fn answered(caller: EmbeddingCall, provider: EmbeddingCall, body: &Value, request: &Value) -> (Value, u64) {
    let (body, request) = (Bytes::from(body.to_string()), Bytes::from(request.to_string()));
    let translated = answer(caller, provider, &body, &request, "p/x").expect("an answer");
    (serde_json::from_slice(&translated.body).expect("JSON"), translated.usage.input)
}

#[test]
fn an_answer_is_told_in_the_callers_words() {
    let google =
        json!({"embeddings": [{"values": [0.5, 1]}, {"values": [2]}], "usageMetadata": {"promptTokenCount": 9}});
    let (body, tokens) = answered(EmbeddingCall::OpenAi, EmbeddingCall::Many, &google, &json!({"input": ["a", "b"]}));
    assert_eq!(tokens, 9);
    assert_eq!(body["data"][1], json!({"object": "embedding", "index": 1, "embedding": [2]}));
    assert_eq!((&body["model"], &body["usage"]["total_tokens"]), (&json!("p/x"), &json!(9)));

    let one = json!({"embedding": {"values": [0.5, -1.0]}});
    let (body, tokens) =
        answered(EmbeddingCall::OpenAi, EmbeddingCall::One, &one, &json!({"input": "a", "encoding_format": "base64"}));
    let packed = STANDARD.decode(body["data"][0]["embedding"].as_str().expect("text")).expect("base64");
    assert_eq!(packed, [0.5_f32.to_le_bytes(), (-1.0_f32).to_le_bytes()].concat());
    assert!(tokens > 0, "missing usage is estimated");

    let openai = json!({
        "data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}],
        "usage": {"prompt_tokens": 4},
    });
    let (body, tokens) = answered(EmbeddingCall::Many, EmbeddingCall::OpenAi, &openai, &json!({}));
    assert_eq!((&body["embeddings"], tokens), (&json!([{"values": [1]}, {"values": [2]}]), 4));
    assert_eq!(
        answered(EmbeddingCall::One, EmbeddingCall::OpenAi, &openai, &json!({})).0["embedding"],
        json!({"values": [1]})
    );
    assert_eq!(answered(EmbeddingCall::Many, EmbeddingCall::Many, &google, &json!({})).0, google);
}

#[test]
fn what_is_no_answer_is_none() {
    for (provider, body) in [
        (EmbeddingCall::One, r#"{"error":{"message":"no"}}"#),
        (EmbeddingCall::Many, r#"{"embeddings":[{"values":7}]}"#),
        (EmbeddingCall::Many, "<html>"),
        (EmbeddingCall::OpenAi, r#"{"object":"list"}"#),
        (EmbeddingCall::OpenAi, r#"{"data":[],"error":{"message":"no"}}"#),
    ] {
        assert!(
            answer(EmbeddingCall::OpenAi, provider, &Bytes::from(body), &Bytes::from("{}"), "m").is_none(),
            "{body}"
        );
    }
}
