//! The parts of a message's content in both OpenAI dialects: a text or a list of parts, with images, audio and files.

use std::borrow::Cow;
use std::ops::Range;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{typed_at, wrong, Content, Part, Source};
use crate::text::Text;

const DATA: &str = "data:";
const BASE64: &str = ";base64";

/// A part in the format of one dialect.
pub(crate) trait PartShape<'a>: Deserialize<'a> {
    /// The mark up to which a provider may cache the prompt.
    fn cache_control(&self) -> Option<&'a RawValue>;

    /// Converts the part to its content. `path` names the part in errors.
    fn into_content(self, path: &str) -> Result<Content<'a>, Error>;
}

/// Reads a content, a text or a list of parts, and appends it to `parts`.
pub(crate) fn read_parts<'a, P: PartShape<'a>>(
    value: &'a RawValue,
    path: impl Fn() -> String,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Error> {
    if let Some(text) = Text::of(value) {
        parts.push(Part::text(text));
        return Ok(());
    }
    let list: Vec<&'a RawValue> = typed_at(value, &path)?;
    for (at, raw) in list.into_iter().enumerate() {
        let path = format!("{}[{at}]", path());
        let part: P = typed_at(raw, || path.clone())?;
        let cache = part.cache_control().map(RawValue::get);
        let content = part.into_content(&path)?;
        parts.push(Part { path, content, cache });
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AudioIn<'a> {
    #[serde(borrow)]
    data: Text<'a>,
    format: Cow<'a, str>,
}

impl<'a> AudioIn<'a> {
    pub(crate) fn into_content(self) -> Content<'a> {
        let media_type =
            if self.format == "mp3" { "audio/mpeg".into() } else { format!("audio/{}", self.format).into() };
        Content::Audio { media_type, data: self.data.decode() }
    }
}

/// Reads `data:<type>;base64,<data>` or a URL. Schemes and types are case-insensitive (RFC 3986 section 3.1, RFC 2045
/// section 5.1), but providers accept only lower-case types.
pub(crate) fn source<'a>(url: Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    let text = url.decode();
    let is_word = |span: Range<usize>, word: &str| text.get(span).is_some_and(|text| text.eq_ignore_ascii_case(word));
    if !is_word(0..DATA.len(), DATA) {
        return Ok(Source::Url(url));
    }
    let mark = text.find(',').and_then(|comma| comma.checked_sub(BASE64.len()));
    let Some(mark) = mark.filter(|mark| is_word(*mark..*mark + BASE64.len(), BASE64)) else {
        return Err(wrong(path, "must be an address or a data URL with base64"));
    };
    let (kind, data) = (DATA.len()..mark, mark + BASE64.len() + 1..text.len());
    let cut = |span: Range<usize>| match &text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(span).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(span).unwrap_or_default().to_owned()),
    };
    let mut media_type = cut(kind);
    if media_type.bytes().any(|byte| byte.is_ascii_uppercase()) {
        media_type = Cow::Owned(media_type.to_ascii_lowercase());
    }
    Ok(Source::Base64 { media_type, data: cut(data) })
}

/// Reads `data:<type>;base64,<data>` only: an inline file, not a URL.
pub(crate) fn inline_source<'a>(data: Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    match source(data, path)? {
        Source::Url(_) => Err(wrong(path, "must be a data URL with base64")),
        inside @ Source::Base64 { .. } => Ok(inside),
    }
}
