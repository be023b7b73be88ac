//! SIGKILL of the real process at every event boundary (`docs/explanation/engine.md`, section 7).
//!
//! Everything outside of the worker is a server of this test, so a boundary is one of three: an event was printed,
//! which is when it is durable; the model has a request; the Skill's server has a call, before or after its effect.

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

    /// Kills the first attempt, lets the second end the run, and looks at what both have left.
    async fn survives(stand: &mut Stand, when: When, undisturbed: &[Entry]) {
        stand.clear();
        let killed = stand.run(1, Some(when)).await;
        assert_eq!(killed, Killed::Yes, "{when:?}");
        let left = stand.lines();
        let (log, asked) = (parse(&left), stand.model.requests().len());

        assert_eq!(stand.run(2, None).await, Killed::No, "{when:?}");
        let is_lost = interrupted_tool(&log).as_deref() == Some("refund");
        if is_lost {
            // It waits for the word of a person, without a pod.
            let waits: Vec<_> = parse(&stand.lines()).iter().map(|entry| entry.event.name()).collect();
            assert_eq!(waits[waits.len() - 3..], ["tool.indeterminate", "user.asked", "parked"], "{when:?}");
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
            assert_eq!(stand.model.requests().len() - asked, ANSWERS - answers(&log), "{when:?}");
        }
    }

    async fn undisturbed() -> (Stand, Vec<Entry>) {
        let mut stand = Stand::new().await;
        assert_eq!(stand.run(1, None).await, Killed::No);
        let log = parse(&stand.lines());
        (stand, log)
    }

    /// In parts, which run at once: most of it is waiting.
    #[rstest]
    #[tokio::test]
    async fn killed_when_an_event_is_durable(#[values(1, 2, 3, 4)] first: usize) {
        let (mut stand, log) = undisturbed().await;
        for event in (first..=log.len()).step_by(4) {
            survives(&mut stand, When::Printed(event), &log).await;
        }
    }

    #[tokio::test]
    async fn killed_while_the_model_is_asked() {
        let (mut stand, log) = undisturbed().await;
        for request in 1..=ANSWERS {
            survives(&mut stand, When::Asked(request), &log).await;
        }
    }

    #[rstest]
    #[tokio::test]
    async fn killed_while_a_tool_is_called(
        #[values(Silence::BeforeItHappens, Silence::AfterItHappened)] silence: Silence,
    ) {
        let (mut stand, log) = undisturbed().await;
        let calls = stand.shop.calls();
        assert!(calls > 10, "{calls}");
        for call in 1..=calls {
            survives(&mut stand, When::Called(call, silence), &log).await;
        }
    }
}
