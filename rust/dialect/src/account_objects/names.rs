//! The members that name objects, and the members whose contents the caller chooses freely.

use super::ObjectKind;
use fairlead_core::Dialect;

/// The meaning of a member that contains a text or a list of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Nothing,
    /// The id of an object.
    Object,
    /// The id of a file.
    File,
    /// A service that is read with the caller's token if the same object has one, else with the operator's.
    Connector,
    /// A skill, which the caller's account or the provider may own.
    Skill,
    /// An address, which may be one in the operator's storage.
    Address,
    /// An address in a member for files.
    FileAddress,
}

pub(super) fn names(name: &str, dialect: Dialect) -> Names {
    match name {
        "vector_store_ids"
        | "collection_ids"
        | "container_id"
        | "tunnel_id"
        | "fileSearchStoreNames"
        | "file_search_store_names"
        | "ragCorpus"
        | "rag_corpus"
        | "ragCorpora"
        | "rag_corpora"
        | "ragFileIds"
        | "rag_file_ids"
        | "datastore"
        | "dataStore"
        | "data_store"
        | "apiKeySecret"
        | "api_key_secret"
        | "apiKeySecretVersion"
        | "api_key_secret_version" => Names::Object,
        "engine" if dialect == Dialect::Gemini => Names::Object,
        "container" if matches!(dialect, Dialect::Anthropic | Dialect::OpenaiResponses) => Names::Object,
        "file_id" | "file_ids" => Names::File,
        "cachedContent" | "cached_content" if dialect == Dialect::Gemini => Names::File,
        "connector_id" => Names::Connector,
        "skill_id" => Names::Skill,
        "fileUri" | "file_uri" => Names::FileAddress,
        "url" | "uri" | "image_url" | "file_url" | "audio_url" | "video_url" | "document_url" | "gcsUri"
        | "gcs_uri" | "outputGcsUri" | "output_gcs_uri" => Names::Address,
        _ => Names::Nothing,
    }
}

/// Objects that are named by their own `id`.
pub(super) fn is_named_by_id(name: &str) -> bool {
    matches!(name, "prompt" | "container" | "voice" | "audio")
}

/// Members whose values the caller chooses freely: arguments and schemas of functions, labels, headers, documents.
/// Their members have no meaning to the provider.
pub(super) fn is_free(name: &str, of: &str, is_object: bool) -> bool {
    match name {
        // The input of a tool. The input of a request is a list or a text.
        "input" => is_object,
        "response" => matches!(of, "functionResponse" | "function_response"),
        "args"
        | "arguments"
        | "attributes"
        | "chat_template_kwargs"
        | "documents"
        | "env"
        | "examples"
        | "headers"
        | "input_examples"
        | "input_schema"
        | "json_schema"
        | "labels"
        | "logit_bias"
        | "metadata"
        | "output_schema"
        | "parameters"
        | "parametersJsonSchema"
        | "parameters_json_schema"
        | "responseJsonSchema"
        | "response_json_schema"
        | "_responseJsonSchema"
        | "responseSchema"
        | "response_schema"
        | "schema"
        | "structuredContent"
        | "structured_content" => true,
        _ => false,
    }
}

/// Objects that repeat which file an earlier answer was about. The provider does not read that file again.
pub(super) fn is_report(kind: &str, name: &str) -> bool {
    matches!(
        kind,
        "bash_code_execution_output"
            | "code_execution_output"
            | "container_file_citation"
            | "file_citation"
            | "file_path"
    ) || kind.ends_with("_location")
        || matches!(name, "annotations" | "citations" | "results")
}

/// The kind of the object at an address, if a provider reads it with the operator's credential or the gateway may store
/// it.
pub(super) fn at_address(address: &str, is_for_files: bool) -> Option<ObjectKind> {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once(':') else {
        return is_for_files.then_some(ObjectKind::File);
    };
    if ["gs", "s3", "file"].iter().any(|of| scheme.eq_ignore_ascii_case(of)) {
        return Some(ObjectKind::File);
    }
    let (host, path) = rest.trim_start_matches('/').split_once('/')?;
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
    if host.eq_ignore_ascii_case("generativelanguage.googleapis.com") {
        return path.contains("files/").then_some(ObjectKind::File);
    }
    (is_for_files && path.contains("files/file")).then_some(ObjectKind::MaybeFile)
}
