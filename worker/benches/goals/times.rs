//! Statistics of measured times.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Returns the median.
pub(crate) fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the median time of each step over several runs of the same steps, so that an outlier of one run does not count.
pub(crate) fn typical(runs: &[Vec<Duration>]) -> Vec<Duration> {
    let shortest = runs.iter().map(Vec::len).min().unwrap_or_default();
    (0..shortest).map(|at| median(runs.iter().map(|run| run[at]))).collect()
}

/// Runs an action without side effects many times. Returns the median time.
pub(crate) fn repeated<T>(times: usize, act: impl Fn() -> T) -> Duration {
    for _ in 0..times / 10 {
        black_box(act());
    }
    median((0..times).map(|_| {
        let began = Instant::now();
        black_box(act());
        began.elapsed()
    }))
}

/// Returns how many times longer the first time is.
pub(crate) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}
