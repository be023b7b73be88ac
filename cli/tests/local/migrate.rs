//! Tests of `bloomery migrate` on a memory of the older runtime, which has one directory for all Skills.

use super::setup::{SAYS_HELLO, Setup};

async fn older_memory() -> Setup {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("memory/workspace/jobs/job_1.json", r#"{"id": "job_1", "skillSlug": "cs-tier-1", "goal": "x"}"#);
    setup.write("memory/workspace/jobs/job_2.json", r#"{"id": "job_2", "goal": "y"}"#);
    setup.write("memory/workspace/logs/job_1.log", "one");
    setup.write("memory/workspace/focus-cache/abc", "cached");
    setup
}

#[tokio::test]
async fn files_are_moved_only_with_apply() {
    let setup = older_memory().await;
    let before = setup.all_contents();
    let dry = setup.bloomery(&["migrate"]).await;
    dry.assert(0, "4 files to move; --apply moves them; 0 stay");
    assert!(dry.out.contains("workspace/jobs/job_1.json -> cs-tier-1/jobs/job_1.json\n"), "{dry:#?}");
    assert_eq!(setup.all_contents(), before);

    let done = setup.bloomery(&["migrate", "--apply"]).await;
    done.assert(0, "4 files moved; 0 stay");
    assert_eq!(done.out, dry.out);
    assert_eq!(setup.read("memory/cs-tier-1/logs/job_1.log"), "one");
    assert_eq!(setup.read("memory/sw-dev-agent/focus-cache/abc"), "cached");
    assert!(setup.read("memory/sw-dev-agent/jobs/job_2.json").contains("job_2"));
    assert!(!setup.path("memory/workspace").exists());
    for again in [&["migrate"][..], &["migrate", "--apply"]] {
        setup.bloomery(again).await.assert(0, "there is no memory/workspace: nothing to migrate");
    }
    setup.bloomery(&["migrate", "--memory", "elsewhere"]).await.assert(2, "the memory ./elsewhere cannot be used");
}

#[tokio::test]
async fn migrated_jobs_are_listed_and_shown() {
    let setup = older_memory().await;
    setup.write("memory/workspace/jobs/Job.3.json", r#"{"messages": []}"#);
    setup.bloomery(&["migrate", "--apply"]).await.assert(0, "5 files moved; 0 stay");
    setup.write("memory/cs-tier-1/jobs/none.json", "[]");
    let listed = setup.bloomery(&["get"]).await;
    listed.assert(0, "memory/cs-tier-1/jobs/none.json is skipped: it is not the record of a Job");
    let table = "JOB     SKILL          PHASE      OUTCOME   TOOLS\n\
                 job_1   cs-tier-1      Migrated\n\
                 Job.3   sw-dev-agent   Migrated\n\
                 job_2   sw-dev-agent   Migrated\n";
    assert_eq!(listed.out, table);
    let json = setup.bloomery(&["get", "-o", "json", "--skill", "cs-tier-1"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let file = "memory/cs-tier-1/jobs/job_1.json";
    let item = serde_json::json!({"job": "job_1", "skill": "cs-tier-1", "goal": "x", "file": file});
    assert_eq!(json["items"], serde_json::json!([item]));
    let page = setup.bloomery(&["get", "job_1"]).await;
    page.assert(0, "Job         job_1 of the Skill cs-tier-1\nGoal        x\nPhase       Migrated: ");
    page.assert(0, &format!("File        {file}\n"));
    setup.bloomery(&["get", "job_1", "-o", "json"]).await.assert(0, file);
    setup
        .bloomery(&["get", "Job.3", "--skill", "cs-tier-1"])
        .await
        .assert(2, "has no Job Job.3 of the Skill cs-tier-1");
}

#[tokio::test]
async fn jobs_that_are_not_migrated_are_shown_as_such() {
    let setup = older_memory().await;
    let listed = setup.bloomery(&["get"]).await;
    listed.assert(0, "memory/workspace is from an older memory: `bloomery migrate` shows where its jobs go");
    let table = "JOB     SKILL       PHASE         OUTCOME   TOOLS\n\
                 job_1   workspace   NotMigrated\n\
                 job_2   workspace   NotMigrated\n";
    assert_eq!(listed.out, table);
    let page = setup.bloomery(&["get", "job_1"]).await;
    page.assert(0, "Job         job_1\nGoal        x\nPhase       NotMigrated: the Job is from an older memory. `bloomery migrate` shows its new place.");
    // A Skill may have this name.
    setup.write("memory/workspace/skill.yaml", "");
    setup.bloomery(&["get", "job_1"]).await.assert(0, "Phase       Migrated: ");
}

#[tokio::test]
async fn an_older_job_has_no_events() {
    let setup = older_memory().await;
    setup.bloomery(&["migrate", "--apply"]).await.assert(0, "4 files moved; 0 stay");
    let says = "the Job job_1 of the Skill cs-tier-1 has no log, because it comes from an older memory. Its record is \
                memory/cs-tier-1/jobs/job_1.json; `bloomery get job_1` shows it";
    for args in [&["events", "job_1"][..], &["events", "job_1", "--skill", "cs-tier-1"], &["events", "job_1", "-f"]] {
        setup.bloomery(args).await.assert(2, says);
    }
    setup.bloomery(&["events", "job_9"]).await.assert(2, "has no Job job_9");
}

#[tokio::test]
async fn a_new_job_does_not_replace_a_migrated_one() {
    let setup = Setup::new(SAYS_HELLO).await;
    let older = r#"{"id": "k-1", "skillSlug": "greeter", "goal": "x"}"#;
    setup.write("memory/greeter/jobs/k-1.json", older);
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key"];
    setup.run(&[&run[..], &["k-1"]].concat()).await.assert(2, "use another --run-key");
    setup.run(&[&run[..], &["k-2"]].concat()).await.assert(0, "Succeeded");
    assert_eq!(setup.read("memory/greeter/jobs/k-1.json"), older);
}

#[tokio::test]
async fn no_file_is_replaced_and_an_interrupted_migration_is_completed() {
    let setup = older_memory().await;
    setup.write("memory/cs-tier-1/jobs/job_1.json", "another");
    // An interrupted move has linked the new name, but not removed the old one.
    setup.write("memory/sw-dev-agent/jobs/job_2.json", &setup.read("memory/workspace/jobs/job_2.json"));
    for apply in [&["migrate"][..], &["migrate", "--apply"], &["migrate", "--apply"]] {
        let result = setup.bloomery(apply).await;
        result.assert(1, "workspace/jobs/job_1.json stays: cs-tier-1/jobs/job_1.json exists, and is a different file");
    }
    assert_eq!(setup.read("memory/cs-tier-1/jobs/job_1.json"), "another");
    assert!(setup.read("memory/workspace/jobs/job_1.json").contains("cs-tier-1"));
    assert!(!setup.path("memory/workspace/jobs/job_2.json").exists());
}

#[tokio::test]
async fn a_skill_directory_is_not_migrated() {
    let setup = older_memory().await;
    setup.write("memory/workspace/skill.yaml", "");
    setup.bloomery(&["migrate"]).await.assert(2, "is the directory of a Skill");
}

/// If source and target are the same file, it is neither moved nor removed.
#[tokio::test]
async fn a_job_that_would_be_moved_onto_itself_stays() {
    let setup = Setup::new(SAYS_HELLO).await;
    let named = r#"{"id": "job_1", "skillSlug": "workspace"}"#;
    setup.write("memory/workspace/jobs/job_1.json", named);
    setup.write("memory/workspace/jobs/job_2.json", r#"{"id": "job_2"}"#);
    setup.write("memory/workspace/jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "a-b"}"#);
    std::os::unix::fs::symlink("workspace", setup.path("memory/a-b")).unwrap();
    let before = setup.all_contents();
    for apply in [&["migrate", "--skill", "workspace"][..], &["migrate", "--skill", "workspace", "--apply"]] {
        let result = setup.bloomery(apply).await;
        result.assert(
            1,
            "workspace/jobs/job_1.json stays: it is already at workspace/jobs/job_1.json: rename the directory",
        );
        result.assert(
            1,
            "workspace/jobs/job_2.json stays: it is already at workspace/jobs/job_2.json: rename the directory",
        );
        result.assert(
            1,
            "it is already at a-b/jobs/job_3.json: memory/a-b is a link to workspace. Remove that link first\n",
        );
        assert!(result.err.starts_with("0 files"), "{result:#?}");
        assert_eq!(setup.all_contents(), before);
    }
    assert_eq!(setup.read("memory/workspace/jobs/job_1.json"), named);
}

/// An interrupted move leaves two hard links to one file. A symbolic link is not the result of a move.
#[tokio::test]
async fn the_old_name_of_a_hard_link_is_removed_and_a_symbolic_link_is_not() {
    let setup = older_memory().await;
    std::fs::create_dir_all(setup.path("memory/cs-tier-1/jobs")).unwrap();
    std::fs::create_dir_all(setup.path("memory/sw-dev-agent/jobs")).unwrap();
    let (one, other) = ("memory/workspace/jobs/job_1.json", "memory/cs-tier-1/jobs/job_1.json");
    std::fs::hard_link(setup.path(one), setup.path(other)).unwrap();
    let linked = setup.path("memory/sw-dev-agent/jobs/job_2.json");
    std::os::unix::fs::symlink("../../workspace/jobs/job_2.json", linked).unwrap();
    let result = setup.bloomery(&["migrate", "--apply"]).await;
    result.assert(1, "workspace/jobs/job_2.json stays: sw-dev-agent/jobs/job_2.json exists, and is a different file");
    assert!(!setup.path(one).exists());
    assert!(setup.read(other).contains("cs-tier-1"));
    assert!(setup.read("memory/workspace/jobs/job_2.json").contains("job_2"));
}

#[tokio::test]
async fn only_directories_of_the_users_own_memory_are_migrated() {
    let setup = older_memory().await;
    setup.write("out/jobs/job_1.json", "{}");
    std::os::unix::fs::symlink("../out", setup.path("memory/out")).unwrap();
    let before = setup.all_contents();
    let absolute = setup.path("memory/workspace").display().to_string();
    for from in ["../out", "workspace/../../out", ".", "", "out", absolute.as_str()] {
        let result = setup.bloomery(&["migrate", "--from", from, "--apply"]).await;
        result.assert(2, "must be a directory in the memory ./memory");
    }
    // Only root can change the owner of a directory.
    for dir in ["memory", "memory/workspace", "memory/cs-tier-1"] {
        std::fs::create_dir_all(setup.path("memory/cs-tier-1")).unwrap();
        if std::os::unix::fs::chown(setup.path(dir), Some(4711), None).is_err() {
            break;
        }
        for apply in [&["migrate"][..], &["migrate", "--apply"]] {
            setup.bloomery(apply).await.assert(2, &format!("the memory ./{dir} belongs to user 4711"));
        }
        std::os::unix::fs::chown(setup.path(dir), Some(0), None).unwrap();
    }
    assert_eq!(setup.all_contents(), before);
}

/// Otherwise, the older jobs would be mixed with those of the Skill of that name.
#[tokio::test]
async fn no_skill_runs_in_a_directory_with_older_jobs() {
    let setup = older_memory().await;
    setup.write("named.yaml", &super::setup::SKILL.replace("greeter", "workspace"));
    let run = ["--skill", "./named.yaml", "--goal", "Greet", "--run-key", "k-1"];
    let before = setup.all_contents();
    setup.run(&run).await.assert(2, "memory/workspace holds the jobs of an older memory");
    assert_eq!(setup.all_contents(), before);
    // An older job may name that Skill.
    setup.write("memory/workspace/jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "workspace"}"#);
    let out = "mv memory/workspace memory/workspace-older && bloomery migrate --from workspace-older --apply";
    setup.run(&run).await.assert(2, out);
    setup.bloomery(&["migrate"]).await.assert(1, out);
    std::fs::rename(setup.path("memory/workspace"), setup.path("memory/workspace-older")).unwrap();
    let apply = ["migrate", "--from", "workspace-older", "--apply"];
    setup.bloomery(&apply).await.assert(0, "5 files moved; 0 stay");
    assert!(setup.read("memory/workspace/jobs/job_3.json").contains("job_3"));
    setup.run(&run).await.assert(0, "Succeeded");
    setup.run(&run).await.assert(0, "Succeeded");
}
