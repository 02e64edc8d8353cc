//! Runs work on the thread that received the request. A response that is in memory needs no runtime, and creating it
//! immediately saves two thread changes, which are most of its cost. Work that has to wait, or that reaches a [`hop`],
//! continues in the runtime.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

thread_local! {
    /// Whether this thread belongs to a front and is inside [`spawn_fast`].
    static IS_FRONT: Cell<bool> = const { Cell::new(false) };
}

/// Polls the work once on this thread. If it is not finished, the runtime continues it.
pub fn spawn_fast(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    let polled = {
        let _entered = runtime.enter();
        let _front = Front::enter();
        // A panic ends the work as in a task: its state is dropped, and its guards record the outcome.
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop()))))
    };
    match polled {
        Ok(Poll::Ready(())) => {}
        // The runtime polls it again with a real waker.
        Ok(Poll::Pending) => drop(runtime.spawn(work)),
        Err(_) => tracing::error!("a request ended with a panic"),
    }
}

/// Moves the remaining work to the runtime.
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
        let (sender, threads) = mpsc::channel();
        let work = |hops: bool, waits: bool, sender: mpsc::Sender<thread::ThreadId>| async move {
            if hops {
                hop().await;
            }
            if waits {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            sender.send(thread::current().id()).expect("heard");
        };
        spawn_fast(&handle, work(false, false, sender.clone()));
        assert_eq!(threads.try_recv(), Ok(here));
        for (hops, waits) in [(true, false), (false, true), (true, true)] {
            spawn_fast(&handle, work(hops, waits, sender.clone()));
            assert_ne!(threads.recv_timeout(SOON).expect("done"), here);
        }
        stop.send(()).expect("heard");
        engine.join().expect("ended").expect("told to");
    }

    #[test]
    fn a_panic_ends_the_work_and_nothing_else() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("one");
        let (sender, ends) = mpsc::channel::<()>();
        spawn_fast(runtime.handle(), async move {
            let _held = sender;
            assert!(!IS_FRONT.get(), "on purpose");
        });
        assert_eq!(ends.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        assert!(!IS_FRONT.get());
    }
}
