//! Classifies why a provider rejected a request: whether another model, connection or provider may accept it.
//!
//! Providers share no vocabulary for this. Their error codes are checked first and their messages second. The lists
//! come from the providers' documentation and responses.

use crate::openai::error::UpstreamError;

/// Why a request was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionReason {
    /// The request exceeds the model's context window.
    Overflow,
    /// The provider does not serve the model, or not in this dialect.
    Model,
    /// The credential, its account or its location is rejected with the status of a bad request.
    Credential,
    /// The credential may not use this model.
    Access,
    /// A parameter or content type that this provider or model does not support, although others do.
    Parameter,
    /// The provider's content policy forbids the prompt.
    Policy,
    /// The provider rejects the body that the gateway wrote for it, and the caller's body may be valid elsewhere.
    /// [`reason_of`] never returns this: only the engine knows who wrote the body.
    Translation,
    /// Any other reason: the request itself is invalid.
    Request,
}

impl RejectionReason {
    /// The name in usage records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Model => "model",
            Self::Credential => "credential",
            Self::Access => "access",
            Self::Parameter => "parameter",
            Self::Policy => "policy",
            Self::Translation => "translation.refused",
            Self::Request => "request",
        }
    }
}

use RejectionReason::{Access, Credential, Model, Overflow, Parameter, Policy};

/// Values of `code`, `type` and `status`, in lower case.
const NAMES: &[(RejectionReason, &[&str])] = &[
    (
        Overflow,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "model_context_window_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            // Z.ai and Mistral.
            "1261",
            "3051",
        ],
    ),
    (
        Credential,
        &[
            "api_key_invalid",
            "invalid_api_key",
            "authentication_error",
            "invalid_authentication_error",
            "unauthenticated",
        ],
    ),
    (
        Model,
        &[
            "model_not_found",
            "model_not_available",
            "model_not_supported",
            "model_decommissioned",
            "invalid_model",
            "unknown_model",
            "deploymentnotfound",
            "not_found_error",
            "not_found",
            "resource_not_found_error",
            "resourcenotfoundexception",
            // Z.ai.
            "1211",
        ],
    ),
    (
        Policy,
        &[
            "content_policy_violation",
            "content_filter",
            "responsibleaipolicyviolation",
            "invalid_prompt",
            // Z.ai.
            "1301",
        ],
    ),
    (
        Access,
        &[
            "permission_error",
            "permission_denied",
            "accessdeniedexception",
            "servicequotaexceededexception",
            "unsupported_country_region_territory",
        ],
    ),
    (
        Parameter,
        &[
            "unsupported_parameter",
            "unsupported_value",
            "unknown_parameter",
            "extra_forbidden",
            "string_above_max_length",
            "array_above_max_length",
            "integer_above_max_value",
            "integer_below_min_value",
            "decimal_above_max_value",
            "decimal_below_min_value",
            "invalid_function_parameters",
            "invalid_json_schema",
            "invalid_encrypted_content",
            // Cerebras.
            "wrong_api_format",
            // Mistral: ids and the order of messages.
            "invalid_request_message_order",
            "3230",
            "3280",
            // Z.ai.
            "1210",
            "1214",
        ],
    ),
];

/// Parts of messages, in lower case.
const SENTENCES: &[(RejectionReason, &[&str])] = &[
    (
        Overflow,
        &[
            "prompt is too long",
            "prompt too long",
            "input is too long",
            "too many tokens",
            "maximum context length",
            "max context length",
            "maximum prompt length",
            "model's context length",
            "exceed context limit",
            "context window",
            "context size has been exceeded",
            "available context size",
            "exceeds the maximum number of tokens",
            "maximum number of input tokens",
            "exceeded model token limit",
            "prompt exceeds max length",
            "range of input length should be",
            "reduce the length of the messages",
            "too large for model with",
            "while limit is",
            "`max_new_tokens` must be <=",
            "context the overflows",
        ],
    ),
    (
        Credential,
        &[
            "api key not valid",
            "invalid api key",
            "user location is not supported",
            "api usage limits",
            "data retention",
        ],
    ),
    (
        Model,
        &[
            "model identifier is invalid",
            "on-demand throughput isn",
            "model not found",
            "unknown model",
            "no such model",
            "invalid model",
            "is not found for api version",
            "has been decommissioned",
            "not a chat model",
            "does not support the '/v1",
            "only supported in v1/responses",
            "please use /v1/responses",
            "model is not supported",
        ],
    ),
    (Policy, &["content management policy", "violating our usage policy"]),
    (Access, &["do not have access", "don't have access", "not authorized to", "is not allowed to use"]),
    (
        Parameter,
        &[
            "extra inputs are not permitted",
            "is not permitted",
            "unknown name",
            "unknown field",
            "unknown parameter",
            "unknown variant",
            "unrecognized request argument",
            "unsupported parameter",
            "unsupported value",
            "not a valid field",
            "not supported",
            "does not support",
            "is unsupported",
            "is deprecated for this model",
            "cannot both be specified",
            "may only be set to",
            "only 1 is allowed",
            "only type=enabled is allowed",
            "is incompatible with thinking",
            "unavailable now",
            "should match pattern",
            "does not match pattern",
            "string too long",
            "array too long",
            "maximum allowed number of output tokens",
            "max_tokens is too large",
            "reasoning_content",
            "invalid `signature`",
            "integer below minimum value",
            "above maximum value",
            "expected an id that begins with",
            "invalid schema for",
            "must be set to false for non-streaming calls",
            "requires --enable-auto-tool-choice",
            "`tools` must be set",
            "unexpected role",
            "expected last role",
            "should alternate with",
            "a length of 9",
            "function parameters is empty",
            "invalid message role",
            "optional parameters",
            "strict tools",
            "compiled grammar is too large",
            "failed to satisfy constraint",
            "without its required following item",
        ],
    ),
];

