//! Runs property tests: a fixed number of cases by default, or as many as fit into `FAIRLEAD_FUZZ_SECONDS` seconds.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The number of cases of a default run, and of each round of a longer one.
const CASES: u32 = 256;

/// Tests a property.
///
/// # Panics
/// If a case breaks the property. The message shows the smallest such case.
pub(crate) fn check<S>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S: Strategy,
    S::Value: Debug,
{
    let seconds = std::env::var("FAIRLEAD_FUZZ_SECONDS").ok().and_then(|text| text.parse::<f64>().ok());
    let ends = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)));
    let mut rounds = 0_u64;
    loop {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        if let Err(found) = TestRunner::new(config).run(strategy, &property) {
            panic!("after {rounds} rounds of {CASES} cases: {found}");
        }
        rounds += 1;
        if ends.is_none_or(|ends| Instant::now() >= ends) {
            return;
        }
    }
}
