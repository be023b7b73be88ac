//! What can wait until an act is under way.

use std::pin::pin;
use tokio::task::yield_now;

/// How often an act is let on before anything else is done: a request goes through some tasks before it is sent.
const HEAD_START: usize = 6;

/// Performs an act, and does chores as soon as it waits for somebody else; where it never does, after it.
pub(super) async fn beside<T>(act: impl Future<Output = T>, chores: impl FnOnce()) -> T {
    let mut act = pin!(act);
    let head_start = async {
        for _ in 0..HEAD_START {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        done = &mut act => {
            chores();
            done
        }
        () = head_start => {
            chores();
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
    async fn chores_are_done_once_while_an_act_waits_and_else_after_it() {
        let done = RefCell::new(Vec::new());
        let (answer, answered) = oneshot::channel();
        let mut answer = Some(answer);
        let act = async {
            done.borrow_mut().push("sent");
            let got = answered.await;
            done.borrow_mut().push("answered");
            got
        };
        // The answer comes because the chores are done: an act that they waited for would never end.
        let chores = || {
            done.borrow_mut().push("chores");
            let _ = answer.take().map(|answer| answer.send(7));
        };
        assert_eq!(beside(act, chores).await, Ok(7));
        assert_eq!(done.take(), ["sent", "chores", "answered"]);

        let act = async { done.borrow_mut().push("done at once") };
        beside(act, || done.borrow_mut().push("chores")).await;
        assert_eq!(done.take(), ["done at once", "chores"]);
    }
}
