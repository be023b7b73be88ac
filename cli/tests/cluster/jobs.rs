//! Tests of `bloomery reply`, `cancel`, `get`, `events`, `tree`, `wait` and completion.

mod api;
mod terminal;

use super::shell::{CommandOutput, kubeconfig};
use api::{job_path, pod_path, start_pods_as};
use bloomery_testkit::api_server::ApiServer;
use rstest::rstest;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// An API server in memory, and the home directory of a user with a kubeconfig for it.
struct Setup {
    api: ApiServer,
    home: TempDir,
}

impl Setup {
    /// Starts an API server with the Job `refund`, which has the open question `q-1`.
    async fn new() -> Self {
        let (api, home) = (ApiServer::default(), tempfile::tempdir().unwrap());
        kubeconfig(home.path(), &api.serve().await);
        api.put(&job_path("refund"), with_question(&[]));
        start_pods_as(&api, json!({"running": {}}));
        Self { api, home }
    }

    /// Starts a command.
    fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Returns a command, which starts the program under the name that kubectl uses.
    fn command(&self, args: &[&str]) -> Command {
        let plugin = self.home.path().join("kubectl-bloomery");
        if !plugin.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bloomery"), &plugin).unwrap();
        }
        let mut command = Command::new(plugin);
        command.args(args).env_clear().env("KUBECONFIG", self.home.path().join("config")).current_dir(self.home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs a command without a terminal.
    async fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with_stdin(args, "").await
    }

    /// Completes the last word in the way that kubectl does.
    async fn complete(&self, words: &[&str]) -> CommandOutput {
        let mut command = self.command(&[&["--", "kubectl-bloomery"], words].concat());
        end(command.env("BLOOMERY_COMPLETE", "kubectl").spawn().unwrap()).await
    }

    /// Runs a command with a text on stdin.
    async fn run_with_stdin(&self, args: &[&str], stdin: &str) -> CommandOutput {
        let mut child = self.start(args);
        // This fails if the command ends without reading its stdin.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes()).await;
        end(child).await
    }

    /// Stores an Approval of the Job `refund`, whose approver has the same name. `decision` and `counted` may be null.
    fn put_approval(&self, name: &str, decision: &Value, counted: &Value) {
        let mut object = json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Approval",
            "metadata": {"name": name, "namespace": "acme", "uid": name},
            "spec": {
                "job": "refund", "jobUid": "uid of refund", "approver": name, "tool": "process_refund", "callId": "9-0",
                "arguments": "{}", "argumentsDigest": format!("sha256:{}", "0".repeat(64)), "goal": "Refund",
                "expiresAt": "2037-01-15T08:00:00Z", "decision": decision,
            },
        });
        if !counted.is_null() {
            object["status"]["counted"] = json!({"verdict": counted, "at": "2037-01-15T08:00:01Z"});
        }
        self.api.put(&format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals/{name}"), object);
    }

    /// Returns the replies in the spec of the Job `refund`.
    fn replies(&self) -> Value {
        self.api.find(&job_path("refund")).unwrap()["spec"]["replies"].clone()
    }
}

/// Waits for the end of a command.
async fn end(child: Child) -> CommandOutput {
    child.wait_with_output().await.unwrap().into()
}

/// Returns a Job with a status.
fn job(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": "acme", "uid": format!("uid of {name}"), "managedFields": []},
        "spec": {"skill": "cs-tier-1", "goal": "Refund my order"},
        "status": status,
    })
}

/// Returns the Job `refund` with the open question `q-1` and these replies.
fn with_question(replies: &[Value]) -> Value {
    let question = json!({"id": "q-1", "text": "Which order?", "choices": ["A-17", "B-4"]});
    let mut job = job("refund", &json!({"phase": "AwaitingReply", "waitingFor": {"questions": [question]}}));
    job["spec"]["replies"] = json!(replies);
    job
}

/// Returns the held call in the status of a Job.
fn held_call() -> Value {
    json!({
        "id": "9-0", "tool": "process_refund", "digest": format!("sha256:{}", "0".repeat(64)),
        "approvers": ["finance", "supervisor"], "reason": "amount > 500",
    })
}

