//! A file that is locked while this worker lives. The exact limits that a worker leased become free after it is gone
//! and all its records were ingested. Control may not have known the worker, if everything on the machine ended at once
//! and control was restarted.

use rustix::fs::{flock, FlockOperation};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

const FOLDER: &str = "workers";
/// No window of a limit is longer, and a lease ends with its window.
const KEPT_FOR: Duration = Duration::from_secs(40 * 24 * 3_600);

/// The lock of a live worker. The operating system releases it when the worker ends.
#[derive(Debug)]
pub struct Presence {
    _file: File,
}

impl Presence {
    pub fn take(data_dir: &Path, worker_id: &str) -> io::Result<Self> {
        let folder = data_dir.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        forget_old(&folder);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(folder.join(worker_id))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { _file: file })
    }
}

/// Deletes the files of workers that ended long ago. A later worker retries failed deletions.
fn forget_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        let is_free = |file: File| flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        if age.is_some_and(|age| age > KEPT_FOR) && File::open(entry.path()).is_ok_and(is_free) {
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::warn!(%error, "the file of a worker that ended long ago is not deleted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn it_is_locked_as_long_as_the_worker_lives() {
        let folder = std::env::temp_dir().join(format!("fairlead-presence-{}", std::process::id()));
        let presence = Presence::take(&folder, "aa").expect("a lock");
        let path = folder.join(FOLDER).join("aa");
        let is_free = || flock(File::open(&path).expect("the file"), FlockOperation::NonBlockingLockShared).is_ok();
        assert!(!is_free());
        drop(presence);
        assert!(is_free());
        // A later worker deletes it once it is old.
        drop(Presence::take(&folder, "bb").expect("a lock"));
        assert!(path.exists());
        let long_ago = SystemTime::now() - KEPT_FOR - Duration::from_secs(1);
        OpenOptions::new().write(true).open(&path).expect("the file").set_modified(long_ago).expect("another time");
        drop(Presence::take(&folder, "cc").expect("a lock"));
        assert!(!path.exists());
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
