//! A cached answer: its metadata, and its bytes as the caller received them.

use crate::key::{Digest, Question};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Larger answers are not stored.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A clock that was set back by less than this is an ordinary correction. After a larger step, earlier entries are not
/// used.
const CLOCK_SLACK_MS: u64 = 60_000;

/// How the answer was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    Plain,
    /// A stream. `requests_usage` means that its caller requested the usage chunk.
    Stream {
        requests_usage: bool,
    },
}

/// The metadata of a cached answer: everything but its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub key: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<StoredQuestion>,
    /// The API key that made the request, if there was one.
    pub key_id: Option<String>,
    pub route: String,
    /// The model name that the caller used.
    pub model: String,
    pub provider: String,
    pub upstream_model: Option<String>,
    pub strategy: String,
    pub delivery: Delivery,
    pub tokens_input: u64,
    pub tokens_output: u64,
    /// Pico-dollars.
    pub cost_picos: u64,
    pub created_ms: u64,
    pub expires_ms: u64,
}

/// The last user turn, for the semantic comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredQuestion {
    pub partition: Digest,
    pub text: String,
}

impl From<Question> for StoredQuestion {
    fn from(Question { partition, text }: Question) -> Self {
        Self { partition, text }
    }
}

/// A cached answer.
#[derive(Debug, Clone)]
pub struct CachedAnswer {
    pub meta: Arc<Meta>,
    pub body: Bytes,
}

impl Meta {
    /// Whether the answer may be returned at this time.
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms < self.expires_ms && self.created_ms <= now_ms.saturating_add(CLOCK_SLACK_MS)
    }

    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [self.key_id.as_ref(), Some(&self.route), Some(&self.model), Some(&self.provider)];
        let texts = texts.into_iter().chain([self.upstream_model.as_ref(), Some(&self.strategy)]).flatten();
        // In addition to the text: its vector, its form, and its index entries.
        let question = self.question.as_ref().map_or(0, |question| question.text.len() + 1024);
        size_of::<Self>() + texts.map(String::len).sum::<usize>() + question + 256
    }
}

impl CachedAnswer {
    /// The stored form: the length of the metadata, the metadata, the body.
    pub(crate) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let meta = serde_json::to_vec(&*self.meta)?;
        let mut out = Vec::with_capacity(4 + meta.len() + self.body.len());
        out.extend_from_slice(&(meta.len() as u32).to_le_bytes());
        out.extend_from_slice(&meta);
        out.extend_from_slice(&self.body);
        Ok(out)
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let bytes = Bytes::from(bytes);
        let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let end = length.checked_add(4)?;
        let meta = serde_json::from_slice(bytes.get(4..end)?).ok()?;
        Some(Self { meta: Arc::new(meta), body: bytes.slice(end..) })
    }
}
