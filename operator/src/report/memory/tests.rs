use super::*;
use crate::job::fixtures::{self, api::FakeApi, at};
use bloomery_crds::outcome::Phase;
use rstest::rstest;
use serde_json::{Value, json};

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";
const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/cs-tier-1";

fn skill(soft_limit: Option<&str>) -> Skill {
    serde_json::from_value(json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill",
        "metadata": {"namespace": "acme", "name": "cs-tier-1", "uid": "u-skill", "generation": 1},
        "spec": {"problem": {"statement": "help"}, "memory": {"softLimit": soft_limit}},
        "status": {"observedGeneration": 1},
    }))
    .unwrap()
}

fn survey(bytes: u64) -> MemorySurvey {
    MemorySurvey { bytes, ..MemorySurvey::default() }
}

fn recorded(bytes: u64) -> MemoryUsage {
    usage(&survey(bytes), at(0))
}

#[rstest]
#[case::first(None, 5, 0, true)]
#[case::unchanged(Some(5), 5, 9999, false)]
#[case::changed_a_moment_ago(Some(5), 6, 299, false)]
#[case::changed(Some(5), 6, 300, true)]
#[case::reaches_the_limit(Some(5), 2000, 1, true)]
#[case::falls_below_the_limit(Some(2000), 5, 1, true)]
#[case::still_above_the_limit(Some(2000), 2000, 300, true)]
#[case::above_the_limit_a_moment_ago(Some(2000), 3000, 299, false)]
fn a_size_is_written_if_it_changed_and_at_most_every_five_minutes(
    #[case] before: Option<u64>,
    #[case] bytes: u64,
    #[case] after: i64,
    #[case] is_written: bool,
) {
    let before = before.map(recorded);
    assert_eq!(is_worth_a_write(before.as_ref(), &survey(bytes), &skill(Some("1Ki")), at(after)), is_written);
}

#[test]
fn a_recorded_survey_fits_into_the_status() {
    let directory = DirectoryUsage { name: "x".repeat(99), bytes: 1 };
    let large = MemorySurvey { bytes: 9, directories: vec![directory; 99], prunable: Vec::new() };
    let kept = usage(&large, at(0));
    assert_eq!(kept.directories.len(), MemoryUsage::MAX_DIRECTORIES);
    assert!(kept.directories.iter().all(|directory| directory.name.len() <= DirectoryUsage::MAX_NAME_BYTES));
}

#[tokio::test]
async fn the_first_survey_is_recorded_with_one_write_and_the_next_with_none() {
    let api = FakeApi::default();
    api.put(SKILL, serde_json::to_value(skill(None)).unwrap());
    let mut report = fixtures::report(1, 1, 4, Phase::Running);
    report.memory = Some(survey(7));
    for writes in [vec![format!("status {SKILL}")], Vec::new()] {
        record(&*api.operator().await, &fixtures::job(), &report).await;
        assert_eq!(api.writes(), writes);
    }
    assert_eq!(api.get(SKILL)["status"]["memory"]["bytes"], 7);
    assert_eq!(api.get(SKILL)["status"]["observedGeneration"], 1);
}

fn put_job(api: &FakeApi, uid: &str, change: fn(&mut Value)) {
    let mut job = serde_json::to_value(fixtures::job()).unwrap();
    job["metadata"]["name"] = json!(uid);
    job["metadata"]["uid"] = json!(uid);
    change(&mut job);
    api.put(&format!("{JOBS}/{uid}"), job);
}

async fn unneeded(api: &FakeApi) -> Vec<String> {
    let mut report = fixtures::report(1, 1, 4, Phase::Running);
    let prunable = ["u-1", "nightly", "u-2", "u-3", "u-4", "u-5", "u-6", "gone"].map(str::to_owned).to_vec();
    report.memory = Some(MemorySurvey { prunable, ..survey(1) });
    unneeded_logs(&api.operator().await.caches, &fixtures::job(), &report)
}

#[tokio::test]
async fn a_log_whose_job_exists_or_is_continued_is_never_pruned() {
    let api = FakeApi::default();
    put_job(&api, "u-1", |job| job["status"] = json!({"phase": "Succeeded"}));
    // Its log has the name of the key.
    put_job(&api, "u-2", |job| job["spec"]["runKey"] = json!("nightly"));
    put_job(&api, "follow-up", |job| job["status"] = json!({"phase": "Running", "continuedUID": "u-3"}));
    put_job(&api, "over", |job| job["status"] = json!({"phase": "Succeeded", "continuedUID": "u-4"}));
    put_job(&api, "u-5", |job| job["spec"]["skill"] = json!("other"));
    assert_eq!(unneeded(&api).await, ["u-2", "u-4", "u-5", "u-6", "gone"]);
}

#[tokio::test]
async fn nothing_is_pruned_while_a_job_cannot_be_read() {
    let api = FakeApi::default();
    put_job(&api, "newer", |job| job["spec"]["limits"] = json!("none"));
    assert_eq!(unneeded(&api).await, [""; 0]);
}
