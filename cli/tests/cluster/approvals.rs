//! Tests of `bloomery approve`, `deny` and `can-approve`.

mod api;

use super::shell::{CommandOutput, kubeconfig};
use api::Api;
use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

const JANE: &str = "jane@acme.io";
/// The rights to read Approvals.
const READS: [&str; 2] = ["get approvals", "list approvals"];

/// An API server in memory, and the home directory of a user with a kubeconfig for it.
struct Setup {
    api: Api,
    home: TempDir,
}

impl Setup {
    /// Starts an API server with an open Approval of the Job `refund` for the approver `supervisor`. Jane may decide on it.
    async fn new() -> Self {
        let (api, home) = (Api::default(), tempfile::tempdir().unwrap());
        kubeconfig(home.path(), &api.serve().await);
        api.put_approval(approval("refund-1f0c4a9b27", "refund", "supervisor"));
        api.grant(JANE, &READS);
        api.grant(JANE, &["patch approvals", "approve approvers/supervisor"]);
        Self { api, home }
    }

    /// Runs a command without a terminal.
    async fn run(&self, args: &[&str]) -> CommandOutput {
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

    /// Runs a command as a user.
    async fn run_as(&self, user: &str, args: &[&str]) -> CommandOutput {
        self.run(&[args, &["--as", user]].concat()).await
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

/// Returns the decision of a user.
fn by(user: &str, verdict: &str) -> Value {
    json!({"verdict": verdict, "by": user})
}

#[tokio::test]
async fn a_shown_call_is_approved_in_the_users_own_name() {
    let setup = Setup::new().await;
    let args = ["approve", "refund-1f0c4a9b27", "--yes", "--reason", " the photo shows it "];
    let result = setup.run_as(JANE, &args).await;
    assert_eq!(
        (result.exit, result.out.as_str()),
        (0, "approval.bloomery.dev/refund-1f0c4a9b27 approved\n"),
        "{}",
        result.err
    );
    // The time until the expiry changes, so it is removed.
    let page: Vec<&str> = result.err.lines().map(|line| line.split("Z, ").next().unwrap()).collect();
    assert!(!result.err.contains('\u{1b}'), "only a terminal gets colours");
    assert_snapshot!(page.join("\n"));
    let decision = json!({"verdict": "Approve", "by": JANE, "reason": "the photo shows it"});
    let metadata = json!({"uid": "uid of refund-1f0c4a9b27", "resourceVersion": "1"});
    assert_eq!(setup.api.patches(), [json!({"metadata": metadata, "spec": {"decision": decision}})]);
    assert_eq!(setup.decision(), decision);
    assert!(setup.api.requests().iter().all(|request| request.starts_with(JANE)), "{:?}", setup.api.requests());
}

#[rstest]
#[case::yaml("yaml", "  decision:\n    verdict: Deny\n")]
#[case::json("json", "\"verdict\": \"Deny\"")]
#[case::name("name", "approval.bloomery.dev/refund-1f0c4a9b27\n")]
#[tokio::test]
async fn the_call_of_a_named_job_is_denied_and_printed_for_programs(#[case] form: &str, #[case] expected: &str) {
    let setup = Setup::new().await;
    let result = setup.run_as(JANE, &["deny", "refund", "-y", "-o", form]).await;
    assert_eq!(result.exit, 0, "{}", result.err);
    assert!(result.out.contains(expected) && !result.out.contains("managedFields"), "{}", result.out);
    assert_eq!(setup.decision(), by(JANE, "Deny"));
}

#[tokio::test]
async fn the_reason_for_not_requesting_a_decision_is_shown() {
    let setup = Setup::new().await;
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ApprovalPolicyMissing", "message": "the binding is missing",
        "lastTransitionTime": "2027-01-15T08:20:00Z",
    });
    setup.api.put_job(json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": "payout", "namespace": "acme", "uid": "uid-9"},
        "spec": {"skill": "cs-tier-1", "goal": "Refund"},
        "status": {"phase": "AwaitingApproval", "conditions": [condition]},
    }));
    let without_right = setup.run_as(JANE, &["approve", "payout", "--yes"]).await;
    assert!(
        without_right.err.contains("no Job payout that waits for an approval"),
        "without the right to read Jobs: {}",
        without_right.err
    );
    setup.api.grant(JANE, &["get skilljobs"]);
    let result = setup.run_as(JANE, &["approve", "payout", "--yes"]).await;
    let reason = "no decision is requested on the call of the Job payout: the binding is missing";
    assert!(result.exit == 1 && result.err.contains(reason), "{} {}", result.exit, result.err);
}

