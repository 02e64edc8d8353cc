//! The golden matrix: complete bodies and streams, and the expected output, stored under `tests/golden`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fairlead_dialect::openai::request;
use fairlead_dialect::openai::stream::{End, Outcome, StreamScan};

/// Request bodies, each with its number of messages.
const REQUESTS: &[(&str, usize)] =
    &[("stream", 1), ("stream-asks-usage", 1), ("stream-declines-usage", 1), ("tools", 3), ("unary", 2)];

/// Streams for a caller who did not request usage, each with its outcome and the output tokens in its usage.
const STREAMS: &[(&str, Outcome, Option<u64>)] = &[
    ("azure", Outcome::Completed, Some(2)),
    ("complete", Outcome::Completed, Some(2)),
    ("in-band-error", Outcome::UpstreamFailed, None),
    ("late-data", Outcome::Completed, Some(2)),
    ("line-ends", Outcome::Completed, Some(2)),
    ("multi-line", Outcome::Completed, Some(2)),
    ("no-done", Outcome::Completed, Some(2)),
    ("no-finish", Outcome::UpstreamFailed, None),
    ("not-json", Outcome::UpstreamFailed, None),
    ("tool-call", Outcome::Completed, Some(2)),
    ("truncated", Outcome::UpstreamFailed, None),
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/openai").join(name)
}

fn read(path: &Path) -> Bytes {
    Bytes::from(fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Returns the names of a folder's inputs without extension.
fn names(folder: &Path, ending: &str, but_not: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"));
    files
        .filter(|file| !file.ends_with(but_not))
        .filter_map(|file| Some(file.strip_suffix(ending)?.to_owned()))
        .collect()
}

#[test]
fn requests_go_upstream_as_recorded() {
    let folder = folder("requests");
    for (name, messages) in REQUESTS {
        let body = read(&folder.join(format!("{name}.json")));
        let expected = read(&folder.join(format!("{name}.upstream.json")));

        let chat = request::read(&body).expect(name);
        let upstream = request::rewrite(&body, &chat, "golden-model").concat();
        assert_eq!(String::from_utf8_lossy(&expected), String::from_utf8_lossy(&upstream), "{name}");
        assert_eq!(("harbour/pilot-large", *messages), (&*chat.model, chat.messages), "{name}");
    }
}

#[test]
fn streams_reach_the_caller_as_recorded_however_they_are_cut() {
    let folder = folder("streams");
    for (name, outcome, output_tokens) in STREAMS {
        let upstream = read(&folder.join(format!("{name}.upstream.sse")));
        let expected = read(&folder.join(format!("{name}.caller.sse")));

        for chunk_bytes in [1, 2, 7, 64, 1000, usize::MAX] {
            let mut scan = StreamScan::new(false);
            let mut caller = Vec::new();
            for chunk in upstream.chunks(chunk_bytes.min(upstream.len())) {
                let passed = scan.push(&upstream.slice_ref(chunk));
                passed.pieces.iter().for_each(|piece| caller.extend_from_slice(piece));
            }
            let closing = scan.finish(End::Clean);
            caller.extend_from_slice(&closing.bytes);

            assert_eq!(String::from_utf8_lossy(&expected), String::from_utf8_lossy(&caller), "{name}, {chunk_bytes}");
            assert_eq!(*outcome, closing.outcome, "{name}");
            assert_eq!(*output_tokens, closing.usage.map(|usage| usage.output), "{name}");
        }
    }
}

#[test]
fn every_file_is_in_the_matrix() {
    let requests: BTreeSet<String> = REQUESTS.iter().map(|row| row.0.to_owned()).collect();
    let streams: BTreeSet<String> = STREAMS.iter().map(|row| row.0.to_owned()).collect();

    assert_eq!(requests, names(&folder("requests"), ".json", ".upstream.json"));
    assert_eq!(streams, names(&folder("streams"), ".upstream.sse", ".caller.sse"));
}
