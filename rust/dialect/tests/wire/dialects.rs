//! The golden matrix of dialects: each input file is in one dialect, with the expected output in the other dialect
//! beside it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p fairlead-dialect --test wire dialects` rewrites the expected files; review the difference.

use fairlead_core::routes::Surface;
use fairlead_core::Dialect;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fairlead_dialect::openai::stream::{End, Outcome};
use fairlead_dialect::stream::Follow;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use fairlead_dialect::{error_body, ErrorText, UrlParams};

/// The request that the answers belong to.
const REQUEST: &[u8] =
    br#"{"model":"harbour/pilot-large","input":"Hello.","temperature":0.5,"metadata":{"berth":"7"}}"#;

fn context_of(pair: Pair) -> AnswerContext {
    let echo = translate::echo(pair, REQUEST);
    AnswerContext {
        created_s: 1_767_225_600,
        requests_usage: true,
        id: "0a1b".to_owned(),
        echo,
        ..AnswerContext::default()
    }
}

fn read_at(
    form: Dialect,
    body: &[u8],
    path: &Path,
) -> Result<fairlead_dialect::openai::request::ChatRequest, fairlead_core::Error> {
    let stream = path.to_string_lossy().contains("stream");
    translate::read_at(form, body, UrlParams { model: "harbour/pilot-large", stream, is_list: false })
}

fn name(form: Dialect) -> &'static str {
    match form {
        Dialect::Openai => "chat",
        Dialect::OpenaiResponses => "responses",
        Dialect::Anthropic => "messages",
        Dialect::Gemini => "gemini",
    }
}

/// Every pair of dialects, with the inputs in its first dialect.
fn cases(kind: &str, ending: &str, side: impl Fn(Pair) -> Dialect) -> Vec<(Pair, PathBuf)> {
    let mut found = Vec::new();
    for &caller in Dialect::ALL {
        for &provider in Dialect::ALL {
            let pair = Pair { caller, provider };
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dialects").join(kind);
            for entry in fs::read_dir(folder.join(name(side(pair)))).expect("the folder is there") {
                let path = entry.expect("readable").path();
                let file = path.file_name().and_then(|file| file.to_str()).expect("UTF-8").to_owned();
                if file.ends_with(ending) && !file.contains(".to-") {
                    found.push((pair, path));
                }
            }
        }
    }
    assert!(found.len() >= 8, "{kind}: only {} cases", found.len());
    found
}

fn read(path: &Path) -> Bytes {
    Bytes::from(fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Compares with the expected file, or writes it.
fn hold(input: &Path, other: Dialect, ending: &str, written: &[u8]) {
    let stem =
        input.file_name().and_then(|file| file.to_str()).and_then(|file| file.split('.').next()).expect("a name");
    let path = input.with_file_name(format!("{stem}.to-{}.{ending}", name(other)));
    let mut written = written.to_vec();
    if ending == "json" {
        written.push(b'\n');
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &written).expect("written");
    }
    assert_eq!(String::from_utf8_lossy(&read(&path)), String::from_utf8_lossy(&written), "{}", path.display());
}

/// The error format for clients of a dialect.
fn surface_of(dialect: Dialect) -> Surface {
    match dialect {
        Dialect::Openai | Dialect::OpenaiResponses => Surface::OpenAi,
        Dialect::Anthropic => Surface::Anthropic,
        Dialect::Gemini => Surface::Gemini,
    }
}

#[test]
fn requests_reach_the_provider_as_recorded() {
    for (pair, path) in cases("requests", ".json", |pair| pair.caller) {
        let body = read(&path);
        let parsed = read_at(pair.caller, &body, &path).expect("a request");
        let sent = translate::request(pair, &body, &parsed, "golden-model");
        if pair.caller == pair.provider {
            let sent = sent.expect("passes").concat();
            let expected = String::from_utf8_lossy(&body).replace("harbour/pilot-large", "golden-model");
            let passed = String::from_utf8_lossy(&sent);
            if passed.starts_with(expected.trim_end().trim_end_matches('}')) {
                continue;
            }
            // Reasoning signed by another vendor is removed even if the body passes through.
            hold(&path, pair.provider, "json", &sent);
            continue;
        }
        let body = match sent {
            Ok(pieces) => {
                let body = pieces.concat();
                assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok(), "{}", path.display());
                body
            }
            Err(error) => error_body(surface_of(pair.caller), &ErrorText::from(&error), "req-1").to_vec(),
        };
        hold(&path, pair.provider, "json", &body);
    }
}

#[test]
fn answers_reach_the_caller_as_recorded() {
    for (pair, path) in cases("answers", ".json", |pair| pair.provider) {
        let body = read(&path);
        let whole =
            translate::answer(pair, &body, &context_of(pair)).unwrap_or_else(|no| panic!("{}: {no:?}", path.display()));
        if pair.caller == pair.provider {
            assert_eq!(whole.body, body);
            continue;
        }
        assert!(serde_json::from_slice::<serde_json::Value>(&whole.body).is_ok(), "{}", path.display());
        hold(&path, pair.caller, "json", &whole.body);
    }
}

