//! Work that is begun where the request came in. An answer that is at hand, in memory, needs no runtime: made on the spot it
//! saves two hand-overs between threads, which is most of what it costs. Work that has to wait, or that comes to a [`hop`], goes
//! on in the runtime.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

thread_local! {
    /// Whether this thread is the front's, in the middle of [`begin`].
    static IS_FRONT: Cell<bool> = const { Cell::new(false) };
}

/// Polls the work once, here; hands it to the runtime if it is not done by that.
pub fn begin(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    let polled = {
        let _entered = runtime.enter();
        let _front = Front::enter();
        // A panic ends the work as it does in a task: what it held is dropped, and says how it ended.
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop()))))
    };
    match polled {
        Ok(Poll::Ready(())) => {}
        // The runtime polls it anew, with a waker that wakes.
        Ok(Poll::Pending) => drop(runtime.spawn(work)),
        Err(_) => tracing::error!("a request ended with a panic"),
    }
}

/// From here on the work is the runtime's.
pub async fn hop() {
    poll_fn(|_| if IS_FRONT.get() { Poll::Pending } else { Poll::Ready(()) }).await;
}

struct Front;

impl Front {
    fn enter() -> Self {
        IS_FRONT.set(true);
        Self
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        IS_FRONT.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn what_is_at_hand_is_done_here_and_the_rest_in_the_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
        let handle = runtime.handle().clone();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let engine = thread::spawn(move || runtime.block_on(stopped));
        let here = thread::current().id();
        let (tell, threads) = mpsc::channel();
        let work = |hops: bool, waits: bool, tell: mpsc::Sender<thread::ThreadId>| async move {
            if hops {
                hop().await;
            }
            if waits {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tell.send(thread::current().id()).expect("heard");
        };
        begin(&handle, work(false, false, tell.clone()));
        assert_eq!(threads.try_recv(), Ok(here));
        for (hops, waits) in [(true, false), (false, true), (true, true)] {
            begin(&handle, work(hops, waits, tell.clone()));
            assert_ne!(threads.recv_timeout(SOON).expect("done"), here);
        }
        stop.send(()).expect("heard");
        engine.join().expect("ended").expect("told to");
    }

    #[test]
    fn a_panic_ends_the_work_and_nothing_else() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("one");
        let (tell, ends) = mpsc::channel::<()>();
        begin(runtime.handle(), async move {
            let _held = tell;
            assert!(!IS_FRONT.get(), "on purpose");
        });
        assert_eq!(ends.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        assert!(!IS_FRONT.get());
    }
}
