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
    dry.assert(0, "4 files to be moved; --apply does it; 0 stay");
    assert!(dry.out.contains("workspace/jobs/job_1.json -> cs-tier-1/jobs/job_1.json\n"), "{dry:#?}");
    assert_eq!(stand.everything(), before);

    let done = stand.bloomery(&["migrate", "--apply"]).await;
    done.assert(0, "4 files moved; 0 stay");
    assert_eq!(done.out, dry.out);
    assert_eq!(stand.read("memory/cs-tier-1/logs/job_1.log"), "one");
    assert_eq!(stand.read("memory/sw-dev-agent/focus-cache/abc"), "cached");
    assert!(stand.read("memory/sw-dev-agent/jobs/job_2.json").contains("job_2"));
    assert!(!stand.path("memory/workspace").exists());
    stand.bloomery(&["migrate", "--apply"]).await.assert(2, "nothing is to be migrated");
}

#[tokio::test]
async fn what_would_replace_another_stays_and_a_migration_that_was_cut_short_is_finished() {
    let stand = older_memory().await;
    stand.write("memory/cs-tier-1/jobs/job_1.json", "another");
    // Linked, and not removed yet.
    stand.write("memory/sw-dev-agent/jobs/job_2.json", &stand.read("memory/workspace/jobs/job_2.json"));
    for apply in [&["migrate"][..], &["migrate", "--apply"], &["migrate", "--apply"]] {
        let ran = stand.bloomery(apply).await;
        ran.assert(1, "workspace/jobs/job_1.json stays: cs-tier-1/jobs/job_1.json is there, and is another");
    }
    assert_eq!(stand.read("memory/cs-tier-1/jobs/job_1.json"), "another");
    assert!(stand.read("memory/workspace/jobs/job_1.json").contains("cs-tier-1"));
    assert!(!stand.path("memory/workspace/jobs/job_2.json").exists());
}

#[tokio::test]
async fn a_slag_is_no_older_memory() {
    let stand = older_memory().await;
    stand.write("memory/workspace/skill.yaml", "");
    stand.bloomery(&["migrate"]).await.assert(2, "is the slag of a Skill");
}
