//! `bloomery migrate`: the memory of seed 000 before there were slags.

use super::stand::{SAYS_HELLO, Stand};

async fn older_memory() -> Stand {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.write("memory/workspace/jobs/job_1.json", r#"{"id": "job_1", "skillSlug": "cs-tier-1", "goal": "x"}"#);
    stand.write("memory/workspace/jobs/job_2.json", r#"{"id": "job_2", "goal": "y"}"#);
    stand.write("memory/workspace/logs/job_1.log", "one");
    stand.write("memory/workspace/focus-cache/abc", "cached");
    stand
}

#[tokio::test]
async fn nothing_is_moved_before_it_is_asked_for_and_then_all_of_it_once() {
    let stand = older_memory().await;
    let before = stand.everything();
    let dry = stand.bloomery(&["migrate"]).await;
    dry.assert(0, "4 files to move; --apply moves them; 0 stay");
    assert!(dry.out.contains("workspace/jobs/job_1.json -> cs-tier-1/jobs/job_1.json\n"), "{dry:#?}");
    assert_eq!(stand.everything(), before);

    let done = stand.bloomery(&["migrate", "--apply"]).await;
    done.assert(0, "4 files moved; 0 stay");
    assert_eq!(done.out, dry.out);
    assert_eq!(stand.read("memory/cs-tier-1/logs/job_1.log"), "one");
    assert_eq!(stand.read("memory/sw-dev-agent/focus-cache/abc"), "cached");
    assert!(stand.read("memory/sw-dev-agent/jobs/job_2.json").contains("job_2"));
    assert!(!stand.path("memory/workspace").exists());
    for again in [&["migrate"][..], &["migrate", "--apply"]] {
        stand.bloomery(again).await.assert(0, "there is no memory/workspace: nothing to migrate");
    }
    stand.bloomery(&["migrate", "--memory", "elsewhere"]).await.assert(2, "the memory cannot be used: elsewhere");
}

#[tokio::test]
async fn what_was_migrated_is_listed_and_shown() {
    let stand = older_memory().await;
    stand.write("memory/workspace/jobs/Job.3.json", r#"{"messages": []}"#);
    stand.bloomery(&["migrate", "--apply"]).await.assert(0, "5 files moved; 0 stay");
    stand.write("memory/cs-tier-1/jobs/none.json", "[]");
    let listed = stand.bloomery(&["get"]).await;
    listed.assert(0, "memory/cs-tier-1/jobs/none.json is skipped: it is not a job");
    let table = "JOB     SKILL          PHASE      OUTCOME   TOOLS\n\
                 job_1   cs-tier-1      Migrated\n\
                 Job.3   sw-dev-agent   Migrated\n\
                 job_2   sw-dev-agent   Migrated\n";
    assert_eq!(listed.out, table);
    let json = stand.bloomery(&["get", "-o", "json", "--skill", "cs-tier-1"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let file = "memory/cs-tier-1/jobs/job_1.json";
    let item = serde_json::json!({"job": "job_1", "skill": "cs-tier-1", "goal": "x", "file": file});
    assert_eq!(json["items"], serde_json::json!([item]));
    let page = stand.bloomery(&["get", "job_1"]).await;
    page.assert(0, "Job         job_1 of the Skill cs-tier-1\nGoal        x\nPhase       Migrated: ");
    page.assert(0, &format!("File        {file}\n"));
    stand.bloomery(&["get", "job_1", "-o", "json"]).await.assert(0, file);
    stand
        .bloomery(&["get", "Job.3", "--skill", "cs-tier-1"])
        .await
        .assert(2, "has no Job Job.3 of the Skill cs-tier-1");
}

#[tokio::test]
async fn what_is_not_migrated_yet_is_not_called_so() {
    let stand = older_memory().await;
    let listed = stand.bloomery(&["get"]).await;
    listed.assert(0, "memory/workspace is from an older memory: `bloomery migrate` shows where its jobs go");
    let table = "JOB     SKILL       PHASE         OUTCOME   TOOLS\n\
                 job_1   workspace   NotMigrated\n\
                 job_2   workspace   NotMigrated\n";
    assert_eq!(listed.out, table);
    let page = stand.bloomery(&["get", "job_1"]).await;
    page.assert(0, "Job         job_1\nGoal        x\nPhase       NotMigrated: it is from an older memory. `bloomery migrate` shows where it goes.");
    // A Skill may be called so.
    stand.write("memory/workspace/skill.yaml", "");
    stand.bloomery(&["get", "job_1"]).await.assert(0, "Phase       Migrated: ");
}

#[tokio::test]
async fn that_an_older_job_has_no_events_is_said() {
    let stand = older_memory().await;
    stand.bloomery(&["migrate", "--apply"]).await.assert(0, "4 files moved; 0 stay");
    let says = "the Job job_1 of the Skill cs-tier-1 has no log, because it comes from an older memory. Its record is \
                memory/cs-tier-1/jobs/job_1.json; `bloomery get job_1` shows it";
    for args in [&["events", "job_1"][..], &["events", "job_1", "--skill", "cs-tier-1"], &["events", "job_1", "-f"]] {
        stand.bloomery(args).await.assert(2, says);
    }
    stand.bloomery(&["events", "job_9"]).await.assert(2, "has no Job job_9");
}

#[tokio::test]
async fn no_job_takes_the_place_of_a_migrated_one() {
    let stand = Stand::new(SAYS_HELLO).await;
    let older = r#"{"id": "k-1", "skillSlug": "greeter", "goal": "x"}"#;
    stand.write("memory/greeter/jobs/k-1.json", older);
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key"];
    stand.run(&[&run[..], &["k-1"]].concat()).await.assert(2, "use another --run-key");
    stand.run(&[&run[..], &["k-2"]].concat()).await.assert(0, "Succeeded");
    assert_eq!(stand.read("memory/greeter/jobs/k-1.json"), older);
}

#[tokio::test]
async fn what_would_replace_another_stays_and_a_migration_that_was_cut_short_is_finished() {
    let stand = older_memory().await;
    stand.write("memory/cs-tier-1/jobs/job_1.json", "another");
    // Linked, and not removed yet.
    stand.write("memory/sw-dev-agent/jobs/job_2.json", &stand.read("memory/workspace/jobs/job_2.json"));
    for apply in [&["migrate"][..], &["migrate", "--apply"], &["migrate", "--apply"]] {
        let ran = stand.bloomery(apply).await;
        ran.assert(1, "workspace/jobs/job_1.json stays: cs-tier-1/jobs/job_1.json exists, and is a different file");
    }
    assert_eq!(stand.read("memory/cs-tier-1/jobs/job_1.json"), "another");
    assert!(stand.read("memory/workspace/jobs/job_1.json").contains("cs-tier-1"));
    assert!(!stand.path("memory/workspace/jobs/job_2.json").exists());
}

#[tokio::test]
async fn a_slag_is_no_older_memory() {
    let stand = older_memory().await;
    stand.write("memory/workspace/skill.yaml", "");
    stand.bloomery(&["migrate"]).await.assert(2, "is the directory of a Skill");
}

/// Where source and target are one file there is nothing to move, and nothing is removed.
#[tokio::test]
async fn a_job_whose_place_is_where_it_is_stays() {
    let stand = Stand::new(SAYS_HELLO).await;
    let named = r#"{"id": "job_1", "skillSlug": "workspace"}"#;
    stand.write("memory/workspace/jobs/job_1.json", named);
    stand.write("memory/workspace/jobs/job_2.json", r#"{"id": "job_2"}"#);
    stand.write("memory/workspace/jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "a-b"}"#);
    std::os::unix::fs::symlink("workspace", stand.path("memory/a-b")).unwrap();
    let before = stand.everything();
    for apply in [&["migrate", "--skill", "workspace"][..], &["migrate", "--skill", "workspace", "--apply"]] {
        let ran = stand.bloomery(apply).await;
        ran.assert(
            1,
            "workspace/jobs/job_1.json stays: workspace/jobs/job_1.json is the same place: rename the directory",
        );
        ran.assert(
            1,
            "workspace/jobs/job_2.json stays: workspace/jobs/job_2.json is the same place: rename the directory",
        );
        ran.assert(
            1,
            "a-b/jobs/job_3.json is the same place: memory/a-b is a link to workspace. Remove that link first\n",
        );
        assert!(ran.err.starts_with("0 files"), "{ran:#?}");
        assert_eq!(stand.everything(), before);
    }
    assert_eq!(stand.read("memory/workspace/jobs/job_1.json"), named);
}

/// A move that was cut short leaves one file with two names: the older one goes. A link is no file that was moved.
#[tokio::test]
async fn of_two_names_of_one_file_the_older_goes_and_a_link_is_none() {
    let stand = older_memory().await;
    std::fs::create_dir_all(stand.path("memory/cs-tier-1/jobs")).unwrap();
    std::fs::create_dir_all(stand.path("memory/sw-dev-agent/jobs")).unwrap();
    let (one, other) = ("memory/workspace/jobs/job_1.json", "memory/cs-tier-1/jobs/job_1.json");
    std::fs::hard_link(stand.path(one), stand.path(other)).unwrap();
    let linked = stand.path("memory/sw-dev-agent/jobs/job_2.json");
    std::os::unix::fs::symlink("../../workspace/jobs/job_2.json", linked).unwrap();
    let ran = stand.bloomery(&["migrate", "--apply"]).await;
    ran.assert(1, "workspace/jobs/job_2.json stays: sw-dev-agent/jobs/job_2.json exists, and is a different file");
    assert!(!stand.path(one).exists());
    assert!(stand.read(other).contains("cs-tier-1"));
    assert!(stand.read("memory/workspace/jobs/job_2.json").contains("job_2"));
}

#[tokio::test]
async fn what_is_migrated_is_in_the_memory_and_the_users_own() {
    let stand = older_memory().await;
    stand.write("out/jobs/job_1.json", "{}");
    std::os::unix::fs::symlink("../out", stand.path("memory/out")).unwrap();
    let before = stand.everything();
    let absolute = stand.path("memory/workspace").display().to_string();
    for from in ["../out", "workspace/../../out", ".", "", "out", absolute.as_str()] {
        let ran = stand.bloomery(&["migrate", "--from", from, "--apply"]).await;
        ran.assert(2, "must be a directory in the memory memory");
    }
    // Only root can give something away.
    for dir in ["memory", "memory/workspace", "memory/cs-tier-1"] {
        std::fs::create_dir_all(stand.path("memory/cs-tier-1")).unwrap();
        if std::os::unix::fs::chown(stand.path(dir), Some(4711), None).is_err() {
            break;
        }
        for apply in [&["migrate"][..], &["migrate", "--apply"]] {
            stand.bloomery(apply).await.assert(2, &format!("the memory {dir} belongs to user 4711"));
        }
        std::os::unix::fs::chown(stand.path(dir), Some(0), None).unwrap();
    }
    assert_eq!(stand.everything(), before);
}

/// Else nobody could tell the older jobs from those of the Skill of that name.
#[tokio::test]
async fn no_skill_runs_where_older_jobs_are() {
    let stand = older_memory().await;
    stand.write("named.yaml", &super::stand::SKILL.replace("greeter", "workspace"));
    let run = ["--skill", "./named.yaml", "--goal", "Greet", "--run-key", "k-1"];
    let before = stand.everything();
    stand.run(&run).await.assert(2, "memory/workspace holds the jobs of an older memory");
    assert_eq!(stand.everything(), before);
    // A job may name that Skill.
    stand.write("memory/workspace/jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "workspace"}"#);
    let out = "mv memory/workspace memory/workspace-older && bloomery migrate --from workspace-older --apply";
    stand.run(&run).await.assert(2, out);
    stand.bloomery(&["migrate"]).await.assert(1, out);
    std::fs::rename(stand.path("memory/workspace"), stand.path("memory/workspace-older")).unwrap();
    let apply = ["migrate", "--from", "workspace-older", "--apply"];
    stand.bloomery(&apply).await.assert(0, "5 files moved; 0 stay");
    assert!(stand.read("memory/workspace/jobs/job_3.json").contains("job_3"));
    stand.run(&run).await.assert(0, "Succeeded");
    stand.run(&run).await.assert(0, "Succeeded");
}