#[rstest]
#[case::gone(None, "its Job refund was deleted.")]
#[case::another_of_the_name(Some("uid-2"), "the Job of that name is a new one")]
#[tokio::test]
async fn an_approval_of_a_deleted_job_cannot_be_decided(#[case] another: Option<&str>, #[case] says: &str) {
    let setup = Setup::new().await;
    setup.api.grant(JANE, &["get skilljobs"]);
    setup.api.orphan("refund", another);
    for (verb, name) in [("approve", "refund"), ("deny", "refund-1f0c4a9b27")] {
        let result = setup.run_as(JANE, &[verb, name, "--yes"]).await;
        assert_eq!((result.exit, result.out.as_str(), setup.api.patches().len()), (6, "", 0), "{}", result.err);
        assert!(result.err.contains(says), "{}", result.err);
    }
    // Without the right to read Jobs, the check is skipped. The operator ignores such a decision.
    setup.api.grant("sam@acme.io", &READS);
    setup.api.grant("sam@acme.io", &["patch approvals", "approve approvers/supervisor"]);
    assert_eq!(setup.run_as("sam@acme.io", &["deny", "refund", "--yes"]).await.exit, 0);
}

#[tokio::test]
async fn without_a_terminal_yes_is_required() {
    let setup = Setup::new().await;
    let result = setup.run_as(JANE, &["approve", "refund"]).await;
    assert_eq!((result.exit, setup.api.requests()), (2, Vec::new()), "{}", result.err);
    assert!(result.err.contains("--yes"), "{}", result.err);
}

#[tokio::test]
async fn a_refused_decision_is_reported_with_the_missing_rights() {
    let setup = Setup::new().await;
    setup.api.grant("mallory@acme.io", &READS);
    setup.api.grant("mallory@acme.io", &["patch approvals", "approve approvers/mallory"]);
    let result = setup.run_as("mallory@acme.io", &["approve", "refund", "--yes"]).await;
    assert_eq!((result.exit, result.out.as_str()), (1, ""));
    assert_snapshot!(
        result.err.lines().skip_while(|line| !line.starts_with("bloomery: ")).collect::<Vec<_>>().join("\n")
    );
    assert_eq!(setup.decision(), Value::Null);
}

#[tokio::test]
async fn every_missing_right_is_named() {
    let setup = Setup::new().await;
    let result = setup.run_as("nobody", &["approve", "refund", "--yes"]).await;
    assert_eq!(result.exit, 1);
    assert!(result.err.contains("cannot get resource \"approvals\""), "{}", result.err);
    assert!(result.err.contains("resources: [approvals], verbs: [get, list, patch]"), "{}", result.err);
    setup.api.grant("nobody", &READS);
    let result = setup.run_as("nobody", &["approve", "refund", "--yes"]).await;
    assert_eq!(result.exit, 1);
    assert!(
        result.err.contains("patch on approvals.bloomery.dev")
            && result.err.contains("approvers.bloomery.dev/supervisor")
    );
}

#[tokio::test]
async fn a_refusal_by_the_admission_policy_is_reported() {
    let setup = Setup::new().await;
    let robot = "system:serviceaccount:acme:robot";
    setup.api.grant(robot, &READS);
    setup.api.grant(robot, &["patch approvals", "approve approvers"]);
    let result = setup.run_as(robot, &["approve", "refund", "--yes"]).await;
    assert_eq!(result.exit, 1);
    assert!(result.err.contains("ValidatingAdmissionPolicy") && !result.err.contains("Missing:"), "{}", result.err);
}

#[tokio::test]
async fn a_decided_or_expired_approval_is_too_late() {
    let setup = Setup::new().await;
    let mut decided = approval("refund-1f0c4a9b27", "refund", "supervisor");
    decided["spec"]["decision"] = by("joe@acme.io", "Deny");
    setup.api.put_approval(decided);
    let mut expired = approval("other-1f0c4a9b27", "other", "supervisor");
    expired["spec"]["expiresAt"] = json!("2020-01-01T00:00:00Z");
    setup.api.put_approval(expired);
    for (name, expected) in [
        ("refund-1f0c4a9b27", "refund-1f0c4a9b27 is denied already, by joe@acme.io"),
        ("refund", "no Approval of the Job refund is open"),
        ("other", "expired at 2020-01-01T00:00:00Z"),
    ] {
        let result = setup.run_as(JANE, &["approve", name, "--yes"]).await;
        assert_eq!(result.exit, 6, "{name}: {}", result.err);
        assert!(result.err.contains(expected), "{name}: {}", result.err);
    }
    assert!(setup.api.patches().is_empty());
}