/// Returns the Job `refund` after its success.
fn succeeded() -> Value {
    let outcome = json!({"code": "Succeeded", "message": "The answer passed every gate."});
    let log = json!({"path": "jobs/refund-1", "events": 3, "head": format!("sha256:{}", "0".repeat(64))});
    job("refund", &json!({"phase": "Succeeded", "outcome": outcome, "log": log}))
}

/// Returns the worker pod of an attempt of the Job `refund`.
fn pod(name: &str, attempt: u32, phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "acme", "uid": format!("uid of {name}"),
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "labels": {
                "bloomery.dev/job": "refund", "bloomery.dev/attempt": attempt.to_string(),
                "app.kubernetes.io/managed-by": "bloomery", "app.kubernetes.io/component": "worker",
            },
            "ownerReferences": [{"apiVersion": "bloomery.dev/v1alpha1", "kind": "Job", "name": "refund", "uid": "uid of refund"}],
        },
        "spec": {"containers": [{"name": "worker", "image": "worker:7"}]},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "worker", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}},
        ]},
    })
}

#[tokio::test]
async fn a_reply_answers_the_open_question() {
    let setup = Setup::new().await;
    let result = setup.run(&["reply", "refund", "2"]).await;
    assert_eq!(
        (result.exit, result.out.as_str()),
        (0, "job.bloomery.dev/refund answered q-1: B-4\n"),
        "{}",
        result.err
    );
    assert_eq!(setup.replies(), json!([{"question": "q-1", "text": "B-4"}]));
    let metadata = json!({"uid": "uid of refund", "resourceVersion": "1"});
    assert_eq!(setup.api.patches()[0]["metadata"], metadata, "the patch has the version that was read");
}

#[tokio::test]
async fn a_message_answers_no_question() {
    let setup = Setup::new().await;
    let result = setup.run_with_stdin(&["reply", "refund", "-", "--message"], "Hurry, please.\n").await;
    assert_eq!((result.exit, setup.replies()), (0, json!([{"text": "Hurry, please."}])), "{}", result.err);
    let result = setup.run(&["reply", "refund", "the one of May", "-o", "name"]).await;
    assert_eq!((result.exit, result.out.as_str()), (0, "job.bloomery.dev/refund\n"));
    assert!(result.err.contains("none of the choices (A-17, B-4)"), "{}", result.err);
}

#[tokio::test]
async fn a_concurrent_reply_is_not_lost() {
    let setup = Setup::new().await;
    let theirs = [json!({"text": "one"}), json!({"text": "two"})];
    setup.api.meanwhile(&job_path("refund"), with_question(&theirs[..1]));
    setup.api.meanwhile(&job_path("refund"), with_question(&theirs));
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert_eq!((result.exit, setup.api.patches().len()), (0, 3), "{}", result.err);
    assert_eq!(setup.replies(), json!([theirs[0], theirs[1], {"question": "q-1", "text": "A-17"}]));
}

#[tokio::test]
async fn a_question_that_was_answered_meanwhile_is_not_answered_again() {
    let setup = Setup::new().await;
    setup.api.meanwhile(&job_path("refund"), with_question(&[json!({"question": "q-1", "text": "B-4"})]));
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert!(result.exit == 6 && result.err.contains("q-1 was answered by someone else"), "{}", result.err);
    assert_eq!(setup.replies(), json!([{"question": "q-1", "text": "B-4"}]));
    // The next reply is refused before it is sent. With --question it is sent, with a warning.
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert!(result.exit == 6 && result.err.contains("not received yet: \"B-4\""), "{}", result.err);
    let result = setup.run(&["reply", "refund", "A-17", "--question", "q-1"]).await;
    assert!(result.exit == 0 && result.err.contains("The first answer counts"), "{}", result.err);
}

#[tokio::test]
async fn a_reply_is_sent_once_if_the_response_is_lost() {
    let setup = Setup::new().await;
    setup.api.lose_next_response();
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert_eq!((result.exit, setup.replies()), (0, json!([{"question": "q-1", "text": "A-17"}])), "{}", result.err);
}

