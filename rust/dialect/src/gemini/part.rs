//! The parts of a content, in a request or an answer.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call_ids::CallIds;
use crate::model::{typed_at, unsupported, wrong, Call, Content, Part, Source};
use crate::signature::from_gemini;
use crate::text::Text;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartIn<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(borrow, default, rename = "thoughtSignature", alias = "thought_signature")]
    pub(super) thought_signature: Option<Text<'a>>,
    #[serde(borrow, default, rename = "inlineData", alias = "inline_data")]
    inline_data: Option<BlobIn<'a>>,
    #[serde(borrow, default, rename = "fileData", alias = "file_data")]
    file_data: Option<FileIn<'a>>,
    #[serde(borrow, default, rename = "functionCall", alias = "function_call")]
    function_call: Option<CallIn<'a>>,
    #[serde(borrow, default, rename = "functionResponse", alias = "function_response")]
    function_response: Option<ResponseIn<'a>>,
    /// The resolution for media; a hint.
    #[serde(default, rename = "mediaResolution", alias = "media_resolution")]
    _media_resolution: Option<serde::de::IgnoredAny>,
    // Parts of tools that Google runs. No other provider accepts them.
    #[serde(default, rename = "executableCode", alias = "executable_code")]
    executable_code: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "codeExecutionResult", alias = "code_execution_result")]
    code_result: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "toolCall", alias = "tool_call")]
    tool_call: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "toolResponse", alias = "tool_response")]
    tool_response: Option<serde::de::IgnoredAny>,
}

/// A part of an answer. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct AnswerPartIn<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(borrow, default, rename = "thoughtSignature", alias = "thought_signature")]
    pub(super) thought_signature: Option<Text<'a>>,
    #[serde(borrow, default, rename = "functionCall", alias = "function_call")]
    pub(super) function_call: Option<AnswerCallIn<'a>>,
    /// An image or audio.
    #[serde(borrow, default, rename = "inlineData", alias = "inline_data")]
    inline_data: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "fileData", alias = "file_data")]
    file_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct AnswerCallIn<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlobIn<'a> {
    #[serde(borrow, rename = "mimeType", alias = "mime_type")]
    mime_type: Text<'a>,
    #[serde(borrow)]
    data: Text<'a>,
    #[serde(borrow, default, rename = "displayName", alias = "display_name")]
    display_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileIn<'a> {
    #[serde(borrow, default, rename = "mimeType", alias = "mime_type")]
    mime_type: Option<Text<'a>>,
    #[serde(borrow, rename = "fileUri", alias = "file_uri")]
    file_uri: Text<'a>,
    #[serde(borrow, default, rename = "displayName", alias = "display_name")]
    display_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallIn<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseIn<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Vec<PartIn<'a>>,
}

impl<'a> AnswerPartIn<'a> {
    /// Converts the part to one of a request. Returns `None` if it has nothing that other dialects can express.
    pub(super) fn known(self) -> Option<PartIn<'a>> {
        let Self { text, thought, thought_signature, function_call, inline_data, file_data } = self;
        // Images of the reasoning are drafts.
        let is_thought = thought == Some(true);
        let inline_data = inline_data.filter(|_| !is_thought).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let file_data = file_data.filter(|_| !is_thought).and_then(|raw| serde_json::from_str(raw.get()).ok());
        // A signature can come without other members, like one with an empty text.
        let text = text.or_else(|| thought_signature.as_ref().map(|_| "".into()));
        if text.is_none() && function_call.is_none() && inline_data.is_none() && file_data.is_none() {
            return None;
        }
        let call = function_call.map(|AnswerCallIn { id, name, args }| CallIn { id, name, args });
        let function_call = call;
        Some(PartIn { text, thought, thought_signature, inline_data, file_data, function_call, ..PartIn::default() })
    }

    /// Returns the image, audio or file of the part. Images of the reasoning are drafts.
    pub(super) fn media(&self) -> Option<Content<'a>> {
        if self.thought == Some(true) {
            return None;
        }
        if let Some(blob) = self.inline_data.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            return Some(media(blob));
        }
        let file: FileIn<'a> = serde_json::from_str(self.file_data?.get()).ok()?;
        Some(file_content(file))
    }
}

/// Reads a list of parts. The part itself marks reasoning, so the role is not needed.
pub(super) fn read<'a>(
    list: Vec<&'a RawValue>,
    path: &str,
    ids: &mut CallIds,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Error> {
    for (at, raw) in list.into_iter().enumerate() {
        let path = || format!("{path}[{at}]");
        one(typed_at(raw, path)?, &path, ids, parts)?;
    }
    Ok(())
}

/// Reads the parts of a parsed list. `path` is the list's location.
pub(super) fn take<'a>(
    list: Vec<PartIn<'a>>,
    path: &dyn Fn() -> String,
    ids: &mut CallIds,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Error> {
    for (at, part) in list.into_iter().enumerate() {
        one(part, &|| format!("{}[{at}]", path()), ids, parts)?;
    }
    Ok(())
}

