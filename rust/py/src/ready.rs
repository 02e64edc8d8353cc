//! The queue of exchanges that are ready for Python, and the file descriptor that signals them.

use fairlead_engine::Wake;
use parking_lot::Mutex;
use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

/// The engine's thread fills the queue, and the event loop drains it. The descriptor is written only when the queue was
/// empty, so that many events cause one wake-up.
#[derive(Debug)]
pub(crate) struct ReadyQueue {
    ids: Mutex<Vec<u64>>,
    bell: OwnedFd,
}

impl ReadyQueue {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { ids: Mutex::new(Vec::with_capacity(256)), bell })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Takes everything that is ready, and clears the signal.
    pub(crate) fn drain(&self) -> Vec<u64> {
        let mut ids = self.ids.lock();
        // An empty descriptor is not an error: another drain has already read it.
        let _rung = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        let next = Vec::with_capacity(ids.len().max(64));
        std::mem::replace(&mut *ids, next)
    }
}

impl Wake for ReadyQueue {
    fn wake(&self, exchange_id: u64) {
        let mut ids = self.ids.lock();
        ids.push(exchange_id);
        if ids.len() == 1 {
            // A full counter means that the descriptor is already readable.
            let _rung = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }
}
