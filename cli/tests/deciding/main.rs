//! `bloomery approve`, `deny` and `can-approve`, as people call them, against an API server in memory.
#![cfg(test)]

mod api;
#[path = "../office/mod.rs"]
mod office;

use api::Api;
use insta::assert_snapshot;
use office::{Ran, kubeconfig};
use rstest::rstest;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

const JANE: &str = "jane@acme.io";
const READS: [&str; 2] = ["get approvals", "list approvals"];

/// A cluster, and a person at a shell.
struct Office {
    api: Api,
    home: TempDir,
}

impl Office {
    /// With an open Approval of the Job `refund` for the supervisor, who is Jane.
    async fn open() -> Self {
        let (api, home) = (Api::default(), tempfile::tempdir().unwrap());
        kubeconfig(home.path(), &api.serve().await);
        api.put_approval(approval("refund-1f0c4a9b27", "refund", "supervisor"));
        api.grant(JANE, &READS);
        api.grant(JANE, &["patch approvals", "approve approvers/supervisor"]);
        Self { api, home }
    }

    /// Runs the command, with nobody at a terminal.
    async fn runs(&self, args: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_bloomery"))
            .args(args)
            .env_clear()
            .env("KUBECONFIG", self.home.path().join("config"))
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        output.into()
    }

    /// The same, as somebody.
    async fn runs_as(&self, user: &str, args: &[&str]) -> Ran {
        self.runs(&[args, &["--as", user]].concat()).await
    }

    fn decision(&self) -> Value {
        self.api.approval("refund-1f0c4a9b27")["spec"]["decision"].clone()
    }
}

fn approval(name: &str, job: &str, approver: &str) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Approval",
        "metadata": {
            "name": name, "namespace": "acme", "uid": format!("uid of {name}"), "labels": {"bloomery.dev/job": job},
            "managedFields": [{"manager": "kubectl-bloomery"}],
        },
        "spec": {
            "job": job, "jobUid": "uid-1", "approver": approver, "tool": "process_refund", "callId": "c-7",
            "arguments": r#"{"amount":901.9,"order_id":"A-443"}"#, "argumentsDigest": format!("sha256:{}", "0".repeat(64)),
            "rules": [{"layer": "Approval", "text": "amount > 500", "approver": approver}],
            "goal": "Refund order A-443", "events": ["2027-01-15T08:00:00Z    9 tool.held           c-7"],
            "expiresAt": "2999-01-01T00:00:00Z",
        },
    })
}

fn by(user: &str, verdict: &str) -> Value {
    json!({"verdict": verdict, "by": user})
}

#[tokio::test]
async fn what_was_shown_is_decided_in_ones_own_name() {
    let office = Office::open().await;
    let args = ["approve", "refund-1f0c4a9b27", "--yes", "--reason", " the photo shows it "];
    let ran = office.runs_as(JANE, &args).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "approval.bloomery.dev/refund-1f0c4a9b27 approved\n"), "{}", ran.err);
    // But for how long it stays open.
    let page: Vec<&str> = ran.err.lines().map(|line| line.split("Z, ").next().unwrap()).collect();
    assert!(!ran.err.contains('\u{1b}'), "colours are for terminals");
    assert_snapshot!(page.join("\n"));
    let decision = json!({"verdict": "Approve", "by": JANE, "reason": "the photo shows it"});
    let metadata = json!({"uid": "uid of refund-1f0c4a9b27", "resourceVersion": "1"});
    assert_eq!(office.api.patches(), [json!({"metadata": metadata, "spec": {"decision": decision}})]);
    assert_eq!(office.decision(), decision);
    assert!(office.api.requests().iter().all(|asked| asked.starts_with(JANE)), "{:?}", office.api.requests());
}

