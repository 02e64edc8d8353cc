//! Fuzzes streams of every dialect: nearly valid streams give the same output however they are split.

use crate::answer_context::AnswerContext;
use crate::fuzz;
use crate::openai::stream::End;
use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::stream::Follow;
use crate::translate::Pair;
use bytes::Bytes;
use fairlead_core::Dialect;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use std::path::Path;

/// Events as providers send them, from recorded streams.
fn recorded(form: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dialects/streams").join(form);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| !path.to_string_lossy().contains(".to-"));
    paths.sort();
    let mut events = Vec::new();
    for path in paths {
        let stream = Bytes::from(std::fs::read(path).expect("readable"));
        let mut framer = Framer::new(Limits::default());
        framer.push(&stream, |part| {
            if let Part::Event(event) = part {
                events.push(event.to_vec());
            }
            Verdict::Pass
        });
    }
    events
}

fn any_stream(form: &str) -> impl Strategy<Value = (Bytes, Vec<Index>)> {
    let noise = select(vec![
        &b"\n"[..],
        b"\r",
        b"\r\n",
        b"\n\n",
        b": ping\n\n",
        b"data",
        b"data:",
        b"data: ",
        b"data: {}\n\n",
        b"data: [DONE]\n\n",
        b"data: [DONE]",
        b"event: error\n",
        b"id: 1\n",
        b"retry: 1\n",
        b"\xEF\xBB\xBF",
        b"\xE2\x82",
        b"\xAC",
        b"{",
        b"}",
        b"null",
        b"data: {\"error\":{\"message\":\"no\"}}\n\n",
        b"data: {\"type\":\"error\"}\n\n",
        b"\0",
    ]);
    let piece = prop_oneof![
        8 => select(recorded(form)),
        2 => noise.prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
        // An event of the dialect with one byte changed.
        2 => (select(recorded(form)), any::<Index>(), any::<u8>()).prop_map(|(mut event, at, byte)| {
            let at = at.index(event.len());
            event[at] = byte;
            event
        }),
    ];
    let stream = proptest::collection::vec(piece, 0..16).prop_map(|pieces| Bytes::from(pieces.concat()));
    (stream, proptest::collection::vec(any::<Index>(), 0..12))
}

/// Returns the caller's output and the outcome.
fn streamed(pair: Pair, upstream: &Bytes, cuts: &[usize], is_list: bool) -> (Vec<u8>, String) {
    let context =
        AnswerContext { created_s: 1, requests_usage: true, is_list, id: "id".to_owned(), ..AnswerContext::default() };
    let mut follow = Follow::new(pair, context);
    let (mut caller, mut from) = (Vec::new(), 0);
    for &to in cuts.iter().chain([&upstream.len()]) {
        let passed = follow.push(&upstream.slice(from..to));
        passed.pieces.iter().for_each(|piece| caller.extend_from_slice(piece));
        from = to;
    }
    let closing = follow.finish(End::Clean);
    caller.extend_from_slice(&closing.bytes);
    let end =
        format!("{:?} {:?} {:?}", closing.outcome, closing.usage, closing.upstream_error.map(|error| error.message));
    (caller, end)
}

fn check(form: Dialect, name: &str) {
    fuzz::check(&(any_stream(name), any::<bool>()), |((upstream, cuts), is_list)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(upstream.len() + 1)).collect();
        cuts.sort_unstable();
        for &caller in Dialect::ALL {
            let pair = Pair { caller, provider: form };
            let (whole, end) = streamed(pair, &upstream, &[], is_list);
            let (cut, cut_end) = streamed(pair, &upstream, &cuts, is_list);
            prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&cut), "for {:?}", caller);
            prop_assert_eq!(end, cut_end, "for {:?}", caller);
        }
        Ok(())
    });
}

#[test]
fn fuzz_stream_chat() {
    check(Dialect::Openai, "chat");
}

#[test]
fn fuzz_stream_responses() {
    check(Dialect::OpenaiResponses, "responses");
}

#[test]
fn fuzz_stream_messages() {
    check(Dialect::Anthropic, "messages");
}

#[test]
fn fuzz_stream_gemini() {
    check(Dialect::Gemini, "gemini");
}

/// Splits a complete stream line by line, as the specification describes it.
fn plain_reading(stream: &[u8]) -> Vec<Vec<u8>> {
    let text = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut events = Vec::new();
    let mut data: Option<Vec<u8>> = None;
    let mut rest = text;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = &rest[..end];
        rest = &rest[end + 1 + usize::from(rest[end..].starts_with(b"\r\n"))..];
        if line.is_empty() {
            events.extend(data.take());
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                None => data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            }
        }
    }
    events
}

#[test]
fn fuzz_sse() {
    fuzz::check(&any_stream("chat"), |(stream, cuts)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let mut framer = Framer::new(Limits { held_bytes: 1 << 20, event_bytes: 1 << 20 });
        let (mut found, mut passed, mut from) = (Vec::new(), Vec::new(), 0);
        for to in cuts {
            let (pieces, _) = framer.push(&stream.slice(from..to), |part| {
                if let Part::Event(event) = part {
                    found.extend(data_of(event).map(std::borrow::Cow::into_owned));
                }
                Verdict::Pass
            });
            pieces.iter().for_each(|piece| passed.extend_from_slice(piece));
            from = to;
        }
        let rest = framer.close();
        if rest.is_complete {
            found.extend(data_of(&rest.bytes).map(std::borrow::Cow::into_owned));
        }
        prop_assert_eq!(found, plain_reading(&stream));
        passed.extend_from_slice(&rest.bytes);
        let without_mark = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&stream);
        prop_assert!(passed == *stream || passed == without_mark, "no byte is lost and none comes twice");
        Ok(())
    });
}
