//! The thread that stores captured bodies. It masks and seals each capture and writes it to one file in `spool/bodies`,
//! where control collects it. A file gets its final name when it is complete, so a crash leaves no partial file behind.
//!
//! Masking uses the guardrails' patterns, even if the key or the request disabled guardrails.

use crate::call::guardrails::{data_of, StreamFilter};
use crate::observe::capture::{CaptureQueue, CapturedExchange, KeptBody, Message};
use crate::observe::kept_headers::{HeaderLines, MAX_VALUE_CHARS};
use bytes::Bytes;
use fairlead_core::guardrail::{mask_json, mask_text, GuardedEvent, StreamGuard, Transcript, MASKING};
use fairlead_core::Sealer;
use fairlead_dialect::Pieces;
use rustix::fs::statvfs;
use serde_json::value::RawValue;
use serde_json::{json, Value};
use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The total size of files that control has not collected yet, for all workers together.
const MAX_SPOOLED_BYTES: u64 = 256 * 1024 * 1024;
/// Disk space that is reserved for usage records and the databases.
const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOG_EVERY: Duration = Duration::from_secs(60);
/// With the file's name, the associated data of the sealed content. Control opens it with the same.
const SEALED_AS: &str = "kept-body:";

/// Returns the folder that the thread writes to.
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("spool").join("bodies")
}

/// Starts the worker's thread, which ends after [`CaptureQueue::finish`].
pub fn start(data_dir: &Path, sealer: Sealer, queue: Arc<CaptureQueue>) -> io::Result<Option<JoinHandle<()>>> {
    let Some(receiver) = queue.take_receiver() else { return Ok(None) };
    let folder = folder(data_dir);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let writer = Writer { folder, sealer, queue, looked: None, room_bytes: 0, logged: None };
    std::thread::Builder::new().name("fairlead-bodies".into()).spawn(move || writer.run(&receiver)).map(Some)
}

#[derive(Debug)]
struct Writer {
    folder: PathBuf,
    sealer: Sealer,
    queue: Arc<CaptureQueue>,
    /// The time of the last check of the folder, and the number of bytes that may be written before the next check.
    looked: Option<Instant>,
    room_bytes: u64,
    logged: Option<Instant>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(Message::Kept(one)) = receiver.recv() {
            if let Err(error) = self.write(&one) {
                let lost = self.queue.count_lost();
                if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                    self.logged = Some(Instant::now());
                    tracing::error!(%error, lost, "bodies of requests are not kept");
                }
            }
            self.queue.release(&one);
        }
    }

    fn write(&mut self, one: &CapturedExchange) -> io::Result<()> {
        let subject = &one.subject;
        let key = subject.key_id.as_deref().unwrap_or("-");
        let file = format!("{:013}_{}_{key}.body", subject.ts_ms, subject.request_id);
        // Callers choose ids of requests. The prefix keeps bodies apart from other secrets with the same id.
        let sealed = self.sealer.seal(&format!("{SEALED_AS}{file}"), document(one).to_string().as_bytes());
        let sealed = sealed.map_err(io::Error::other)?;
        self.reserve_capacity(sealed.len() as u64)?;
        let path = self.folder.join(file);
        let new = path.with_extension("new");
        let written = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(&sealed))
            .and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            // Removes a partly written file, for example on a full disk. The removal fails if the file was never
            // created.
            let _gone = fs::remove_file(&new);
        }
        written
    }

    fn reserve_capacity(&mut self, bytes: u64) -> io::Result<()> {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            let free = statvfs(&self.folder)?;
            let free_bytes = free.f_bavail.saturating_mul(free.f_frsize).saturating_sub(MIN_FREE_BYTES);
            self.room_bytes = MAX_SPOOLED_BYTES.saturating_sub(spooled_bytes(&self.folder)?).min(free_bytes);
            self.looked = Some(Instant::now());
        }
        self.room_bytes = self.room_bytes.checked_sub(bytes).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}

