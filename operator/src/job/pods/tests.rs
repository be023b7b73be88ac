use super::*;
use crate::job::fixtures::{UID, at, container, ended_pod, message, pod, pod_uid, status};
use bloomery_crds::conditions::Reason;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::report::ParkReason;
use bloomery_crds::report::PodEnd;
use bloomery_crds::v1alpha1::AskedQuestion;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateWaiting, ContainerStatus, PodCondition, PodSchedulingGate,
    PodSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

const JOB: (&str, &str) = ("refund", UID);

fn read(pod: &Pod, now: i64) -> WorkerPod {
    WorkerPod::read(pod, JOB, None, at(now)).unwrap()
}

fn problem(pod: &Pod, now: i64) -> Option<PodProblem> {
    match read(pod, now).state {
        PodState::Alive(problem) => problem,
        PodState::Ended { how, .. } => panic!("ended: {how}"),
    }
}

fn with_condition(kind: &str, reason: &str, state: ContainerState) -> Pod {
    let mut pod = pod(1, "Pending");
    pod.spec = Some(PodSpec { node_name: Some("node-a".into()), ..PodSpec::default() });
    let status = pod.status.as_mut().unwrap();
    status.conditions = Some(vec![PodCondition {
        type_: kind.into(),
        status: "False".into(),
        reason: Some(reason.into()),
        message: Some("0/3 nodes are available".into()),
        ..PodCondition::default()
    }]);
    status.container_statuses = Some(vec![container(state)]);
    pod
}

fn waiting(reason: &str) -> Pod {
    let waiting = ContainerStateWaiting { reason: Some(reason.into()), message: Some("no such thing".into()) };
    with_condition("None", "", ContainerState { waiting: Some(waiting), ..ContainerState::default() })
}

fn running() -> ContainerState {
    ContainerState { running: Some(ContainerStateRunning::default()), ..ContainerState::default() }
}

#[rstest]
#[case::unschedulable_for_a_moment(with_condition("PodScheduled", "Unschedulable", ContainerState::default()), 4, None)]
#[case::unschedulable(
    with_condition("PodScheduled", "Unschedulable", ContainerState::default()),
    5,
    Some(Reason::Unschedulable)
)]
#[case::gated(with_condition("PodScheduled", "SchedulingGated", ContainerState::default()), 5, Some(Reason::Queued))]
#[case::no_image(waiting("ImagePullBackOff"), 0, Some(Reason::ImageUnavailable))]
#[case::no_such_image_name(waiting("InvalidImageName"), 0, Some(Reason::ImageUnavailable))]
#[case::bad_container(waiting("CreateContainerConfigError"), 0, Some(Reason::PodNotStarting))]
#[case::creating(waiting("ContainerCreating"), 59, None)]
#[case::creating_for_too_long(waiting("ContainerCreating"), 60, Some(Reason::PodNotStarting))]
#[case::running(with_condition("None", "", running()), 900, None)]
#[case::silent_node(with_condition("Ready", "NodeNotReady", running()), 0, Some(Reason::NodeLost))]
fn the_problem_of_a_pod_has_a_reason_and_names_the_pod(
    #[case] pod: Pod,
    #[case] now: i64,
    #[case] expected: Option<Reason>,
) {
    let found = problem(&pod, now);
    assert_eq!(found.as_ref().map(|problem| problem.reason), expected, "{found:?}");
    if let Some(problem) = found {
        assert!(problem.message.contains("refund-1-01234"), "{}", problem.message);
    }
}

#[test]
fn a_pod_that_waits_in_a_queue_names_its_scheduling_gates() {
    let mut pod = with_condition("PodScheduled", "SchedulingGated", ContainerState::default());
    let gate = PodSchedulingGate { name: "kueue.x-k8s.io/admission".into() };
    pod.spec.as_mut().unwrap().scheduling_gates = Some(vec![gate]);
    let queued = problem(&pod, 86_400).unwrap();
    assert_eq!(queued.reason, Reason::Queued);
    assert!(queued.message.ends_with("its scheduling gates: kueue.x-k8s.io/admission"), "{}", queued.message);
}

#[test]
fn the_node_of_a_pod_that_outlives_its_deletion_is_lost() {
    let mut pod = with_condition("None", "", running());
    pod.metadata.deletion_timestamp = Some(Time(at(60)));
    assert_eq!(problem(&pod, 90), None);
    let lost = problem(&pod, 91).unwrap();
    assert_eq!(lost.reason, Reason::NodeLost);
    assert!(lost.message.contains("node-a"), "{}", lost.message);
}

