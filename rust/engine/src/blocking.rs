//! Runs all blocking work: files of uploads and of the cache, name lookups and long computations. The threads that
//! relay never block. The runtimes limit the number of blocking threads, and this module limits the work that waits for
//! one, so that a hanging disk cannot accumulate work and memory without limit.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{ready, Context, Poll};
use tokio::task::JoinHandle;

/// The limit of computations that run or wait: about one second of work for two cores, with texts of common size.
const MOST_COMPUTING: usize = 64;

/// The limit of operations that run or wait, for each kind in the whole process: about half a second of a busy disk.
const MOST: usize = 1_024;

// Counted separately, so that a hanging disk does not block name lookups.
static DISK: AtomicUsize = AtomicUsize::new(0);
static NAMES: AtomicUsize = AtomicUsize::new(0);
static COMPUTING: AtomicUsize = AtomicUsize::new(0);

/// Counts work from its creation to its end, even if nobody waits for it.
struct WorkPermit(&'static AtomicUsize);

impl WorkPermit {
    fn take(count: &'static AtomicUsize, most: usize) -> Option<Self> {
        let permit = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Work in progress. If it is dropped, the work continues and its result is discarded.
#[derive(Debug)]
pub struct Blocking<T>(Option<JoinHandle<T>>);

/// Starts work with files. Requires a runtime. Fails with `ResourceBusy` if the limit is reached.
pub fn disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&DISK, MOST, work)
}

/// Looks up a host name on a thread that may block.
pub fn names<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&NAMES, MOST, work)
}

/// Computes on a blocking thread. Fails with `ResourceBusy` if the limit is reached.
pub fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&COMPUTING, MOST_COMPUTING, work)
}

#[allow(clippy::disallowed_methods, reason = "the one place")]
fn run<T: Send + 'static>(
    count: &'static AtomicUsize,
    most: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Blocking<T> {
    Blocking(WorkPermit::take(count, most).map(|permit| {
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        })
    }))
}

impl<T> Future for Blocking<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        Poll::Ready(match &mut self.0 {
            None => Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "too much work waits for the disk, the resolver or the processor",
            )),
            Some(work) => ready!(Pin::new(work).poll(cx)).map_err(|_| io::Error::other("the work did not end")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_and_a_panic_is_an_error() {
        let here = std::thread::current().id();
        assert_ne!(disk(|| std::thread::current().id()).await.expect("done"), here);
        assert!(names(|| panic!("a defect")).await.is_err());
    }

    #[test]
    fn no_more_than_so_much_is_under_way() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut permits: Vec<_> = (0..MOST).filter_map(|_| WorkPermit::take(&COUNT, MOST)).collect();
        assert!(permits.len() == MOST && WorkPermit::take(&COUNT, MOST).is_none());
        permits.pop();
        assert!(WorkPermit::take(&COUNT, MOST).is_some());
    }
}