fn spooled_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        match entry?.metadata() {
            Ok(file) => bytes += file.len(),
            // Control collected the file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// The sealed content: both bodies in readable form.
fn document(one: &CapturedExchange) -> Value {
    let mut answer = shown(&one.answer, one.is_complete);
    answer["status"] = one.status.into();
    answer["isWhole"] = one.is_complete.into();
    answer["headers"] = masked(&one.answer_headers);
    let mut request = shown(&one.request, true);
    request["headers"] = masked(&one.subject.headers);
    json!({"version": 1, "request": request, "response": answer})
}

fn masked(lines: &HeaderLines) -> Value {
    let masked = |value: &str| mask_text(value, value.chars().count() == MAX_VALUE_CHARS);
    lines.iter().map(|(name, value)| (name.clone(), Value::from(masked(value)))).collect()
}

fn shown(captured: &KeptBody, is_complete: bool) -> Value {
    let kind = captured.content_type.as_ref().and_then(|kind| kind.to_str().ok());
    let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_cut = captured.is_cut();
    let (body, text) = match essence.as_str() {
        "text/event-stream" => events(&captured.bytes, is_cut || !is_complete),
        kind if kind == "application/json" || kind.ends_with("+json") => {
            (Some(json_body(&captured.bytes, is_cut)), None)
        }
        kind if kind.starts_with("text/") => {
            (Some(mask_text(&String::from_utf8_lossy(&captured.bytes), is_cut).into_bytes()), None)
        }
        // Audio and image bodies are not stored.
        _ => (None, None),
    };
    json!({
        "contentType": kind,
        "bytes": captured.total_bytes,
        "isCut": is_cut,
        "body": body.map(|body| String::from_utf8_lossy(&body).into_owned()),
        "text": text,
    })
}

/// Masks the events of a stream and extracts their text. A finding may span several events. In a truncated stream, text
/// at the end that may be the start of a finding is left out.
fn events(bytes: &[u8], is_cut: bool) -> (Option<Vec<u8>>, Option<String>) {
    let end = if is_cut { end_of_events(bytes) } else { bytes.len() };
    let Some(passed) = filtered(&bytes[..end], is_cut) else { return (None, None) };
    let (mut out, mut transcript) = (Vec::with_capacity(passed.len()), Transcript::default());
    let mut at = 0;
    for (start, end) in data_of(&passed) {
        out.extend_from_slice(&passed[at..start]);
        let data = mask_json(&passed[start..end]);
        transcript.read_event(&data);
        out.extend_from_slice(&data);
        at = end;
    }
    out.extend_from_slice(&passed[at..]);
    // The joined text is masked again, because some findings are only visible in it.
    (Some(out), transcript.text().map(|text| mask_text(&text, is_cut)))
}

/// Returns the offset after the last complete event.
fn end_of_events(bytes: &[u8]) -> usize {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"];
    ends.iter().filter_map(|end| memchr::memmem::rfind(bytes, end).map(|at| at + end.len())).max().unwrap_or(0)
}

/// Masks a JSON body. A list may be a streamed response, so a finding may span its elements.
fn json_body(bytes: &[u8], is_cut: bool) -> Vec<u8> {
    if !bytes.trim_ascii_start().starts_with(b"[") {
        return mask_json(bytes);
    }
    let whole = if is_cut { Cow::Owned(complete_elements(bytes)) } else { Cow::Borrowed(bytes) };
    let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&whole) else { return mask_json(&whole) };
    let mut guard = StreamGuard::new(MASKING);
    let mut masked: Vec<Vec<u8>> = Vec::with_capacity(elements.len());
    for element in elements {
        let data = element.get().as_bytes();
        let GuardedEvent { before, event } = guard.event(data);
        masked.extend(before);
        masked.push(event.unwrap_or_else(|| data.to_vec()));
    }
    if !is_cut {
        masked.extend(guard.finish());
    }
    mask_json(&[b"[", masked.join(&b",\n"[..]).as_slice(), b"]"].concat())
}

