//! The paths of calls at clouds whose URLs contain the model and the action.

use fairlead_core::Protocol;
use std::fmt::Write as _;

/// Returns the path of a call below the base URL; `None` for a dialect's own paths.
pub fn of(protocol: Protocol, model: &str, is_stream: bool) -> Option<String> {
    let (before, plain, streamed) = match protocol {
        Protocol::Own | Protocol::CohereChat => return None,
        Protocol::VertexRawPredict => ("/", ":rawPredict", ":streamRawPredict"),
        Protocol::BedrockInvoke => ("/model/", "/invoke", "/invoke-with-response-stream"),
        Protocol::BedrockConverse => ("/model/", "/converse", "/converse-stream"),
        Protocol::BedrockTitanEmbed
        | Protocol::BedrockCohereEmbed
        | Protocol::BedrockRerank
        | Protocol::BedrockCanvas
        | Protocol::BedrockStability => ("/model/", "/invoke", "/invoke"),
        Protocol::VertexPredictEmbed => ("/", ":predict", ":predict"),
    };
    let mut path = String::with_capacity(before.len() + model.len() + streamed.len() + 16);
    path.push_str(before);
    // Vertex has versions after an `@`.
    let is_vertex = matches!(protocol, Protocol::VertexRawPredict | Protocol::VertexPredictEmbed);
    push_segment(&mut path, model, if is_vertex { b"@" } else { b"" });
    path.push_str(if is_stream { streamed } else { plain });
    Some(path)
}

/// Appends a name as one segment of a path: an ARN contains slashes. `also` are characters that stay as they are.
pub(super) fn push_segment(path: &mut String, name: &str, also: &[u8]) {
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(path, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_one_segment() {
        for (protocol, model, is_stream, path) in [
            (Protocol::VertexRawPredict, "claude-opus-4-5@20251101", false, "/claude-opus-4-5@20251101:rawPredict"),
            (Protocol::VertexRawPredict, "claude-opus-5-5", true, "/claude-opus-5-5:streamRawPredict"),
            (
                Protocol::BedrockInvoke,
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                false,
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
            ),
            (Protocol::BedrockInvoke, "a", true, "/model/a/invoke-with-response-stream"),
            (
                Protocol::BedrockConverse,
                "arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
                false,
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/converse",
            ),
            (Protocol::BedrockConverse, "a", true, "/model/a/converse-stream"),
            (
                Protocol::BedrockTitanEmbed,
                "amazon.titan-embed-text-v2:0",
                false,
                "/model/amazon.titan-embed-text-v2%3A0/invoke",
            ),
            (Protocol::VertexPredictEmbed, "text-embedding-005", false, "/text-embedding-005:predict"),
        ] {
            assert_eq!(of(protocol, model, is_stream).as_deref(), Some(path));
        }
        assert_eq!(of(Protocol::Own, "a", true), None);
    }
}
