//! Repositories of skills: the commands of `docs/how-to/skills-repository.md`, from an empty directory to a validated Skill.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::v1alpha1::{Skill, SkillStatus};
use bloomery_e2e::harness::cluster::image;
use bloomery_e2e::harness::{Conversation, Tenant, call, command, conversation, say, story};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

/// The page whose commands the story runs.
const PAGE: &str = "docs/how-to/skills-repository.md";

/// The Skill that the page validates.
const VALIDATED: &str = "orders-refund";

/// The Skill whose only feature is tested by that one.
const PARENT: &str = "orders";

/// Returns the test of the feature of the page: the model runs the script of the Skill.
fn deadline() -> Conversation {
    let answer = "The refund is possible, because the deadline has not passed.";
    let turns = [call("script_script", json!({"args": ["20"]})), say(answer).after_result("refund")];
    let passes = json!({"passed": true, "score": 1.0, "reasons": []});
    conversation("delivered 20 days ago", turns).ruling(passes).polished(answer)
}

/// Returns the commands of the page, with the namespace of the tenant and an image that the cluster has.
fn commands(tenant: &Tenant) -> String {
    let page = fs::read_to_string(command::checkout(PAGE)).expect("the page can be read");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let commands: Vec<&str> = blocks.collect();
    commands.join("\n").replace("acme", &tenant.namespace).replace("busybox:1.37", &image("e2e-shell"))
}

/// A directory of a reader of the page. Dropping the value removes it.
struct Desk(PathBuf);

impl Desk {
    fn new(tenant: &Tenant) -> Self {
        let desk = Self(std::env::temp_dir().join(&tenant.namespace));
        fs::create_dir_all(desk.work()).expect("the directory can be created");
        let programs = desk.0.join("bin");
        fs::create_dir(&programs).expect("the directory can be created");
        let kubectl = programs.join("kubectl");
        fs::write(&kubectl, shell_script(&command::kubectl(&[]))).expect("the script can be written");
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).expect("the script can be made executable");
        symlink(command::bloomery(&[]).get_program(), programs.join("bloomery")).expect("the link can be created");
        desk
    }

    /// Returns the directory of the commands, which is empty at first.
    fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Runs commands, each of which must succeed.
    fn run(&self, commands: &str) {
        let programs = self.0.join("bin");
        let others = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(self.work()).stdin(Stdio::null());
        shell.env("PATH", format!("{}:{others}", programs.display())).env_remove("MY_SKILLS_REPO");
        command::run(&mut shell);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a script that runs a command with further arguments.
fn shell_script(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    format!("#!/bin/sh\nexec {} \"$@\"\n", quoted.join(" "))
}

/// Applies the manifests again, and checks that nothing changes.
async fn apply_again(tenant: &Tenant, manifests: &Path) {
    let before = generations(tenant).await;
    let path = manifests.to_string_lossy();
    let printed = command::run(&mut command::kubectl(&["apply", "--filename", &path]));
    assert!(printed.lines().all(|line| line.ends_with(" unchanged")), "{printed}");
    assert_eq!(generations(tenant).await, before);
}

/// Returns the name, the generation and the revision of each Skill.
async fn generations(tenant: &Tenant) -> Vec<(String, Option<i64>, Option<String>)> {
    let skills = tenant.api::<Skill>().list(&ListParams::default()).await.expect("Skills can be listed").items;
    let revision = |skill: &Skill| skill.status.as_ref()?.revision.as_ref().map(|revision| revision.name.clone());
    skills.iter().map(|skill| (skill.name_any(), skill.metadata.generation, revision(skill))).collect()
}

#[tokio::test]
async fn the_page_leads_from_an_empty_directory_to_a_validated_skill_and_applying_it_again_changes_nothing() {
    story(async |tenant| {
        let shop = tenant.shop(&[deadline()]).await;
        let desk = Desk::new(tenant);
        desk.run(&commands(tenant));
        let skill = tenant.api::<Skill>().get(VALIDATED).await.expect("the page has created the Skill");
        let SkillStatus { features, conditions, revision, .. } = skill.status.expect("the Skill has a status");
        assert!(conditions::is_true(&conditions, ConditionType::Validated), "{conditions:?}");
        let [deadline] = &features[..] else { panic!("one feature: {features:?}") };
        assert_eq!((deadline.name.as_str(), deadline.passed), ("deadline", true));
        let parent = tenant.api::<Skill>().get(PARENT).await.expect("the page has created the Skill");
        let conditions = parent.status.expect("the Skill has a status").conditions;
        let validated = conditions::find(&conditions, ConditionType::Validated).map(|found| found.message.as_str());
        assert!(validated.is_some_and(|message| message.ends_with(VALIDATED)), "{validated:?}");
        assert_eq!(Some(&deadline.revision), revision.as_ref().map(|revision| &revision.name));
        apply_again(tenant, &desk.work().join("skills.yaml")).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}
