//! The paths of calls at clouds whose URLs contain the model and the action.

use fairlead_core::Protocol;
use std::fmt::Write as _;

/// Returns the path of a call below the base URL; `None` for a dialect's own paths.
pub fn of(protocol: Protocol, model: &str, is_stream: bool) -> Option<String> {
    let (before, plain, streamed) = match protocol {
        Protocol::Own => return None,
        Protocol::VertexRawPredict => ("/", ":rawPredict", ":streamRawPredict"),
        Protocol::BedrockInvoke => ("/model/", "/invoke", "/invoke-with-response-stream"),
        Protocol::BedrockConverse => ("/model/", "/converse", "/converse-stream"),
    };
    let mut path = String::with_capacity(before.len() + model.len() + streamed.len() + 16);
    path.push_str(before);
    for byte in model.bytes() {
        // The name is one segment: an ARN contains slashes. Vertex has versions after an `@`.
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || byte == b'@' && protocol == Protocol::VertexRawPredict {
            path.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(path, "%{byte:02X}");
        }
    }
    path.push_str(if is_stream { streamed } else { plain });
    Some(path)
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
        ] {
            assert_eq!(of(protocol, model, is_stream).as_deref(), Some(path));
        }
        assert_eq!(of(Protocol::Own, "a", true), None);
    }
}
