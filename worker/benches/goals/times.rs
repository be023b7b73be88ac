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
    in_turns(times, act, || ()).0
}

/// Runs two actions without side effects in turns, many times. Returns the median time of each. The speed of the machine changes during a
/// run, and so it changes for both.
pub(crate) fn in_turns<A, B>(times: usize, first: impl Fn() -> A, second: impl Fn() -> B) -> (Duration, Duration) {
    for _ in 0..times / 10 {
        black_box((first(), second()));
    }
    let both: Vec<_> = (0..times).map(|_| (time_of(&first), time_of(&second))).collect();
    (median(both.iter().map(|times| times.0)), median(both.iter().map(|times| times.1)))
}

fn time_of<T>(act: impl Fn() -> T) -> Duration {
    let began = Instant::now();
    black_box(act());
    began.elapsed()
}

/// Returns how many times longer the first time is.
pub(crate) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}
