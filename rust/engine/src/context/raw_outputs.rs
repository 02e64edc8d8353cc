//! The original outputs of commands that a filter shortened. Each is stored in a sealed file without credentials and
//! personal data, with limits on size and age. Control reads a file for the key that sent it. Files are written on
//! blocking threads. The same output in the next turn is the same file.

use crate::blocking;
use crate::task;
use fairlead_context::RawOutput;
use fairlead_core::guardrail::{judge_text, Action, Actions};
use fairlead_core::{RawOutputs as Settings, Sealer, SecretHash};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Longer outputs are truncated to their beginning.
const MOST_OUTPUT_BYTES: usize = 1024 * 1024;
const MOST_FILES: usize = 20_000;
const SWEEP_EVERY_MS: u64 = 60_000;
/// The share of the limit that remains after a sweep, so that the next outputs do not need a sweep each.
const LEFT_OF_FULL: f64 = 0.75;
/// Findings of these kinds in an output are replaced by the name of their kind.
const REDACTED: Actions =
    Actions { pii_masker: Action::Redact, prompt_injection: Action::Off, credential_masker: Action::Redact };

/// The folder in a data directory, shared by all workers.
#[derive(Debug)]
pub struct RawOutputs {
    dir: PathBuf,
    sealer: Sealer,
    /// The size of the folder, as far as this worker knows.
    bytes: AtomicU64,
    swept_ms: AtomicU64,
    written: AtomicU64,
}

impl RawOutputs {
    pub fn new(data_dir: &Path, sealer: Sealer) -> Self {
        let zero = || AtomicU64::new(0);
        Self { dir: data_dir.join("raw-outputs"), sealer, bytes: zero(), swept_ms: zero(), written: zero() }
    }

    /// Stores outputs of a key. Requires a runtime. If the disk is too busy, the outputs are dropped and this is
    /// logged.
    pub fn keep(self: &Arc<Self>, key_id: String, outputs: Vec<RawOutput>, settings: Settings) {
        if outputs.is_empty() {
            return;
        }
        let own = Arc::clone(self);
        let work = blocking::disk(move || own.write_all(&key_id, &outputs, settings));
        let _unheard = task::spawn(async move {
            match work.await {
                Ok(Ok(())) => {}
                Ok(Err(reason)) | Err(reason) => tracing::warn!(%reason, "outputs of commands were not kept"),
            }
        });
    }

    /// Deletes files that are too old or exceed the limits, about once a minute.
    pub fn sweep_in_time(self: &Arc<Self>, settings: Settings, now_ms: u64) {
        let swept_ms = self.swept_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(swept_ms) < SWEEP_EVERY_MS {
            return;
        }
        self.swept_ms.store(now_ms, Ordering::Relaxed);
        let own = Arc::clone(self);
        let work = blocking::disk(move || own.sweep(settings));
        let _unheard = task::spawn(async move {
            if let Ok(Err(reason)) | Err(reason) = work.await {
                tracing::warn!(%reason, "outputs of commands that are too old cannot be deleted");
            }
        });
    }

