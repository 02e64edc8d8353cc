//! The spool of usage records. Each settled request becomes one line in a segment that this worker writes, and control
//! ingests sealed segments. A line reaches the kernel (`write`) before the last byte of its response goes to the
//! client, so a response that a client received in full has its record even after a `kill -9` of this process.

use crate::observe::segment::{Segment, MAX_SEGMENT_BYTES};
use fairlead_core::Record;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
struct State {
    segment: Option<Segment>,
    /// The number of the segment after the current one.
    next_seq: u64,
    /// Sealing is suspended while control sums up the sealed segments.
    is_held: bool,
    line: Vec<u8>,
    /// Lines that could not be written yet, newest last; bounded.
    unwritten: Vec<u8>,
    lost_records: u64,
}

impl State {
    fn current_seq(&self) -> u64 {
        self.next_seq - u64::from(self.segment.is_some())
    }
}

/// The spool of one worker, which passes records to control in segment files.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    worker_id: String,
    state: Mutex<State>,
}

/// The limit of records kept in memory while the disk is not writable.
const MAX_UNWRITTEN_BYTES: usize = 16 * 1024 * 1024;

impl Spool {
    pub fn open(data_dir: &Path, worker_id: &str) -> io::Result<Self> {
        let dir = data_dir.join("spool");
        fs::create_dir_all(&dir)?;
        Ok(Self { dir, worker_id: worker_id.to_owned(), state: Mutex::default() })
    }

    /// Appends one record. A disk failure does not stop inference: the line stays in memory and is retried with the
    /// next ones. Records are lost only when 16 MiB are pending; lost records are counted and logged.
    ///
    /// Returns the number of the segment that contains or will contain the record.
    pub fn append(&self, record: &Record<'_>) -> u64 {
        let mut state = self.state.lock();
        let mut line = std::mem::take(&mut state.line);
        line.clear();
        if let Err(error) = record.append_to(&mut line) {
            tracing::error!(%error, "a usage record could not be written as JSON");
        } else {
            self.write(&mut state, &line);
        }
        state.line = line;
        state.current_seq()
    }

    fn write(&self, state: &mut State, line: &[u8]) {
        if !state.unwritten.is_empty() {
            let waiting = std::mem::take(&mut state.unwritten);
            if self.write_now(state, &waiting).is_err() {
                state.unwritten = waiting;
                self.keep(state, line);
                return;
            }
        }
        if let Err(error) = self.write_now(state, line) {
            tracing::error!(%error, "the spool cannot be written; records wait in memory");
            self.keep(state, line);
        }
    }

    fn write_now(&self, state: &mut State, lines: &[u8]) -> io::Result<()> {
        if state.segment.is_none() {
            let seq = state.next_seq;
            state.next_seq += 1;
            state.segment = Some(Segment::start(&self.dir, &self.worker_id, seq)?);
        }
        let Some(segment) = state.segment.as_mut() else { return Ok(()) };
        segment.append([lines])?;
        if segment.bytes > MAX_SEGMENT_BYTES && !state.is_held {
            Self::seal(state);
        }
        Ok(())
    }

    fn keep(&self, state: &mut State, line: &[u8]) {
        if state.unwritten.len() + line.len() <= MAX_UNWRITTEN_BYTES {
            state.unwritten.extend_from_slice(line);
        } else {
            state.lost_records += 1;
            tracing::error!(worker_id = %self.worker_id, lost_records = state.lost_records, "a usage record was lost");
        }
    }

    /// The number of pending bytes and of lost records.
    pub fn troubles(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.unwritten.len(), state.lost_records)
    }

    /// Seals the segment if it has any lines. Called about once a second.
    pub fn rotate(&self) {
        let mut state = self.state.lock();
        if !state.is_held {
            self.seal_all(&mut state);
        }
    }

    /// Seals the last segment. Nothing is written afterwards.
    pub fn finish(&self) {
        self.seal_all(&mut self.state.lock());
    }

    /// Seals the current segment and suspends sealing until [`Spool::release`], so that the sealed segments contain all
    /// past records. Returns the number of the next segment.
    pub fn hold(&self) -> u64 {
        let mut state = self.state.lock();
        self.seal_all(&mut state);
        state.is_held = true;
        state.current_seq()
    }

    /// Resumes sealing.
    pub fn release(&self) {
        self.state.lock().is_held = false;
    }

    fn seal_all(&self, state: &mut State) {
        if !state.unwritten.is_empty() {
            self.write(state, b"");
        }
        Self::seal(state);
    }

    fn seal(state: &mut State) {
        if let Some(segment) = state.segment.take() {
            segment.seal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::Outcome;
    use rustix::fs::{flock, FlockOperation};
    use std::fs::File;

    fn record(request_id: &str) -> Record<'_> {
        Record {
            request_id,
            ts_ms: 1,
            worker_id: "w",
            principal_kind: "anonymous",
            session_tag: Some("a\"b\n"),
            endpoint: "chat",
            method: "POST",
            path: "/v1/chat/completions",
            status: 200,
            outcome: Outcome::Completed,
            latency_ms: 1.5,
            attempts: 1,
            ..Record::default()
        }
    }

    #[test]
    fn a_segment_holds_one_line_per_record_and_is_locked_until_sealed() {
        let dir = std::env::temp_dir().join(format!("fairlead-spool-{}", std::process::id()));
        let spool = Spool::open(&dir, "w").expect("a folder");
        spool.append(&record("r1"));
        spool.append(&record("r2"));
        let open = dir.join("spool/w-00000000.open");
        let other = File::open(&open).expect("the segment");
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        spool.rotate();
        let text = fs::read_to_string(dir.join("spool/w-00000000.ndjson")).expect("sealed");
        let ids: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["request_id"].clone())
            .collect();
        assert_eq!(ids, ["r1", "r2"]);
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok());
        spool.rotate();
        assert_eq!(spool.append(&record("r3")), 1);
        assert_eq!(spool.hold(), 2);
        assert_eq!(spool.append(&record("r4")), 2);
        spool.rotate();
        assert!(dir.join("spool/w-00000002.open").exists(), "held");
        spool.release();
        spool.rotate();
        assert!(dir.join("spool/w-00000002.ndjson").exists());
        fs::remove_dir_all(&dir).expect("removed");
    }
}
