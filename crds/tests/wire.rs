//! What the version before this one wrote can be read, and nothing of it is lost. `make test-versions` builds that version, and checks that
//! the run documents here are those of its golden files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bloomery_crds::Digest;
use bloomery_crds::children::SkillPage;
use bloomery_crds::probe::{ProbePart, ProbeReport, TokenRequest};
use bloomery_crds::report::{Directives, MemoryFault, Report, TerminationMessage};
use bloomery_crds::run::{JobPart, open_job_part, open_revision, seal};
use bloomery_crds::unknown;
use bloomery_crds::v1alpha1::{Approval, CRD_VERSION, JobStatus, ModelStatus, SkillStatus, definitions};
use rstest::rstest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

fn stored(name: &str) -> String {
    std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire/n-1").join(name)).unwrap()
}

/// Returns the fields of `before` that `after` lacks or changes. A newer version may add fields.
fn lost(path: &str, before: &Value, after: &Value) -> Vec<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().flat_map(|(name, field)| lost(&format!("{path}.{name}"), field, &after[name])).collect()
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).flat_map(|(before, after)| lost(&format!("{path}[]"), before, after)).collect()
        }
        _ if before == after => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

fn keeps<T: DeserializeOwned + Serialize>(name: &str) {
    let before: Value = serde_json::from_str(&stored(name)).unwrap();
    let read: T = serde_json::from_value(before.clone()).unwrap();
    assert_eq!(lost("", &before, &serde_json::to_value(read).unwrap()), Vec::<String>::new(), "{name}");
}

#[rstest]
#[case("asks")]
#[case("finished")]
#[case("parked")]
#[case("waits")]
fn reports_are_read(#[case] name: &str) {
    keeps::<Report>(&format!("report-{name}.json"));
}

#[rstest]
#[case("finished")]
#[case("parked")]
#[case("superseded")]
fn termination_messages_are_read(#[case] name: &str) {
    let name = format!("termination-{name}.json");
    assert!(TerminationMessage::from_text(&stored(&name)).is_some());
    keeps::<TerminationMessage>(&name);
}

#[rstest]
#[case("running")]
#[case("succeeded")]
#[case("waiting")]
fn the_statuses_of_jobs_are_read(#[case] name: &str) {
    keeps::<JobStatus>(&format!("job-status-{name}.json"));
}

#[test]
fn directives_statuses_and_approvals_are_read() {
    keeps::<Directives>("directives.json");
    keeps::<SkillStatus>("skill-status.json");
    keeps::<ModelStatus>("model-status.json");
    keeps::<Approval>("approval.json");
    let approval: Value = serde_json::from_str(&stored("approval.json")).unwrap();
    assert_eq!(unknown::read::<Approval>(&approval).unknown, None);
}

#[test]
fn documents_of_probes_skill_pages_and_memory_faults_are_read() {
    keeps::<ProbePart>("probe-part.json");
    keeps::<ProbeReport>("probe-report.json");
    keeps::<TokenRequest>("token-request.json");
    keeps::<SkillPage>("skill-page.json");
    keeps::<MemoryFault>("memory-fault.json");
    let message = stored("memory-fault.json");
    assert!(MemoryFault::from_text(&message).is_some() && TerminationMessage::from_text(&message).is_none());
}

/// Returns whether a document with a field of the next version can be read.
fn ignores_a_new_field<T: DeserializeOwned>(name: &str) -> bool {
    let mut document: Value = serde_json::from_str(&stored(name)).unwrap();
    document.as_object_mut().unwrap().insert("fieldOfTheNextVersion".into(), "x".into());
    serde_json::from_value::<T>(document).is_ok()
}

#[test]
fn a_new_field_of_a_message_between_two_versions_is_ignored() {
    assert!(ignores_a_new_field::<Report>("report-finished.json"));
    assert!(ignores_a_new_field::<Directives>("directives.json"));
    assert!(ignores_a_new_field::<TerminationMessage>("termination-finished.json"));
    assert!(ignores_a_new_field::<ProbeReport>("probe-report.json"));
    assert!(ignores_a_new_field::<TokenRequest>("token-request.json"));
    assert!(ignores_a_new_field::<SkillPage>("skill-page.json"));
    assert!(ignores_a_new_field::<MemoryFault>("memory-fault.json"));
}

#[test]
fn changed_crds_have_a_higher_version() {
    let before: Value = serde_json::from_str(&stored("crds.json")).unwrap();
    let specs: Vec<_> = definitions().map(|definition| &definition.spec).collect();
    let digest = Digest::of_value(&serde_json::to_value(specs).unwrap());
    let is_raised = u64::from(CRD_VERSION) > before["version"].as_u64().unwrap();
    assert!(is_raised || before["digest"] == digest.as_str(), "the CRDs have changed: raise CRD_VERSION ({digest})");
}

#[test]
fn a_revision_and_a_job_part_are_opened() {
    let text = stored("revision.json");
    let revision = open_revision(&text, &Digest::of_bytes(text.as_bytes())).unwrap();
    assert_eq!(seal(&revision).unwrap().text, text, "each Skill would get another revision after an upgrade");
    let text = stored("job-part.json");
    open_job_part(&text, &Digest::of_bytes(text.as_bytes())).unwrap();
    keeps::<JobPart>("job-part.json");
}