#[rstest]
#[case::no_such_job(&["refnud", "x"], 2, "Did you mean \"refund\"?")]
#[case::no_such_question(&["refund", "x", "-q", "q-2"], 2, "no open question q-2")]
#[case::no_question(&["refund", "x", "-q", "it's me"], 2, "such as q-1")]
#[case::nothing(&["refund", "  "], 2, "empty")]
#[case::no_terminal(&["refund"], 2, "no terminal")]
#[case::both(&["refund", "x", "-m", "-q", "q-1"], 2, "cannot be used with")]
#[case::no_name(&["../x", "x"], 2, "JOB")]
#[case::elsewhere(&["refund", "x", "-n", "empty"], 2, "There are no Jobs in it")]
#[tokio::test]
async fn an_invalid_reply_is_not_sent(#[case] args: &[&str], #[case] exit: i32, #[case] says: &str) {
    let setup = Setup::new().await;
    let result = setup.run(&[&["reply"], args].concat()).await;
    assert!(result.exit == exit && result.err.contains(says), "{}: {}", result.exit, result.err);
    assert!(setup.api.patches().is_empty());
}

#[tokio::test]
async fn a_text_that_is_too_long_is_not_sent() {
    let setup = Setup::new().await;
    for (length, exit) in [(1025, 2), (1 << 20, 2), (1024, 0)] {
        let result = setup.run_with_stdin(&["reply", "refund", "-", "-m"], &"x".repeat(length)).await;
        assert_eq!(result.exit, exit, "{length}: {}", result.err);
    }
    assert_eq!(setup.api.patches().len(), 1);
}

#[tokio::test]
async fn a_missing_right_is_reported_with_its_rule() {
    let setup = Setup::new().await;
    setup.api.deny(&["patch skilljobs", "create pods", "list pods"]);
    for args in [&["reply", "refund", "A-17"][..], &["cancel", "refund", "-y"]] {
        let result = setup.run(&[args, &["--as", "jane@acme.io"]].concat()).await;
        assert_eq!(result.exit, 1);
        assert!(result.err.contains("the verb patch on skilljobs.bloomery.dev"), "{}", result.err);
        assert!(
            result.err.contains("{apiGroups: [bloomery.dev], resources: [skilljobs], verbs: [patch]}"),
            "{}",
            result.err
        );
    }
    setup.api.put(&job_path("refund"), succeeded());
    let events = ["events", "refund", "--whole", "--as", "jane@acme.io", "--image", "worker:7"];
    let result = setup.run(&events).await;
    assert!(
        result.exit == 1 && result.err.contains("{apiGroups: [\"\"], resources: [pods], verbs: [create]}"),
        "{}",
        result.err
    );
}

#[tokio::test]
async fn a_missing_right_to_list_all_namespaces_is_reported() {
    let setup = Setup::new().await;
    setup.api.deny(&["list skilljobs everywhere"]);
    let result = setup.run(&["get", "-A", "--as", "jane@acme.io"]).await;
    insta::assert_snapshot!(format!("exit {}\n{}", result.exit, result.err));
    assert_eq!(setup.run(&["get", "--as", "jane@acme.io"]).await.exit, 0, "she may list one namespace");
}

#[tokio::test]
async fn a_job_is_cancelled_once() {
    let setup = Setup::new().await;
    let result = setup.run(&["cancel", "refund"]).await;
    assert!(result.exit == 2 && result.err.contains("--yes"), "{}", result.err);
    let result = setup.run(&["cancel", "refund", "refnud", "--yes"]).await;
    assert_eq!(
        (result.exit, setup.api.patches().len()),
        (2, 0),
        "with an unknown name, no Job is cancelled: {}",
        result.err
    );
    let result = setup.run(&["cancel", "refund", "refund", "--yes"]).await;
    assert_eq!(
        (result.exit, result.out.as_str()),
        (0, "job.bloomery.dev/refund is being cancelled\n"),
        "{}",
        result.err
    );
    assert!(
        result.err.contains("A cancellation cannot be undone.") && !result.err.contains("short grace"),
        "{}",
        result.err
    );
    let patch = json!({"metadata": {"uid": "uid of refund"}, "spec": {"cancel": true}});
    assert_eq!(setup.api.patches(), [patch]);
    let result = setup.run(&["cancel", "refund", "--yes", "-o", "name"]).await;
    assert!(result.exit == 0 && result.err.contains("already being cancelled"), "{}", result.err);
    assert_eq!(result.out, "job.bloomery.dev/refund\n");
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert!(result.exit == 6 && result.err.contains("accepts no replies"), "{}", result.err);

    let waits = setup.start(&["cancel", "refund", "--yes", "--wait"]);
    setup.api.until_requested("WATCH").await;
    let outcome = json!({"code": "Cancelled", "message": "Somebody cancelled it."});
    setup.api.put(&job_path("refund"), job("refund", &json!({"phase": "Cancelled", "outcome": outcome})));
    let result = end(waits).await;
    assert!(result.exit == 0 && result.out.contains("Cancelled: Somebody"), "{} {}", result.out, result.err);
    setup.api.put(&job_path("refund"), succeeded());
    let result = setup.run(&["cancel", "refund", "--yes"]).await;
    assert!(result.exit == 6 && result.err.contains("has already ended: Succeeded"), "{}", result.err);
    setup.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    let result = setup.run(&["cancel", "refund", "--yes"]).await;
    assert!(
        result.exit == 0 && result.err.contains("A tool call in progress gets a short grace period"),
        "{}",
        result.err
    );
}

