//! Assembles the text of a stream from the pieces in its events.

use super::body::read;
use super::event::{Event, Key, Kind};

/// The most texts of one stream that are stored. Further texts are left out.
const MAX_TEXTS: usize = 256;

/// The text of a stream so far: each text with its key, in the order in which they began.
#[derive(Debug, Default)]
pub struct Transcript {
    texts: Vec<(Key, String)>,
}

impl Transcript {
    /// Adds the JSON data of one event.
    pub fn read_event(&mut self, data: &[u8]) {
        let event = Event::read(data);
        if event.kind() != Kind::Delta {
            return;
        }
        for text in event.texts.iter().filter(|text| event.is_delta(text)) {
            let Some(piece) = read(&data[text.span.clone()]).filter(|piece| !piece.is_empty()) else { continue };
            let key = event.key(text);
            match self.texts.iter().position(|(of, _)| *of == key) {
                Some(at) => self.texts[at].1.push_str(&piece),
                None if self.texts.len() < MAX_TEXTS => self.texts.push((key, piece.into_owned())),
                None => {}
            }
        }
    }

    /// The texts, separated by empty lines; `None` if there are none.
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self.texts.iter().map(|(_, text)| text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_each_dialect_become_one_text() {
        let dialects: [&[&str]; 4] = [
            &[
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
            ],
            &[
                r#"{"type":"message_start","message":{"content":[]}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
            ],
            &[
                r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}"#,
                r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"lo"}"#,
                r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Hello"}"#,
            ],
            &[
                r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"}}]}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"finishReason":"STOP"}]}"#,
            ],
        ];
        for events in dialects {
            let mut transcript = Transcript::default();
            assert_eq!(transcript.text(), None);
            for event in events {
                transcript.read_event(event.as_bytes());
            }
            assert_eq!(transcript.text().as_deref(), Some("Hello"), "{events:?}");
        }
    }
}
