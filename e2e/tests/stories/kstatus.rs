//! What kstatus, Helm and Flux see of Bloomery's objects.

use std::fs::File;
use std::path::{Path, PathBuf};

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::Job;
use bloomery_e2e::harness::{command, refund_of, story};

/// Objects in every state, which the operator's tests write.
const OBJECTS: &str = "operator/src/snapshots/bloomery_operator__kstatus__objects.snap";

#[test]
fn each_state_has_the_status_of_the_contract() {
    let objects = File::open(command::checkout(OBJECTS)).expect("the golden file can be read");
    let found = command::kstatus(objects);
    assert!(found.lines().count() > 30, "{found}");
    for line in found.lines() {
        let (object, status) = line.split_once(' ').expect("an object and its status");
        let expected = match object {
            "Job/ended-succeeded" | "Job/ended-cancelled" | "Skill/ready" | "Model/ready" | "Approval/decided" => {
                "Current"
            }
            "Skill/stalled" | "Model/stalled" => "Failed",
            ended if ended.starts_with("Job/ended-") => "Failed",
            _ => "InProgress",
        };
        assert_eq!(status, expected, "{object}");
    }
}

#[tokio::test]
async fn helm_waits_until_the_skill_is_ready_and_the_job_has_succeeded() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1");
        let job = tenant.job("refund");
        let files = [("skill.json", json(skill.object())), ("job.json", json(job.object()))];
        let chart = chart(&tenant.namespace, &files);
        let path = chart.to_str().expect("a path of letters");
        let install = ["install", "refunds", path, "--namespace", &tenant.namespace, "--wait", "--timeout", "3m"];
        command::run(&mut command::helm(&install));
        let job = tenant.api::<Job>().get("refund").await.expect("Helm created the Job");
        assert_eq!(job.status.and_then(|status| status.phase), Some(Phase::Succeeded), "Helm waited for the Job");
        shop.assert_refunded_once("A-17").await;
        std::fs::remove_dir_all(chart).expect("the chart can be removed");
    })
    .await;
}

fn json(object: &impl serde::Serialize) -> String {
    serde_json::to_string(object).expect("an object can be serialized")
}

/// Writes a chart whose templates are these files, literally: the persona of a Skill has tags of its own.
fn chart(name: &str, files: &[(&str, String)]) -> PathBuf {
    let chart = std::env::temp_dir().join(name);
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("the chart can be written");
    std::fs::create_dir_all(chart.join("templates")).expect("the chart can be written");
    write(&chart.join("Chart.yaml"), "apiVersion: v2\nname: refunds\nversion: 0.1.0\n");
    for (file, text) in files {
        write(&chart.join(file), text);
        write(
            &chart.join("templates").join(file).with_extension("yaml"),
            &format!("{{{{ .Files.Get \"{file}\" }}}}\n"),
        );
    }
    chart
}