#[test]
fn the_time_and_the_cause_of_an_end_are_read() {
    let ended = read(&ended_pod(2, 30, None), 40);
    assert_eq!(
        ended.state,
        PodState::Ended { at: Some(at(30)), how: "exit code 137 (OOMKilled)".into(), disrupted: false }
    );
    assert_eq!((ended.attempt, ended.uid, ended.message), (2, pod_uid(2), None));
    let mut with_message = ended_pod(2, 30, None);
    let states = with_message.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
    let state = states[0].state.as_mut().unwrap().terminated.as_mut().unwrap();
    state.message = Some("NotWritable: /memory/orders\n".into());
    let PodState::Ended { how, .. } = read(&with_message, 40).state else { panic!("it ended") };
    assert_eq!(how, "exit code 137 (OOMKilled): NotWritable: /memory/orders");
    let mut evicted = pod(1, "Failed");
    evicted.status.as_mut().unwrap().reason = Some("Evicted".into());
    let evicted = read(&evicted, 40);
    assert_eq!(evicted.state, PodState::Ended { at: None, how: "Evicted".into(), disrupted: true });
    assert_eq!(evicted.end_time(), Some(at(0)));
}

#[test]
fn a_pod_whose_worker_has_ended_has_ended_although_a_sidecar_runs_on() {
    let mut pod = ended_pod(2, 30, None);
    assert!(!read(&pod, 40).outlives_worker);
    let status = pod.status.as_mut().unwrap();
    status.phase = Some("Running".into());
    let sidecar = ContainerStatus { name: "proxy".into(), ..container(running()) };
    status.container_statuses.as_mut().unwrap().push(sidecar);
    let seen = read(&pod, 40);
    assert!(seen.outlives_worker);
    let how = "exit code 137 (OOMKilled)".into();
    assert_eq!(seen.state, PodState::Ended { at: Some(at(30)), how, disrupted: false });
}

#[test]
fn a_termination_message_of_another_attempt_or_job_is_ignored() {
    let termination = message(2, PodEnd::Finished, Some(OutcomeCode::Succeeded));
    assert_eq!(read(&ended_pod(2, 30, Some(termination.clone())), 40).message, Some(termination.clone()));
    assert_eq!(read(&ended_pod(1, 30, Some(termination.clone())), 40).message, None);
    let of_another = TerminationMessage { job: "other".into(), ..termination };
    assert_eq!(read(&ended_pod(2, 30, Some(of_another)), 40).message, None);
}

#[test]
fn invalid_questions_in_a_termination_message_are_ignored() {
    let read_questions = |id: &str, heard| {
        let mut termination = message(2, PodEnd::Parked(ParkReason::Reply), None);
        termination.questions =
            vec![AskedQuestion { id: id.into(), text: "Which?".into(), ..AskedQuestion::default() }];
        termination.replies_heard = heard;
        let read = read(&ended_pod(2, 30, Some(termination)), 40).message.unwrap();
        (read.questions.len(), read.replies_heard)
    };
    assert_eq!(read_questions("q-1", 32), (1, 32));
    assert_eq!((read_questions(&"q".repeat(17), 1), read_questions("q-1", 33)), ((0, 0), (0, 0)));
}

#[test]
fn a_pod_of_another_owner_is_ignored_unless_it_is_recorded() {
    assert_eq!(WorkerPod::read(&pod(1, "Running"), ("refund", "another-uid"), None, at(0)), None);
    let mut unlabelled = pod(1, "Running");
    unlabelled.metadata.labels = None;
    assert_eq!(WorkerPod::read(&unlabelled, JOB, None, at(0)), None);
    let recorded = status(1, Phase::Running).attempt;
    let mut copy = pod(1, "Running");
    copy.metadata.owner_references = None;
    assert!(WorkerPod::read(&copy, JOB, recorded.as_ref(), at(0)).is_some());
    copy.metadata.uid = Some("another pod of that name".into());
    assert_eq!(WorkerPod::read(&copy, JOB, recorded.as_ref(), at(0)), None);
}

#[test]
fn a_worker_that_has_ended_beside_a_running_sidecar_has_ended() {
    let mut pod = ended_pod(2, 30, Some(message(2, PodEnd::Finished, Some(OutcomeCode::Succeeded))));
    pod.status.as_mut().unwrap().phase = Some("Running".into());
    let ended = read(&pod, 40);
    assert_eq!(ended.end_time(), Some(at(30)));
    assert!(ended.message.is_some());
    assert!(!ended.outlives_worker, "the kubelet stops the sidecar");
}

#[test]
fn a_sidecar_that_is_not_ready_does_not_mean_that_the_node_is_lost() {
    let mut pod = with_condition("Ready", "ContainersNotReady", running());
    let mut sidecar = container(running());
    (sidecar.name, sidecar.ready) = ("mcp".into(), false);
    pod.status.as_mut().unwrap().init_container_statuses = Some(vec![sidecar.clone()]);
    assert_eq!(problem(&pod, 900), None);
    sidecar.ready = true;
    pod.status.as_mut().unwrap().init_container_statuses = Some(vec![sidecar]);
    assert_eq!(problem(&pod, 900).map(|problem| problem.reason), Some(Reason::NodeLost));
}