#[test]
fn streams_reach_the_caller_as_recorded_however_they_are_cut() {
    for (pair, path) in cases("streams", ".sse", |pair| pair.provider) {
        let upstream = read(&path);
        let mut first: Option<Vec<u8>> = None;
        for chunk_bytes in [usize::MAX, 1, 2, 7, 64, 1000] {
            let mut follow = Follow::new(pair, context_of(pair));
            let mut caller = Vec::new();
            for chunk in upstream.chunks(chunk_bytes.min(upstream.len())) {
                follow.push(&upstream.slice_ref(chunk)).pieces.iter().for_each(|piece| caller.extend_from_slice(piece));
            }
            let closing = follow.finish(End::Clean);
            caller.extend_from_slice(&closing.bytes);
            let broken = path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("broken"));
            let expected = if broken { Outcome::UpstreamFailed } else { Outcome::Completed };
            assert_eq!(expected, closing.outcome, "{}", path.display());
            assert_eq!(1, ends(pair.caller, &caller), "{}: exactly one end", path.display());
            match &first {
                None => first = Some(caller),
                Some(first) => assert_eq!(
                    String::from_utf8_lossy(first),
                    String::from_utf8_lossy(&caller),
                    "{} in chunks of {chunk_bytes}",
                    path.display()
                ),
            }
        }
        let relayed = first.unwrap_or_default();
        if pair.caller == Dialect::OpenaiResponses {
            assert_numbered(
                &relayed,
                pair == Pair { caller: Dialect::OpenaiResponses, provider: Dialect::OpenaiResponses },
            );
        }
        if pair.caller == pair.provider {
            if !path.to_string_lossy().contains("broken") {
                assert!(relayed.starts_with(&upstream) || upstream.starts_with(&relayed), "{}", path.display());
            }
            continue;
        }
        hold(&path, pair.caller, "sse", &relayed);
    }
}

/// Counts the terminal events of the stream.
fn ends(form: Dialect, stream: &[u8]) -> usize {
    let text = String::from_utf8_lossy(stream);
    match form {
        Dialect::Openai => text.matches("data: [DONE]").count(),
        Dialect::Anthropic => text.matches("event: message_stop\n").count() + text.matches("event: error\n").count(),
        Dialect::OpenaiResponses => ["completed", "incomplete", "failed"]
            .iter()
            .map(|end| text.matches(&format!("event: response.{end}\n")).count())
            .chain([text.matches("event: error\n").count()])
            .sum(),
        Dialect::Gemini => ["\"finishReason\":", "\"blockReason\":", "data: {\"error\":"]
            .iter()
            .map(|end| text.matches(end).count())
            .sum(),
    }
}

/// Checks that the events of a responses stream are numbered from 0 without a gap.
fn assert_numbered(stream: &[u8], is_upstreams: bool) {
    let text = String::from_utf8_lossy(stream);
    let numbers: Vec<u64> = text
        .split("\"sequence_number\":")
        .skip(1)
        .map(|rest| rest.split([',', '}']).next().and_then(|digits| digits.parse().ok()).expect("a number"))
        .collect();
    let from = if is_upstreams { numbers.first().copied().unwrap_or(0) } else { 0 };
    assert_eq!(numbers, (from..from + numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_stream_is_a_list_for_a_caller_who_asks_for_no_events() {
    for (pair, path) in cases("streams", ".sse", |pair| pair.provider) {
        if pair.caller != Dialect::Gemini {
            continue;
        }
        let upstream = read(&path);
        let mut follow = Follow::new(pair, AnswerContext { is_list: true, ..context_of(pair) });
        let mut caller = Vec::new();
        for chunk in upstream.chunks(40) {
            follow.push(&upstream.slice_ref(chunk)).pieces.iter().for_each(|piece| caller.extend_from_slice(piece));
            caller.extend_from_slice(&fairlead_dialect::stream::heartbeat(Dialect::Gemini, true));
        }
        caller.extend_from_slice(&follow.finish(End::Clean).bytes);
        let list: Vec<serde_json::Value> = serde_json::from_slice(&caller)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", path.display(), String::from_utf8_lossy(&caller)));
        let last = list.last().expect("an end");
        let is_end = last["candidates"][0]["finishReason"].is_string()
            || last["promptFeedback"]["blockReason"].is_string()
            || last["error"]["code"].is_u64();
        assert!(is_end, "{last}");
    }
}

#[test]
fn a_terminal_event_that_gives_no_reason_ends_an_answer_of_chat_alone() {
    let text = r#"data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#;
    let role = r#"data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let start = r#"data: {"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":1}}}"#;
    let delta = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let stop = r#"data: {"type":"message_stop"}"#;
    for (provider, stream, is_answer) in [
        (Dialect::Openai, format!("{text}\n\ndata: [DONE]\n\n"), true),
        (Dialect::Openai, format!("{text}\n\ndata: [DONE]"), true),
        (Dialect::Openai, format!("{role}\n\ndata: [DONE]\n\n"), false),
        (Dialect::Anthropic, format!("{start}\n\n{delta}\n\n{stop}\n\n"), false),
    ] {
        for &caller in Dialect::ALL {
            let pair = Pair { caller, provider };
            let stream = Bytes::from(stream.clone());
            let mut follow = Follow::new(pair, context_of(pair));
            let mut caller_got = Vec::new();
            follow.push(&stream).pieces.iter().for_each(|piece| caller_got.extend_from_slice(piece));
            let closing = follow.finish(End::Clean);
            caller_got.extend_from_slice(&closing.bytes);
            let caller_got = String::from_utf8(caller_got).expect("text");
            let completed = ["message_stop", "response.completed", "finishReason", "\"finish_reason\":\"stop\""];
            let is_completed = completed.iter().any(|word| caller_got.contains(word));
            assert_eq!(is_completed, is_answer, "{pair:?}: {caller_got}");
            if is_answer {
                assert_eq!(closing.outcome, Outcome::Completed, "{pair:?}: {caller_got}");
                continue;
            }
            assert_eq!(closing.outcome, Outcome::UpstreamFailed, "{pair:?}: {caller_got}");
            let end = match caller {
                Dialect::OpenaiResponses => "event: response.failed",
                Dialect::Anthropic => "event: error",
                Dialect::Openai | Dialect::Gemini => "data: {\"error\":",
            };
            assert_eq!(caller_got.matches(end).count(), 1, "{pair:?}: {caller_got}");
        }
    }
}
