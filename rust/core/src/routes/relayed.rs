//! Calls that are passed on to a provider with only their model changed.

/// Calls that are passed on to a provider with only their model changed. What each needs and how its answer is read stands in the
/// engine, in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    Embeddings,
    /// Google's words for them: one text, and many.
    EmbedContent,
    BatchEmbedContents,
    /// A conversation made into fewer items, in the words of OpenAI's responses.
    Compact,
    /// Which of some labels a text has.
    Classify,
    Music,
    Images,
    ImageEdits,
    Moderations,
    Rerank,
    Ocr,
    Speech,
    Transcriptions,
    Translations,
}

impl Relayed {
    /// Whether the call is a form with files rather than JSON.
    pub const fn is_form(self) -> bool {
        matches!(self, Self::ImageEdits | Self::Transcriptions | Self::Translations)
    }
}
