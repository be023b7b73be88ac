//! Work that is deferred until an act waits for something outside, so that it does not delay the act.

use std::pin::pin;
use tokio::task::yield_now;

/// The number of times that other tasks run before the deferred work. An HTTP request passes through several tasks before it is sent.
const HEAD_START_YIELDS: usize = 6;

/// Performs `act`. Runs `deferred` once the act waits for something outside, or after the act if it does not wait.
pub(super) async fn with_deferred<T>(act: impl Future<Output = T>, deferred: impl FnOnce()) -> T {
    let mut act = pin!(act);
    let head_start = async {
        for _ in 0..HEAD_START_YIELDS {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        done = &mut act => {
            deferred();
            done
        }
        () = head_start => {
            deferred();
            act.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn deferred_work_runs_once_while_the_act_waits_or_after_it() {
        let done = RefCell::new(Vec::new());
        let (answer, answered) = oneshot::channel();
        let mut answer = Some(answer);
        let act = async {
            done.borrow_mut().push("sent");
            let got = answered.await;
            done.borrow_mut().push("answered");
            got
        };
        // The deferred work sends the answer: if it ran after the act, the act would never end.
        let deferred = || {
            done.borrow_mut().push("deferred");
            let _ = answer.take().map(|answer| answer.send(7));
        };
        assert_eq!(with_deferred(act, deferred).await, Ok(7));
        assert_eq!(done.take(), ["sent", "deferred", "answered"]);

        let act = async { done.borrow_mut().push("done at once") };
        with_deferred(act, || done.borrow_mut().push("deferred")).await;
        assert_eq!(done.take(), ["done at once", "deferred"]);
    }
}
