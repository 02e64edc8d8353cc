//! Finds pictures inside the text of a tool's result. Clients send the content of an MCP result, or a list of parts, as
//! JSON in one text. A model cannot see a picture there, and its bytes count as text.

use memchr::memmem;
use serde_json::Value;

use crate::model::{Content, Part, Request, Source};
use crate::openai::part::inline_source;
use crate::text::Text;

/// Replaces each such text by its parts.
pub(crate) fn find(request: &mut Request<'_>) {
    for part in request.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        let Content::Result { parts, is_error, .. } = &mut part.content else { continue };
        let [Part { content: Content::Text(text), .. }] = parts.as_slice() else { continue };
        let Some((contents, has_failed)) = may_have_picture(text).then(|| read(&text.decode())).flatten() else {
            continue;
        };
        *is_error = *is_error || has_failed;
        // Each part has the path of the result.
        *parts = contents.into_iter().map(|content| Part::new(part.path.clone(), content)).collect();
    }
}

/// A quick check that rules out nearly every text.
fn may_have_picture(text: &Text<'_>) -> bool {
    let inner = match text {
        Text::Token(token) => token.get(1..).unwrap_or_default(),
        Text::Plain(plain) => plain,
    };
    inner.starts_with(['[', '{']) && memmem::find(inner.as_bytes(), b"image").is_some()
}

/// Returns the parts of a text with at least one picture, and whether they report a failure.
fn read(text: &str) -> Option<(Vec<Content<'static>>, bool)> {
    let mut has_failed = false;
    let (list, rest) = match serde_json::from_str(text).ok()? {
        Value::Array(list) => (list, None),
        Value::Object(mut members) => match members.remove("content") {
            Some(Value::Array(list)) => {
                has_failed = members.remove("isError") == Some(Value::Bool(true));
                (list, (!members.is_empty()).then_some(Value::Object(members)))
            }
            Some(content) => {
                members.insert("content".to_owned(), content);
                (vec![Value::Object(members)], None)
            }
            None => (vec![Value::Object(members)], None),
        },
        _ => return None,
    };
    let contents: Vec<Content<'static>> = list.into_iter().chain(rest).map(content).collect();
    contents.iter().any(|content| matches!(content, Content::Image(_))).then_some((contents, has_failed))
}

/// Returns the content of an element. An unknown element stays JSON.
fn content(mut element: Value) -> Content<'static> {
    let of_type =
        |element: &Value, wanted: &[&str]| element["type"].as_str().is_some_and(|kind| wanted.contains(&kind));
    if of_type(&element, &["text", "input_text", "output_text"]) {
        if let Value::String(text) = element["text"].take() {
            return Content::Text(text.into());
        }
    }
    match picture(&element) {
        Some(source) => Content::Image(source),
        None => Content::Text(element.to_string().into()),
    }
}

/// Returns the inline picture of an element: of MCP, of messages, of chat or of responses.
fn picture(element: &Value) -> Option<Source<'static>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (media_type, data) = match element["type"].as_str()? {
        "image" if element["source"].is_object() => {
            let source = &element["source"];
            (text(&source["media_type"])?, text(&source["data"])?)
        }
        "image" => (text(&element["mimeType"])?, text(&element["data"])?),
        "input_image" | "image_url" => {
            let url = &element["image_url"];
            let url = text(url).or_else(|| text(&url["url"]))?;
            match inline_source(url.into(), "image_url").ok()? {
                Source::Base64 { media_type, data } => (media_type.into_owned(), data.into_owned()),
                Source::Url(_) => return None,
            }
        }
        _ => return None,
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_picture = media_type.starts_with("image/") && !data.is_empty() && data.bytes().all(is_base64);
    is_picture.then_some(Source::Base64 { media_type: media_type.into(), data: data.into() })
}
