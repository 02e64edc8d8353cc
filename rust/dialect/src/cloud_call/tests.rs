//! Requests in OpenAI's form as vendors' bodies, and their answers.

use serde_json::{json, Value};

use super::{CallFacts, CloudCall, NoContent};

const FACTS: CallFacts<'static> = CallFacts { model: "bedrock/m", input_tokens: Some(7), created_s: 5 };

fn written(call: CloudCall, request: &Value) -> Result<Value, String> {
    let sent = call.write(request.to_string().as_bytes(), "cohere.m").map_err(|error| error.message.into_owned())?;
    Ok(serde_json::from_slice(&sent.concat()).expect("JSON"))
}

fn read(call: CloudCall, request: &Value, answer: &Value) -> Result<Value, NoContent> {
    let body = call.read(answer.to_string().as_bytes(), request.to_string().as_bytes(), FACTS)?;
    Ok(serde_json::from_slice(&body).expect("JSON"))
}

#[test]
fn embeddings_have_each_vendors_form() {
    let one = json!({"model": "m", "input": "a", "dimensions": 256, "user": "u"});
    assert_eq!(written(CloudCall::TitanEmbed, &one), Ok(json!({"inputText": "a", "dimensions": 256})));
    let many = json!({"model": "m", "input": ["a", "b"], "encoding_format": "float"});
    assert!(written(CloudCall::TitanEmbed, &many).expect_err("refused").contains("`input` must be one text"));
    let cohere = json!({"texts": ["a", "b"], "input_type": "search_document", "embedding_types": ["float"]});
    assert_eq!(written(CloudCall::CohereEmbed, &many), Ok(cohere));
    assert_eq!(written(CloudCall::VertexEmbed, &many), Ok(json!({"instances": [{"content": "a"}, {"content": "b"}]})));
    let sized = written(CloudCall::VertexEmbed, &one).expect("written");
    assert_eq!(sized["parameters"], json!({"outputDimensionality": 256}));
    for (request, member) in [
        (json!({"model": "m", "input": [[1, 2]]}), "input[0]"),
        (json!({"model": "m", "input": []}), "input"),
        (json!({"model": "m", "input": "a", "prompt": "x"}), "prompt"),
        (json!({"model": "m", "input": "a", "dimensions": 0}), "dimensions"),
    ] {
        assert!(
            written(CloudCall::CohereEmbed, &request).expect_err(member).contains(&format!("`{member}`")),
            "{member}"
        );
    }
}

