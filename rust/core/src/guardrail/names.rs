//! Member names of the vendors' bodies, by what their value holds. Members that are not listed here count as text and
//! are judged, so that members that a vendor adds later are judged too.
//!
//! A name belongs in these lists only if its value identifies, selects, addresses or encodes something and is never
//! written by people or models. `tests/unit/python/test_guardrail_members.py` compares the lists with the types of the
//! vendors' SDKs.

use std::borrow::Cow;
use std::ops::Range;

/// The content of a member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Holds {
    /// Text, which is judged. Members that no list names are text too.
    #[default]
    Text,
    /// A string is itself JSON. Everything inside an object or list is text.
    Json,
    /// Text. Everything inside an object or list is text, whatever its name.
    Deep,
    /// Text. Everything inside an object is text. A list holds the items of a conversation, whose members keep their
    /// own meaning.
    DeepObject,
    /// A string is an id, a choice, an address or base64. The members of an object keep their own meaning.
    Fixed,
    /// The kind of the object: a fixed string that says what the `data` next to it holds.
    Kind,
    /// Base64 or text, depending on the object around it.
    Data,
    /// The output of a tool: text or base64 like `Data`, and an object like `DeepObject`.
    Outcome,
    /// Settings, schemas and counts. Nothing inside is judged.
    Unread,
}

/// The content of the value of the member with this name.
pub(super) fn holds(name: &[u8]) -> Holds {
    match name {
        b"type" => Holds::Kind,
        b"data" => Holds::Data,
        b"result" => Holds::Outcome,
        b"arguments" | b"partial_json" => Holds::Json,
        b"action" | b"args" | b"attributes" | b"documents" | b"env" | b"operation" | b"variables" => Holds::Deep,
        b"input" => Holds::DeepObject,
        _ if is_fixed(name) => Holds::Fixed,
        _ if is_unread(name) => Holds::Unread,
        _ => Holds::Text,
    }
}

fn is_fixed(name: &[u8]) -> bool {
    is_id(name) || is_choice(name) || is_count(name) || is_address(name) || is_encoded(name)
}

/// Names and ids. Changing one would change what the request refers to.
fn is_id(name: &[u8]) -> bool {
    matches!(
        name,
        b"id"
            | b"approval_request_id"
            | b"batch_id"
            | b"cachedContent"
            | b"cached_content"
            | b"call_id"
            | b"container"
            | b"container_id"
            | b"conversation"
            | b"conversation_id"
            | b"custom_id"
            | b"event_id"
            | b"file_id"
            | b"file_ids"
            | b"item_id"
            | b"jsonPath"
            | b"json_path"
            | b"mcp_server_name"
            | b"message_id"
            | b"model"
            | b"modelVersion"
            | b"model_version"
            | b"name"
            | b"namespace"
            | b"previous_interaction_id"
            | b"previous_item_id"
            | b"previous_response_id"
            | b"prompt_cache_key"
            | b"requestId"
            | b"request_id"
            | b"responseId"
            | b"response_id"
            | b"safety_identifier"
            | b"server_label"
            | b"server_name"
            | b"session_id"
            | b"system_fingerprint"
            | b"tool_call_id"
            | b"tool_name"
            | b"tool_use_id"
            | b"user"
            | b"user_id"
            | b"vector_store_ids"
            | b"voice"
            | b"voiceName"
            | b"voice_name"
    )
}

/// Members with a closed list of values.
fn is_choice(name: &[u8]) -> bool {
    matches!(
        name,
        b"allowedFunctionNames"
            | b"allowed_callers"
            | b"allowed_function_names"
            | b"content_type"
            | b"effort"
            | b"encoding_format"
            | b"finishReason"
            | b"finish_reason"
            | b"mediaResolution"
            | b"mediaType"
            | b"media_type"
            | b"mimeType"
            | b"mime_type"
            | b"modalities"
            | b"mode"
            | b"native_finish_reason"
            | b"object"
            | b"output_format"
            | b"reasoning_effort"
            | b"responseMimeType"
            | b"responseModalities"
            | b"role"
            | b"serviceTier"
            | b"service_tier"
            | b"status"
            | b"stop_reason"
    )
}