#[tokio::test]
async fn wait_watches_a_job_until_it_ends() {
    let setup = Setup::new().await;
    let result = setup.run(&["wait", "refund"]).await;
    assert_eq!((result.exit, result.out.as_str()), (7, "job.bloomery.dev/refund AwaitingReply\n"));
    assert!(result.err.contains("Answer with: kubectl bloomery reply refund --question q-1 NUMBER"), "{}", result.err);
    let result = setup.run(&["wait", "refund", "--for", "ended", "--timeout", "100ms"]).await;
    assert!(result.exit == 6 && result.err.contains("timed out"), "{}", result.err);
    let waits = setup.start(&["wait", "refund", "--for", "ended"]);
    setup.api.until_requested("WATCH").await;
    setup.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    setup.api.put(&job_path("refund"), succeeded());
    let result = end(waits).await;
    assert_eq!(
        (result.exit, result.out.as_str()),
        (0, "job.bloomery.dev/refund Succeeded: The answer passed every gate.\n")
    );
    let result = setup.run(&["wait", "refund", "--for", "StepLimit"]).await;
    assert_eq!(result.exit, 1, "the state cannot be reached any more: {}", result.err);
    let result = setup.run(&["wait", "refund", "--for", "StepLimits"]).await;
    assert!(result.exit == 2 && result.err.contains("Did you mean \"StepLimit\"?"), "{}", result.err);
}

/// Shortly after an answer or a decision, the status of the Job still says that it waits.
#[tokio::test]
async fn wait_continues_after_an_answer_that_the_job_has_not_received() {
    let setup = Setup::new().await;
    setup.api.put(&job_path("refund"), with_question(&[json!({"question": "q-1", "text": "A-17"})]));
    let waits = setup.start(&["wait", "refund"]);
    setup.api.until_requested("WATCH").await;
    setup.api.put(&job_path("refund"), succeeded());
    assert_eq!(end(waits).await.exit, 0);

    let held =
        |names: &[&str]| job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": {"approvals": names}}));
    let approval = |name: &str, decision: &Value| setup.put_approval(name, decision, &Value::Null);
    let agreed = json!({"verdict": "Approve", "by": "jane"});
    approval("finance", &Value::Null);
    approval("supervisor", &agreed);
    setup.api.put(&job_path("refund"), held(&["supervisor", "finance"]));
    let result = setup.run(&["wait", "refund"]).await;
    assert_eq!(result.exit, 7, "finance has to approve too: {}", result.err);
    assert_eq!(result.err, "Answer with: kubectl bloomery approve finance\n", "only open Approvals are suggested");
    for (verdict, approvals) in [("Approve", &["supervisor"][..]), ("Deny", &["finance", "open"])] {
        approval("open", &Value::Null);
        approval(approvals[0], &json!({"verdict": verdict, "by": "jane"}));
        setup.api.put(&job_path("refund"), held(approvals));
        let watches = setup.start(&["wait", "refund"]);
        setup.api.until_requested(approvals[0]).await;
        setup.api.put(&job_path("refund"), succeeded());
        assert_eq!(end(watches).await.exit, 0, "{verdict}");
    }
}

