//! Kills the real process at every event (`docs/explanation/engine.md`, section 7).
//!
//! The test runs all servers of the worker. It kills the worker at these times: when an event is printed and therefore durable, when the
//! model receives a request, and when the MCP server receives a call, before or after the effect of the call.

#[cfg(test)]
mod process;
#[cfg(test)]
mod shop;

#[cfg(test)]
mod tests {
    use crate::process::{Killed, Stand, When};
    use crate::shop::Silence;
    use bloomery_crds::run::GivenReply;
    use bloomery_engine::line::Entry;
    use bloomery_journal::fixture::checks::{answers, interrupted_tool, parse};
    use bloomery_testkit::twelve_steps::ANSWERS;
    use rstest::rstest;

    /// Kills the first attempt, and asserts that the next ones finish the run without repeating an effect.
    async fn assert_recovers_from_kill(stand: &mut Stand, when: When, undisturbed: &[Entry]) {
        stand.clear();
        let killed = stand.run(1, Some(when)).await;
        assert_eq!(killed, Killed::Yes, "{when:?}");
        let left = stand.lines();
        let (log, requests) = (parse(&left), stand.model.requests().len());

        assert_eq!(stand.run(2, None).await, Killed::No, "{when:?}");
        let is_lost = interrupted_tool(&log).as_deref() == Some("refund");
        if is_lost {
            // The Job is parked until a person decides.
            let events: Vec<_> = parse(&stand.lines()).iter().map(|entry| entry.event.name()).collect();
            assert_eq!(events[events.len() - 3..], ["tool.indeterminate", "user.asked", "parked"], "{when:?}");
            stand.replies = vec![GivenReply { nth: 1, question: Some("q-1".into()), text: "stop".into() }];
            assert_eq!(stand.run(3, None).await, Killed::No, "{when:?}");
        }
        let lines = stand.lines();
        assert_eq!(lines[..left.len()], left, "{when:?}: the prefix has changed");
        bloomery_journal::fixture::checks::assert_sound(&lines, &stand.printed, &stand.shop.effects(), undisturbed);
        let ended = parse(&lines).into_iter().find(|entry| entry.event.name() == "finished").unwrap();
        let code = serde_json::to_value(&ended.event).unwrap()["data"]["outcome"]["code"].clone();
        if is_lost {
            assert_eq!(code, "ToolIndeterminate", "{when:?}");
        } else {
            assert_eq!(code, "Succeeded", "{when:?}");
            assert_eq!(stand.model.requests().len() - requests, ANSWERS - answers(&log), "{when:?}");
        }
    }

    async fn undisturbed() -> (Stand, Vec<Entry>) {
        let mut stand = Stand::new().await;
        assert_eq!(stand.run(1, None).await, Killed::No);
        let log = parse(&stand.lines());
        (stand, log)
    }

    /// The cases run concurrently, because they mostly wait.
    #[rstest]
    #[tokio::test]
    async fn a_run_recovers_from_a_kill_when_an_event_is_durable(#[values(1, 2, 3, 4)] first: usize) {
        let (mut stand, log) = undisturbed().await;
        for event in (first..=log.len()).step_by(4) {
            assert_recovers_from_kill(&mut stand, When::Printed(event), &log).await;
        }
    }

    #[tokio::test]
    async fn a_run_recovers_from_a_kill_during_a_model_request() {
        let (mut stand, log) = undisturbed().await;
        for request in 1..=ANSWERS {
            assert_recovers_from_kill(&mut stand, When::Asked(request), &log).await;
        }
    }

    #[rstest]
    #[tokio::test]
    async fn a_run_recovers_from_a_kill_during_a_tool_call(
        #[values(Silence::BeforeEffect, Silence::AfterEffect)] silence: Silence,
    ) {
        let (mut stand, log) = undisturbed().await;
        let calls = stand.shop.calls();
        assert!(calls > 10, "{calls}");
        for call in 1..=calls {
            assert_recovers_from_kill(&mut stand, When::Called(call, silence), &log).await;
        }
    }
}