    fn write_all(&self, key_id: &str, outputs: &[RawOutput], settings: Settings) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        for output in outputs {
            self.write(key_id, output)?;
        }
        if self.bytes.load(Ordering::Relaxed) > settings.limit_bytes {
            self.sweep(settings)?;
        }
        Ok(())
    }

    fn write(&self, key_id: &str, output: &RawOutput) -> io::Result<()> {
        let path = self.dir.join(file_name(key_id, &output.id));
        match File::options().write(true).open(&path) {
            // The age counts from the last turn that sent the output.
            Ok(there) => return there.set_modified(SystemTime::now()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let sealed = self.sealer.seal(&sealed_as(key_id, &output.id), &document(output)).map_err(io::Error::other)?;
        // Another worker may write the same output, so the temporary name is unique.
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let part = self.dir.join(format!("{}-{number}.part", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&sealed)?;
        fs::rename(&part, &path)?;
        self.bytes.fetch_add(sealed.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sweep(&self, settings: Settings) -> io::Result<()> {
        let listed = match fs::read_dir(&self.dir) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in listed {
            let entry = entry?;
            // Another worker may have deleted it in the meantime.
            let Ok(meta) = entry.metadata() else { continue };
            files.push((meta.modified()?, meta.len(), entry.path()));
        }
        files.sort_unstable();
        let oldest = SystemTime::now() - Duration::from_secs(settings.hours * 3_600);
        let (mut bytes, mut count) = (files.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), files.len());
        let is_full = bytes > settings.limit_bytes || count > MOST_FILES;
        let share = if is_full { LEFT_OF_FULL } else { 1.0 };
        let (most_bytes, most_files) = (settings.limit_bytes as f64 * share, MOST_FILES as f64 * share);
        for (modified, size, path) in files {
            if modified >= oldest && bytes as f64 <= most_bytes && count as f64 <= most_files {
                break;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (bytes, count) = (bytes - size, count - 1),
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// The file name of a key's output. Control derives the same name from the key in its request.
fn file_name(key_id: &str, id: &str) -> String {
    SecretHash::of(format!("{key_id}\n{id}").as_bytes()).to_hex()
}

/// The purpose of the seal, which includes the owner: a file of another caller cannot be opened.
fn sealed_as(key_id: &str, id: &str) -> String {
    format!("raw-output:{key_id}:{id}")
}

/// The plain text of the file: a line of JSON about the output, then the output.
fn document(output: &RawOutput) -> Vec<u8> {
    let (text, is_cut) = match output.text.char_indices().find(|(at, char)| at + char.len_utf8() > MOST_OUTPUT_BYTES) {
        Some((end, _)) => (&output.text[..end], true),
        None => (output.text.as_str(), false),
    };
    let (judged, command) = (judge_text(text, REDACTED), judge_text(&output.command, REDACTED));
    let found = judged.findings.iter().chain(&command.findings).map(|finding| finding.kind);
    let mut redacted: Vec<&str> = found.collect();
    redacted.sort_unstable();
    redacted.dedup();
    let command = command.redacted.as_deref().unwrap_or(&output.command);
    let head = json!({"command": command, "bytes": output.text.len(), "isCut": is_cut, "redacted": redacted});
    format!("{head}\n{}", judged.redacted.as_deref().unwrap_or(text)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn output(id: &str, text: &str) -> RawOutput {
        RawOutput { id: id.into(), command: "cat .env".into(), text: text.into() }
    }

    fn outputs_of(limit_bytes: u64) -> (RawOutputs, Settings) {
        let shared = testing::shared("raw-outputs");
        let dir = shared.config.data_dir.join(format!("raw-{}", shared.next_id()));
        (RawOutputs::new(&dir, shared.config.sealer.clone()), Settings { limit_bytes, hours: 1 })
    }

    fn opened(of: &RawOutputs, key_id: &str, id: &str, opened_as: &str) -> Option<String> {
        let sealed = fs::read(of.dir.join(file_name(key_id, id))).ok()?;
        let plain = of.sealer.open(&sealed_as(opened_as, id), &sealed).ok()?;
        Some(String::from_utf8(plain).expect("text"))
    }

    #[test]
    fn an_output_is_sealed_for_its_key_without_credentials() {
        let (outputs, settings) = outputs_of(1 << 20);
        let text = "line\nmail someone@example.com\nAWS_KEY=AKIAIOSFODNN7EXAMPLE\nend";
        outputs.write_all("k1", &[output("a", text)], settings).expect("written");
        let plain = opened(&outputs, "k1", "a", "k1").expect("there");
        assert!(plain.starts_with("{\"bytes\":") && plain.ends_with("\nend"), "{plain}");
        assert!(!plain.contains("someone@example.com") && !plain.contains("AKIAIOSFODNN7EXAMPLE"), "{plain}");
        assert_eq!(opened(&outputs, "k1", "a", "k2"), None, "a file that was moved does not open for another");
        assert_eq!(opened(&outputs, "k2", "a", "k2"), None);
    }

    #[test]
    fn of_a_giant_the_beginning_is_kept_in_whole_letters() {
        let (outputs, settings) = outputs_of(1 << 30);
        outputs.write_all("k", &[output("a", &"\u{4f60}".repeat(MOST_OUTPUT_BYTES))], settings).expect("written");
        let plain = opened(&outputs, "k", "a", "k").expect("there");
        assert!(plain.contains("\"isCut\":true") && plain.len() <= MOST_OUTPUT_BYTES + 200);
    }

    #[test]
    fn what_is_too_much_or_too_old_goes() {
        let (outputs, settings) = outputs_of(100_000);
        for number in 0..40 {
            outputs.write_all("k", &[output(&number.to_string(), &"x y ".repeat(2_500))], settings).expect("written");
        }
        let there = |number: i32| opened(&outputs, "k", &number.to_string(), "k").is_some();
        assert!(there(39) && !there(0));
        assert!(fs::read_dir(&outputs.dir).expect("a folder").count() <= 10);
        let file = outputs.dir.join(file_name("k", "39"));
        let old = SystemTime::now() - Duration::from_secs(3_700);
        File::options().write(true).open(&file).and_then(|file| file.set_modified(old)).expect("aged");
        outputs.sweep(settings).expect("swept");
        assert!(!there(39) && there(38));
        outputs.sweep(Settings::default()).expect("swept");
        assert_eq!(fs::read_dir(&outputs.dir).expect("a folder").count(), 0, "switched off, nothing is left");
    }
}
