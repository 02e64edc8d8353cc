//! The disk tier, which survives a restart: append-only files, each written by one worker.
//!
//! ```text
//!  <data directory>/cache/<number>-<worker>.log      0600, locked with flock while its worker lives
//!      record: length (4 bytes, little endian), sealed bytes
//!      sealed: an answer (1, meta, body) or deleted digests (2, 32 bytes each)
//! ```
//!
//! A record is encrypted with the instance's key and bound to its file and offset. Answers are therefore as private as
//! the credentials, and a torn or foreign record cannot be opened. Reading a file stops at the first such record, so
//! what a crash cut off becomes a miss. When the files together are too large, the oldest is deleted. A new worker
//! takes over the files that no worker has locked.

use crate::entry::CachedAnswer;
use crate::key::Digest;
use fairlead_core::Sealer;
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ENDING: &str = "log";
const ANSWER: u8 = 1;
const GONE: u8 = 2;
/// The size limit is enforced by deleting whole files, so no file exceeds this fraction of it.
const FILES: u64 = 8;
const MIN_FILE_BYTES: u64 = 1024 * 1024;
const MAX_RECORD_BYTES: u32 = 8 * 1024 * 1024;

/// One file. It stays readable while something refers to it, even after it was deleted.
#[derive(Debug)]
pub(crate) struct Segment {
    name: String,
    path: PathBuf,
    file: File,
}

/// The position of a record.
#[derive(Debug, Clone)]
pub(crate) struct DiskPosition {
    pub(crate) segment: Arc<Segment>,
    offset: u64,
    length: u32,
}

/// A record in a file of the disk tier.
#[derive(Debug)]
pub(crate) enum Record {
    Answer(Box<CachedAnswer>, DiskPosition),
    Gone(Vec<Digest>),
}

#[derive(Debug)]
struct Owned {
    segment: Arc<Segment>,
    bytes: u64,
}

/// The files of this worker.
#[derive(Debug)]
pub(crate) struct Disk {
    dir: PathBuf,
    worker_id: String,
    sealer: Arc<Sealer>,
    max_bytes: u64,
    next_number: u64,
    /// From the oldest to the one that is being written.
    segments: Vec<Owned>,
    is_writing: bool,
}

