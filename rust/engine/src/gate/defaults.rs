//! What a request means that does not say `stream`: by what its caller takes, and its key's `streamDefaultMode`.

use crate::gate::admission::Admission;
use bytes::{Bytes, BytesMut};
use fairlead_core::json;
use fairlead_core::routes::Surface;
use fairlead_core::snapshot::StreamDefaultMode;

const STREAM: &[u8] = br#""stream":true"#;

/// Whether `Accept` names `text/event-stream`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accepts {
    #[default]
    No,
    /// Beside other things.
    Among,
    Only,
}

impl Accepts {
    pub fn read(accept: Option<&[u8]>) -> Self {
        let named = accept.unwrap_or_default().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let (mut is_named, mut others) = (false, false);
        for one in named.filter(|one| !one.is_empty()) {
            let essence = one.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            if essence.eq_ignore_ascii_case(b"text/event-stream") {
                is_named = true;
            } else {
                others = true;
            }
        }
        match (is_named, others) {
            (false, _) => Self::No,
            (true, true) => Self::Among,
            (true, false) => Self::Only,
        }
    }
}

/// The body with `stream` in it, where it says nothing of that and the caller wants a stream.
pub fn with_stream(admission: &Admission, body: &Bytes) -> Option<Bytes> {
    let mode = admission.principal.key().map_or(StreamDefaultMode::Legacy, |key| key.stream_default_mode);
    let wants = match admission.accepts_events {
        Accepts::No => false,
        Accepts::Among => mode == StreamDefaultMode::Legacy,
        Accepts::Only => true,
    };
    if !wants || !matches!(admission.route.surface, Surface::OpenAi | Surface::Anthropic) {
        return None;
    }
    add_stream(body)
}

fn add_stream(body: &Bytes) -> Option<Bytes> {
    // What cannot be read is told as such by whoever reads it next.
    let scan = json::scan_object(body, &["stream"], json::MAX_DEPTH).ok()?;
    if scan.get("stream").is_some() {
        return None;
    }
    let brace = body.iter().position(|&byte| byte == b'{')?;
    let rest = &body[brace + 1..];
    let is_empty = rest.trim_ascii_start().first() == Some(&b'}');
    let mut streamed = BytesMut::with_capacity(body.len() + STREAM.len() + 1);
    streamed.extend_from_slice(&body[..=brace]);
    streamed.extend_from_slice(STREAM);
    if !is_empty {
        streamed.extend_from_slice(b",");
    }
    streamed.extend_from_slice(rest);
    Some(streamed.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_is_read_as_a_list() {
        for (accept, expected) in [
            ("", Accepts::No),
            ("*/*", Accepts::No),
            ("application/json", Accepts::No),
            ("text/event-stream", Accepts::Only),
            (" Text/Event-Stream;q=0.9 ,", Accepts::Only),
            ("application/json, text/event-stream", Accepts::Among),
            ("text/event-streams", Accepts::No),
        ] {
            assert_eq!(Accepts::read(Some(accept.as_bytes())), expected, "{accept}");
        }
        assert_eq!(Accepts::read(None), Accepts::No);
    }

    #[test]
    fn stream_is_put_in_once() {
        let added = |body: &'static str| {
            add_stream(&Bytes::from_static(body.as_bytes())).map(|body| String::from_utf8(body.to_vec()).expect("text"))
        };
        assert_eq!(added(r#" {"model":"m"}"#).as_deref(), Some(r#" {"stream":true,"model":"m"}"#));
        assert_eq!(added("{ }").as_deref(), Some(r#"{"stream":true }"#));
        for said in [r#"{"stream":false}"#, r#"{"stream":null}"#, r#"{"a":1,"stream":true}"#, "[]", "{"] {
            assert_eq!(added(said), None, "{said}");
        }
    }
}