#[tokio::test]
async fn an_unknown_or_ambiguous_name_decides_nothing() {
    let setup = Setup::new().await;
    setup.api.put_approval(approval("refund-2", "refund", "finance"));
    for (args, expected) in [
        (&["refnud"][..], "Did you mean \"refund\"?"),
        (&["refund"], "refund-2  process_refund: waits for finance"),
        (&["refund", "-n", "empty"], "the namespace empty has no Approval refund"),
        (&["refund/../x"], "NAME|JOB"),
    ] {
        let result = setup.run_as(JANE, &[&["approve", "--yes"], args].concat()).await;
        assert_eq!(result.exit, 2, "{args:?}: {}", result.err);
        assert!(result.err.contains(expected), "{args:?}: {}", result.err);
    }
    assert!(setup.api.patches().is_empty());
}

/// Everybody who can patch an Approval can change its labels. Only the spec determines its Job.
#[tokio::test]
async fn the_spec_and_not_a_label_determines_the_job_of_an_approval() {
    let setup = Setup::new().await;
    for label in ["innocent", "zzz"] {
        let mut relabelled = approval("refund-1f0c4a9b27", "refund", "supervisor");
        relabelled["metadata"]["labels"]["bloomery.dev/job"] = json!(label);
        setup.api.put_approval(relabelled);
        for command in [&["approve", label, "--yes"][..], &["deny", label, "--yes"], &["can-approve", label]] {
            let result = setup.run_as(JANE, command).await;
            assert_eq!((result.exit, setup.decision()), (2, Value::Null), "{command:?}: {}", result.err);
            assert!(
                result.err.contains(&format!("no Approval {label}, and no Job {label} that waits")),
                "{}",
                result.err
            );
        }
    }
    assert!(setup.run_as(JANE, &["approve", "refnud", "--yes"]).await.err.ends_with("Did you mean \"refund\"?\n"));
    let mut theirs = approval("refund-2", "refund", "finance");
    theirs["metadata"]["labels"] = Value::Null;
    setup.api.put_approval(theirs);
    let result = setup.run_as(JANE, &["approve", "refund-1f0c4a9b27", "--yes"]).await;
    assert!(
        result.exit == 0 && result.err.ends_with("The call also waits for finance (refund-2).\n"),
        "{}",
        result.err
    );
    setup.api.grant("joe@acme.io", &[&READS[..], &["patch approvals", "approve approvers/finance"]].concat());
    let result = setup.run_as("joe@acme.io", &["deny", "refund", "--yes"]).await;
    assert_eq!((result.exit, &setup.api.approval("refund-2")["spec"]["decision"]), (0, &by("joe@acme.io", "Deny")));
}

#[tokio::test]
async fn the_approval_of_a_job_is_found_on_a_later_page_of_the_list() {
    let setup = Setup::new().await;
    for nth in 0..1200 {
        setup.api.put_approval(approval(&format!("a-{nth}"), &format!("other-{nth}"), "supervisor"));
    }
    let result = setup.run_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((result.exit, setup.decision()), (0, by(JANE, "Approve")), "{}", result.err);
    let lists = setup
        .api
        .requests()
        .iter()
        .filter(|request| request.ends_with("GET /apis/bloomery.dev/v1alpha1/namespaces/acme/approvals"))
        .count();
    assert_eq!(lists, 6, "the list of 1201 Approvals has three pages, and is read twice");
}

#[tokio::test]
async fn the_other_approvers_are_named_after_an_approval() {
    let setup = Setup::new().await;
    setup.api.grant("joe@acme.io", &[&READS[..], &["patch approvals", "approve approvers/finance"]].concat());
    setup.api.put_approval(approval("refund-2", "refund", "finance"));
    let mut of_an_older_call = approval("refund-3", "refund", "legal");
    of_an_older_call["spec"]["callId"] = json!("c-6");
    setup.api.put_approval(of_an_older_call);
    let result = setup.run_as(JANE, &["approve", "refund-1f0c4a9b27", "--yes"]).await;
    assert_eq!(result.exit, 0, "{}", result.err);
    assert!(result.err.ends_with("The call also waits for finance (refund-2).\n"), "{}", result.err);
    let result = setup.run_as("joe@acme.io", &["approve", "refund-2", "--yes"]).await;
    assert_eq!(result.exit, 0, "{}", result.err);
    assert!(!result.err.contains("waits for"), "{}", result.err);
}

