//! Parts of a message's content as both of OpenAI's dialects have them: one text or a list of parts, and what pictures, sounds
//! and files are made of.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{typed_at, wrong, Content, Part, Source};
use crate::text::Text;

/// A part as one of the dialects writes it.
pub(crate) trait PartShape<'a>: Deserialize<'a> {
    /// The mark up to which a provider may cache the prompt.
    fn cache_control(&self) -> Option<&'a RawValue>;

    /// The part's content; `path` names it in errors.
    fn into_content(self, path: &str) -> Result<Content<'a>, Error>;
}

/// Reads a content, which is a text or a list of parts, and adds it to `parts`.
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

/// `data:<type>;base64,<data>`, or an address.
pub(crate) fn source<'a>(url: Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    let text = url.decode();
    if !text.starts_with("data:") {
        return Ok(Source::Url(url));
    }
    let Some(comma) = text.find(";base64,") else {
        return Err(wrong(path, "must be an address or a data URL with base64"));
    };
    let (kind, data) = ("data:".len()..comma, comma + ";base64,".len()..text.len());
    let cut = |span: std::ops::Range<usize>| match &text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(span).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(span).unwrap_or_default().to_owned()),
    };
    Ok(Source::Base64 { media_type: cut(kind), data: cut(data) })
}

/// `data:<type>;base64,<data>` alone: a file that is sent, not an address of one.
pub(crate) fn inline_source<'a>(data: Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    match source(data, path)? {
        Source::Url(_) => Err(wrong(path, "must be a data URL with base64")),
        inside @ Source::Base64 { .. } => Ok(inside),
    }
}