#[test]
fn vectors_become_openais_answer() {
    let request = json!({"model": "m", "input": ["a", "b"]});
    let vector = |index: usize, numbers: &[f64]| json!({"object": "embedding", "index": index, "embedding": numbers});
    let expected = |tokens: u64| {
        json!({"object": "list", "data": [vector(0, &[0.5]), vector(1, &[1.5])], "model": "bedrock/m",
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
    };
    for embeddings in [json!([[0.5], [1.5]]), json!({"float": [[0.5], [1.5]]})] {
        let answer = json!({"embeddings": embeddings, "texts": ["a", "b"]});
        assert_eq!(read(CloudCall::CohereEmbed, &request, &answer), Ok(expected(7)));
    }
    let prediction = |number: f64| json!({"embeddings": {"values": [number], "statistics": {"token_count": 2.0}}});
    let answer = json!({"predictions": [prediction(0.5), prediction(1.5)]});
    assert_eq!(read(CloudCall::VertexEmbed, &request, &answer), Ok(expected(4)));

    let packed = json!({"model": "m", "input": "a", "encoding_format": "base64"});
    let answer = json!({"embedding": [0.5], "inputTextTokenCount": 3});
    let read_packed = read(CloudCall::TitanEmbed, &packed, &answer).expect("an answer");
    assert_eq!(read_packed["data"][0]["embedding"], "AAAAPw==");
    assert_eq!(read_packed["usage"]["prompt_tokens"], 3);

    // An answer with fewer vectors than texts is none.
    assert_eq!(read(CloudCall::CohereEmbed, &request, &json!({"embeddings": [[0.5]]})), Err(NoContent));
    assert_eq!(read(CloudCall::VertexEmbed, &request, &json!({"message": "x"})), Err(NoContent));
}

#[test]
fn images_have_each_vendors_form() {
    let request = json!({"model": "m", "prompt": "a dog", "n": 2, "size": "1024x1024", "quality": "hd"});
    let config = json!({"numberOfImages": 2, "width": 1024, "height": 1024, "quality": "premium"});
    let canvas =
        json!({"taskType": "TEXT_IMAGE", "textToImageParams": {"text": "a dog"}, "imageGenerationConfig": config});
    assert_eq!(written(CloudCall::CanvasImage, &request), Ok(canvas));
    assert!(written(CloudCall::StabilityImage, &request).expect_err("refused").contains("`n` must be 1"));
    for (size, ratio) in [("1024x1024", "1:1"), ("1536x1024", "3:2"), ("1792x1024", "16:9"), ("1024x1792", "9:16")] {
        let request = json!({"model": "m", "prompt": "a dog", "size": size, "output_format": "jpeg"});
        let expected = json!({"prompt": "a dog", "aspect_ratio": ratio, "output_format": "jpeg"});
        assert_eq!(written(CloudCall::StabilityImage, &request), Ok(expected));
    }
    for (more, member) in [
        (json!({"size": "1000x10"}), "size"),
        (json!({"size": "large"}), "size"),
        (json!({"response_format": "url"}), "response_format"),
        (json!({"output_format": "gif"}), "output_format"),
    ] {
        let mut request = json!({"model": "m", "prompt": "a dog"});
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let error = written(CloudCall::StabilityImage, &request).expect_err(member);
        assert!(error.contains(&format!("`{member}`")), "{error}");
    }
}

#[test]
fn drawn_images_and_reasons_become_openais_answer() {
    let request = json!({"model": "m", "prompt": "a dog"});
    let drawn = json!({"seeds": [1], "finish_reasons": [null], "images": ["aaaa"]});
    let expected = json!({"created": 5, "data": [{"b64_json": "aaaa"}]});
    assert_eq!(read(CloudCall::StabilityImage, &request, &drawn), Ok(expected));
    let filtered = read(CloudCall::StabilityImage, &request, &json!({"finish_reasons": ["Filter reason: prompt"]}));
    assert_eq!(filtered.expect("an error")["error"]["code"], "content_filter");
    let failed = read(CloudCall::CanvasImage, &request, &json!({"images": [], "error": "it broke"}));
    assert_eq!(failed.expect("an error")["error"]["message"], "it broke");
    assert_eq!(read(CloudCall::CanvasImage, &request, &json!({"images": []})), Err(NoContent));
}

#[test]
fn reranking_has_bedrocks_form() {
    let request =
        json!({"model": "m", "query": "q", "documents": ["a", {"text": "b"}], "top_n": 2, "return_documents": true});
    let expected = json!({"query": "q", "documents": ["a", "b"], "top_n": 2, "api_version": 2});
    assert_eq!(written(CloudCall::Rerank, &request), Ok(expected));
    let answer = json!({"results": [{"index": 1, "relevance_score": 0.9}]});
    let read_answer = read(CloudCall::Rerank, &request, &answer).expect("an answer");
    assert_eq!(read_answer["results"], json!([{"index": 1, "relevance_score": 0.9, "document": {"text": "b"}}]));
    assert_eq!(read_answer["meta"]["billed_units"]["search_units"], 1);
    let beyond = json!({"results": [{"index": 2, "relevance_score": 0.9}]});
    assert_eq!(read(CloudCall::Rerank, &request, &beyond), Err(NoContent));
    assert!(written(CloudCall::Rerank, &json!({"model": "m", "query": "q", "documents": []})).is_err());
}