/// Truncates a list after its last complete element.
fn complete_elements(bytes: &[u8]) -> Vec<u8> {
    let (mut depth, mut end, mut is_text, mut at) = (0_usize, None, false, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if is_text => at += 1,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => {
                depth = depth.saturating_sub(1);
                if depth == 1 {
                    end = Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    let mut whole = end.map_or_else(|| b"[".to_vec(), |end| bytes[..end].to_vec());
    whole.push(b']');
    whole
}

/// Returns the events after masking by the guardrails, or `None` if they cannot be parsed.
fn filtered(bytes: &[u8], is_cut: bool) -> Option<Vec<u8>> {
    let mut filter = StreamFilter::new(MASKING, true)?;
    let mut passed = filter.push(&Pieces::from_iter([Bytes::copy_from_slice(bytes)])).ok()?;
    if !is_cut {
        passed.extend(filter.finish().ok()?);
    }
    Some(passed.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::capture::CaptureSubject;
    use http::HeaderValue;

    fn captured(kind: &'static str, bytes: &[u8], total_bytes: usize) -> KeptBody {
        let content_type = Some(HeaderValue::from_static(kind));
        KeptBody { bytes: bytes.to_vec(), total_bytes: total_bytes as u64, content_type }
    }

    fn chunk(text: &str) -> String {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    }

    #[test]
    fn a_finding_across_events_is_masked_in_the_events_and_in_the_text() {
        let stream = [chunk("mail jo@exam"), chunk("ple.com now"), "data: [DONE]\n\n".to_owned()].concat();
        let one = shown(&captured("text/event-stream", stream.as_bytes(), stream.len()), true);
        assert_eq!(one["text"], "mail [REDACTED:email] now");
        let body = one["body"].as_str().expect("events");
        assert!(!body.contains("jo@") && !body.contains("ple.com") && body.ends_with("data: [DONE]\n\n"));
        for end in 0..stream.len() {
            let cut = shown(&captured("text/event-stream", &stream.as_bytes()[..end], stream.len()), true);
            assert!(!cut.to_string().contains("jo@"), "{end}: {cut}");
        }
    }

    #[test]
    fn a_list_that_grew_is_judged_as_the_stream_that_it_is() {
        let part = |text: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#);
        let list = format!("[{},\n{}]", part("mail jo@exam"), part("ple.com now"));
        let whole = shown(&captured("application/json", list.as_bytes(), list.len()), true).to_string();
        assert!(whole.contains("REDACTED:email") && !whole.contains("jo@"), "{whole}");
        for end in 0..list.len() {
            let cut = shown(&captured("application/json", &list.as_bytes()[..end], list.len()), true).to_string();
            assert!(!cut.contains("jo@"), "{end}: {cut}");
        }
    }

    #[test]
    fn sound_is_not_kept_and_its_size_is() {
        let one = shown(&captured("audio/mpeg", b"ID3", 3), true);
        assert_eq!((one["body"].clone(), one["bytes"].clone()), (Value::Null, json!(3)));
    }

    #[test]
    fn files_are_sealed_for_their_request_and_a_folder_that_takes_none_is_counted() {
        let dir = std::env::temp_dir().join(format!("fairlead-bodies-{}", std::process::id()));
        let sealer = Sealer::new(&[7; 32]).expect("a key");
        let queue = Arc::new(CaptureQueue::default());
        let thread = start(&dir, sealer.clone(), Arc::clone(&queue)).expect("a thread").expect("the first");
        queue.finish();
        thread.join().expect("ended");
        let headers = vec![("x-gateway-session-id".to_owned(), "jo@example.com".to_owned())];
        let subject = CaptureSubject { request_id: "req_1".into(), key_id: Some("k".into()), ts_ms: 5, headers };
        let request = captured("application/json", b"{}", 2);
        let one = CapturedExchange { subject, request, ..CapturedExchange::default() };
        let folder = folder(&dir);
        let mut writer = Writer { folder: folder.clone(), sealer, queue, looked: None, room_bytes: 0, logged: None };
        writer.write(&one).expect("written");
        let sealed = fs::read(folder.join("0000000000005_req_1_k.body")).expect("the file");
        let opened = writer.sealer.open("kept-body:0000000000005_req_1_k.body", &sealed).expect("sealed for it");
        let read: Value = serde_json::from_slice(&opened).expect("JSON");
        assert_eq!((read["request"]["body"].clone(), read["response"]["status"].clone()), (json!("{}"), json!(0)));
        assert_eq!(read["request"]["headers"], json!({"x-gateway-session-id": "[REDACTED:email]"}));
        for other in ["req_1", "kept-body:req_1", "kept-body:0000000000005_req_1_-.body"] {
            assert!(writer.sealer.open(other, &sealed).is_err(), "{other}");
        }
        writer.room_bytes = 1;
        assert_eq!(writer.write(&one).expect_err("full").kind(), io::ErrorKind::StorageFull);
        writer.room_bytes = u64::MAX;
        fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(writer.write(&one).expect_err("no folder").kind(), io::ErrorKind::NotFound);
    }
}