/// Without a valid admission policy, the operator creates no Approvals, although the status of the Job names them.
#[tokio::test]
async fn the_reason_for_not_requesting_a_decision_is_shown() {
    let setup = Setup::new().await;
    let why = "the binding bloomery-approvals is not as it was shipped";
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ApprovalPolicyMissing", "message": why,
        "lastTransitionTime": "2027-01-15T08:20:00Z",
    });
    let waiting = json!({"call": held_call(), "approvals": ["finance"]});
    let status = json!({"phase": "AwaitingApproval", "waitingFor": waiting, "conditions": [condition]});
    setup.api.put(&job_path("refund"), job("refund", &status));
    let reason = format!("No decision is requested: {why}");
    let result = setup.run(&["wait", "refund"]).await;
    assert_eq!((result.exit, result.err.trim_end()), (7, reason.as_str()));
    let result = setup.run(&["get", "refund"]).await;
    assert!(result.out.contains(&reason) && !result.out.contains("Decided, but"), "{}", result.out);
}

#[tokio::test]
async fn an_expired_approval_is_not_suggested() {
    let setup = Setup::new().await;
    setup.put_approval("finance", &Value::Null, &Value::Null);
    let path = "/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals/finance";
    let mut expired = setup.api.find(path).unwrap();
    expired["spec"]["expiresAt"] = json!("2020-01-01T00:00:00Z");
    setup.api.put(path, expired);
    let waiting = json!({"call": held_call(), "approvals": ["finance"]});
    setup.api.put(&job_path("refund"), job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": waiting})));
    let result = setup.run(&["get", "refund"]).await;
    assert!(result.out.contains("Expired, but") && !result.out.contains("approve finance"), "{}", result.out);
}

/// A model writes the choices. A line break in a choice must not begin a new line of the output.
#[tokio::test]
async fn a_choice_is_shown_as_one_line() {
    let setup = Setup::new().await;
    let question = |id: &str| json!({"id": id, "text": "Which?", "choices": ["a\nb", "c"]});
    let ask = |questions: Value| {
        let status = json!({"phase": "AwaitingReply", "waitingFor": {"questions": questions}});
        setup.api.put(&job_path("refund"), job("refund", &status));
    };
    ask(json!([question("q-1"), question("q-2")]));
    let several = setup.run(&["reply", "refund", "hi"]).await;
    assert!(several.err.contains("q-1  Which? (a b, c)"), "{}", several.err);
    let shown = setup.run(&["get", "refund"]).await;
    assert!(shown.out.contains("1  a b\n"), "{}", shown.out);
    ask(json!([question("q-1")]));
    let none = setup.run(&["reply", "refund", "hi"]).await;
    assert!(none.err.contains("The text is none of the choices (a b, c)"), "{}", none.err);
}

#[tokio::test]
async fn the_error_for_a_very_long_text_names_the_limits() {
    let setup = Setup::new().await;
    let result = setup.run_with_stdin(&["reply", "refund", "-"], &"x".repeat(1 << 20)).await;
    assert_eq!(result.exit, 2, "{}", result.err);
    assert!(result.err.contains("the text has more than 65536 bytes; the limit is 1024"), "{}", result.err);
}

/// A reply to a question that is not open is not an answer, so the Job still waits for people.
#[tokio::test]
async fn a_reply_to_a_closed_question_does_not_prolong_the_wait() {
    let setup = Setup::new().await;
    let mut asks = with_question(&[json!({"question": "q-7", "text": "hm"})]);
    asks["status"]["waitingFor"]["since"] = json!("2027-01-15T08:20:00Z");
    let waiting = json!({"call": held_call(), "since": "2027-01-15T08:20:00Z"});
    let mut holds = job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": waiting}));
    holds["spec"]["replies"] = asks["spec"]["replies"].clone();
    setup.api.put(&pod_path("refund-1"), pod("refund-1", 1, "Succeeded"));
    setup.api.logs("refund-1", "one\n");
    for object in [asks, holds] {
        setup.api.put(&job_path("refund"), object);
        for (args, exit) in [
            (&["wait", "refund", "--timeout", "20s"][..], 7),
            (&["wait", "refund", "--for", "waiting", "--timeout", "20s"], 0),
        ] {
            let result = setup.run(args).await;
            assert_eq!(result.exit, exit, "{args:?}: {}", result.err);
        }
        let follows = tokio::time::timeout(std::time::Duration::from_secs(20), setup.run(&["events", "refund", "-f"]));
        let result = follows.await.expect("the command does not end");
        assert_eq!((result.exit, result.out.as_str()), (0, "one\n"), "{}", result.err);
        let result = setup.run(&["get", "refund"]).await;
        assert!(result.out.contains("waiting since 2027-01-15T08:20:00Z"), "{}", result.out);
    }
}

/// In a suspended namespace no pod starts, so a decision takes effect only after the suspension.
#[tokio::test]
async fn a_decided_job_in_a_suspended_namespace_shows_the_suspension() {
    let setup = Setup::new().await;
    let message = "no pod runs while the namespace acme is suspended by its annotation bloomery.dev/suspend";
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Suspended", "message": message,
               "lastTransitionTime": "2027-01-15T08:20:00Z"})
    };
    let queued = json!({
        "phase": "Queued", "waitingFor": {"call": held_call(), "approvals": ["finance", "supervisor"]},
        "conditions": [condition("Ready", "False"), condition("Reconciling", "True")],
    });
    setup.api.put(&job_path("refund"), job("refund", &queued));
    let [agreed, denied] = ["Approve", "Deny"].map(|verdict| json!({"verdict": verdict, "by": "jane"}));
    let open = Value::Null;
    for (finance, supervisor, counted, offered) in [
        (&open, &open, &Value::Null, &["finance", "supervisor"][..]),
        (&agreed, &open, &Value::Null, &["supervisor"]),
        (&agreed, &agreed, &Value::Null, &[]),
        (&denied, &open, &Value::Null, &[]),
        (&agreed, &open, &json!("Expired"), &[]),
    ] {
        setup.put_approval("finance", finance, counted);
        setup.put_approval("supervisor", supervisor, &Value::Null);
        let result = setup.run(&["get", "refund"]).await;
        for name in ["finance", "supervisor"] {
            for word in ["approve", "deny"] {
                let command = format!("kubectl bloomery {word} {name}\n");
                assert_eq!(result.out.contains(&command), offered.contains(&name), "{command}{}", result.out);
            }
        }
        assert_eq!(
            result.out.contains("Decided, but the Job has not received it yet"),
            offered.is_empty(),
            "{}",
            result.out
        );
        assert!(result.out.contains(&format!("Suspended: {message}")), "{}", result.out);
    }
    for waits in [&["wait", "refund"][..], &["wait", "refund", "--for", "ended"], &["cancel", "refund", "-y", "--wait"]]
    {
        let result = setup.run(&[waits, &["--timeout", "2s"]].concat()).await;
        assert_eq!(result.exit, 6, "{}", result.err);
        assert!(result.err.contains("timed out waiting for the Job refund"), "{}", result.err);
        let count = |start: &str| result.err.matches(&format!("{start}Queued: {message}")).count();
        assert_eq!((count("is waiting: "), count("timed out waiting for the Job refund: ")), (1, 1), "{}", result.err);
    }
}

