//! The Skills of seed 000, as they stand there.

use super::stand::{SAYS_HELLO, Stand};
use bloomery_e2e::orders;
use std::fs;
use std::path::Path;

#[tokio::test]
async fn every_skill_of_the_seed_runs_as_it_is() {
    let stand = Stand::new(SAYS_HELLO).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    fs::create_dir(stand.path("project")).unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/tests/seeds");
    let mut run = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        // A fragment that shows a template, and declares none of what it names.
        if !name.starts_with("000-") || name == "000-persona-template.yaml" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let bound: &[&str] = if text.contains("codebase") { &["--resource", "codebase=project"] } else { &[] };
        let memory = format!("memory-of-{run}");
        let args = ["--skill", file.to_str().unwrap(), "--goal", "Greet", "--mcp", &url, "--memory", &memory];
        stand.run(&[&args, bound].concat()).await.assert(0, "Succeeded");
        run += 1;
    }
    assert_eq!(run, 6);
}

/// The job request of seed 000, "Example: Job Request".
#[tokio::test]
async fn the_seeds_job_request_is_a_command() {
    let stand = Stand::new(SAYS_HELLO).await;
    fs::create_dir_all(stand.path("myapp/tests")).unwrap();
    let ran = stand
        .run(&[
            "--goal",
            "Implement user authentication with JWT",
            "--skill",
            "sw-dev-senior",
            "--resource",
            "codebase=myapp",
            "--resource",
            "tests=myapp/tests",
            "--resource",
            "ci_api=https://ci.company.com/api",
            "--run-key",
            "k-1",
        ])
        .await;
    ran.assert(0, "Succeeded");
    let opened =
        stand.log("sw-dev-senior/jobs/k-1").into_iter().find(|line| line.contains("conversation.opened")).unwrap();
    assert!(opened.contains("/myapp") && opened.contains("Its tests are at"), "{opened}");
}