/// Reads one part. Most parts are text and need no path, so the path is built only for others and for errors.
fn one<'a>(
    mut part: PartIn<'a>,
    path: &dyn Fn() -> String,
    ids: &mut CallIds,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Error> {
    if let Some(signature) = part.thought_signature.take().filter(|text| !text.is_empty()) {
        let signature = from_gemini(&signature);
        sign(parts, &part, path, signature);
    }
    match content(part, path, ids)? {
        Some(Content::Text(text)) => parts.push(Part::text(text)),
        Some(content) => parts.push(Part::new(path(), content)),
        None => {}
    }
    Ok(())
}

/// Adds a signature to the reasoning before its part.
fn sign<'a>(parts: &mut Vec<Part<'a>>, part: &PartIn<'a>, path: &dyn Fn() -> String, signature: Text<'static>) {
    if part.thought == Some(true) {
        return;
    }
    match parts.last_mut().map(|last| &mut last.content) {
        Some(Content::Thinking { signature: slot @ None, .. }) => *slot = Some(signature),
        _ => match crate::signature::redacted_in(&signature.decode()) {
            Some(data) => parts.push(Part::new(path(), Content::Redacted(data.to_owned().into()))),
            None => {
                parts
                    .push(Part::new(path(), Content::Thinking { text: "".into(), signature: Some(signature.clone()) }));
            }
        },
    }
}

fn content<'a>(part: PartIn<'a>, path: &dyn Fn() -> String, ids: &mut CallIds) -> Result<Option<Content<'a>>, Error> {
    if let Some(call) = part.function_call {
        let id = ids.of_call(call.id, &call.name);
        let arguments = call.args.map_or("{}", RawValue::get);
        if !arguments.starts_with('{') {
            return Err(wrong(&format!("{}.functionCall.args", path()), "must be an object"));
        }
        return Ok(Some(Content::Call(Call { id, name: call.name, arguments: arguments.into() })));
    }
    if let Some(response) = part.function_response {
        return result(response, &path(), ids).map(Some);
    }
    if let Some(blob) = part.inline_data {
        return Ok(Some(media(blob)));
    }
    if let Some(file) = part.file_data {
        let source = Source::Url(file.file_uri);
        return match file.mime_type.as_ref().map(Text::decode).as_deref() {
            Some(kind) if kind.starts_with("image/") => Ok(Some(Content::Image(source))),
            Some("application/pdf") => Ok(Some(Content::Document { source, title: file.display_name })),
            _ => Err(unsupported(&format!("{}.fileData.mimeType", path()))),
        };
    }
    let is_hosted = part.executable_code.is_some()
        || part.code_result.is_some()
        || part.tool_call.is_some()
        || part.tool_response.is_some();
    match part.text {
        None if is_hosted => Ok(None),
        Some(text) if part.thought == Some(true) => Ok(Some(Content::Thinking { text, signature: None })),
        // A part that holds only a signature.
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => Ok(Some(Content::Text(text))),
        None => Err(wrong(&path(), "must have text, data, a call or a result")),
    }
}

/// Reads a file of an answer: an image, or any other file.
fn file_content(file: FileIn<'_>) -> Content<'_> {
    let source = Source::Url(file.file_uri);
    match file.mime_type.as_ref().map(Text::decode).as_deref() {
        Some(kind) if !kind.starts_with("image/") => Content::Document { source, title: file.display_name },
        _ => Content::Image(source),
    }
}

fn media(blob: BlobIn<'_>) -> Content<'_> {
    let media_type = blob.mime_type.decode();
    let data = blob.data.decode();
    if media_type.starts_with("image/") {
        Content::Image(Source::Base64 { media_type, data })
    } else if media_type.starts_with("audio/") {
        Content::Audio { media_type, data }
    } else {
        Content::Document { source: Source::Base64 { media_type, data }, title: blob.display_name }
    }
}

/// Reads a tool result: a single `output` is the result, a single `error` is a failure, and anything else is passed on
/// as JSON.
fn result<'a>(response: ResponseIn<'a>, path: &str, ids: &mut CallIds) -> Result<Content<'a>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ToolResult<'a> {
        #[serde(borrow, default)]
        output: Option<&'a RawValue>,
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    let path = format!("{path}.functionResponse");
    let id = ids.of_result(response.id, &response.name);
    let id = id.ok_or_else(|| wrong(&format!("{path}.name"), "must be that of a call before it"))?;
    let raw = response.response.map_or("{}", RawValue::get);
    let parsed = serde_json::from_str::<ToolResult<'a>>(raw).ok();
    let (output, is_error) = match parsed {
        Some(
            ToolResult { output: Some(output), result: None, error: None }
            | ToolResult { output: None, result: Some(output), error: None },
        ) => (Some(output), false),
        Some(ToolResult { output: None, result: None, error: Some(output) }) => (Some(output), true),
        _ => (None, false),
    };
    let text = match output {
        Some(output) => Text::of(output).unwrap_or(Text::Plain(Cow::Borrowed(output.get()))),
        None => Text::Plain(Cow::Borrowed(raw)),
    };
    let mut parts = vec![Part::new(path.clone(), Content::Text(text))];
    for (at, part) in response.parts.into_iter().enumerate() {
        let path = || format!("{path}.parts[{at}]");
        if let Some(content) = content(part, &path, ids)? {
            parts.push(Part::new(path(), content));
        }
    }
    Ok(Content::Result { id, parts, is_error })
}
