//! Images, audio and files in an answer.
//!
//! Models that generate images return them beside text. Each dialect has its own place for them; a dialect without one
//! gets a Markdown link with a data URL, so that paid output is never lost.

use std::borrow::Cow;

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::left_out::LeftOut;
use crate::model::{Answer, Content, Part, Request, Role, Source, Turn};
use crate::openai::part::source;
use crate::text::{if_text, Text, Writer};

/// The media type of audio without a header: 16-bit samples, as both OpenAI and Google return it.
const RAW_AUDIO: &str = "audio/L16;codec=pcm;rate=24000";
/// The first bytes of audio formats, in base64.
const AUDIO_KINDS: &[(&str, &str)] = &[
    ("UklGR", "audio/wav"),
    ("SUQz", "audio/mpeg"),
    ("//", "audio/mpeg"),
    ("ZkxhQ", "audio/flac"),
    ("T2dnU", "audio/ogg"),
];

/// The text before an image of an earlier answer, in a turn of the user.
pub(crate) const LABEL: &str = "From your previous answer:";

/// Returns whether a content is an image, audio or a file.
pub(crate) fn is_media(content: &Content<'_>) -> bool {
    matches!(content, Content::Image(_) | Content::Audio { .. } | Content::Document { .. })
}

/// Writes a source as one string: the URL or a data URL.
pub(crate) fn write_url(out: &mut Writer, source: &Source<'_>) {
    match source {
        Source::Url(url) => drop(out.text(url)),
        Source::Base64 { media_type, data } => drop(out.joined(&["data:", media_type, ";base64,", data])),
    }
}

/// Returns media as a Markdown link, for dialects that cannot carry it. `None` for other contents.
pub(crate) fn as_link(content: &Content<'_>) -> Option<Text<'static>> {
    let data_url = |media_type: &str, data: &str| format!("data:{media_type};base64,{data}");
    let address = |source: &Source<'_>| match source {
        Source::Url(url) => url.decode().into_owned(),
        Source::Base64 { media_type, data } => data_url(media_type, data),
    };
    let link = match content {
        Content::Image(source) => format!("![image]({})", address(source)),
        Content::Audio { media_type, data } => format!("[audio]({})", data_url(media_type, data)),
        Content::Document { source, .. } => format!("[file]({})", address(source)),
        _ => return None,
    };
    Some(link.into())
}

/// Replaces media by links, except for those that the caller's dialect carries.
pub(crate) fn link_others(answer: &mut Answer<'_>, is_carried: fn(&Content<'_>) -> bool) {
    for part in &mut answer.parts {
        if is_carried(&part.content) {
            continue;
        }
        if let Some(link) = as_link(&part.content) {
            part.content = Content::Text(link);
        }
    }
}

/// Copies media, so that it can be queued.
pub(crate) fn into_owned(content: Content<'_>) -> Option<Content<'static>> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    let owned = |source| match source {
        Source::Url(url) => Source::Url(url.into_owned()),
        Source::Base64 { media_type, data } => Source::Base64 { media_type: own(media_type), data: own(data) },
    };
    match content {
        Content::Image(source) => Some(Content::Image(owned(source))),
        Content::Audio { media_type, data } => Some(Content::Audio { media_type: own(media_type), data: own(data) }),
        Content::Document { source, title } => {
            Some(Content::Document { source: owned(source), title: title.map(Text::into_owned) })
        }
        _ => None,
    }
}

/// Returns the size of media in bytes, as it is sent.
pub(crate) fn bytes_of(content: &Content<'_>) -> usize {
    match content {
        Content::Image(source) | Content::Document { source, .. } => match source {
            Source::Url(Text::Token(url)) => url.len(),
            Source::Url(Text::Plain(url)) => url.len(),
            Source::Base64 { data, .. } => data.len(),
        },
        Content::Audio { data, .. } => data.len(),
        _ => 0,
    }
}

/// Reads the `images` of a chat message or delta. An element without an address is ignored.
pub(crate) fn chat_images(list: &RawValue) -> Vec<Content<'_>> {
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    list.into_iter().filter_map(chat_image).collect()
}

/// Reads one image: `{"image_url": {"url": ...}}`, or the address itself as `image_url`.
pub(crate) fn chat_image(image: &RawValue) -> Option<Content<'_>> {
    #[derive(Deserialize)]
    struct ImageIn<'a> {
        #[serde(borrow, default)]
        image_url: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct UrlIn<'a> {
        #[serde(borrow, default, deserialize_with = "if_text")]
        url: Option<Text<'a>>,
    }
    let address = serde_json::from_str::<ImageIn<'_>>(image.get()).ok()?.image_url?;
    let url = Text::of(address).or_else(|| serde_json::from_str::<UrlIn<'_>>(address.get()).ok()?.url)?;
    source(url, "images").ok().map(Content::Image)
}

/// The audio of a chat message or delta.
#[derive(Deserialize)]
pub(crate) struct ChatAudio<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    data: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    transcript: Option<Text<'a>>,
}

impl<'a> ChatAudio<'a> {
    /// Returns the transcript and the audio. The answer does not name its format, so the first bytes do.
    pub(crate) fn contents(self) -> impl Iterator<Item = Content<'a>> {
        let transcript = self.transcript.filter(|text| !text.is_empty()).map(Content::Text);
        let audio = self.data.filter(|data| !data.is_empty()).map(|data| {
            let data = data.decode();
            let kind = AUDIO_KINDS.iter().find(|(start, _)| data.starts_with(start));
            let media_type = Cow::Borrowed(kind.map_or(RAW_AUDIO, |(_, media_type)| media_type));
            Content::Audio { media_type, data }
        });
        transcript.into_iter().chain(audio)
    }
}

/// Joins pieces of base64.
pub(crate) fn joined(pieces: &[&str]) -> String {
    if let [one] = pieces {
        return (*one).to_owned();
    }
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| STANDARD.decode(piece).unwrap_or_default()).collect();
    STANDARD.encode(bytes)
}

/// Moves images and files of earlier answers to the next turn of the user, because only Gemini accepts them in a turn
/// of the model. Audio, and images without such a turn, are dropped.
pub(crate) fn move_to_user(request: &mut Request<'_>, left_out: &mut LeftOut) {
    let mut moved: Vec<Part<'_>> = Vec::new();
    for turn in &mut request.turns {
        if turn.role == Role::Assistant {
            if turn.parts.iter().any(|part| is_media(&part.content)) {
                take(turn, &mut moved, left_out);
            }
            continue;
        }
        // The results of tool calls come first in a turn, and turns of results may follow each other.
        let is_result = |part: &Part<'_>| matches!(part.content, Content::Result { .. });
        if moved.is_empty() || !turn.parts.is_empty() && turn.parts.iter().all(is_result) {
            continue;
        }
        let at = turn.parts.iter().rposition(is_result).map_or(0, |last| last + 1);
        let label = Part::text(LABEL.into());
        turn.parts.splice(at..at, std::iter::once(label).chain(moved.drain(..)));
    }
    if !moved.is_empty() {
        left_out.hint("images");
    }
}

fn take<'a>(turn: &mut Turn<'a>, moved: &mut Vec<Part<'a>>, left_out: &mut LeftOut) {
    for part in std::mem::take(&mut turn.parts) {
        match part.content {
            Content::Image(_) | Content::Document { .. } => moved.push(part),
            Content::Audio { .. } => left_out.hint("audio"),
            _ => turn.parts.push(part),
        }
    }
}
