use super::super::fetch::FetchedSkill;
use super::super::fixtures;
use super::build::{ProbeInputs, ProbedExternal, ProbedSidecar, build_pod};
use super::decide::{Plan, ProbeState, decide};
use super::observe::{ProbePod, is_probe_of, observe};
use super::subject::{Wanted, wanted};
use crate::external_mcp::resolve_external_mcp;
use crate::job::fixtures::{mcp_settings, worker_settings};
use crate::mcp_container::sidecar::Sidecar;
use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::names;
use bloomery_crds::probe::{ProbePart, SkillIdentity};
use bloomery_crds::run::{self, ReportEndpoint};
use bloomery_crds::v1alpha1::{McpServer, RevisionRef, Skill};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;

fn of_container() -> Wanted {
    wanted(&fixtures::with_container(), &FetchedSkill::default()).unwrap()
}

fn inputs(number: u32) -> ProbeInputs {
    let skill = fixtures::with_container();
    ProbeInputs {
        skill: SkillIdentity { namespace: "acme".into(), name: "orders".into(), uid: "u-skill".into() },
        owner: owned::owner_reference(&skill).unwrap(),
        revision: RevisionRef { name: "orders-12345678".into(), digest: Digest::of_bytes(b"revision") },
        wanted: of_container(),
        number,
        report: ReportEndpoint { url: "https://operator:8443/v1/probes".into(), ca: "PEM".into() },
        sidecar: None,
        external: None,
        pod: None,
    }
}

/// The inputs of the probe of a Skill whose Jobs have a server each.
fn inputs_with_sidecar() -> ProbeInputs {
    let skill = fixtures::with_sidecar();
    let container = skill.spec.mcp_server.as_ref().and_then(McpServer::sidecar).unwrap();
    let server = Sidecar::new(container, None, &mcp_settings()).unwrap().with_probe_values();
    let filesystems = vec!["codebase".to_owned()];
    ProbeInputs { sidecar: Some(ProbedSidecar { server, filesystems }), ..inputs(1) }
}

fn outside() -> Wanted {
    wanted(&fixtures::with_uri(), &FetchedSkill::default()).unwrap()
}

/// The inputs of the probe of a server outside of the cluster.
fn inputs_outside() -> ProbeInputs {
    let server = resolve_external_mcp(fixtures::with_uri().spec.mcp_server.as_ref()).unwrap();
    let denied_ranges = vec!["10.1.0.0/24".parse().unwrap()];
    let external = ProbedExternal { server, shared_hosts: vec!["gateway.ai.svc".into()], denied_ranges };
    ProbeInputs { wanted: outside(), external: Some(external), ..inputs(1) }
}

#[test]
fn a_probe_has_the_labels_and_nodes_of_workers_that_the_installation_and_the_skill_set() {
    let mut settings = worker_settings();
    settings.pod = serde_json::from_value(json!({
        "podLabels": {"team": "a", "kueue.x-k8s.io/queue-name": "agents"}, "podAnnotations": {"mesh": "off"},
        "skillMaySet": ["nodeSelector"],
    }))
    .unwrap();
    let own = serde_json::from_value(json!({"nodeSelector": {"gpu": "yes"}, "labels": {"team": "b"}})).unwrap();
    let pod = build_pod(&ProbeInputs { pod: Some(own), ..inputs(1) }, &settings).unwrap();
    let labels = pod.metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels.contains_key("kueue.x-k8s.io/queue-name")), ("a", false));
    assert_eq!(pod.metadata.annotations.unwrap()["mesh"], "off");
    assert_eq!(pod.spec.unwrap().node_selector.unwrap()["gpu"], "yes");
}