impl Disk {
    pub(crate) fn open(data_dir: &Path, worker_id: &str, sealer: Arc<Sealer>) -> io::Result<Self> {
        let dir = data_dir.join("cache");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let worker_id = worker_id.to_owned();
        Ok(Self { dir, worker_id, sealer, max_bytes: 0, next_number: 1, segments: Vec::new(), is_writing: false })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|owned| owned.bytes).sum()
    }

    /// Takes over the files that no living worker has locked, and reports their records.
    pub(crate) fn adopt(&mut self, mut visit: impl FnMut(Record)) -> io::Result<()> {
        let mut names: Vec<(u64, PathBuf)> = Vec::new();
        for found in fs::read_dir(&self.dir)? {
            let path = found?.path();
            let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
            let number = number.and_then(|(number, _)| number.parse().ok());
            if let Some(number) = number.filter(|_| path.extension().is_some_and(|ending| ending == ENDING)) {
                names.push((number, path));
            }
        }
        names.sort();
        self.next_number = names.last().map_or(1, |(number, _)| number + 1);
        for (_, path) in names {
            let mut file = File::open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            let segment = Arc::new(Segment { name: name_of(&path), path, file });
            self.replay(&segment, &content, &mut visit);
            self.segments.push(Owned { segment, bytes: content.len() as u64 });
        }
        Ok(())
    }

    fn replay(&self, segment: &Arc<Segment>, content: &[u8], visit: &mut impl FnMut(Record)) {
        let mut at = 0;
        while let Some(length) = content.get(at..at + 4) {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            let offset = at as u64 + 4;
            at += 4 + length as usize;
            let Some(sealed) = content.get(offset as usize..at) else { break };
            let Ok(mut plain) = self.sealer.open(&bound_to(&segment.name, offset), sealed) else { break };
            let kind = plain.first().copied();
            plain.drain(..usize::from(kind.is_some()));
            match kind {
                Some(ANSWER) => {
                    let position = DiskPosition { segment: Arc::clone(segment), offset, length };
                    if let Some(answer) = CachedAnswer::decode(plain) {
                        visit(Record::Answer(Box::new(answer), position));
                    }
                }
                Some(GONE) => {
                    let digests = plain.chunks_exact(32).filter_map(|digest| digest.try_into().ok());
                    visit(Record::Gone(digests.collect()));
                }
                _ => {}
            }
        }
        if at < content.len() {
            tracing::warn!(file = %segment.name, "the end of a cache file cannot be read and is ignored");
        }
    }

    /// Appends an answer.
    pub(crate) fn put(&mut self, answer: &CachedAnswer) -> io::Result<DiskPosition> {
        let mut plain = vec![ANSWER];
        plain.append(&mut answer.encode()?);
        self.append(&plain)
    }

    /// Appends a record of deleted answers.
    pub(crate) fn forget(&mut self, digests: &[Digest]) -> io::Result<()> {
        if self.segments.is_empty() {
            return Ok(());
        }
        for some in digests.chunks(10_000) {
            let mut plain = vec![GONE];
            plain.extend(some.iter().flatten());
            self.append(&plain)?;
        }
        Ok(())
    }

    fn append(&mut self, plain: &[u8]) -> io::Result<DiskPosition> {
        let full = self.max_bytes / FILES;
        let is_full = self.segments.last().is_some_and(|owned| owned.bytes >= full.max(MIN_FILE_BYTES));
        if !self.is_writing || is_full {
            let segment = self.start()?;
            self.segments.push(Owned { segment: Arc::new(segment), bytes: 0 });
            self.is_writing = true;
        }
        let Some(owned) = self.segments.last_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        let offset = owned.bytes + 4;
        let sealed = self.sealer.seal(&bound_to(&owned.segment.name, offset), plain).map_err(io::Error::other)?;
        let length = u32::try_from(sealed.len()).ok().filter(|length| *length <= MAX_RECORD_BYTES);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut record = length.to_le_bytes().to_vec();
        record.extend_from_slice(&sealed);
        if let Err(error) = (&owned.segment.file).write_all(&record) {
            // Nothing after half a record can be read, so the next record goes into a new file.
            self.is_writing = false;
            return Err(error);
        }
        owned.bytes += record.len() as u64;
        Ok(DiskPosition { segment: Arc::clone(&owned.segment), offset, length })
    }

    fn start(&mut self) -> io::Result<Segment> {
        let name = format!("{:08}-{}.{ENDING}", self.next_number, self.worker_id);
        self.next_number += 1;
        let path = self.dir.join(&name);
        // The file is locked before it gets its final name, because any worker may take over an unlocked file.
        let unnamed = path.with_extension("new");
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&unnamed)?;
        let named = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| fs::rename(&unnamed, &path));
        if let Err(error) = named {
            fs::remove_file(&unnamed)?;
            return Err(error);
        }
        Ok(Segment { name, path, file })
    }

    /// Enforces a size limit by deleting the oldest files. The caller must drop the positions in the returned files.
    pub(crate) fn hold_to(&mut self, max_bytes: u64) -> io::Result<Vec<Arc<Segment>>> {
        self.max_bytes = max_bytes;
        let mut gone = Vec::new();
        while self.bytes() > self.max_bytes {
            gone.push(self.drop_first()?);
        }
        Ok(gone)
    }

    /// Deletes every file.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        while !self.segments.is_empty() {
            self.drop_first()?;
        }
        Ok(())
    }

    fn drop_first(&mut self) -> io::Result<Arc<Segment>> {
        fs::remove_file(&self.segments[0].segment.path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let owned = self.segments.remove(0);
        if self.segments.is_empty() {
            self.is_writing = false;
        }
        Ok(owned.segment)
    }

    /// Deletes the oldest files while nothing refers to them. Only the oldest file may be deleted, because the
    /// deletions in a file apply to older files and are needed as long as those exist.
    pub(crate) fn drop_unused(&mut self) -> io::Result<()> {
        // Every stored position holds a reference to its file.
        while self.segments.len() > 1 && Arc::strong_count(&self.segments[0].segment) == 1 {
            self.drop_first()?;
        }
        Ok(())
    }
}

impl DiskPosition {
    /// Reads and decrypts the record. Blocks.
    pub(crate) fn read(&self, sealer: &Sealer) -> io::Result<CachedAnswer> {
        let mut sealed = vec![0; self.length as usize];
        self.segment.file.read_exact_at(&mut sealed, self.offset)?;
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut plain = sealer.open(&bound_to(&self.segment.name, self.offset), &sealed).map_err(|_| broken())?;
        if plain.first() != Some(&ANSWER) {
            return Err(broken());
        }
        plain.drain(..1);
        CachedAnswer::decode(plain).ok_or_else(broken)
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.length) + 4
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn bound_to(name: &str, offset: u64) -> String {
    format!("cache:{name}:{offset}")
}