#[tokio::test]
async fn an_unknown_job_is_reported_without_the_right_to_list_jobs() {
    let setup = Setup::new().await;
    setup.api.deny(&["list skilljobs", "list approvals"]);
    for args in [&["get", "refnud"][..], &["reply", "refnud", "x"], &["cancel", "refnud", "-y"], &["wait", "refnud"]] {
        let result = setup.run(&[args, &["--as", "jane@acme.io"]].concat()).await;
        assert_eq!(result.exit, 2, "{args:?}: {}", result.err);
        assert!(result.err.ends_with("the namespace acme has no Job refnud.\n"), "{args:?}: {}", result.err);
    }
}

#[tokio::test]
async fn wait_ends_when_the_job_is_deleted() {
    let setup = Setup::new().await;
    let waits = setup.start(&["wait", "refund", "--for", "ended"]);
    setup.api.until_requested("WATCH").await;
    setup.api.remove(&job_path("refund"));
    let result = end(waits).await;
    assert!(result.exit == 6 && result.err.contains("was deleted meanwhile"), "{}", result.err);
}

#[tokio::test]
async fn get_and_tree_show_jobs() {
    let setup = Setup::new().await;
    let result = setup.run(&["get", "refund"]).await;
    assert!(
        result.out.contains("Reply       kubectl bloomery reply refund --question q-1 NUMBER"),
        "{} {}",
        result.out,
        result.err
    );
    assert!(!result.out.contains('\u{1b}'), "only a terminal gets colours");
    for (args, expected) in [
        (&["get"][..], "refund   cs-tier-1   AwaitingReply"),
        (&["get", "-A"], "acme        refund   cs-tier-1"),
        (&["get", "-o", "name"], "job.bloomery.dev/refund\n"),
        (&["get", "refund", "-o", "yaml"], "phase: AwaitingReply"),
        (&["get", "refund", "-o", "json"], "\"kind\": \"Job\""),
        (&["get", "-o", "json"], "\"kind\": \"List\""),
        (&["tree"], "Skill cs-tier-1  does not exist\n└─ Job refund  AwaitingReply"),
        (&["tree", "refund"], "Question q-1  Which order?"),
    ] {
        let result = setup.run(args).await;
        assert!(result.exit == 0 && result.out.contains(expected), "{args:?}: {} {}", result.out, result.err);
        assert!(!result.out.contains("managedFields"), "{args:?}");
    }
    for (args, says) in [
        (&["get", "refnud"][..], "Did you mean \"refund\"?"),
        (&["get", "refund", "--skill", "other"], "belongs to the Skill cs-tier-1"),
        (&["get", "refund", "--memory", "m", "-n", "acme"], "cannot be used with"),
        (&["get", "--memory", "m", "--cluster"], "cannot be used with"),
        (&["tree", "refnud"], "Did you mean \"refund\"?"),
        (&["get", "refund", "--memory", "m"], "the memory ./m has no Job refund"),
    ] {
        let result = setup.run(args).await;
        assert!(result.exit == 2 && result.err.contains(says), "{args:?}: {}", result.err);
    }
}

