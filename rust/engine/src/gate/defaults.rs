//! The default of `stream` for a request that does not say it: by what its caller takes, and its key's `streamDefaultMode`.

use crate::gate::preferences::Accepts;
use crate::gate::request::Admission;
use bytes::{Bytes, BytesMut};
use fairlead_core::json;
use fairlead_core::routes::Surface;
use fairlead_core::snapshot::StreamDefaultMode;

const STREAM: &[u8] = br#""stream":true"#;

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
