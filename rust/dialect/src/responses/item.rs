//! Writes the items of an output, for complete and streamed answers.

use crate::model::{Content, Source};
use crate::text::{Text, Writer};

/// The status of an item.
pub(super) const COMPLETED: &str = "completed";
pub(super) const IN_PROGRESS: &str = "in_progress";

/// Writes a message. `content` holds list elements without the brackets.
pub(super) fn message(id: &str, status: &str, content: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(content.len() + 96);
    out.open(b'{').key("id").str(id).key("type").raw(r#""message""#).key("status").str(status);
    out.key("role").raw(r#""assistant""#).key("content").open(b'[').spliced(content).close(b']').close(b'}').take()
}

/// Writes a text part. In all functions here, `text` is an escaped string without its quotes.
pub(super) fn text_part(text: &[u8], logprobs: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 64);
    out.open(b'{').key("type").raw(r#""output_text""#).key("text").inner(text).key("annotations").raw("[]");
    out.key("logprobs").open(b'[').spliced(logprobs).close(b']').close(b'}').take()
}

pub(super) fn refusal_part(text: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 32);
    out.open(b'{').key("type").raw(r#""refusal""#).key("refusal").inner(text).close(b'}').take()
}

pub(super) fn summary_part(text: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 32);
    out.open(b'{').key("type").raw(r#""summary_text""#).key("text").inner(text).close(b'}').take()
}

/// Writes a reasoning item. An empty `text` means no summary.
pub(super) fn reasoning(id: &str, text: &[u8], encrypted: Option<&str>) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 96);
    out.open(b'{').key("id").str(id).key("type").raw(r#""reasoning""#).key("summary").open(b'[');
    if !text.is_empty() {
        out.spliced(&summary_part(text));
    }
    out.close(b']');
    if let Some(encrypted) = encrypted {
        out.key("encrypted_content").str(encrypted);
    }
    out.close(b'}').take()
}

/// Writes an image generation call. `image` is the media type and the base64 data, once there is an image.
pub(super) fn image(id: &str, status: &str, image: Option<(&str, &str)>) -> Vec<u8> {
    let mut out = Writer::with_capacity(image.map_or(0, |(_, data)| data.len()) + 128);
    out.open(b'{').key("id").str(id).key("type").raw(r#""image_generation_call""#).key("status").str(status);
    match image {
        Some((media_type, data)) => {
            let format = media_type.strip_prefix("image/").unwrap_or(media_type);
            out.key("output_format").str(format).key("result").str(data);
        }
        None => drop(out.key("result").raw("null")),
    }
    out.close(b'}').take()
}

/// Reads the image of an image generation call. `None` without data.
pub(super) fn generated_image<'a>(result: &Text<'a>, format: Option<&Text<'a>>) -> Option<Content<'a>> {
    let format = format.map(Text::decode).filter(|format| !format.is_empty());
    let media_type = format!("image/{}", format.as_deref().unwrap_or("png")).into();
    (!result.is_empty()).then(|| Content::Image(Source::Base64 { media_type, data: result.decode() }))
}
