//! Detects an image in a request of any dialect without parsing the whole body.

use memchr::memmem;

/// The part types for images in chat completions, responses and messages.
const TYPES: [&[u8]; 3] = [b"\"image_url\"", b"\"input_image\"", b"\"image\""];
/// The members that hold the media type of a file in Gemini requests.
const MEDIA: [&[u8]; 2] = [b"\"mimeType\"", b"\"mime_type\""];

/// Returns whether a part of the body is declared as an image. Member names inside JSON strings have a backslash before
/// the closing quote, so they do not match.
pub fn has_picture(body: &[u8]) -> bool {
    memmem::find(body, b"image").is_some()
        && (TYPES.iter().any(|kind| memmem::find_iter(body, kind).any(|at| is_type(&body[..at])))
            || MEDIA.iter().any(|name| memmem::find_iter(body, name).any(|at| is_image(&body[at + name.len()..]))))
}

/// Returns whether the preceding bytes are the member name `type`.
fn is_type(before: &[u8]) -> bool {
    let before = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    before.is_some_and(|before| before.ends_with(b"\"type\""))
}

/// Returns whether the following value is an image media type.
fn is_image(after: &[u8]) -> bool {
    let after = after.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    after.is_some_and(|after| after.starts_with(b"\"image/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_found_in_each_dialect_and_a_word_is_none() {
        for body in [
            r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]}"#,
            r#"{"input":[{"content":[{"type" : "input_image","image_url":"data:"}]}]}"#,
            r#"{"messages":[{"content":[{"source":{}, "type": "image"}]}]}"#,
            r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}]}"#,
            r#"{"contents":[{"parts":[{"inline_data":{"mime_type": "image/png","data":""}}]}]}"#,
        ] {
            assert!(has_picture(body.as_bytes()), "{body}");
        }
        for body in [
            "{}",
            r#"{"messages":[{"role":"user","content":"image"}]}"#,
            r#"{"messages":[{"role":"user","content":"{\"type\":\"image\"}"}]}"#,
            r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"image"}}]}]}"#,
        ] {
            assert!(!has_picture(body.as_bytes()), "{body}");
        }
    }
}
