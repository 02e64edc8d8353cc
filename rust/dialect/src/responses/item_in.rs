//! The items of a responses request, and the parts of their contents.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{unsupported, wrong, Content, Part, Request, Role, Source, Turn};
use crate::openai::part::{inline_source, source, AudioIn, PartShape};
use crate::text::{if_text, Text};

/// An item. Unknown members come from an earlier answer and are ignored.
#[derive(Deserialize)]
pub(super) struct ItemIn<'a> {
    #[serde(default)]
    pub(super) r#type: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    /// The text of a custom tool's call.
    #[serde(borrow, default)]
    pub(super) input: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) operation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    /// The tools that a search found.
    #[serde(borrow, default)]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) execution: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) summary: Option<Vec<SummaryIn<'a>>>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Option<Text<'a>>,
    /// The image of an earlier answer, in base64.
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) result: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) output_format: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct SummaryIn<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    image_url: Option<Text<'a>>,
    #[serde(borrow, default)]
    input_audio: Option<AudioIn<'a>>,
    #[serde(borrow, default)]
    file_data: Option<Text<'a>>,
    #[serde(borrow, default)]
    file_url: Option<Text<'a>>,
    #[serde(borrow, default)]
    filename: Option<Text<'a>>,
    #[serde(borrow, default)]
    file_id: Option<Text<'a>>,
    /// The resolution for images; a hint. Annotations of an earlier answer are ignored as well.
    #[serde(default, rename = "detail")]
    _detail: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "annotations")]
    _annotations: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "logprobs")]
    _logprobs: Option<serde::de::IgnoredAny>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

/// Adds a part to the model's turn. Consecutive items of the model form one turn.
pub(super) fn push_assistant_part<'a>(request: &mut Request<'a>, part: Part<'a>) {
    match request.turns.last_mut() {
        Some(turn) if turn.role == Role::Assistant => turn.parts.push(part),
        _ => request.turns.push(Turn { role: Role::Assistant, parts: vec![part] }),
    }
}

impl<'a> PartShape<'a> for PartIn<'a> {
    fn cache_control(&self) -> Option<&'a RawValue> {
        self.cache_control
    }

    fn into_content(self, path: &str) -> Result<Content<'a>, Error> {
        content(self, path)
    }
}

fn content<'a>(part: PartIn<'a>, path: &str) -> Result<Content<'a>, Error> {
    let missing = |name: &str| wrong(&format!("{path}.{name}"), "is required");
    if part.file_id.is_some() {
        return Err(unsupported(&format!("{path}.file_id")));
    }
    Ok(match &*part.r#type {
        "input_text" | "output_text" | "text" => Content::Text(part.text.ok_or_else(|| missing("text"))?),
        "refusal" => Content::Refusal(part.refusal.ok_or_else(|| missing("refusal"))?),
        "input_image" => {
            let url = part.image_url.ok_or_else(|| missing("image_url"))?;
            Content::Image(source(url, &format!("{path}.image_url"))?)
        }
        "input_audio" => part.input_audio.ok_or_else(|| missing("input_audio"))?.into_content(),
        "input_file" => {
            let source = match (part.file_data, part.file_url) {
                (Some(data), _) => inline_source(data, &format!("{path}.file_data"))?,
                (None, Some(url)) => Source::Url(url),
                (None, None) => return Err(missing("file_data")),
            };
            Content::Document { source, title: part.filename }
        }
        _ => return Err(unsupported(&format!("{path}.type"))),
    })
}