/// Classifies this error.
pub fn reason_of(error: &UpstreamError) -> RejectionReason {
    let names = [error.code.as_deref(), error.kind.as_deref(), error.status.as_deref()].into_iter().flatten();
    let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    let named = NAMES.iter().find(|(_, known)| names.iter().any(|name| known.contains(&name.as_str())));
    // A code with many causes decides only if the message is not more specific.
    let by_sentence = || {
        let message = error.message.to_lowercase();
        let says = |(reason, parts): &(RejectionReason, &[&str])| {
            parts.iter().any(|part| message.contains(part)).then_some(*reason)
        };
        SENTENCES.iter().find_map(says)
    };
    named.map(|(reason, _)| *reason).or_else(by_sentence).unwrap_or(RejectionReason::Request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::error::error_fields;

    fn reason(body: &str) -> RejectionReason {
        reason_of(&error_fields(body.as_bytes()).expect("an error"))
    }

    #[test]
    fn an_overflow_is_known_in_the_words_of_each_provider() {
        for body in [
            r#"{"error":{"message":"This model's maximum context length is 8 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            r#"[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1.","status":"INVALID_ARGUMENT"}}]"#,
            r#"{"message":"Input is too long for requested model."}"#,
            r#"{"object":"error","message":"Prompt contains 9 tokens, too large for model with 8 maximum context length","type":"invalid_request_error","code":3051}"#,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 9)","type":"invalid_request_error"}}"#,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
            r#"{"error":{"message":"Range of input length should be [1, 8]","type":"invalid_parameter_error"}}"#,
            r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit (2013)"}}"#,
            r#"{"error":{"message":"The input (9 tokens) is longer than the model's context length (8 tokens)."}}"#,
            r#"{"code":"invalid-argument","error":"This model's maximum prompt length is 8 but the request contains 9 tokens."}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":8}}"#,
            r#"{"error":"prompt too long; exceeded max context length by 9 tokens"}"#,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long\"}}"}}}"#,
        ] {
            assert_eq!(reason(body), Overflow, "{body}");
        }
    }

    #[test]
    fn other_reasons_are_told_apart() {
        for (expected, body) in [
            (Model, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#),
            (Model, r#"{"message":"The provided model identifier is invalid."}"#),
            (
                Model,
                r#"{"message":"Invocation of model ID anthropic.claude-opus-5 with on-demand throughput isn\u2019t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}"#,
            ),
            (
                Model,
                r#"{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            ),
            (
                Credential,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            ),
            (
                Credential,
                r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
            ),
            (Access, r#"{"error":{"message":"You do not have access to this model."}}"#),
            (
                Parameter,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"seed: Extra inputs are not permitted"}}"#,
            ),
            (
                Parameter,
                r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                Parameter,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
            (
                Parameter,
                r#"{"error":{"message":"`temperature` is deprecated for this model.","type":"invalid_request_error"}}"#,
            ),
            (
                RejectionReason::Request,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"}}"#,
            ),
            (
                RejectionReason::Request,
                r#"{"error":{"code":400,"message":"Please ensure that function response turn comes after a function call turn.","status":"INVALID_ARGUMENT"}}"#,
            ),
            (Policy, r#"{"error":{"message":"Your request was flagged.","code":"content_policy_violation"}}"#),
            (
                Policy,
                r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","param":"prompt","code":"content_filter"}}"#,
            ),
            (Policy, r#"{"error":{"code":"1301","message":"x"}}"#),
            (Model, r#"{"error":{"message":"x","type":"resource_not_found_error"}}"#),
            (
                Parameter,
                r#"{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.","type":"invalid_request_error","param":"reasoning_effort"}}"#,
            ),
            (
                Parameter,
                r#"{"error":{"message":"Invalid 'input[2].id': Expected an ID that begins with 'fc'.","type":"invalid_request_error","code":"invalid_value"}}"#,
            ),
            (
                Parameter,
                r#"{"error":{"code":"invalid_parameter_error","message":"parameter.enable_thinking must be set to false for non-streaming calls"}}"#,
            ),
            (
                Parameter,
                r#"{"object":"error","message":"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant","type":"invalid_request_message_order","code":3230}"#,
            ),
            (
                Parameter,
                r#"{"type":"error","error":{"type":"bad_request_error","message":"invalid params, function parameters is empty (2013)","http_code":"400"}}"#,
            ),
            (
                Parameter,
                r#"{"message":"messages.2.assistant.reasoning_content: property is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}"#,
            ),
            (
                Parameter,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}"#,
            ),
            (
                Parameter,
                r#"{"error":{"message":"Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.","type":"invalid_request_error","code":"invalid_function_parameters"}}"#,
            ),
        ] {
            assert_eq!(reason(body), expected, "{body}");
        }
    }
}
