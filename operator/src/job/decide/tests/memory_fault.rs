//! Attempts whose workers could not write to the memory.

use super::*;
use crate::job::plan::MEMORY_FAULT_PAUSE;
use bloomery_crds::report::MemoryFault;

const FAULT: &str = "NotWritable: ask the admin";

/// The pod of the first attempt, whose worker could not write to the memory. It ended in the 30th second.
fn faulty_pod(job: &str) -> Pod {
    let fault = MemoryFault { job: job.into(), attempt: 1, not_writable: FAULT.into() };
    let mut pod = ended_pod(1, 30, None);
    let states = pod.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
    let terminated = states[0].state.as_mut().unwrap().terminated.as_mut().unwrap();
    terminated.message = serde_json::to_string(&fault).ok();
    pod
}

fn paused(plan: &Plan) -> &LostAttempt {
    match &plan.act {
        Act::Pause(lost) => lost,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_job_waits_with_the_reason_and_tries_again_every_minute() {
    let status = silent(status(1, Phase::Starting), 2);
    let plan = decide_at(40, &status, &[faulty_pod(UID)], false);
    let lost = paused(&plan);
    assert_eq!((lost.memory_fault.as_deref(), lost.silent, lost.disrupted), (Some(FAULT), 2, 0));
    assert!(lost.message.ends_with(FAULT), "{}", lost.message);
    assert_eq!(plan.requeue_after, Some(MEMORY_FAULT_PAUSE - SignedDuration::from_secs(10)));

    let mut recorded = status;
    let attempt = recorded.attempt.as_mut().unwrap();
    (attempt.memory_fault, attempt.ended) = (Some(FAULT.into()), Some(Time(at(30))));
    assert_eq!(act_at(89, &recorded, &[]), Act::KeepPausing);
    let Act::Start { attempt: 2, after: Some(lost) } = act_at(90, &recorded, &[]) else { panic!("it starts") };
    assert_eq!(lost.memory_fault.as_deref(), Some(FAULT));
}

#[test]
fn the_fault_of_another_job_does_not_count() {
    let plan = decide_at(30, &status(1, Phase::Starting), &[faulty_pod("other")], false);
    assert!(!matches!(&plan.act, Act::Pause(lost) if lost.memory_fault.is_some()), "{:?}", plan.act);
}
