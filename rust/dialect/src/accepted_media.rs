//! Adapts images, documents and audio to the types that a model accepts. A type that it does not accept is rejected
//! with the part's path before the call, because without the part the answer would be about something else.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::{Error, ModelFacts};

use crate::model::{wrong, Content, Part, Request, Source};

/// Other names of media types that providers accept only by their registered name.
const ALIASES: &[(&str, &str)] =
    &[("image/jpg", "image/jpeg"), ("image/pjpeg", "image/jpeg"), ("image/x-png", "image/png")];

/// Checks all parts of a request. Documents of plain text that the model does not accept as files become texts.
pub(crate) fn fit_media(request: &mut Request<'_>, facts: &ModelFacts) -> Result<(), Error> {
    request.turns.iter_mut().flat_map(|turn| &mut turn.parts).try_for_each(|part| fit(part, facts))
}

fn fit(part: &mut Part<'_>, facts: &ModelFacts) -> Result<(), Error> {
    if let Content::Result { parts, .. } = &mut part.content {
        return parts.iter_mut().try_for_each(|inner| fit(inner, facts));
    }
    if let Some(note) = as_note(&part.content, facts) {
        part.content = note;
        return Ok(());
    }
    let media_type = match &mut part.content {
        Content::Audio { media_type, .. } => &*media_type,
        Content::Image(Source::Base64 { media_type, .. })
        | Content::Document { source: Source::Base64 { media_type, .. }, .. } => {
            if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| alias == media_type) {
                *media_type = (*name).into();
            }
            &*media_type
        }
        Content::Image(Source::Url(url)) | Content::Document { source: Source::Url(url), .. } => {
            // Other schemes are names of files at the provider.
            if facts.media_urls == Some(false) && url.decode().starts_with("http") {
                return Err(wrong(&part.path, "is an address, which this model does not open; send the data itself"));
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    // Parameters follow the type: `audio/L16;rate=24000`.
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    if facts.takes_media(kind) {
        return Ok(());
    }
    let accepted = facts.media.as_deref().unwrap_or_default().join(", ");
    let known: String = kind.chars().filter(|c| c.is_ascii_alphanumeric() || "/+-.".contains(*c)).take(64).collect();
    Err(wrong(&part.path, &format!("has the type {known}, which this model does not accept; it accepts {accepted}")))
}

/// Returns a document of plain text as a text, if the model does not accept it as a file.
fn as_note<'a>(content: &Content<'a>, facts: &ModelFacts) -> Option<Content<'a>> {
    let Content::Document { source: Source::Base64 { media_type, data }, title } = content else { return None };
    let kind = media_type.split(';').next().unwrap_or_default();
    if !kind.starts_with("text/") || facts.takes_media(kind) {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(&**data).ok()?).ok()?;
    Some(Content::Note { text: text.into(), title: title.clone() })
}
