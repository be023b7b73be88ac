//! What servers tell of calls that are under way. It is recorded while they are, so that people see it, but not faster than
//! they read: each time costs a segment of the log.

use bloomery_engine::event::{CallId, ToolProgress};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The shortest pause between two times.
const PAUSE: Duration = Duration::from_secs(1);

/// The longer calls take, the less often: this part of the time that they have taken is the next pause. So there are about
/// 30 times in 4 minutes.
const OF_THE_TIME: u32 = 6;

/// How much is recorded of one call, beside the last of each time.
const MAX_TOLD: usize = 32;

/// What was told and is not recorded yet.
#[derive(Debug)]
pub(super) struct Heard {
    began: Instant,
    kept: RefCell<Kept>,
    news: Notify,
}

#[derive(Debug)]
struct Kept {
    waiting: Vec<(CallId, ToolProgress)>,
    /// How much there was of each call.
    times: BTreeMap<CallId, usize>,
    /// When it is time again.
    next: Instant,
}

/// When something is to be recorded.
#[derive(Debug, PartialEq)]
enum Due {
    Now(Vec<(CallId, ToolProgress)>),
    At(Instant),
    /// There is nothing.
    Never,
}

impl Heard {
    /// Nothing, of calls that begin now.
    pub(super) fn new() -> Self {
        let began = Instant::now();
        let kept = Kept { waiting: Vec::new(), times: BTreeMap::new(), next: began };
        Self { began, kept: RefCell::new(kept), news: Notify::new() }
    }

    /// Hears something of a call. Of too much, the last is kept.
    pub(super) fn hear(&self, call: &CallId, told: ToolProgress) {
        let mut kept = self.kept.borrow_mut();
        let Kept { waiting, times, .. } = &mut *kept;
        let times = times.entry(call.clone()).or_default();
        *times += 1;
        let last = waiting.iter_mut().rev().find(|(of, _)| of == call).filter(|_| *times > MAX_TOLD);
        match last {
            Some((_, last)) => *last = told,
            None => waiting.push((call.clone(), told)),
        }
        self.news.notify_one();
    }

    /// Waits until it is time to record something, and takes all that there is.
    pub(super) async fn due(&self) -> Vec<(CallId, ToolProgress)> {
        loop {
            match self.take(Instant::now()) {
                Due::Now(told) => return told,
                Due::At(next) => sleep_until(next).await,
                Due::Never => self.news.notified().await,
            }
        }
    }

    fn take(&self, now: Instant) -> Due {
        let mut kept = self.kept.borrow_mut();
        if kept.waiting.is_empty() {
            return Due::Never;
        }
        if kept.next > now {
            return Due::At(kept.next);
        }
        kept.next = now + PAUSE.max((now - self.began) / OF_THE_TIME);
        Due::Now(std::mem::take(&mut kept.waiting))
    }

    /// Takes what is left of a call that is over.
    pub(super) fn rest(&self, call: &CallId) -> Vec<ToolProgress> {
        let mut kept = self.kept.borrow_mut();
        let (of_call, others) = std::mem::take(&mut kept.waiting).into_iter().partition(|(of, _)| of == call);
        kept.waiting = others;
        let of_call: Vec<(CallId, ToolProgress)> = of_call;
        of_call.into_iter().map(|(_, told)| told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> CallId {
        CallId::new(7, n)
    }

    fn told(n: u32) -> ToolProgress {
        ToolProgress { progress: Some(f64::from(n)), ..ToolProgress::default() }
    }

    #[test]
    fn the_first_is_recorded_at_once_and_what_follows_once_a_second() {
        let heard = Heard::new();
        let began = heard.began;
        assert_eq!(heard.take(began), Due::Never);
        heard.hear(&id(0), told(1));
        assert_eq!(heard.take(began), Due::Now(vec![(id(0), told(1))]));
        heard.hear(&id(0), told(2));
        heard.hear(&id(1), told(1));
        assert_eq!(heard.take(began + PAUSE / 2), Due::At(began + PAUSE));
        assert_eq!(heard.take(began + PAUSE), Due::Now(vec![(id(0), told(2)), (id(1), told(1))]));
        assert_eq!(heard.take(began + PAUSE * 9), Due::Never);
    }

    #[test]
    fn who_tells_without_an_end_is_recorded_less_and_less() {
        let heard = Heard::new();
        let (mut now, mut times, mut all) = (heard.began, 0, 0);
        while now < heard.began + Duration::from_mins(4) {
            for n in 0..100 {
                heard.hear(&id(0), told(n));
            }
            match heard.take(now) {
                Due::Now(due) => {
                    assert_eq!(due.last(), Some(&(id(0), told(99))), "the last is never left out");
                    (times, all) = (times + 1, all + due.len());
                }
                Due::At(next) => now = next,
                Due::Never => panic!("there is something"),
            }
        }
        assert!((20..40).contains(&times) && all < 80, "{all} in {times} times");
    }

    #[tokio::test]
    async fn what_is_left_belongs_to_its_call() {
        let heard = Heard::new();
        heard.hear(&id(0), told(1));
        heard.hear(&id(1), told(2));
        heard.hear(&id(0), told(3));
        assert_eq!(heard.rest(&id(0)), [told(1), told(3)]);
        assert_eq!(heard.rest(&id(0)), []);
        assert_eq!(heard.due().await, [(id(1), told(2))]);
    }

    #[tokio::test]
    async fn what_comes_while_somebody_waits_is_taken() {
        let heard = Heard::new();
        let (due, ()) = tokio::join!(heard.due(), async { heard.hear(&id(0), told(1)) });
        assert_eq!(due, [(id(0), told(1))]);
    }
}