#[rstest]
#[case::yaml("yaml", "  decision:\n    verdict: Deny\n")]
#[case::json("json", "\"verdict\": \"Deny\"")]
#[case::name("name", "approval.bloomery.dev/refund-1f0c4a9b27\n")]
#[tokio::test]
async fn a_job_is_denied_by_its_name_and_programs_can_read_it(#[case] form: &str, #[case] expected: &str) {
    let office = Office::open().await;
    let ran = office.runs_as(JANE, &["deny", "refund", "-y", "-o", form]).await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(ran.out.contains(expected) && !ran.out.contains("managedFields"), "{}", ran.out);
    assert_eq!(office.decision(), by(JANE, "Deny"));
}

#[tokio::test]
async fn a_job_whose_approvals_nobody_has_made_says_why() {
    let office = Office::open().await;
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ApprovalPolicyMissing", "message": "the binding is away",
        "lastTransitionTime": "2027-01-15T08:20:00Z",
    });
    office.api.put_job(json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": "payout", "namespace": "acme", "uid": "uid-9"},
        "spec": {"skill": "cs-tier-1", "goal": "Refund"},
        "status": {"phase": "AwaitingApproval", "conditions": [condition]},
    }));
    let blind = office.runs_as(JANE, &["approve", "payout", "--yes"]).await;
    assert!(blind.err.contains("no Job of that name asks for one"), "who may not read Jobs: {}", blind.err);
    office.api.grant(JANE, &["get skilljobs"]);
    let ran = office.runs_as(JANE, &["approve", "payout", "--yes"]).await;
    let told = "no decision is requested on the call of the Job payout: the binding is away";
    assert!(ran.exit == 1 && ran.err.contains(told), "{} {}", ran.exit, ran.err);
}