#[tokio::test]
async fn bloomery_reads_the_memory_unless_an_option_selects_a_cluster() {
    let setup = Setup::new().await;
    let run = async |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command.args(args).env_clear().env("KUBECONFIG", setup.home.path().join("config"));
        let output = command.current_dir(setup.home.path()).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["get", "refund"]).await.0, 2, "there is no memory");
    assert!(setup.api.requests().is_empty());
    for more in [&["--cluster"][..], &["-n", "acme"], &["--context", "here"], &["--as", "jane"]] {
        let (exit, out) = run(&[&["get", "refund"], more].concat()).await;
        assert!(exit == 0 && out.starts_with("Job         refund in acme"), "{more:?}: {out}");
    }
}

#[tokio::test]
async fn events_prints_the_logs_of_all_pods_in_order() {
    let setup = Setup::new().await;
    for (name, attempt) in [("refund-3", 3), ("refund-2", 2)] {
        setup.api.put(&pod_path(name), pod(name, attempt, "Succeeded"));
        setup.api.logs(name, &format!("of {name}\u{1b}[2J\n"));
    }
    let result = setup.run(&["events", "refund"]).await;
    assert_eq!((result.exit, result.out.as_str()), (0, "of refund-2[2J\nof refund-3[2J\n"), "{}", result.err);
    assert!(result.err.contains("The pod of attempt 1 is gone."), "{}", result.err);
    let result = setup.run(&["events", "refund", "--json", "-f"]).await;
    assert_eq!(result.exit, 2, "{}", result.err);
}

#[tokio::test]
async fn events_follows_a_job_over_its_attempts() {
    let setup = Setup::new().await;
    setup.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    setup.api.put(&pod_path("refund-1"), pod("refund-1", 1, "Running"));
    setup.api.logs("refund-1", "one\n");
    let follows = setup.start(&["events", "refund", "-f"]);
    setup.api.until_requested("pods/refund-1/log").await;
    setup.api.logs("refund-2", "two\n");
    setup.api.put(&pod_path("refund-2"), pod("refund-2", 2, "Running"));
    setup.api.until_requested("pods/refund-2/log").await;
    setup.api.put(&job_path("refund"), with_question(&[]));
    let result = end(follows).await;
    assert_eq!((result.exit, result.out.as_str()), (0, "one\ntwo\n"), "{}", result.err);
    assert!(
        result.err.contains("AwaitingReply") && result.err.contains("reply refund --question q-1"),
        "{}",
        result.err
    );
}

