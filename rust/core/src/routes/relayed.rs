//! Calls that are forwarded to a provider with only the model changed.

/// A call that is forwarded to a provider with only the model changed. One table in the engine lists what each needs
/// and how its answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    Embeddings,
    /// Google's embedding calls, for one text and for several.
    EmbedContent,
    BatchEmbedContents,
    /// Compacts a conversation into fewer items, in the OpenAI Responses dialect.
    Compact,
    /// Chooses among labels for a text.
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
    /// Whether the body is a form with files, and not JSON.
    pub const fn is_form(self) -> bool {
        matches!(self, Self::ImageEdits | Self::Transcriptions | Self::Translations)
    }
}
