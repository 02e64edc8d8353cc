//! Images in Ollama requests: plain base64, whose first bytes identify the format.

use std::borrow::Cow;

use fairlead_core::Error;

use crate::model::{wrong, Source};
use crate::text::Text;

/// The first bytes of the supported image formats, in base64.
const KINDS: &[(&str, &str)] =
    &[("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];

/// Reads an image. Complete data URLs are accepted as well.
pub(super) fn source<'a>(text: &Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    let data = match text.decode() {
        Cow::Borrowed(text) => Cow::Borrowed(bare(text)),
        Cow::Owned(text) => Cow::Owned(bare(&text).to_owned()),
    };
    let kind = KINDS.iter().find(|(start, _)| data.starts_with(start));
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    match kind {
        Some((_, media_type)) if is_base64 => Ok(Source::Base64 { media_type: Cow::Borrowed(media_type), data }),
        _ => Err(wrong(path, "must be a PNG, JPEG, GIF or WebP picture in base64")),
    }
}

fn bare(text: &str) -> &str {
    let is_data_url = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    match text.split_once(',').filter(|_| is_data_url) {
        Some((_, data)) => data,
        None => text,
    }
}
