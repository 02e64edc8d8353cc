//! Whether a request has a picture in it, whatever its dialect, without reading the whole of it.

use memchr::memmem;

/// The types of parts that are pictures: of chat completions, responses and messages.
const TYPES: [&[u8]; 3] = [b"\"image_url\"", b"\"input_image\"", b"\"image\""];
/// The members in which Gemini's requests tell what their files are.
const MEDIA: [&[u8]; 2] = [b"\"mimeType\"", b"\"mime_type\""];

/// Whether a part of the body says that it is a picture. Names inside of texts have a backslash before their last quote, so they
/// are not met.
pub fn has_picture(body: &[u8]) -> bool {
    memmem::find(body, b"image").is_some()
        && (TYPES.iter().any(|kind| memmem::find_iter(body, kind).any(|at| is_type(&body[..at])))
            || MEDIA.iter().any(|name| memmem::find_iter(body, name).any(|at| is_image(&body[at + name.len()..]))))
}

/// Whether what stands here is the value of a `type`.
fn is_type(before: &[u8]) -> bool {
    let before = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    before.is_some_and(|before| before.ends_with(b"\"type\""))
}

/// Whether the value that follows is a kind of image.
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
