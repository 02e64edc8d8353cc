//! The member of a request that a provider's error names.

use crate::openai::error::UpstreamError;

/// The maximum length of a member's path in bytes.
const MAX_BYTES: usize = 100;
/// Quotes around a member's name, in the order in which they are tried.
const QUOTES: [char; 3] = ['`', '\'', '"'];

/// Returns the member that the error names: its `param`, the path before the message of a validation error
/// (`messages.1.content: ...`), or else the first quoted name.
pub fn member_of(error: &UpstreamError) -> Option<String> {
    let param = error.param.as_deref().filter(|param| is_path(param));
    let path = || error.message.split_once(": ").map(|(path, _)| path).filter(|path| is_path(path));
    let quoted = || QUOTES.iter().find_map(|quote| error.message.split(*quote).nth(1).filter(|name| is_path(name)));
    param.or_else(path).or_else(quoted).map(str::to_owned)
}

/// Returns whether the text can be a member's path. A sentence and a prompt cannot.
fn is_path(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]$".contains(&byte);
    !text.is_empty() && text.len() <= MAX_BYTES && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::error::error_fields;

    #[test]
    fn the_member_is_found_in_the_form_of_each_vendor() {
        for (expected, body) in [
            (Some("reasoning_effort"), r#"{"error":{"message":"no","param":"reasoning_effort"}}"#),
            (
                Some("messages.1.content.0.text"),
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.text: Field required"}}"#,
            ),
            (
                Some("temperature"),
                r#"{"type":"error","error":{"message":"`temperature` is deprecated for this model."}}"#,
            ),
            (
                Some("seed"),
                r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field."}}"#,
            ),
            (Some("user"), r#"{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs"}]}"#),
            (Some("messages.2"), r#"{"error":{"message":"'messages.2' : property 'x' is unsupported"}}"#),
            (None, r#"{"error":{"message":"The prompt \"tell me more\" is wrong."}}"#),
            (None, r#"{"error":{"message":""}}"#),
        ] {
            let error = error_fields(body.as_bytes()).expect("an error");
            assert_eq!(member_of(&error).as_deref(), expected, "{body}");
        }
    }
}