#[tokio::test]
async fn an_approval_that_has_changed_meanwhile_is_not_decided() {
    let setup = Setup::new().await;
    let mut theirs = approval("refund-1f0c4a9b27", "refund", "supervisor");
    theirs["metadata"]["labels"]["seen"] = json!("yes");
    setup.api.overtake(theirs.clone());
    let result = setup.run_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((result.exit, setup.decision()), (1, Value::Null), "{}", result.err);
    assert!(result.err.contains("has changed since it was shown"), "{}", result.err);

    theirs["spec"]["decision"] = by("joe@acme.io", "Deny");
    setup.api.overtake(theirs);
    let result = setup.run_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((result.exit, setup.decision()), (6, by("joe@acme.io", "Deny")), "{}", result.err);
    assert!(result.err.contains("your decision was not recorded"), "{}", result.err);
}

#[tokio::test]
async fn a_decision_succeeds_if_the_response_is_lost() {
    let setup = Setup::new().await;
    setup.api.lose_next_response();
    let result = setup.run_as(JANE, &["approve", "refund", "--yes"]).await;
    assert_eq!((result.exit, setup.api.patches().len()), (0, 2), "{}", result.err);
    assert_eq!(setup.decision(), by(JANE, "Approve"));
}

#[tokio::test]
async fn can_approve_answers_with_an_exit_code() {
    let setup = Setup::new().await;
    setup.api.grant("mallory@acme.io", &READS);
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
        let result = setup.run_as(user, &[&["can-approve"], args].concat()).await;
        assert_eq!((result.exit, result.out.as_str()), (exit, out), "{user} {args:?}: {}", result.err);
        assert_eq!(result.err.contains("may not decide in the namespace acme. Missing: "), exit == 1, "{}", result.err);
    }
    assert!(setup.api.patches().is_empty());
}

#[tokio::test]
async fn a_cluster_that_cannot_be_used_is_reported() {
    let setup = Setup::new().await;
    let nowhere = setup.home.path().join("nowhere");
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
        let result = setup.run(&[&["deny", "refund", "--yes"], args].concat()).await;
        assert_eq!(result.exit, exit, "{args:?}: {}", result.err);
        assert!(result.err.contains(expected), "{args:?}: {}", result.err);
    }
    setup.api.uninstall_group("bloomery.dev");
    let result = setup.run(&["deny", "refund", "--yes"]).await;
    assert_eq!(result.exit, 1);
    assert!(result.err.contains("check that Bloomery is installed"), "{}", result.err);
}

/// A named pipe or a device would block the command, so it is refused. An inherited pipe is read.
#[tokio::test]
async fn a_kubeconfig_is_a_regular_file_or_an_inherited_pipe() {
    let setup = Setup::new().await;
    let (pipe, large) = (setup.home.path().join("pipe"), setup.home.path().join("large"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    std::fs::File::create(&large).unwrap().set_len(20 << 20).unwrap();
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (file, expected) in [
        (file(&pipe), "it is not a regular file"),
        ("/dev/zero".to_owned(), "it is not a regular file"),
        (file(&large), "it is larger than 16777216 bytes"),
    ] {
        let refused = async |env: &[(&str, &str)], args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
            command.args(["can-approve", "refund"]).args(args).env_clear().envs(env.iter().copied()).kill_on_drop(true);
            let result = tokio::time::timeout(std::time::Duration::from_mins(1), command.output()).await;
            let result = CommandOutput::from(result.unwrap_or_else(|_| panic!("{file} blocks the command")).unwrap());
            assert!(result.exit == 2 && result.err.contains(expected), "{file}: {}", result.err);
        };
        refused(&[], &["--kubeconfig", &file]).await;
        refused(&[("KUBECONFIG", &file)], &["--context", "here"]).await;
    }
    let config = setup.home.path().join("config");
    for given in ["--kubeconfig <(cat \"$1\")", "--kubeconfig /dev/stdin <\"$1\""] {
        let line = format!("\"$0\" can-approve --approver supervisor --as {JANE} {given}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_bloomery")]).arg(&config);
        let result = CommandOutput::from(shell.output().await.unwrap());
        assert_eq!(result.exit, 0, "{given}: {}", result.err);
    }
}

#[tokio::test]
async fn the_help_of_the_plugin_names_kubectl() {
    let home = tempfile::tempdir().unwrap();
    let plugin = home.path().join("kubectl-bloomery");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bloomery"), &plugin).unwrap();
    let output = Command::new(plugin).args(["approve", "--help"]).output().await.unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl bloomery approve [OPTIONS] <NAME|JOB>"), "{help}");
}
