//! A segment is a file to which this worker appends records and which control reads. While it is written, its extension
//! is `.open` and this process holds its lock. A sealed segment has the extension `.ndjson`. Control takes over an open
//! segment whose lock is free.

use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A segment is sealed early when it reaches this size.
pub const MAX_SEGMENT_BYTES: u64 = 16 * 1024 * 1024;

/// An open segment of this worker.
#[derive(Debug)]
pub struct Segment {
    file: File,
    path: PathBuf,
    pub bytes: u64,
}

impl Segment {
    /// Creates the segment with this number.
    pub fn start(folder: &Path, worker_id: &str, seq: u64) -> io::Result<Self> {
        let path = folder.join(format!("{worker_id}-{seq:08}.open"));
        // The file is locked before it gets the extension `.open`, because control takes over open segments whose lock
        // is free.
        let unlocked = path.with_extension("new");
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&unlocked)?;
        let shown = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| fs::rename(&unlocked, &path));
        if let Err(error) = shown {
            // A leftover file would make the next attempt fail.
            if let Err(error) = fs::remove_file(&unlocked) {
                tracing::error!(%error, "an unused segment stays in the spool");
            }
            return Err(error);
        }
        Ok(Self { file, path, bytes: 0 })
    }

    /// Appends one record, given in parts. After an error the segment still ends with its last complete record.
    pub fn append<const N: usize>(&mut self, parts: [&[u8]; N]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        match self.write(parts) {
            Ok(()) => {
                self.bytes += bytes as u64;
                Ok(())
            }
            Err(error) => {
                if let Err(error) = self.file.set_len(self.bytes) {
                    tracing::error!(%error, "a torn record stays in the spool");
                }
                Err(error)
            }
        }
    }

    fn write<const N: usize>(&mut self, parts: [&[u8]; N]) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest = &mut slices[..];
        // Skips empty parts.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Seals the segment and returns the path of the sealed file.
    pub fn seal(self) -> PathBuf {
        let sealed = self.path.with_extension("ndjson");
        if let Err(error) = fs::rename(&self.path, &sealed) {
            // Closing the file releases its lock, and control takes over an open segment whose lock is free.
            tracing::error!(%error, "a segment could not be sealed");
            return self.path;
        }
        sealed
    }
}