/// The pod of a try that was created at second 0, with a status.
fn stored(number: u32, status: &Value) -> Pod {
    let mut pod = serde_json::to_value(build_pod(&inputs(number), &worker_settings()).unwrap()).unwrap();
    pod["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    pod["metadata"]["uid"] = json!(format!("u-pod-{number}"));
    pod["status"] = status.clone();
    serde_json::from_value(pod).unwrap()
}

fn seen(number: u32, status: &Value) -> ProbePod {
    observe(&stored(number, status)).unwrap()
}

fn ended(phase: &str, second: u32, message: &str) -> Value {
    let terminated = json!({"exitCode": 1, "finishedAt": format!("1970-01-01T00:00:{second:02}Z"), "message": message});
    json!({"phase": phase, "containerStatuses": [worker(&json!({ "terminated": terminated }))]})
}

fn worker(state: &Value) -> Value {
    json!({"name": "worker", "image": "worker:1", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn plan(pods: &[ProbePod], is_available: bool, second: i64) -> Plan {
    decide(Some(&of_container()), pods, is_available, at(second))
}

#[test]
fn the_whole_pod() {
    let pod = build_pod(&inputs(1), &worker_settings()).unwrap();
    let annotations = pod.metadata.annotations.as_ref().unwrap();
    let args = pod.spec.as_ref().unwrap().containers[0].args.as_ref().unwrap();
    let digest: Digest = args.iter().find_map(|arg| arg.strip_prefix("--part-digest=")).unwrap().parse().unwrap();
    let part: ProbePart = run::open_sealed("the part", &annotations[names::ANNOTATION_PROBE_PART], &digest).unwrap();
    assert_eq!((Some(&part.pod), &part.subject), (pod.metadata.name.as_ref(), &of_container().subject));
    insta::assert_snapshot!(serde_yaml::to_string(&serde_json::to_value(&pod).unwrap()).unwrap());
}

#[test]
fn the_whole_pod_with_the_server_of_a_job() {
    let pod = build_pod(&inputs_with_sidecar(), &worker_settings()).unwrap();
    insta::assert_snapshot!(serde_yaml::to_string(&serde_json::to_value(&pod).unwrap()).unwrap());
}

#[test]
fn the_whole_pod_with_the_credentials_of_a_server_outside_of_the_cluster() {
    let pod = build_pod(&inputs_outside(), &worker_settings()).unwrap();
    insta::assert_snapshot!(serde_yaml::to_string(&serde_json::to_value(&pod).unwrap()).unwrap());
}

#[test]
fn a_probe_ends_with_its_worker_even_if_the_server_still_runs() {
    let seen = |code: i32| {
        let mut status = ended("Running", 5, "the server does not answer\n");
        status["containerStatuses"][0]["state"]["terminated"]["exitCode"] = json!(code);
        status["initContainerStatuses"] = json!([{
            "name": "mcp", "image": "localhost/db:5", "imageID": "", "ready": true, "restartCount": 1, "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 3}},
        }]);
        let mut pod = serde_json::to_value(build_pod(&inputs_with_sidecar(), &worker_settings()).unwrap()).unwrap();
        pod["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
        pod["status"] = status;
        observe(&serde_json::from_value(pod).unwrap()).unwrap().end.unwrap().failure
    };
    assert_eq!(seen(0), None);
    let failure = seen(1).unwrap();
    assert!(failure.starts_with("the server does not answer; the MCP server exited with code 3"), "{failure}");
}

#[test]
fn a_probe_starts_once_the_server_is_available() {
    assert_eq!(plan(&[], false, 0).start, None);
    let Plan { start, state, .. } = plan(&[], true, 0);
    assert_eq!((start, state), (Some(1), ProbeState::Pending));
    let running = plan(&[seen(1, &json!({"phase": "Running"}))], true, 1);
    assert_eq!((running.start, running.state, running.delete), (None, ProbeState::Pending, vec![]));
}

#[test]
fn a_verified_server_and_a_skill_without_a_server_have_no_pods() {
    let pods = [seen(1, &json!({"phase": "Running"}))];
    let verified = decide(Some(&Wanted { is_verified: true, ..of_container() }), &pods, true, at(1));
    assert_eq!((verified.state, verified.delete.len(), verified.requeue_after), (ProbeState::Verified, 1, None));
    let without = decide(None, &pods, true, at(1));
    assert_eq!((without.state, without.delete.len(), without.start), (ProbeState::NoServer, 1, None));
}

#[test]
fn a_probe_of_an_earlier_subject_is_deleted() {
    let other = ProbePod { probe: Digest::of_bytes(b"other"), ..seen(3, &json!({"phase": "Running"})) };
    let Plan { delete, start, .. } = plan(std::slice::from_ref(&other), true, 1);
    assert_eq!((delete, start), (vec![other.metadata], Some(1)));
}

#[rstest]
#[case::first(1, 10)]
#[case::second(2, 20)]
#[case::fifth(5, 160)]
#[case::much_later(40, 1800)]
fn a_failed_probe_is_repeated_after_growing_delays(#[case] number: u32, #[case] delay: i64) {
    let failed = [seen(number, &ended("Failed", 5, "the server does not answer\n"))];
    let early = plan(&failed, true, 5 + delay - 1);
    assert_eq!((early.start, early.delete.len()), (None, 0));
    assert_eq!(early.state, ProbeState::Failed("the server does not answer".into()));
    assert_eq!(early.requeue_after, Some(SignedDuration::from_secs(1)));
    let due = plan(&failed, true, 5 + delay);
    assert_eq!((due.start, due.delete.len()), (Some(number + 1), 0));
    let server_is_down = plan(&failed, false, 5 + delay);
    assert_eq!((server_is_down.start, server_is_down.delete.len()), (None, 0));
}

#[test]
fn a_failed_probe_keeps_its_number_and_its_cause_until_the_next_pod_exists() {
    let failed = || seen(1, &ended("Failed", 5, "the server does not answer\n"));
    let cause = ProbeState::Failed("the server does not answer".into());
    let due = plan(&[failed()], true, 15);
    assert_eq!((due.start, &due.state), (Some(2), &cause));
    // What the cache shows once it has this plan.
    let mut cached: Vec<ProbePod> = vec![failed()];
    cached.retain(|pod| !due.delete.contains(&pod.metadata));
    let again = plan(&cached, true, 15);
    assert_eq!((again.start, again.state), (Some(2), cause), "the next pod is not in the cache yet");
    cached.push(seen(2, &json!({"phase": "Pending"})));
    let repeated = plan(&cached, true, 16);
    assert_eq!((repeated.start, repeated.state), (None, ProbeState::Repeated));
    assert_eq!(repeated.delete, [failed().metadata]);
}

#[test]
fn a_server_outside_of_the_cluster_is_asked_again_after_two_minutes() {
    let wanted = outside();
    let failed = ProbePod { probe: wanted.probe.clone(), ..seen(40, &ended("Failed", 5, "a Secret is missing")) };
    let start = |second| decide(Some(&wanted), std::slice::from_ref(&failed), true, at(second)).start;
    assert_eq!((start(5 + 119), start(5 + 120)), (None, Some(41)));
}

#[test]
fn a_probe_that_has_reported_waits_for_the_cache() {
    let reported = plan(&[seen(1, &ended("Succeeded", 5, ""))], true, 6);
    assert_eq!((reported.start, reported.state), (None, ProbeState::Pending));
}

#[rstest]
#[case::image(worker(&json!({"waiting": {"reason": "ErrImagePull", "message": "a"}})), "cannot get its image worker:1")]
#[case::back_off(worker(&json!({"waiting": {"reason": "ImagePullBackOff", "message": "b"}})), "cannot get its image worker:1")]
#[case::config(worker(&json!({"waiting": {"reason": "CreateContainerConfigError"}})), "cannot start (CreateContainerConfigError)")]
fn a_pod_that_never_starts_fails_and_is_replaced_in_bounded_time(#[case] container: Value, #[case] expected: &str) {
    let pods = [seen(1, &json!({"phase": "Pending", "containerStatuses": [container]}))];
    let waiting = plan(&pods, true, 30);
    let ProbeState::Failed(message) = waiting.state else { panic!("{:?}", waiting.state) };
    assert!(message.contains(expected), "{message}");
    let replaced = plan(&pods, true, 310);
    assert_eq!((replaced.start, replaced.delete.len()), (Some(2), 0));
}

#[rstest]
#[case::deadline(json!({"phase": "Failed", "reason": "DeadlineExceeded"}), "did not end in time")]
#[case::evicted(json!({"phase": "Failed", "reason": "Evicted"}), "failed (Evicted)")]
#[case::crash(ended("Failed", 5, ""), "exited with code 1 and without a report")]
fn the_end_of_a_pod_without_a_message_is_described(#[case] status: Value, #[case] expected: &str) {
    let failure = seen(1, &status).end.unwrap().failure.unwrap();
    assert!(failure.contains(expected), "{failure}");
}

#[test]
fn the_running_repetition_of_a_failed_probe_keeps_its_condition() {
    assert_eq!(plan(&[seen(2, &json!({"phase": "Running"}))], true, 1).state, ProbeState::Repeated);
}

#[test]
fn only_labelled_pods_of_the_skill_are_its_probes() {
    let pod = stored(1, &json!({}));
    assert!(is_probe_of(&pod, "u-skill") && !is_probe_of(&pod, "u-other"));
    let mut worker = pod;
    worker.metadata.labels.as_mut().unwrap().insert(names::LABEL_COMPONENT.into(), "worker".into());
    assert!(!is_probe_of(&worker, "u-skill"));
}

fn key(skill: &Skill, fetched: &FetchedSkill) -> Digest {
    wanted(skill, fetched).unwrap().subject.key
}

fn running(image: &str, ready: bool) -> FetchedSkill {
    let pod = json!({
        "metadata": {"name": "orders-mcp-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"containerStatuses": [
            {"name": "mcp", "image": "orders:3", "imageID": image, "ready": ready, "restartCount": 0},
        ]},
    });
    FetchedSkill { mcp_pods: vec![Arc::new(serde_json::from_value(pod).unwrap())], ..FetchedSkill::default() }
}

#[rstest]
#[case::display_name(|skill: &mut Skill| skill.spec.display_name = Some("Other".into()), false)]
#[case::persona(|skill: &mut Skill| skill.spec.role = None, false)]
#[case::goal(|skill: &mut Skill| skill.spec.problem.statement = "Other".into(), false)]
#[case::server(|skill: &mut Skill| skill.spec.mcp_server.as_mut().unwrap().container.as_mut().unwrap().port = 1, true)]
#[case::accepted_tools(|skill: &mut Skill| skill.spec.mcp_server.as_mut().unwrap().tools_digest = Some(Digest::of_bytes(b"")), true)]
#[case::rules(|skill: &mut Skill| skill.spec.policy = Some(serde_json::from_value(json!({"allowUnmatched": true})).unwrap()), true)]
#[case::tools(|skill: &mut Skill| skill.spec.tools = serde_json::from_value(json!([{"name": "refund"}])).unwrap(), true)]
fn only_an_edit_of_the_server_or_the_rules_needs_another_probe(
    #[case] edit: fn(&mut Skill),
    #[case] needs_probe: bool,
) {
    let (before, mut after) = (fixtures::with_container(), fixtures::with_container());
    edit(&mut after);
    let fetched = FetchedSkill::default();
    assert_eq!(key(&before, &fetched) != key(&after, &fetched), needs_probe);
}

#[test]
fn another_running_image_needs_another_probe() {
    let skill = fixtures::with_container();
    assert_eq!(key(&skill, &running("sha256:a", true)), key(&skill, &running("sha256:a", true)));
    assert_ne!(key(&skill, &running("sha256:a", true)), key(&skill, &running("sha256:b", true)));
    assert_eq!(key(&skill, &running("sha256:b", false)), key(&skill, &FetchedSkill::default()));
    assert_eq!(wanted(&fixtures::without_server(), &FetchedSkill::default()), None);
}

#[test]
fn a_job_that_finds_other_tools_leads_to_one_more_probe() {
    let mut skill = fixtures::with_container();
    let first = of_container();
    assert!(!first.is_verified);
    let report = super::super::fixtures::probe_report(&skill, &first.subject, &[("refund", "Refunds")]);
    let at = |second| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(second));
    skill.status = Some(crate::report::probe::record(&skill, &report, at(100)).unwrap());
    let seen_at = |second| FetchedSkill { tools_changed_at: Some(at(second)), ..FetchedSkill::default() };
    assert!(wanted(&skill, &FetchedSkill::default()).unwrap().is_verified);
    assert!(wanted(&skill, &seen_at(99)).unwrap().is_verified);
    let again = wanted(&skill, &seen_at(101)).unwrap();
    assert!(!again.is_verified && again.probe != first.probe);
    assert_eq!(again.subject, first.subject);
    let changed = super::super::fixtures::probe_report(&skill, &first.subject, &[("refund", "Refunds all")]);
    skill.status = Some(crate::report::probe::record(&skill, &changed, at(102)).unwrap());
    assert!(wanted(&skill, &seen_at(103)).unwrap().is_verified, "the change is known already");
}
