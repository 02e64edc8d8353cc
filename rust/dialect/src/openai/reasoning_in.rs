//! Reads reasoning of earlier turns from a chat request, in the members that vendors and gateways use for signatures.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{typed, Content, Part};
use crate::text::Text;

#[derive(Deserialize)]
pub(super) struct ThinkingBlock<'a> {
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Text<'a>>,
}

/// Reads `reasoning_details`, OpenRouter's format for signed reasoning.
pub(super) fn reasoning_details<'a>(value: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, Error> {
    #[derive(Deserialize)]
    struct DetailIn<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
        #[serde(borrow, default)]
        text: Option<Text<'a>>,
        #[serde(borrow, default)]
        signature: Option<Text<'a>>,
        #[serde(borrow, default)]
        data: Option<Text<'a>>,
        #[serde(borrow, default)]
        format: Option<Cow<'a, str>>,
    }
    let list: Vec<DetailIn<'a>> = typed(value, path)?;
    let part = |detail: DetailIn<'a>| {
        let is_anthropics = detail.format.is_some_and(|format| format.starts_with("anthropic"));
        match (&*detail.r#type, detail.data) {
            ("reasoning.text", _) => {
                let signature = detail.signature.filter(|_| is_anthropics);
                Some(Content::Thinking { text: detail.text.unwrap_or_else(|| "".into()), signature })
            }
            ("reasoning.encrypted", Some(data)) if is_anthropics => Some(Content::Redacted(data)),
            _ => None,
        }
    };
    Ok(list.into_iter().filter_map(part).map(|content| Part::new(path, content)).collect())
}

/// Reads `thinking_blocks`, the format of several gateways for signed reasoning.
pub(super) fn thinking_blocks<'a>(value: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, Error> {
    let list: Vec<ThinkingBlock<'a>> = typed(value, path)?;
    let part = |block: ThinkingBlock<'a>| match block.data {
        Some(data) => Content::Redacted(data),
        None => Content::Thinking { text: block.thinking.unwrap_or_else(|| "".into()), signature: block.signature },
    };
    Ok(list.into_iter().map(|block| Part::new(path, part(block))).collect())
}
