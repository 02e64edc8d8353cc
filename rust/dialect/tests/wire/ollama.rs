//! The golden files of Ollama's dialect: requests as chat completions, and chat answers and streams in Ollama's format.
//!
//! `UPDATE_GOLDEN=1 cargo test -p fairlead-dialect --test wire ollama` rewrites the expected files; review the difference.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fairlead_core::routes::Surface;
use fairlead_dialect::ollama::{self, AnswerForm, AnswerTime, Lines, OllamaCall};
use fairlead_dialect::{error_body, ErrorText};
use serde_json::Value;

/// The files of a folder with this extension that no test has written.
fn inputs(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dialects").join(folder);
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with(ending) && !name.contains(".to-")
    });
    paths.sort();
    assert!(paths.len() >= 4, "{} files", paths.len());
    paths
}

fn stem(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    name.split('.').next().expect("a name").to_owned()
}

fn read(path: &Path) -> Bytes {
    Bytes::from(fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Compares with the expected file, or writes it.
fn hold(input: &Path, ending: &str, written: &[u8]) {
    let path = input.with_file_name(format!("{}.{ending}", stem(input)));
    let mut written = written.to_vec();
    if !written.ends_with(b"\n") {
        written.push(b'\n');
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &written).expect("written");
    }
    assert_eq!(String::from_utf8_lossy(&read(&path)), String::from_utf8_lossy(&written), "{}", path.display());
}

fn form(call: OllamaCall) -> AnswerForm {
    AnswerForm { call, model: "harbour/pilot-large".to_owned(), shows_thinking: true }
}

fn time(since_start_ns: u64) -> AnswerTime {
    AnswerTime { unix_ms: 1_767_225_600_000, since_start_ns, until_first_ns: Some(1_000) }
}

#[test]
fn requests_become_chat_completions_as_recorded() {
    for path in inputs("requests/ollama", ".json") {
        let call = if stem(&path).starts_with("generate") { OllamaCall::Generate } else { OllamaCall::Chat };
        let chat = match ollama::read(call, &read(&path), |name| name == "harbour/pilot-large") {
            Ok(request) => {
                assert_eq!(request.load.is_some(), stem(&path).contains("load"), "{}", path.display());
                let chat: Value = serde_json::from_slice(&request.chat).expect("JSON");
                assert_eq!(request.stream, chat["stream"] == true, "{}", path.display());
                request.chat
            }
            Err(error) => {
                assert!(error.param.is_some(), "{}: the member is named", path.display());
                error_body(Surface::Ollama, &ErrorText::from(&error), "")
            }
        };
        hold(&path, "to-chat.json", &chat);
    }
}

#[test]
fn answers_reach_the_caller_as_recorded() {
    for path in inputs("answers/chat", ".json") {
        let answer = ollama::answer(&form(OllamaCall::Chat), &read(&path), time(5_000)).expect("an answer");
        assert!(serde_json::from_slice::<Value>(&answer).is_ok(), "{}", path.display());
        hold(&path, "to-ollama.json", &answer);
    }
    let plain = inputs("answers/chat", ".json").into_iter().find(|path| stem(path) == "plain").expect("plain");
    let answer = ollama::answer(&form(OllamaCall::Generate), &read(&plain), time(5_000)).expect("an answer");
    hold(&plain, "to-ollama-generate.json", &answer);
}

#[test]
fn streams_reach_the_caller_as_recorded_however_they_are_cut() {
    for path in inputs("streams/chat", ".sse") {
        let stream = read(&path);
        let mut first: Option<Vec<u8>> = None;
        for chunk_bytes in [usize::MAX, 1, 2, 7, 64, 1000] {
            let mut lines = Lines::new(form(OllamaCall::Chat));
            let mut caller = Vec::new();
            for chunk in stream.chunks(chunk_bytes.min(stream.len())) {
                caller.extend_from_slice(&lines.push(&stream.slice_ref(chunk), time(5_000)));
            }
            caller.extend_from_slice(&lines.finish(time(5_000)));
            let whole = first.get_or_insert_with(|| caller.clone());
            assert_eq!(*whole, caller, "{} in chunks of {chunk_bytes}", path.display());
        }
        let relayed = first.unwrap_or_default();
        let lines: Vec<Value> = relayed
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).expect("each line is JSON"))
            .collect();
        let is_end = |line: &&Value| line["done"] == true || line["error"].is_string();
        assert_eq!(lines.iter().filter(is_end).count(), 1, "{}: exactly one end", path.display());
        assert!(lines.last().is_some_and(|last| is_end(&last)), "{}: and last", path.display());
        hold(&path, "to-ollama.ndjson", &relayed);
    }
}

#[test]
fn a_caller_that_waits_is_told_lines_that_say_nothing() {
    let mut lines = Lines::new(form(OllamaCall::Generate));
    let written = lines.push(&Bytes::from_static(b": keep-alive\n\n"), time(1));
    let line: Value = serde_json::from_slice(&written).expect("a line");
    assert_eq!((&line["response"], &line["done"]), (&"".into(), &false.into()));
}
