//! Writes a part of a content, in a request or an answer.

use fairlead_core::Error;

use crate::model::{unsupported, Content, Part, Source};
use crate::text::Writer;

pub(super) fn write_part(out: &mut Writer, part: &Part<'_>, signature: Option<&str>) -> Result<(), Error> {
    out.open(b'{');
    match &part.content {
        Content::Text(text) | Content::Refusal(text) | Content::Note { text, title: None } => {
            out.member("text", text);
        }
        Content::Note { text, title: Some(title) } => {
            out.key("text").joined(&[&title.decode(), "\n\n", &text.decode()]);
        }
        Content::Audio { media_type, data }
        | Content::Image(Source::Base64 { media_type, data })
        | Content::Document { source: Source::Base64 { media_type, data }, .. } => {
            out.key("inlineData").open(b'{').key("mimeType").str(media_type).key("data").str(data).close(b'}');
        }
        Content::Image(Source::Url(url)) | Content::Document { source: Source::Url(url), .. } => {
            let is_image = matches!(part.content, Content::Image(_));
            out.key("fileData").open(b'{');
            if let Some(kind) = media_type_of(&url.decode(), is_image) {
                out.key("mimeType").str(kind);
            }
            out.member("fileUri", url).close(b'}');
        }
        _ => return Err(unsupported(&part.path)),
    }
    if let Some(signature) = signature {
        out.key("thoughtSignature").str(signature);
    }
    out.close(b'}');
    Ok(())
}

/// Guesses the media type from the extension in the URL's path; nothing else is known without a download.
fn media_type_of(url: &str, is_image: bool) -> Option<&'static str> {
    if !is_image {
        return Some("application/pdf");
    }
    let path = url.split(['?', '#']).next().unwrap_or_default();
    match path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}
