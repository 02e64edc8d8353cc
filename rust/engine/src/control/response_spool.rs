//! Responses that will be stored in control's database. A response is appended to a segment in `spool/responses` before
//! it ends, so a `kill -9` of the relay or of control loses none. Control stores a whole segment in one transaction.
//!
//! Control grants each caller a number of bytes that a worker may append without asking. The grant is a small part of
//! the caller's free storage. For a caller without a grant, control stores the response while the caller waits, and its
//! reply contains the next grant. So a caller whose storage is full learns this with the response, and a worker that
//! cannot reach control has a bounded backlog.

use crate::observe::segment::{Segment, MAX_SEGMENT_BYTES};
use parking_lot::Mutex;
use rustix::fs::statvfs;
use std::collections::{HashMap, VecDeque};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time from the first response of a segment until it is sealed.
pub const SEAL_AFTER: Duration = Duration::from_millis(100);
/// A larger response is sent to control directly.
pub const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// The limit of bytes from this worker that control has not stored yet.
const MAX_WAITING_BYTES: u64 = 256 * 1024 * 1024;
/// Disk space that is reserved for usage records and the databases.
const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;
const MAX_GRANTS: usize = 20_000;
const GRANT_LASTS: Duration = Duration::from_secs(60);

/// The bytes that a caller may still append. A grant ends with the configuration under which control gave it.
#[derive(Debug)]
struct Grant {
    bytes: u64,
    version: u64,
    until: Instant,
}

/// Whether the spool accepted a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The response is in the file. If it starts a segment, the caller must seal the segment soon.
    Kept { begins_segment: bool },
    /// The spool did not accept the response.
    No,
}

#[derive(Debug, Default)]
struct State {
    segment: Option<Segment>,
    next_seq: u64,
    /// Sealed segments that control may not have stored yet, oldest first.
    waiting: VecDeque<(PathBuf, u64)>,
    waiting_bytes: u64,
    grants: HashMap<String, Grant>,
}

/// The segments with responses of one worker.
#[derive(Debug)]
pub struct ResponseSpool {
    folder: PathBuf,
    worker_id: String,
    state: Mutex<State>,
}

impl ResponseSpool {
    #[must_use]
    pub fn new(data_dir: &Path, worker_id: &str) -> Self {
        let folder = data_dir.join("spool").join("responses");
        Self { folder, worker_id: worker_id.to_owned(), state: Mutex::default() }
    }

    /// Stores what control grants a caller under this version of the configuration.
    pub fn grant(&self, owner: &str, bytes: u64, version: u64) {
        let mut state = self.state.lock();
        if state.grants.len() >= MAX_GRANTS && !state.grants.contains_key(owner) {
            let now = Instant::now();
            state.grants.retain(|_, grant| grant.version == version && grant.until > now);
            if state.grants.len() >= MAX_GRANTS {
                return;
            }
        }
        let grant = Grant { bytes, version, until: Instant::now() + GRANT_LASTS };
        state.grants.insert(owner.to_owned(), grant);
    }

    /// Appends a response, given in parts, if its caller's grant is large enough.
    pub fn append<const N: usize>(&self, owner: &str, parts: [&[u8]; N], version: u64) -> Appended {
        let size = parts.iter().map(|part| part.len() as u64).sum();
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(grant) = state.grants.get_mut(owner) else { return Appended::No };
        if grant.version != version || grant.bytes < size || grant.until <= Instant::now() {
            state.grants.remove(owner);
            return Appended::No;
        }
        let begins_segment = state.segment.is_none();
        if let Err(error) = self.write(state, parts) {
            tracing::warn!(%error, "a response goes to control directly: the spool does not take it");
            return Appended::No;
        }
        if let Some(grant) = state.grants.get_mut(owner) {
            grant.bytes -= size;
        }
        Appended::Kept { begins_segment }
    }

    /// Seals the open segment, so that control can store it.
    pub fn seal(&self) {
        Self::seal_now(&mut self.state.lock());
    }

    fn write<const N: usize>(&self, state: &mut State, parts: [&[u8]; N]) -> io::Result<()> {
        if state.segment.is_none() {
            self.check_room(state)?;
            let seq = state.next_seq;
            state.next_seq += 1;
            state.segment = Some(Segment::start(&self.folder, &self.worker_id, seq)?);
        }
        let Some(segment) = state.segment.as_mut() else { return Ok(()) };
        segment.append(parts)?;
        if segment.bytes > MAX_SEGMENT_BYTES {
            Self::seal_now(state);
        }
        Ok(())
    }

    /// Checks whether another segment may be started.
    fn check_room(&self, state: &mut State) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        // Control deletes a segment after storing it, the oldest first.
        while let Some((path, bytes)) = state.waiting.front() {
            if path.try_exists()? {
                break;
            }
            state.waiting_bytes -= bytes;
            state.waiting.pop_front();
        }
        let disk = statvfs(&self.folder)?;
        let is_full = disk.f_bavail.saturating_mul(disk.f_frsize) < MIN_FREE_BYTES;
        if is_full || state.waiting_bytes >= MAX_WAITING_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn seal_now(state: &mut State) {
        let Some(segment) = state.segment.take() else { return };
        let bytes = segment.bytes;
        state.waiting.push_back((segment.seal(), bytes));
        state.waiting_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_caller_appends_no_more_than_control_granted_it() {
        let dir = std::env::temp_dir().join(format!("fairlead-response-spool-{}", std::process::id()));
        let spool = ResponseSpool::new(&dir, "w");
        let first = Appended::Kept { begins_segment: true };
        let later = Appended::Kept { begins_segment: false };
        assert_eq!(spool.append("key:a", [b"12345"], 1), Appended::No, "nothing was granted");
        spool.grant("key:a", 10, 1);
        assert_eq!(spool.append("key:b", [b"12345"], 1), Appended::No, "it is another caller's");
        assert_eq!(spool.append("key:a", [b"12", b"", b"345"], 1), first);
        assert_eq!(spool.append("key:a", [b"67890"], 1), later);
        assert_eq!(spool.append("key:a", [b"x"], 1), Appended::No, "it is used up");
        spool.grant("key:a", 10, 1);
        assert_eq!(spool.append("key:a", [b"x"], 2), Appended::No, "the configuration has changed");
        let folder = dir.join("spool/responses");
        assert!(folder.join("w-00000000.open").exists());
        spool.seal();
        assert_eq!(fs::read(folder.join("w-00000000.ndjson")).expect("a sealed segment"), b"1234567890");
        spool.grant("key:a", 10, 2);
        assert_eq!(spool.append("key:a", [b"x"], 2), first);
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_backlog_is_bounded_until_control_stores_it() {
        let dir = std::env::temp_dir().join(format!("fairlead-response-backlog-{}", std::process::id()));
        let spool = ResponseSpool::new(&dir, "w");
        spool.grant("key:a", u64::MAX, 1);
        assert_eq!(spool.append("key:a", [b"1"], 1), Appended::Kept { begins_segment: true });
        spool.seal();
        spool.state.lock().waiting_bytes += MAX_WAITING_BYTES;
        spool.state.lock().waiting[0].1 += MAX_WAITING_BYTES;
        assert_eq!(spool.append("key:a", [b"2"], 1), Appended::No);
        fs::remove_file(dir.join("spool/responses/w-00000000.ndjson")).expect("removed");
        assert_eq!(spool.append("key:a", [b"2"], 1), Appended::Kept { begins_segment: true });
        fs::remove_dir_all(&dir).expect("removed");
    }
}
