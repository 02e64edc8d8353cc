//! Checks that work grows with its input and not with the square of it.

use rustix::time::{clock_gettime, ClockId};

/// How much larger the large input is.
pub(crate) const GROWTH: usize = 16;
/// The largest accepted ratio of times. Work in proportion to the input has a ratio of about 16, and work in proportion
/// to its square has 256.
const RATIO_MAX: i64 = 80;
const ROUNDS: usize = 6;

/// Runs `work` on inputs of one size (`work(1)`) and of sixteen times that size (`work(16)`).
///
/// Other load on the machine slows single runs, even in CPU time. So a bad ratio is measured again, and the fastest run
/// of each size counts.
///
/// # Panics
/// If the time grows much faster than the input in every round.
pub(crate) fn check(name: &str, mut work: impl FnMut(usize)) {
    let (mut small, mut large) = (i64::MAX, i64::MAX);
    for _ in 0..ROUNDS {
        small = small.min(cpu_ns(|| work(1)));
        large = large.min(cpu_ns(|| work(GROWTH)));
        if large <= small * RATIO_MAX {
            return;
        }
    }
    panic!("{name}: {GROWTH} times the input takes {} times as long ({large} ns)", large / small);
}

/// The CPU time of this thread, because other threads run beside it.
pub(crate) fn cpu_ns(work: impl FnOnce()) -> i64 {
    let now = || clock_gettime(ClockId::ThreadCPUTime);
    let start = now();
    work();
    let end = now();
    (end.tv_sec - start.tv_sec) * 1_000_000_000 + (end.tv_nsec - start.tv_nsec)
}

#[test]
fn work_that_grows_with_the_square_is_found() {
    let square = |times: usize| {
        let items = vec![1_u64; 400 * times];
        let sum: u64 = items.iter().map(|one| items.iter().map(|other| one ^ other).sum::<u64>()).sum();
        assert_eq!(std::hint::black_box(sum), 0);
    };
    assert!(std::panic::catch_unwind(|| check("square", square)).is_err());
    check("line", |times| {
        assert_eq!(std::hint::black_box(vec![1_u64; 40_000 * times]).iter().sum::<u64>() as usize, 40_000 * times);
    });
}