#[rstest]
#[case::gone(None, "its Job refund was deleted.")]
#[case::another_of_the_name(Some("uid-2"), "the current Job of that name is another one")]
#[tokio::test]
async fn what_a_job_has_left_behind_cannot_be_decided(#[case] another: Option<&str>, #[case] says: &str) {
    let office = Office::open().await;
    office.api.grant(JANE, &["get skilljobs"]);
    office.api.orphan("refund", another);
    for (verb, name) in [("approve", "refund"), ("deny", "refund-1f0c4a9b27")] {
        let ran = office.runs_as(JANE, &[verb, name, "--yes"]).await;
        assert_eq!((ran.exit, ran.out.as_str(), office.api.patches().len()), (6, "", 0), "{}", ran.err);
        assert!(ran.err.contains(says), "{}", ran.err);
    }
    // Who may not see that decides, as the operator sees to it that nothing comes of it.
    office.api.grant("sam@acme.io", &READS);
    office.api.grant("sam@acme.io", &["patch approvals", "approve approvers/supervisor"]);
    assert_eq!(office.runs_as("sam@acme.io", &["deny", "refund", "--yes"]).await.exit, 0);
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_sent() {
    let office = Office::open().await;
    let ran = office.runs_as(JANE, &["approve", "refund"]).await;
    assert_eq!((ran.exit, office.api.requests()), (2, Vec::new()), "{}", ran.err);
    assert!(ran.err.contains("--yes"), "{}", ran.err);
}

#[tokio::test]
async fn who_may_not_reads_what_the_api_server_says_and_what_is_missing() {
    let office = Office::open().await;
    office.api.grant("mallory@acme.io", &READS);
    office.api.grant("mallory@acme.io", &["patch approvals", "approve approvers/mallory"]);
    let ran = office.runs_as("mallory@acme.io", &["approve", "refund", "--yes"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (1, ""));
    assert_snapshot!(ran.err.lines().skip_while(|line| !line.starts_with("bloomery: ")).collect::<Vec<_>>().join("\n"));
    assert_eq!(office.decision(), Value::Null);
}

#[tokio::test]
async fn each_right_that_is_missing_is_named() {
    let office = Office::open().await;
    let ran = office.runs_as("nobody", &["approve", "refund", "--yes"]).await;
    assert_eq!(ran.exit, 1);
    assert!(ran.err.contains("cannot get resource \"approvals\""), "{}", ran.err);
    assert!(ran.err.contains("resources: [approvals], verbs: [get, list, patch]"), "{}", ran.err);
    office.api.grant("nobody", &READS);
    let ran = office.runs_as("nobody", &["approve", "refund", "--yes"]).await;
    assert_eq!(ran.exit, 1);
    assert!(
        ran.err.contains("patch on approvals.bloomery.dev") && ran.err.contains("approvers.bloomery.dev/supervisor")
    );
}

#[tokio::test]
async fn who_has_the_rights_and_is_refused_reads_why() {
    let office = Office::open().await;
    let robot = "system:serviceaccount:acme:robot";
    office.api.grant(robot, &READS);
    office.api.grant(robot, &["patch approvals", "approve approvers"]);
    let ran = office.runs_as(robot, &["approve", "refund", "--yes"]).await;
    assert_eq!(ran.exit, 1);
    assert!(ran.err.contains("ValidatingAdmissionPolicy") && !ran.err.contains("missing is"), "{}", ran.err);
}

#[tokio::test]
async fn what_is_decided_or_expired_is_too_late() {
    let office = Office::open().await;
    let mut decided = approval("refund-1f0c4a9b27", "refund", "supervisor");
    decided["spec"]["decision"] = by("joe@acme.io", "Deny");
    office.api.put_approval(decided);
    let mut expired = approval("other-1f0c4a9b27", "other", "supervisor");
    expired["spec"]["expiresAt"] = json!("2020-01-01T00:00:00Z");
    office.api.put_approval(expired);
    for (name, expected) in [
        ("refund-1f0c4a9b27", "refund-1f0c4a9b27 is denied already, by joe@acme.io"),
        ("refund", "no Approval of the Job refund is open"),
        ("other", "expired at 2020-01-01T00:00:00Z"),
    ] {
        let ran = office.runs_as(JANE, &["approve", name, "--yes"]).await;
        assert_eq!(ran.exit, 6, "{name}: {}", ran.err);
        assert!(ran.err.contains(expected), "{name}: {}", ran.err);
    }
    assert!(office.api.patches().is_empty());
}

#[tokio::test]
async fn a_name_that_is_not_there_or_is_not_clear_decides_nothing() {
    let office = Office::open().await;
    office.api.put_approval(approval("refund-2", "refund", "finance"));
    for (args, expected) in [
        (&["refnud"][..], "Did you mean \"refund\"?"),
        (&["refund"], "refund-2  process_refund: asks finance"),
        (&["refund", "-n", "empty"], "the namespace empty has no Approval refund"),
        (&["refund/../x"], "NAME|JOB"),
    ] {
        let ran = office.runs_as(JANE, &[&["approve", "--yes"], args].concat()).await;
        assert_eq!(ran.exit, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    assert!(office.api.patches().is_empty());
}

/// Whoever may patch an Approval may give it another label; whose it is, its spec says for good.
#[tokio::test]
async fn the_label_of_an_approval_says_nothing_of_whose_it_is() {
    let office = Office::open().await;
    for label in ["innocent", "zzz"] {
        let mut relabelled = approval("refund-1f0c4a9b27", "refund", "supervisor");
        relabelled["metadata"]["labels"]["bloomery.dev/job"] = json!(label);
        office.api.put_approval(relabelled);
        for command in [&["approve", label, "--yes"][..], &["deny", label, "--yes"], &["can-approve", label]] {
            let ran = office.runs_as(JANE, command).await;
            assert_eq!((ran.exit, office.decision()), (2, Value::Null), "{command:?}: {}", ran.err);
            assert!(ran.err.contains(&format!("no Approval {label}, and no Job of that name")), "{}", ran.err);
        }
    }
    assert!(office.runs_as(JANE, &["approve", "refnud", "--yes"]).await.err.ends_with("Did you mean \"refund\"?\n"));
    let mut theirs = approval("refund-2", "refund", "finance");
    theirs["metadata"]["labels"] = Value::Null;
    office.api.put_approval(theirs);
    let ran = office.runs_as(JANE, &["approve", "refund-1f0c4a9b27", "--yes"]).await;
    assert!(ran.exit == 0 && ran.err.ends_with("The call also waits for finance (refund-2).\n"), "{}", ran.err);
    office.api.grant("joe@acme.io", &[&READS[..], &["patch approvals", "approve approvers/finance"]].concat());
    let ran = office.runs_as("joe@acme.io", &["deny", "refund", "--yes"]).await;
    assert_eq!((ran.exit, &office.api.approval("refund-2")["spec"]["decision"]), (0, &by("joe@acme.io", "Deny")));
}

#[tokio::test]
async fn the_approvals_of_a_job_are_found_among_many() {
    let office = Office::open().await;
    for nth in 0..1200 {
        office.api.put_approval(approval(&format!("a-{nth}"), &format!("other-{nth}"), "supervisor"));
    }
    let ran = office.runs_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((ran.exit, office.decision()), (0, by(JANE, "Approve")), "{}", ran.err);
    let lists = office
        .api
        .requests()
        .iter()
        .filter(|asked| asked.ends_with("GET /apis/bloomery.dev/v1alpha1/namespaces/acme/approvals"))
        .count();
    assert_eq!(lists, 6, "1201 of them are three pages, once to find it and once to say who else is asked");
}

#[tokio::test]
async fn who_approves_hears_who_else_has_to() {
    let office = Office::open().await;
    office.api.grant("joe@acme.io", &[&READS[..], &["patch approvals", "approve approvers/finance"]].concat());
    office.api.put_approval(approval("refund-2", "refund", "finance"));
    let mut of_an_older_call = approval("refund-3", "refund", "legal");
    of_an_older_call["spec"]["callId"] = json!("c-6");
    office.api.put_approval(of_an_older_call);
    let ran = office.runs_as(JANE, &["approve", "refund-1f0c4a9b27", "--yes"]).await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(ran.err.ends_with("The call also waits for finance (refund-2).\n"), "{}", ran.err);
    let ran = office.runs_as("joe@acme.io", &["approve", "refund-2", "--yes"]).await;
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(!ran.err.contains("waits for"), "{}", ran.err);
}

#[tokio::test]
async fn who_is_overtaken_decides_nothing() {
    let office = Office::open().await;
    let mut theirs = approval("refund-1f0c4a9b27", "refund", "supervisor");
    theirs["metadata"]["labels"]["seen"] = json!("yes");
    office.api.overtake(theirs.clone());
    let ran = office.runs_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((ran.exit, office.decision()), (1, Value::Null), "{}", ran.err);
    assert!(ran.err.contains("has changed since it was shown"), "{}", ran.err);

    theirs["spec"]["decision"] = by("joe@acme.io", "Deny");
    office.api.overtake(theirs);
    let ran = office.runs_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((ran.exit, office.decision()), (6, by("joe@acme.io", "Deny")), "{}", ran.err);
    assert!(ran.err.contains("your decision was not recorded"), "{}", ran.err);
}

#[tokio::test]
async fn a_decision_whose_answer_was_lost_is_known_again() {
    let office = Office::open().await;
    office.api.lose_next_response();
    let ran = office.runs_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((ran.exit, office.api.patches().len()), (0, 2), "{}", ran.err);
    assert_eq!(office.decision(), by(JANE, "Approve"));
}

#[tokio::test]
async fn whether_one_may_is_an_exit_code() {
    let office = Office::open().await;
    office.api.grant("mallory@acme.io", &READS);
    for (user, args, exit, out) in [
        (JANE, &["refund"][..], 0, "yes\n"),
        (JANE, &["refund-1f0c4a9b27"], 0, "yes\n"),
        (JANE, &["--approver", "supervisor"], 0, "yes\n"),
        (JANE, &["--approver", "finance"], 1, "no\n"),
        ("mallory@acme.io", &["refund"], 1, "no\n"),
        (JANE, &["nothing-like-it"], 2, ""),
        (JANE, &[], 2, ""),
        (JANE, &["refund", "--approver", "supervisor"], 2, ""),
    ] {
        let ran = office.runs_as(user, &[&["can-approve"], args].concat()).await;
        assert_eq!((ran.exit, ran.out.as_str()), (exit, out), "{user} {args:?}: {}", ran.err);
        assert_eq!(ran.err.contains("may not decide in the namespace acme: missing is"), exit == 1, "{}", ran.err);
    }
    assert!(office.api.patches().is_empty());
}

#[tokio::test]
async fn a_cluster_that_cannot_be_used_is_told() {
    let office = Office::open().await;
    let nowhere = office.home.path().join("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    kubeconfig(&nowhere, "http://127.0.0.1:1");
    let nowhere = nowhere.join("config");
    for (args, exit, expected) in [
        (&["--context", "hare"][..], 2, "no context \"hare\". Did you mean \"here\"?"),
        (&["--kubeconfig", "/no/such/file"], 2, "/no/such/file"),
        (&["--kubeconfig", nowhere.to_str().unwrap()], 1, "the API server http://127.0.0.1:1/ cannot be reached"),
        (&["--as-group", "x"], 2, "--as <USER>"),
        (&["-n", "A_B"], 2, "lower-case letters"),
    ] {
        let ran = office.runs(&[&["deny", "refund", "--yes"], args].concat()).await;
        assert_eq!(ran.exit, exit, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    office.api.forget_group("bloomery.dev");
    let ran = office.runs(&["deny", "refund", "--yes"]).await;
    assert_eq!(ran.exit, 1);
    assert!(ran.err.contains("check that Bloomery is installed"), "{}", ran.err);
}

/// What never ends, or never begins, is not waited for; what a shell hands over is read.
#[tokio::test]
async fn a_kubeconfig_is_a_file_of_bounded_size_or_a_pipe_of_the_shell() {
    let office = Office::open().await;
    let (pipe, large) = (office.home.path().join("pipe"), office.home.path().join("large"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    std::fs::File::create(&large).unwrap().set_len(20 << 20).unwrap();
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (file, expected) in [
        (file(&pipe), "it is no regular file"),
        ("/dev/zero".to_owned(), "it is no regular file"),
        (file(&large), "it is larger than 16777216 bytes"),
    ] {
        let refused = async |env: &[(&str, &str)], args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
            command.args(["can-approve", "refund"]).args(args).env_clear().envs(env.iter().copied()).kill_on_drop(true);
            let ran = tokio::time::timeout(std::time::Duration::from_mins(1), command.output()).await;
            let ran = Ran::from(ran.unwrap_or_else(|_| panic!("{file} is waited for")).unwrap());
            assert!(ran.exit == 2 && ran.err.contains(expected), "{file}: {}", ran.err);
        };
        refused(&[], &["--kubeconfig", &file]).await;
        refused(&[("KUBECONFIG", &file)], &["--context", "here"]).await;
    }
    let config = office.home.path().join("config");
    for given in ["--kubeconfig <(cat \"$1\")", "--kubeconfig /dev/stdin <\"$1\""] {
        let line = format!("\"$0\" can-approve --approver supervisor --as {JANE} {given}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_bloomery")]).arg(&config);
        let ran = Ran::from(shell.output().await.unwrap());
        assert_eq!(ran.exit, 0, "{given}: {}", ran.err);
    }
}

#[tokio::test]
async fn kubectl_finds_it_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let plugin = home.path().join("kubectl-bloomery");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bloomery"), &plugin).unwrap();
    let output = Command::new(plugin).args(["approve", "--help"]).output().await.unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl bloomery approve [OPTIONS] <NAME|JOB>"), "{help}");
}
