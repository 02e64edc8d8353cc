//! The one place for work that blocks: files of uploads and of the cache, names, long computing. The threads that relay never do it, the runtimes
//! bound the threads that do, and what waits for one of those is bounded here: a disk that hangs must not gather work and the
//! memory that it holds without end.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{ready, Context, Poll};
use tokio::task::JoinHandle;

/// Computing under way and waiting: as much as two cores do in a second, of texts of a common size.
const MOST_COMPUTING: usize = 64;

/// Under way and waiting, of either kind in the whole process; about half a second of a busy disk.
const MOST: usize = 1_024;

// Apart, so that a disk that hangs does not look like names that do not resolve.
static DISK: AtomicUsize = AtomicUsize::new(0);
static NAMES: AtomicUsize = AtomicUsize::new(0);
static COMPUTING: AtomicUsize = AtomicUsize::new(0);

/// Counts from its making to the end of its work, whoever still waits for that.
struct Place(&'static AtomicUsize);

impl Place {
    fn take(count: &'static AtomicUsize, most: usize) -> Option<Self> {
        let place = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Work under way. Dropped, it goes on unheard.
#[derive(Debug)]
pub struct Blocking<T>(Option<JoinHandle<T>>);

/// Begins work with files; call it in a runtime. Where too much is under way it fails with `ResourceBusy`.
pub fn disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&DISK, MOST, work)
}

/// Runs a lookup of a host's name on the threads that may block for names.
pub fn names<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&NAMES, MOST, work)
}

/// Computes on a thread that holds nobody up. Where too much is under way it fails with `ResourceBusy`.
pub fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    run(&COMPUTING, MOST_COMPUTING, work)
}

#[allow(clippy::disallowed_methods, reason = "the one place")]
fn run<T: Send + 'static>(
    count: &'static AtomicUsize,
    most: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Blocking<T> {
    Blocking(Place::take(count, most).map(|place| {
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
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
        let mut places: Vec<_> = (0..MOST).filter_map(|_| Place::take(&COUNT, MOST)).collect();
        assert!(places.len() == MOST && Place::take(&COUNT, MOST).is_none());
        places.pop();
        assert!(Place::take(&COUNT, MOST).is_some());
    }
}
