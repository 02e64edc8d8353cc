//! Encoding of the notices that workers publish to each other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The longest notice of this version is shorter than this.
const MAX_NOTICE_BYTES: usize = 2 * 1024 * 1024;

#[derive(Serialize)]
struct Notice<'a, T> {
    worker: &'a str,
    #[serde(flatten)]
    words: &'a T,
}

#[derive(Deserialize)]
struct Sender<'a> {
    #[serde(borrow)]
    worker: Cow<'a, str>,
}

/// Encodes a notice of this worker.
pub(super) fn write<T: Serialize>(worker: &str, words: &T) -> Option<Vec<u8>> {
    serde_json::to_vec(&Notice { worker, words }).ok()
}

/// Decodes a notice of another worker. Returns `None` for this worker's own notices, for a payload over the size limit,
/// and for a payload that this version cannot parse.
pub(super) fn read<T: DeserializeOwned>(worker: &str, payload: &[u8]) -> Option<T> {
    if payload.len() > MAX_NOTICE_BYTES {
        return None;
    }
    let sender = serde_json::from_slice::<Sender<'_>>(payload);
    if sender.as_ref().is_ok_and(|sender| sender.worker == worker) {
        return None;
    }
    let words = sender.and_then(|_| serde_json::from_slice(payload));
    if words.is_err() {
        tracing::debug!("another worker says what this version does not know");
    }
    words.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Word {
        word: String,
    }

    #[test]
    fn only_what_others_say_is_heard() {
        let notice = write("a", &Word { word: "w".repeat(100) }).expect("a notice");
        let length = |worker: &str, payload: &[u8]| read::<Word>(worker, payload).map(|one| one.word.len());
        assert_eq!((length("b", &notice), length("a", &notice)), (Some(100), None));
        assert_eq!(length("b", br#"{"word": "nobody says it"}"#), None);
        assert_eq!(length("b", br#"{"worker": "a"}"#), None);
        let longest = write("a", &Word { word: "w".repeat(MAX_NOTICE_BYTES) }).expect("a notice");
        assert_eq!(length("b", &longest), None);
    }
}
