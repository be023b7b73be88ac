//! Attempts that end by themselves count towards a crash loop. Disrupted ones have a higher limit and longer pauses.

use super::*;
use crate::job::applied::{AppliedPlan, StartedPod};
use crate::job::fixtures::{report, revision, stamp};
use crate::job::status::compute;
use crate::report::merge::{Merged, merge};
use bloomery_crds::v1alpha1::JobSpec;
use proptest::prelude::*;

/// The status after this number of disruptions in a row.
fn disrupted(mut status: JobStatus, disruptions: u32) -> JobStatus {
    status.attempt.as_mut().unwrap().disrupted = Some(disruptions);
    status
}

#[rstest]
#[case::first(0, 1)]
#[case::second(1, 2)]
#[case::third(2, 4)]
#[case::sixth(5, 32)]
#[case::seventh(6, 60)]
#[case::nineteenth(18, 60)]
fn the_pause_doubles_with_each_disruption(#[case] before: u32, #[case] seconds: i64) {
    let status = disrupted(status(9, Phase::Starting), before);
    let decision = decide_at(11, &status, &[], false);
    assert_eq!(summary(&decision.act), format!("pause disrupted={}", before + 1));
    assert_eq!(decision.requeue_after, Some(SignedDuration::from_secs(seconds)));
}

#[rstest]
#[case::twentieth_disruption(disrupted(status(20, Phase::Starting), 19), vec![], "end CrashLoop")]
#[case::crash_after_disruptions(disrupted(status(20, Phase::Starting), 19), vec![ended_pod(20, 11, None)], "pause silent=1")]
#[case::disruption_after_crashes(silent(status(3, Phase::Starting), 2), vec![], "pause silent=2 disrupted=1")]
#[case::third_crash(silent(status(4, Phase::Starting), 2), vec![ended_pod(4, 11, None)], "end CrashLoop")]
fn crashes_and_disruptions_are_counted_apart(
    #[case] status: JobStatus,
    #[case] pods: Vec<Pod>,
    #[case] expected: &str,
) {
    assert_eq!(summary(&act_at(11, &status, &pods)), expected);
}

#[test]
fn the_outcome_of_repeated_disruptions_says_what_to_look_for() {
    let Act::End(end) = act_at(11, &disrupted(status(20, Phase::Starting), 19), &[]) else { panic!("it ends") };
    for part in ["20 attempts in a row were disrupted", "refund-20-01234 of attempt 20 vanished", "kubectl get events"]
    {
        assert!(end.outcome.message.contains(part), "{part}: {}", end.outcome.message);
    }
}

/// What an attempt does.
#[derive(Debug, Clone, Copy)]
struct Life {
    /// True if its worker claims an epoch and reports it.
    reports: bool,
    /// The number of events after the claim that are reported, if the worker reports.
    progress: u64,
    /// True if its pod is deleted. Otherwise its worker ends by itself.
    deleted: bool,
}

fn life() -> impl Strategy<Value = Life> {
    (any::<bool>(), 0..3_u64, prop::bool::weighted(0.9)).prop_map(|(reports, progress, deleted)| Life {
        reports,
        progress: if reports { progress / 2 } else { 0 },
        deleted,
    })
}

/// The numbers that decide on a crash loop, counted in the simplest way.
#[derive(Debug, Default)]
struct Counted {
    silent: u32,
    disrupted: u32,
}

impl Counted {
    fn count(&mut self, life: Life) {
        if life.reports {
            self.silent = 0;
        }
        if life.progress > 0 {
            self.disrupted = 0;
        }
        match (life.deleted, life.reports) {
            (true, _) => self.disrupted += 1,
            (false, reports) => {
                self.disrupted = 0;
                self.silent = if reports { 0 } else { self.silent + 1 };
            }
        }
    }

    fn is_crash_loop(&self) -> bool {
        self.silent >= 3 || self.disrupted >= 20
    }
}

proptest! {
    /// For any sequence of lives, the Job ends exactly when the counts say so, and every pause is at most a minute.
    #[test]
    fn a_job_ends_after_three_crashes_or_twenty_disruptions(lives in prop::collection::vec(life(), 1..60)) {
        let (mut current, mut now, mut log) = (status(1, Phase::Starting), 0, (0, 0));
        let mut counted = Counted::default();
        for (life, number) in lives.into_iter().zip(1..) {
            if life.reports {
                log = (log.0 + 1, log.1 + 1 + life.progress);
                current = match merge(&current, &report(number, log.0, log.1, Phase::Running), &stamp(now)) {
                    Merged::Unchanged | Merged::Conflict(_) => current,
                    Merged::Urgent(status) | Merged::Deferrable(status) => *status,
                };
            }
            counted.count(life);
            let pods = if life.deleted { vec![] } else { vec![ended_pod(number, now, None)] };
            // The operator may see the end several times before the pause is over.
            for _ in 0..3 {
                let plan = decide_at(now, &current, &pods, false);
                if counted.is_crash_loop() {
                    prop_assert_eq!(summary(&plan.act), "end CrashLoop");
                    return Ok(());
                }
                let applied = match plan.act {
                    Act::Pause(lost) => AppliedPlan::Paused(lost),
                    Act::KeepPausing => AppliedPlan::Nothing,
                    Act::Start { attempt, after } => {
                        prop_assert_eq!(after.as_ref().map(|lost| lost.disrupted > 0), Some(life.deleted));
                        AppliedPlan::Started(started(attempt), after)
                    }
                    other => panic!("{other:?}"),
                };
                let has_started = matches!(applied, AppliedPlan::Started(..));
                current = compute(&current, &JobSpec::default(), &applied, &stamp(now));
                if has_started {
                    break;
                }
                let left = plan.requeue_after.unwrap().as_secs();
                prop_assert!((0..=60).contains(&left), "{left}");
                now += left;
            }
            prop_assert_eq!(current.attempt.as_ref().unwrap().number, number + 1);
        }
    }
}

fn started(attempt: u32) -> StartedPod {
    StartedPod {
        pod: format!("refund-{attempt}-01234"),
        uid: pod_uid(attempt),
        attempt,
        revision: revision(),
        continued: None,
        approved_call: None,
        lowered_limits: Vec::new(),
        created: None,
    }
}
