//! Images: Amazon Nova Canvas and Titan, and Stability AI's models at Bedrock.

use bytes::Bytes;
use fairlead_core::Error;
use serde::Deserialize;
use std::borrow::Cow;

use super::{count, other, CallFacts, NoContent};
use crate::model::{typed, unsupported, wrong, Members};
use crate::text::{Text, Writer};

/// A request in OpenAI's form.
#[derive(Default)]
pub(super) struct ImageRequest<'a> {
    prompt: Option<Text<'a>>,
    images: u64,
    /// Width and height in pixels.
    size: Option<(u64, u64)>,
    is_premium: bool,
    format: Option<Cow<'a, str>>,
}

pub(super) fn read(members: Members<'_>) -> Result<ImageRequest<'_>, Error> {
    let mut request = ImageRequest { images: 1, ..ImageRequest::default() };
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            "model" | "user" => {}
            _ if raw == "null" || raw == r#""auto""# => {}
            "prompt" => request.prompt = Some(typed(value, "prompt")?),
            "n" => request.images = count(value, "n")?,
            "size" => {
                let text: Cow<'_, str> = typed(value, "size")?;
                let size =
                    text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
                request.size = Some(size.ok_or_else(|| wrong("size", "must be a width and a height, as `1024x1024`"))?);
            }
            "quality" => request.is_premium = matches!(raw, r#""hd""# | r#""high""# | r#""premium""#),
            "response_format" if raw == r#""b64_json""# => {}
            "output_format" => request.format = Some(typed(value, "output_format")?),
            _ => other(&name, value)?,
        }
    }
    if request.prompt.is_none() {
        return Err(wrong("prompt", "is required"));
    }
    Ok(request)
}

pub(super) fn to_canvas(request: &ImageRequest<'_>, out: &mut Writer) -> Result<(), Error> {
    if request.format.as_deref().is_some_and(|format| format != "png") {
        return Err(unsupported("output_format"));
    }
    out.open(b'{').key("taskType").raw(r#""TEXT_IMAGE""#).key("textToImageParams").open(b'{');
    if let Some(prompt) = &request.prompt {
        out.member("text", prompt);
    }
    out.close(b'}').key("imageGenerationConfig").open(b'{').key("numberOfImages").number(request.images);
    if let Some((width, height)) = request.size {
        out.key("width").number(width).key("height").number(height);
    }
    if request.is_premium {
        out.key("quality").raw(r#""premium""#);
    }
    out.close(b'}').close(b'}');
    Ok(())
}

/// Stability's models draw one image a call, with one of a few aspect ratios.
pub(super) fn to_stability(request: &ImageRequest<'_>, out: &mut Writer) -> Result<(), Error> {
    if request.images != 1 {
        return Err(wrong("n", "must be 1: this model draws one image in each call"));
    }
    out.open(b'{');
    if let Some(prompt) = &request.prompt {
        out.member("prompt", prompt);
    }
    if let Some(size) = request.size {
        out.key("aspect_ratio").str(ratio(size).ok_or_else(|| unsupported("size"))?);
    }
    match request.format.as_deref() {
        None => {}
        Some(format @ ("png" | "jpeg" | "webp")) => drop(out.key("output_format").str(format)),
        Some(_) => return Err(unsupported("output_format")),
    }
    out.close(b'}');
    Ok(())
}

/// The name of an aspect ratio. OpenAI's 1792x1024 is almost 16:9.
fn ratio(size: (u64, u64)) -> Option<&'static str> {
    const RATIOS: [(&str, u64, u64); 9] = [
        ("1:1", 1, 1),
        ("16:9", 16, 9),
        ("21:9", 21, 9),
        ("2:3", 2, 3),
        ("3:2", 3, 2),
        ("4:5", 4, 5),
        ("5:4", 5, 4),
        ("9:16", 9, 16),
        ("9:21", 9, 21),
    ];
    match size {
        (1792, 1024) => return Some("16:9"),
        (1024, 1792) => return Some("9:16"),
        (0, _) | (_, 0) => return None,
        _ => {}
    }
    let (width, height) = size;
    let fits = |&&(_, wide, high): &&(&str, u64, u64)| {
        width.checked_mul(high).is_some_and(|left| Some(left) == height.checked_mul(wide))
    };
    RATIOS.iter().find(fits).map(|(name, _, _)| *name)
}

pub(super) fn answer(answer: &[u8], facts: CallFacts<'_>) -> Result<Bytes, NoContent> {
    #[derive(Deserialize)]
    struct AnswerIn<'a> {
        #[serde(borrow, default)]
        images: Option<Vec<Cow<'a, str>>>,
        #[serde(borrow, default)]
        error: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        finish_reasons: Option<Vec<Option<Cow<'a, str>>>>,
    }
    let read: AnswerIn<'_> = serde_json::from_slice(answer).map_err(|_| NoContent)?;
    let mut out = Writer::with_capacity(answer.len() + 128);
    let reason = read.finish_reasons.into_iter().flatten().flatten().next().or(read.error);
    let images = read.images.filter(|images| !images.is_empty());
    let Some(images) = images else {
        // The model answers with a reason in place of images.
        let reason = reason.ok_or(NoContent)?;
        out.open(b'{')
            .key("error")
            .open(b'{')
            .key("message")
            .str(&reason)
            .key("type")
            .raw(r#""image_generation_error""#);
        let is_filter = reason.to_ascii_lowercase().contains("filter");
        out.key("code").str(if is_filter { "content_filter" } else { "inference_error" });
        return Ok(Bytes::from(out.close(b'}').close(b'}').take()));
    };
    out.open(b'{').key("created").number(facts.created_s).key("data").open(b'[');
    for image in &images {
        out.open(b'{').key("b64_json").str(image).close(b'}');
    }
    Ok(Bytes::from(out.close(b']').close(b'}').take()))
}