#[tokio::test]
async fn a_reader_pod_reads_the_log_if_no_pod_is_left() {
    let setup = Setup::new().await;
    setup.api.put(&job_path("refund"), succeeded());
    let result = setup.run(&["events", "refund"]).await;
    assert!(result.exit == 2 && result.err.contains("--image"), "the image is unknown: {}", result.err);
    setup.api.logs("refund-events-", "1 begun\n");
    let result = setup.run(&["events", "refund", "--image", "worker:8"]).await;
    assert_eq!((result.exit, result.out.as_str()), (0, "1 begun\n"), "{}", result.err);
    assert!(result.err.contains("The reader pod refund-events-x1"), "{}", result.err);
    assert_eq!(setup.api.find(&pod_path("refund-events-x1")), None, "it is deleted");
    // A worker pod of another Job has the image too.
    let mut other = pod("other-1", 1, "Succeeded");
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    setup.api.put(&pod_path("other-1"), other);
    let result = setup.run(&["events", "refund", "--json"]).await;
    assert_eq!((result.exit, result.out.as_str()), (0, "1 begun\n"), "{}", result.err);
}

#[tokio::test]
async fn a_reader_pod_that_cannot_start_is_reported_and_deleted() {
    let setup = Setup::new().await;
    setup.api.put(&job_path("refund"), succeeded());
    start_pods_as(&setup.api, json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}));
    let result = setup.run(&["events", "refund", "--image", "worker:8"]).await;
    assert!(result.exit == 1 && result.err.contains("ErrImagePull: no such image"), "{}", result.err);
    assert_eq!(setup.api.find(&pod_path("refund-events-x1")), None);
}

#[tokio::test]
async fn a_reader_pod_is_deleted_after_an_interrupt() {
    let setup = Setup::new().await;
    setup.api.put(&job_path("refund"), succeeded());
    start_pods_as(&setup.api, json!({"waiting": {"reason": "ContainerCreating"}}));
    let reads = setup.start(&["events", "refund", "--image", "worker:8"]);
    setup.api.until_requested("WATCH").await;
    let interrupted = Command::new("kill").args(["-INT", &reads.id().unwrap().to_string()]).status().await.unwrap();
    assert!(interrupted.success());
    let result = end(reads).await;
    assert_eq!(result.exit, 130, "{}", result.err);
    assert_eq!(setup.api.find(&pod_path("refund-events-x1")), None);
}

#[tokio::test]
async fn names_and_options_are_completed() {
    let setup = Setup::new().await;
    let mut over = succeeded();
    over["metadata"]["name"] = json!("over");
    setup.api.put(&job_path("over"), over);
    for (args, expected) in [
        (&["get", ""][..], "over\nrefund\n:4\n"),
        (&["get", "-o", "n"], "name\tKind and name\n:4\n"),
        (&["wait", "refund", "--for", "en"], "ended\n:4\n"),
        (&["wait", "refund", "--for=en"], "--for=ended\n:4\n"),
        (&["cancel", "refund", ""], "refund\n:4\n"),
        (&["ca"], "can-approve\tCheck whether you may decide for an approver\ncancel\tCancel Jobs on a cluster\n:4\n"),
        (&["reply", ""], "refund\n:4\n"),
        (&["reply", "refund", "--question", ""], "q-1\n:4\n"),
        (&["wait", "o"], "over\n:4\n"),
        (&["get", "--context", ""], "here\n:4\n"),
        (
            &["wait", "refund", "--ti"],
            "--timeout\tThe maximum time to wait, such as 30s or 5m [default: no limit]\n:4\n",
        ),
        (&["wait", "-n", "acme", "--kubeconfig", "/no/such", "o"], ":4\n"),
        (&["lint", "con"], "config\n:4\n"),
    ] {
        let result = setup.complete(args).await;
        assert_eq!((result.exit, result.out.as_str(), result.err.as_str()), (0, expected, ""), "{args:?}");
    }
}

#[tokio::test]
async fn the_completion_script_works_in_bash() {
    let setup = Setup::new().await;
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_bloomery"));
    let script = "source <(\"$BLOOMERY\" completion bash)\n\
                  COMP_WORDS=(\"$BLOOMERY\" cancel ''); COMP_CWORD=2\n\
                  _clap_complete_bloomery \"$BLOOMERY\" ''; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script])
        .env("BLOOMERY", bin)
        .env("KUBECONFIG", setup.home.path().join("config"))
        .output()
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "refund\n", "{}", String::from_utf8_lossy(&output.stderr));
}