/// Numbers that may be as long as a payment card number.
fn is_count(name: &[u8]) -> bool {
    matches!(
        name,
        b"created"
            | b"created_at"
            | b"eval_duration"
            | b"expires_at"
            | b"load_duration"
            | b"prompt_eval_duration"
            | b"seed"
            | b"total_duration"
    )
}

/// Addresses, and the credentials that are sent to them for the caller.
fn is_address(name: &[u8]) -> bool {
    matches!(
        name,
        b"audio_url"
            | b"authorization"
            | b"authorization_token"
            | b"document_url"
            | b"fileUri"
            | b"file_uri"
            | b"file_url"
            | b"gcsUri"
            | b"image_url"
            | b"outputGcsUri"
            | b"server_url"
            | b"uri"
            | b"url"
            | b"video_url"
    )
}

/// Base64, and data that only its creator can decode.
fn is_encoded(name: &[u8]) -> bool {
    matches!(
        name,
        b"audio"
            | b"audioBytes"
            | b"b64_json"
            | b"blob"
            | b"bytesBase64Encoded"
            | b"encryptedContent"
            | b"encrypted_content"
            | b"encrypted_index"
            | b"encrypted_stdout"
            | b"file_data"
            | b"image"
            | b"imageBytes"
            | b"image_base64"
            | b"images"
            | b"obfuscation"
            | b"partial_image_b64"
            | b"signature"
            | b"thoughtSignature"
            | b"thought_signature"
            | b"videoBytes"
    )
}

/// Members whose whole value is settings, tool or answer schemas, labels or counts.
fn is_unread(name: &[u8]) -> bool {
    matches!(
        name,
        b"embedding"
            | b"embeddings"
            | b"format"
            | b"functions"
            | b"input_schema"
            | b"json_schema"
            | b"logit_bias"
            | b"logprobs"
            | b"logprobsResult"
            | b"logprobs_result"
            | b"metadata"
            | b"output_schema"
            | b"responseJsonSchema"
            | b"responseSchema"
            | b"response_format"
            | b"response_json_schema"
            | b"response_schema"
            | b"safetyRatings"
            | b"safetySettings"
            | b"safety_ratings"
            | b"safety_settings"
            | b"tools"
            | b"top_logprobs"
            | b"usage"
            | b"usageMetadata"
            | b"usage_metadata"
    )
}

/// Members that say of which type the `data` next to them is.
pub(super) fn is_media_type(name: &[u8]) -> bool {
    matches!(name, b"content_type" | b"mediaType" | b"media_type" | b"mimeType" | b"mime_type")
}

/// Objects whose `data` is base64, by their member name.
pub(super) fn holds_base64(name: &[u8]) -> bool {
    matches!(name, b"audio" | b"blob" | b"inlineData" | b"inline_data" | b"input_audio")
}

/// Objects whose `data` is base64, by their `type`.
pub(super) fn is_base64_kind(kind: &[u8]) -> bool {
    matches!(
        kind,
        b"audio"
            | b"base64"
            | b"document"
            | b"image"
            | b"image_generation_call"
            | b"reasoning.encrypted"
            | b"redacted_thinking"
            | b"video"
    )
}

/// Objects whose `response` is the output of a tool.
pub(super) fn is_tool_response(name: &[u8]) -> bool {
    matches!(name, b"functionResponse" | b"function_response" | b"toolResponse" | b"tool_response")
}

/// Decodes a name, which may contain escapes.
pub(super) fn name_at<'b>(body: &'b [u8], span: &Range<usize>) -> Cow<'b, str> {
    let raw = &body[span.clone()];
    if memchr::memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    let quoted = &body[span.start - 1..=span.end];
    serde_json::from_slice::<String>(quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}
