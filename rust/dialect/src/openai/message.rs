//! Parses the message of a chat answer as providers write it, complete or in pieces: the content, which is a text or a
//! list of parts, and the tool calls. Unknown members are ignored.

use std::borrow::Cow;

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::media::chat_image;
use crate::model::Content;
use crate::text::{if_text, Text};

/// The content of a message.
pub(super) enum ContentIn<'a> {
    Text(Text<'a>),
    /// The relevant parts of a list.
    Parts(Vec<Content<'a>>),
}

/// A call or a piece of one.
#[derive(Deserialize)]
pub(super) struct CallIn<'a> {
    #[serde(default, deserialize_with = "if_number")]
    pub(super) index: Option<u32>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionIn<'a>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionIn<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Deserializes the index of a choice or call. Any other type counts as absent.
pub(super) fn if_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|raw| raw.get().parse().ok())
}

/// The first element of a list. The rest is skipped, and null is an empty list.
pub(super) struct First<T>(pub(super) Option<T>);

impl<'a> ContentIn<'a> {
    pub(super) fn for_each(self, mut take: impl FnMut(Content<'a>)) {
        match self {
            Self::Text(text) => take(Content::Text(text)),
            Self::Parts(parts) => parts.into_iter().for_each(take),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentIn<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'a RawValue>::deserialize(deserializer)?;
        match Text::of(raw) {
            Some(text) => Ok(Self::Text(text)),
            None => parts(raw).map(Self::Parts).map_err(D::Error::custom),
        }
    }
}

/// Reads an element of a list, which can be a plain text.
fn part(raw: &RawValue) -> serde_json::Result<Option<Content<'_>>> {
    #[derive(Deserialize)]
    struct PartIn<'a> {
        #[serde(borrow, default)]
        r#type: Option<Cow<'a, str>>,
        #[serde(borrow, default, deserialize_with = "if_text")]
        text: Option<Text<'a>>,
        #[serde(borrow, default, deserialize_with = "if_text")]
        refusal: Option<Text<'a>>,
        /// A text, or a list of parts.
        #[serde(borrow, default)]
        thinking: Option<&'a RawValue>,
    }
    if let Some(text) = Text::of(raw) {
        return Ok(Some(Content::Text(text)));
    }
    let part: PartIn<'_> = serde_json::from_str(raw.get())?;
    Ok(match part.r#type.as_deref() {
        None | Some("text" | "output_text") => part.text.map(Content::Text),
        Some("refusal") => part.refusal.map(Content::Refusal),
        Some("thinking") => match part.thinking {
            Some(thinking) => Some(Content::Thinking { text: joined(thinking)?, signature: None }),
            None => None,
        },
        Some("image_url" | "output_image") => chat_image(raw),
        // References and other kinds that the other dialects cannot express.
        Some(_) => None,
    })
}

fn parts(raw: &RawValue) -> serde_json::Result<Vec<Content<'_>>> {
    let list: Vec<&RawValue> = serde_json::from_str(raw.get())?;
    list.into_iter().filter_map(|raw| part(raw).transpose()).collect()
}

/// Joins the texts of a content.
fn joined(raw: &RawValue) -> serde_json::Result<Text<'_>> {
    #[derive(Deserialize)]
    struct TextIn<'a> {
        #[serde(borrow, default, deserialize_with = "if_text")]
        text: Option<Text<'a>>,
    }
    if let Some(text) = Text::of(raw) {
        return Ok(text);
    }
    let list: Vec<TextIn<'_>> = serde_json::from_str(raw.get())?;
    let texts: Vec<Cow<'_, str>> = list.iter().filter_map(|part| part.text.as_ref()).map(Text::decode).collect();
    Ok(texts.concat().into())
}

impl<'a> FunctionIn<'a> {
    /// Returns the arguments. Some providers write a JSON value instead of JSON in a string.
    pub(super) fn arguments(&self) -> Option<Text<'a>> {
        self.arguments.map(Text::of_json)
    }
}

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Walk<T> {
            type Value = First<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T>, A::Error> {
                let first = seq.next_element()?;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(Walk(std::marker::PhantomData))
    }
}
