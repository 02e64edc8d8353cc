//! Requests that name a model and otherwise pass unchanged: completions, embeddings, images, speech and others. Only
//! the routing data is read. Every other member is left for the provider to validate.

use crate::provider_members::{self, Purpose};
use bytes::{BufMut, Bytes, BytesMut};
use fairlead_core::json::{self, Kind, Value};
use fairlead_core::{Error, ServiceTier};

use super::request::{broken, check_model, missing, model, usage_option, wrong, ChatRequest, MAX_DEPTH};
use super::usage::service_of;

/// The requirements of a route for a body that names a model.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// The member that is required in addition to the model.
    pub member: &'static str,
    /// The default model.
    pub usual_model: Option<&'static str>,
    /// Streams report usage on request through `stream_options`, as completions do.
    pub has_stream_options: bool,
    /// The answer consists of tokens, which `max_tokens` limits.
    pub makes_tokens: bool,
}

/// Reads a body. Returns the body that the spans refer to. It differs from `body` only if a model was inserted.
pub fn read(body: &Bytes, needs: &Needs) -> Result<(ChatRequest, Bytes), Error> {
    let wanted = [
        "model",
        needs.member,
        "stream",
        "stream_options",
        "max_completion_tokens",
        "max_tokens",
        "max_output_tokens",
        "n",
        "service_tier",
    ];
    let scan = json::scan_object(body, &wanted, MAX_DEPTH).map_err(|fault| broken(&fault))?;
    provider_members::check(body, &scan, Purpose::Media)?;
    if let (None, Some(usual)) = (scan.get("model").filter(|value| !value.is_null()), needs.usual_model) {
        if scan.get("model").is_none() && !scan.is_empty() {
            return read(&with_model(body, scan.object.start, usual), needs);
        }
    }
    let (model, model_span) = model(body, scan.get("model"))?;
    if scan.get(needs.member).is_none_or(|value| value.is_null()) {
        return Err(missing(needs.member));
    }
    let stream = match scan.get("stream") {
        None => false,
        Some(value) if value.is_null() => false,
        Some(value) => value.as_bool().ok_or_else(|| wrong("stream", "must be a boolean"))?,
    };
    let (requests_usage, request_usage) = if needs.has_stream_options {
        usage_option(body, scan.get("stream_options"), scan.close())?
    } else {
        (true, None)
    };
    let count = |name| scan.get(name).and_then(|value| whole_number(body, value));
    let most = count("max_completion_tokens").or_else(|| count("max_tokens")).or_else(|| count("max_output_tokens"));
    let request = ChatRequest {
        model,
        stream,
        requests_usage,
        messages: 0,
        max_output_tokens: if needs.makes_tokens { most } else { Some(0) },
        choices: count("n").unwrap_or(1).max(1),
        service: service_of(body, scan.get("service_tier")),
        previous: None,
        conversation: None,
        stores: false,
        reads_list: false,
        is_completion: needs.has_stream_options,
        model_span,
        request_usage: request_usage.filter(|_| stream),
    };
    Ok((request, body.clone()))
}

/// Describes a request that is not JSON: its model and whether to stream the answer.
pub fn of_form(model: &str, stream: bool, choices: u64) -> Result<ChatRequest, Error> {
    check_model(model)?;
    Ok(ChatRequest {
        model: model.to_owned(),
        stream,
        requests_usage: true,
        messages: 0,
        max_output_tokens: Some(0),
        choices,
        service: ServiceTier::Standard,
        previous: None,
        conversation: None,
        stores: false,
        reads_list: false,
        is_completion: false,
        model_span: 0..0,
        request_usage: None,
    })
}

/// Returns the integer value of a member. Any other value is left for the provider to reject.
fn whole_number(body: &[u8], value: Value) -> Option<u64> {
    (value.kind == Kind::Number).then(|| json::as_u64(body, value)).flatten()
}

/// Returns the body with a model as its first member. `start` is the offset of the opening brace.
fn with_model(body: &Bytes, start: usize, model: &str) -> Bytes {
    let mut made = BytesMut::with_capacity(body.len() + model.len() + 16);
    made.put_slice(&body[..=start]);
    made.put_slice(b"\"model\":");
    made.put_slice(serde_json::Value::from(model).to_string().as_bytes());
    made.put_u8(b',');
    made.put_slice(&body[start + 1..]);
    made.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::request::rewrite;

    const COMPLETION: Needs =
        Needs { member: "prompt", usual_model: None, has_stream_options: true, makes_tokens: true };
    const MODERATION: Needs = Needs {
        member: "input",
        usual_model: Some("openai/omni-moderation-latest"),
        has_stream_options: false,
        makes_tokens: false,
    };

    fn sent(body: &'static str, needs: &Needs) -> Result<String, Error> {
        let (request, body) = read(&Bytes::from_static(body.as_bytes()), needs)?;
        Ok(String::from_utf8(rewrite(&body, &request, "m").concat()).expect("text"))
    }

    #[test]
    fn only_the_model_changes() {
        assert_eq!(
            sent(r#" {"prompt": ["a", 1.0],"model":"p/x", "é":{}} "#, &COMPLETION).expect("read"),
            r#" {"prompt": ["a", 1.0],"model":"m", "é":{}} "#
        );
    }

    #[test]
    fn a_stream_is_made_to_tell_its_usage_where_it_can() {
        let stream = r#"{"model":"p/x","prompt":"a","stream":true}"#;
        assert_eq!(
            sent(stream, &COMPLETION).expect("read"),
            r#"{"model":"m","prompt":"a","stream":true,"stream_options":{"include_usage":true}}"#
        );
        let other = Needs { member: "prompt", has_stream_options: false, ..COMPLETION };
        assert_eq!(sent(stream, &other).expect("read"), r#"{"model":"m","prompt":"a","stream":true}"#);
    }

    #[test]
    fn a_model_that_is_not_named_is_the_usual_one() {
        assert_eq!(sent(r#"{"input":"x"}"#, &MODERATION).expect("read"), r#"{"model":"m","input":"x"}"#);
        let (request, _) = read(&Bytes::from_static(br#"{"input":"x"}"#), &MODERATION).expect("read");
        assert_eq!((request.model.as_str(), request.max_output_tokens), ("openai/omni-moderation-latest", Some(0)));
    }

    #[test]
    fn a_fault_names_its_member() {
        for (body, param) in [
            (r#"{"model":"a/b"}"#, "prompt"),
            (r#"{"model":"a/b","prompt":null}"#, "prompt"),
            (r#"{"prompt":"x"}"#, "model"),
            (r#"{"prompt":"x","model":5}"#, "model"),
            (r#"{"prompt":"x","model":"a/b","stream":1}"#, "stream"),
        ] {
            let fault = sent(body, &COMPLETION).expect_err(body);
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
        assert!(sent(r#"{"model":"a","model":"b","prompt":"x"}"#, &COMPLETION).is_err(), "a member twice");
    }
}
