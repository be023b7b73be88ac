//! `bloomery reply`, `cancel`, `get`, `events`, `tree`, `wait` and completion, as people call them, against an API server in
//! memory.
#![cfg(test)]

mod api;
#[path = "../office/mod.rs"]
mod office;
mod terminal;

use api::{job_path, pod_path, start_pods_as};
use bloomery_testkit::api_server::ApiServer;
use office::{Ran, kubeconfig};
use rstest::rstest;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// A cluster, and a person at a shell.
struct Office {
    api: ApiServer,
    home: TempDir,
}

impl Office {
    /// With the Job `refund`, which asks which order is meant (`q-1`).
    async fn open() -> Self {
        let (api, home) = (ApiServer::default(), tempfile::tempdir().unwrap());
        kubeconfig(home.path(), &api.serve().await);
        api.put(&job_path("refund"), asking(&[]));
        start_pods_as(&api, json!({"running": {}}));
        Self { api, home }
    }

    fn starts(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        // As kubectl starts it.
        let plugin = self.home.path().join("kubectl-bloomery");
        if !plugin.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bloomery"), &plugin).unwrap();
        }
        let mut command = Command::new(plugin);
        command.args(args).env_clear().env("KUBECONFIG", self.home.path().join("config")).current_dir(self.home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the command, with nobody at a terminal.
    async fn runs(&self, args: &[&str]) -> Ran {
        self.hears(args, "").await
    }

    /// Completes the last word, as kubectl asks for it.
    async fn completes(&self, words: &[&str]) -> Ran {
        let mut command = self.command(&[&["--", "kubectl-bloomery"], words].concat());
        ended(command.env("BLOOMERY_COMPLETE", "kubectl").spawn().unwrap()).await
    }

    /// The same, with something on stdin.
    async fn hears(&self, args: &[&str], stdin: &str) -> Ran {
        let mut child = self.starts(args);
        // It may not read what it does not ask for.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes()).await;
        ended(child).await
    }

    /// Stores an Approval of the Job `refund`, of the approver of its name: with a decision and what counted, where they are.
    fn decides(&self, name: &str, decision: &Value, counted: &Value) {
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

    fn replies(&self) -> Value {
        self.api.find(&job_path("refund")).unwrap()["spec"]["replies"].clone()
    }
}

async fn ended(child: Child) -> Ran {
    child.wait_with_output().await.unwrap().into()
}

fn job(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": "acme", "uid": format!("uid of {name}"), "managedFields": []},
        "spec": {"skill": "cs-tier-1", "goal": "Refund my order"},
        "status": status,
    })
}

/// The Job `refund` with these replies of others.
fn asking(replies: &[Value]) -> Value {
    let question = json!({"id": "q-1", "text": "Which order?", "choices": ["A-17", "B-4"]});
    let mut job = job("refund", &json!({"phase": "AwaitingReply", "waitingFor": {"questions": [question]}}));
    job["spec"]["replies"] = json!(replies);
    job
}

fn held_call() -> Value {
    json!({
        "id": "9-0", "tool": "process_refund", "digest": format!("sha256:{}", "0".repeat(64)),
        "approvers": ["finance", "supervisor"], "reason": "amount > 500",
    })
}

fn succeeded() -> Value {
    let outcome = json!({"code": "Succeeded", "message": "The answer passed every gate."});
    let log = json!({"path": "jobs/refund-1", "events": 3, "head": format!("sha256:{}", "0".repeat(64))});
    job("refund", &json!({"phase": "Succeeded", "outcome": outcome, "log": log}))
}

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
async fn the_open_question_is_answered() {
    let office = Office::open().await;
    let ran = office.runs(&["reply", "refund", "2"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "skilljob.bloomery.dev/refund answered q-1: B-4\n"), "{}", ran.err);
    assert_eq!(office.replies(), json!([{"question": "q-1", "text": "B-4"}]));
    let metadata = json!({"uid": "uid of refund", "resourceVersion": "1"});
    assert_eq!(office.api.patches()[0]["metadata"], metadata, "as it was read");
}

#[tokio::test]
async fn a_message_is_no_answer() {
    let office = Office::open().await;
    let ran = office.hears(&["reply", "refund", "-", "--message"], "Hurry, please.\n").await;
    assert_eq!((ran.exit, office.replies()), (0, json!([{"text": "Hurry, please."}])), "{}", ran.err);
    let ran = office.runs(&["reply", "refund", "the one of May", "-o", "name"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "skilljob.bloomery.dev/refund\n"));
    assert!(ran.err.contains("none of the choices (A-17, B-4)"), "{}", ran.err);
}

#[tokio::test]
async fn nobody_elses_reply_is_lost() {
    let office = Office::open().await;
    let theirs = [json!({"text": "one"}), json!({"text": "two"})];
    office.api.meanwhile(&job_path("refund"), asking(&theirs[..1]));
    office.api.meanwhile(&job_path("refund"), asking(&theirs));
    let ran = office.runs(&["reply", "refund", "A-17"]).await;
    assert_eq!((ran.exit, office.api.patches().len()), (0, 3), "{}", ran.err);
    assert_eq!(office.replies(), json!([theirs[0], theirs[1], {"question": "q-1", "text": "A-17"}]));
}

#[tokio::test]
async fn who_is_overtaken_says_nothing() {
    let office = Office::open().await;
    office.api.meanwhile(&job_path("refund"), asking(&[json!({"question": "q-1", "text": "B-4"})]));
    let ran = office.runs(&["reply", "refund", "A-17"]).await;
    assert!(ran.exit == 6 && ran.err.contains("q-1 was answered by someone else"), "{}", ran.err);
    assert_eq!(office.replies(), json!([{"question": "q-1", "text": "B-4"}]));
    // And the next one is told before anything is sent; who insists is warned.
    let ran = office.runs(&["reply", "refund", "A-17"]).await;
    assert!(ran.exit == 6 && ran.err.contains("not heard yet: \"B-4\""), "{}", ran.err);
    let ran = office.runs(&["reply", "refund", "A-17", "--question", "q-1"]).await;
    assert!(ran.exit == 0 && ran.err.contains("The first one counts"), "{}", ran.err);
}

#[tokio::test]
async fn a_reply_whose_answer_was_lost_is_said_once() {
    let office = Office::open().await;
    office.api.lose_next_response();
    let ran = office.runs(&["reply", "refund", "A-17"]).await;
    assert_eq!((ran.exit, office.replies()), (0, json!([{"question": "q-1", "text": "A-17"}])), "{}", ran.err);
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
async fn what_cannot_be_said_is_not_sent(#[case] args: &[&str], #[case] exit: i32, #[case] says: &str) {
    let office = Office::open().await;
    let ran = office.runs(&[&["reply"], args].concat()).await;
    assert!(ran.exit == exit && ran.err.contains(says), "{}: {}", ran.exit, ran.err);
    assert!(office.api.patches().is_empty());
}

#[tokio::test]
async fn a_text_that_is_too_long_is_not_sent() {
    let office = Office::open().await;
    for (length, exit) in [(1025, 2), (1 << 20, 2), (1024, 0)] {
        let ran = office.hears(&["reply", "refund", "-", "-m"], &"x".repeat(length)).await;
        assert_eq!(ran.exit, exit, "{length}: {}", ran.err);
    }
    assert_eq!(office.api.patches().len(), 1);
}

#[tokio::test]
async fn who_may_not_reads_which_right_is_missing() {
    let office = Office::open().await;
    office.api.deny(&["patch skilljobs", "create pods", "list pods"]);
    for args in [&["reply", "refund", "A-17"][..], &["cancel", "refund", "-y"]] {
        let ran = office.runs(&[args, &["--as", "jane@acme.io"]].concat()).await;
        assert_eq!(ran.exit, 1);
        assert!(ran.err.contains("the verb patch on skilljobs.bloomery.dev"), "{}", ran.err);
        assert!(ran.err.contains("{apiGroups: [bloomery.dev], resources: [skilljobs], verbs: [patch]}"), "{}", ran.err);
    }
    office.api.put(&job_path("refund"), succeeded());
    let events = ["events", "refund", "--whole", "--as", "jane@acme.io", "--image", "worker:7"];
    let ran = office.runs(&events).await;
    assert!(
        ran.exit == 1 && ran.err.contains("{apiGroups: [\"\"], resources: [pods], verbs: [create]}"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn who_may_not_list_all_namespaces_hears_of_them_and_of_no_single_one() {
    let office = Office::open().await;
    office.api.deny(&["list skilljobs everywhere"]);
    let ran = office.runs(&["get", "-A", "--as", "jane@acme.io"]).await;
    insta::assert_snapshot!(format!("exit {}\n{}", ran.exit, ran.err));
    assert_eq!(office.runs(&["get", "--as", "jane@acme.io"]).await.exit, 0, "of one she may");
}

#[tokio::test]
async fn a_job_is_cancelled_once_and_for_good() {
    let office = Office::open().await;
    let ran = office.runs(&["cancel", "refund"]).await;
    assert!(ran.exit == 2 && ran.err.contains("--yes"), "{}", ran.err);
    let ran = office.runs(&["cancel", "refund", "refnud", "--yes"]).await;
    assert_eq!((ran.exit, office.api.patches().len()), (2, 0), "where one is unknown, none is: {}", ran.err);
    let ran = office.runs(&["cancel", "refund", "refund", "--yes"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "skilljob.bloomery.dev/refund is being cancelled\n"), "{}", ran.err);
    assert!(ran.err.contains("It cannot be undone.") && !ran.err.contains("short grace"), "{}", ran.err);
    let patch = json!({"metadata": {"uid": "uid of refund"}, "spec": {"cancel": true}});
    assert_eq!(office.api.patches(), [patch]);
    let ran = office.runs(&["cancel", "refund", "--yes", "-o", "name"]).await;
    assert!(ran.exit == 0 && ran.err.contains("already being cancelled"), "{}", ran.err);
    assert_eq!(ran.out, "skilljob.bloomery.dev/refund\n");
    let ran = office.runs(&["reply", "refund", "A-17"]).await;
    assert!(ran.exit == 6 && ran.err.contains("accepts no replies"), "{}", ran.err);

    let waits = office.starts(&["cancel", "refund", "--yes", "--wait"]);
    office.api.until_requested("WATCH").await;
    let outcome = json!({"code": "Cancelled", "message": "Somebody cancelled it."});
    office.api.put(&job_path("refund"), job("refund", &json!({"phase": "Cancelled", "outcome": outcome})));
    let ran = ended(waits).await;
    assert!(ran.exit == 0 && ran.out.contains("Cancelled: Somebody"), "{} {}", ran.out, ran.err);
    office.api.put(&job_path("refund"), succeeded());
    let ran = office.runs(&["cancel", "refund", "--yes"]).await;
    assert!(ran.exit == 6 && ran.err.contains("has already ended: Succeeded"), "{}", ran.err);
    office.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    let ran = office.runs(&["cancel", "refund", "--yes"]).await;
    assert!(ran.exit == 0 && ran.err.contains("a tool in flight gets a short grace"), "{}", ran.err);
}

#[tokio::test]
async fn a_job_is_waited_for_by_watching() {
    let office = Office::open().await;
    let ran = office.runs(&["wait", "refund"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (7, "skilljob.bloomery.dev/refund AwaitingReply\n"));
    assert!(ran.err.contains("Answer with: kubectl bloomery reply refund --question q-1 NUMBER"), "{}", ran.err);
    let ran = office.runs(&["wait", "refund", "--for", "ended", "--timeout", "100ms"]).await;
    assert!(ran.exit == 6 && ran.err.contains("timed out"), "{}", ran.err);
    let waits = office.starts(&["wait", "refund", "--for", "ended"]);
    office.api.until_requested("WATCH").await;
    office.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    office.api.put(&job_path("refund"), succeeded());
    let ran = ended(waits).await;
    assert_eq!(
        (ran.exit, ran.out.as_str()),
        (0, "skilljob.bloomery.dev/refund Succeeded: The answer passed every gate.\n")
    );
    let ran = office.runs(&["wait", "refund", "--for", "StepLimit"]).await;
    assert_eq!(ran.exit, 1, "it cannot be any more: {}", ran.err);
    let ran = office.runs(&["wait", "refund", "--for", "StepLimits"]).await;
    assert!(ran.exit == 2 && ran.err.contains("Did you mean \"StepLimit\"?"), "{}", ran.err);
}

/// Right after an answer or a decision the Job still says that it waits.
#[tokio::test]
async fn a_job_that_people_have_answered_already_is_waited_for() {
    let office = Office::open().await;
    office.api.put(&job_path("refund"), asking(&[json!({"question": "q-1", "text": "A-17"})]));
    let waits = office.starts(&["wait", "refund"]);
    office.api.until_requested("WATCH").await;
    office.api.put(&job_path("refund"), succeeded());
    assert_eq!(ended(waits).await.exit, 0);

    let held =
        |names: &[&str]| job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": {"approvals": names}}));
    let approval = |name: &str, decision: &Value| office.decides(name, decision, &Value::Null);
    let agreed = json!({"verdict": "Approve", "by": "jane"});
    approval("finance", &Value::Null);
    approval("supervisor", &agreed);
    office.api.put(&job_path("refund"), held(&["supervisor", "finance"]));
    let ran = office.runs(&["wait", "refund"]).await;
    assert_eq!(ran.exit, 7, "finance has to agree, too: {}", ran.err);
    assert_eq!(ran.err, "Answer with: kubectl bloomery approve finance\n", "who has decided is asked no more");
    for (verdict, approvals) in [("Approve", &["supervisor"][..]), ("Deny", &["finance", "open"])] {
        approval("open", &Value::Null);
        approval(approvals[0], &json!({"verdict": verdict, "by": "jane"}));
        office.api.put(&job_path("refund"), held(approvals));
        let watches = office.starts(&["wait", "refund"]);
        office.api.until_requested(approvals[0]).await;
        office.api.put(&job_path("refund"), succeeded());
        assert_eq!(ended(watches).await.exit, 0, "{verdict}");
    }
}

/// What checks decisions is not as it was shipped: the Job names Approvals that nobody has made.
#[tokio::test]
async fn that_nobody_is_asked_is_said_with_the_reason() {
    let office = Office::open().await;
    let why = "the binding bloomery-approvals is not as it was shipped";
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ApprovalPolicyMissing", "message": why,
        "lastTransitionTime": "2027-01-15T08:20:00Z",
    });
    let waiting = json!({"call": held_call(), "approvals": ["finance"]});
    let status = json!({"phase": "AwaitingApproval", "waitingFor": waiting, "conditions": [condition]});
    office.api.put(&job_path("refund"), job("refund", &status));
    let told = format!("No decision is requested: {why}");
    let ran = office.runs(&["wait", "refund"]).await;
    assert_eq!((ran.exit, ran.err.trim_end()), (7, told.as_str()));
    let ran = office.runs(&["get", "refund"]).await;
    assert!(ran.out.contains(&told) && !ran.out.contains("Decided, but"), "{}", ran.out);
}

#[tokio::test]
async fn an_approval_that_has_expired_is_not_offered() {
    let office = Office::open().await;
    office.decides("finance", &Value::Null, &Value::Null);
    let path = "/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals/finance";
    let mut expired = office.api.find(path).unwrap();
    expired["spec"]["expiresAt"] = json!("2020-01-01T00:00:00Z");
    office.api.put(path, expired);
    let waiting = json!({"call": held_call(), "approvals": ["finance"]});
    office.api.put(&job_path("refund"), job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": waiting})));
    let ran = office.runs(&["get", "refund"]).await;
    assert!(ran.out.contains("Expired, but") && !ran.out.contains("approve finance"), "{}", ran.out);
}

/// A model makes the choices: none of them begins a line.
#[tokio::test]
async fn a_choice_of_several_lines_stays_on_one() {
    let office = Office::open().await;
    let question = |id: &str| json!({"id": id, "text": "Which?", "choices": ["a\nb", "c"]});
    let ask = |questions: Value| {
        let status = json!({"phase": "AwaitingReply", "waitingFor": {"questions": questions}});
        office.api.put(&job_path("refund"), job("refund", &status));
    };
    ask(json!([question("q-1"), question("q-2")]));
    let several = office.runs(&["reply", "refund", "hi"]).await;
    assert!(several.err.contains("q-1  Which? (a b, c)"), "{}", several.err);
    let shown = office.runs(&["get", "refund"]).await;
    assert!(shown.out.contains("1  a b\n"), "{}", shown.out);
    ask(json!([question("q-1")]));
    let none = office.runs(&["reply", "refund", "hi"]).await;
    assert!(none.err.contains("That is none of the choices (a b, c)"), "{}", none.err);
}

#[tokio::test]
async fn a_text_that_is_far_too_long_is_not_said_to_have_the_length_that_was_read() {
    let office = Office::open().await;
    let ran = office.hears(&["reply", "refund", "-"], &"x".repeat(1 << 20)).await;
    assert_eq!(ran.exit, 2, "{}", ran.err);
    assert!(ran.err.contains("the text has more than 65536 bytes; the limit is 1024"), "{}", ran.err);
}

/// A reply to no question that is open answers nothing: the Job rests, whatever its status says it waits for.
#[tokio::test]
async fn a_stray_reply_keeps_nobody_waiting() {
    let office = Office::open().await;
    let mut asks = asking(&[json!({"question": "q-7", "text": "hm"})]);
    asks["status"]["waitingFor"]["since"] = json!("2027-01-15T08:20:00Z");
    let waiting = json!({"call": held_call(), "since": "2027-01-15T08:20:00Z"});
    let mut holds = job("refund", &json!({"phase": "AwaitingApproval", "waitingFor": waiting}));
    holds["spec"]["replies"] = asks["spec"]["replies"].clone();
    office.api.put(&pod_path("refund-1"), pod("refund-1", 1, "Succeeded"));
    office.api.logs("refund-1", "one\n");
    for object in [asks, holds] {
        office.api.put(&job_path("refund"), object);
        for (args, exit) in [
            (&["wait", "refund", "--timeout", "20s"][..], 7),
            (&["wait", "refund", "--for", "waiting", "--timeout", "20s"], 0),
        ] {
            let ran = office.runs(args).await;
            assert_eq!(ran.exit, exit, "{args:?}: {}", ran.err);
        }
        let follows =
            tokio::time::timeout(std::time::Duration::from_secs(20), office.runs(&["events", "refund", "-f"]));
        let ran = follows.await.expect("it follows a Job that rests");
        assert_eq!((ran.exit, ran.out.as_str()), (0, "one\n"), "{}", ran.err);
        let ran = office.runs(&["get", "refund"]).await;
        assert!(ran.out.contains("waiting since 2027-01-15T08:20:00Z"), "{}", ran.out);
    }
}

/// A namespace that is suspended starts no pod: what people have decided is done once that is over.
#[tokio::test]
async fn a_decided_job_of_a_suspended_namespace_says_what_keeps_it() {
    let office = Office::open().await;
    let message = "no pod runs while the namespace acme is suspended by its annotation bloomery.dev/suspend";
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Suspended", "message": message,
               "lastTransitionTime": "2027-01-15T08:20:00Z"})
    };
    let queued = json!({
        "phase": "Queued", "waitingFor": {"call": held_call(), "approvals": ["finance", "supervisor"]},
        "conditions": [condition("Ready", "False"), condition("Reconciling", "True")],
    });
    office.api.put(&job_path("refund"), job("refund", &queued));
    let [agreed, denied] = ["Approve", "Deny"].map(|verdict| json!({"verdict": verdict, "by": "jane"}));
    let open = Value::Null;
    for (finance, supervisor, counted, offered) in [
        (&open, &open, &Value::Null, &["finance", "supervisor"][..]),
        (&agreed, &open, &Value::Null, &["supervisor"]),
        (&agreed, &agreed, &Value::Null, &[]),
        (&denied, &open, &Value::Null, &[]),
        (&agreed, &open, &json!("Expired"), &[]),
    ] {
        office.decides("finance", finance, counted);
        office.decides("supervisor", supervisor, &Value::Null);
        let ran = office.runs(&["get", "refund"]).await;
        for name in ["finance", "supervisor"] {
            for word in ["approve", "deny"] {
                let command = format!("kubectl bloomery {word} {name}\n");
                assert_eq!(ran.out.contains(&command), offered.contains(&name), "{command}{}", ran.out);
            }
        }
        assert_eq!(ran.out.contains("Decided, but the Job has not received it yet"), offered.is_empty(), "{}", ran.out);
        assert!(ran.out.contains(&format!("Suspended: {message}")), "{}", ran.out);
    }
    for waits in [&["wait", "refund"][..], &["wait", "refund", "--for", "ended"], &["cancel", "refund", "-y", "--wait"]]
    {
        let ran = office.runs(&[waits, &["--timeout", "2s"]].concat()).await;
        assert_eq!(ran.exit, 6, "{}", ran.err);
        assert!(ran.err.contains("timed out waiting for the Job refund"), "{}", ran.err);
        let said = |start: &str| ran.err.matches(&format!("{start}Queued: {message}")).count();
        assert_eq!((said("is waiting: "), said("timed out waiting for the Job refund: ")), (1, 1), "{}", ran.err);
    }
}

#[tokio::test]
async fn who_may_not_list_jobs_hears_that_there_is_no_such_one() {
    let office = Office::open().await;
    office.api.deny(&["list skilljobs", "list approvals"]);
    for args in [&["get", "refnud"][..], &["reply", "refnud", "x"], &["cancel", "refnud", "-y"], &["wait", "refnud"]] {
        let ran = office.runs(&[args, &["--as", "jane@acme.io"]].concat()).await;
        assert_eq!(ran.exit, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.ends_with("the namespace acme has no Job refnud.\n"), "{args:?}: {}", ran.err);
    }
}

#[tokio::test]
async fn a_job_that_is_deleted_is_waited_for_no_more() {
    let office = Office::open().await;
    let waits = office.starts(&["wait", "refund", "--for", "ended"]);
    office.api.until_requested("WATCH").await;
    office.api.remove(&job_path("refund"));
    let ran = ended(waits).await;
    assert!(ran.exit == 6 && ran.err.contains("was deleted meanwhile"), "{}", ran.err);
}

#[tokio::test]
async fn jobs_are_shown() {
    let office = Office::open().await;
    let ran = office.runs(&["get", "refund"]).await;
    assert!(
        ran.out.contains("Reply       kubectl bloomery reply refund --question q-1 NUMBER"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(!ran.out.contains('\u{1b}'), "colours are for terminals");
    for (args, expected) in [
        (&["get"][..], "refund   cs-tier-1   AwaitingReply"),
        (&["get", "-A"], "acme        refund   cs-tier-1"),
        (&["get", "-o", "name"], "skilljob.bloomery.dev/refund\n"),
        (&["get", "refund", "-o", "yaml"], "phase: AwaitingReply"),
        (&["get", "refund", "-o", "json"], "\"kind\": \"Job\""),
        (&["get", "-o", "json"], "\"kind\": \"List\""),
        (&["tree"], "Skill cs-tier-1  does not exist\n└─ Job refund  AwaitingReply"),
        (&["tree", "refund"], "Question q-1  Which order?"),
    ] {
        let ran = office.runs(args).await;
        assert!(ran.exit == 0 && ran.out.contains(expected), "{args:?}: {} {}", ran.out, ran.err);
        assert!(!ran.out.contains("managedFields"), "{args:?}");
    }
    for (args, says) in [
        (&["get", "refnud"][..], "Did you mean \"refund\"?"),
        (&["get", "refund", "--skill", "other"], "one of the Skill cs-tier-1"),
        (&["get", "refund", "--memory", "m", "-n", "acme"], "cannot be used with"),
        (&["get", "--memory", "m", "--cluster"], "cannot be used with"),
        (&["tree", "refnud"], "Did you mean \"refund\"?"),
        (&["get", "refund", "--memory", "m"], "the memory m has no Job refund"),
    ] {
        let ran = office.runs(args).await;
        assert!(ran.exit == 2 && ran.err.contains(says), "{args:?}: {}", ran.err);
    }
}

#[tokio::test]
async fn by_its_own_name_it_reads_the_memory_unless_a_cluster_is_named() {
    let office = Office::open().await;
    let run = async |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command.args(args).env_clear().env("KUBECONFIG", office.home.path().join("config"));
        let output = command.current_dir(office.home.path()).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["get", "refund"]).await.0, 2, "there is no memory");
    assert!(office.api.requests().is_empty());
    for more in [&["--cluster"][..], &["-n", "acme"], &["--context", "here"], &["--as", "jane"]] {
        let (exit, out) = run(&[&["get", "refund"], more].concat()).await;
        assert!(exit == 0 && out.starts_with("Job         refund in acme"), "{more:?}: {out}");
    }
}

#[tokio::test]
async fn the_logs_of_all_pods_are_printed_in_order() {
    let office = Office::open().await;
    for (name, attempt) in [("refund-3", 3), ("refund-2", 2)] {
        office.api.put(&pod_path(name), pod(name, attempt, "Succeeded"));
        office.api.logs(name, &format!("of {name}\u{1b}[2J\n"));
    }
    let ran = office.runs(&["events", "refund"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "of refund-2[2J\nof refund-3[2J\n"), "{}", ran.err);
    assert!(ran.err.contains("Attempt 1 has no pod any more"), "{}", ran.err);
    let ran = office.runs(&["events", "refund", "--json", "-f"]).await;
    assert_eq!(ran.exit, 2, "{}", ran.err);
}

#[tokio::test]
async fn a_job_is_followed_over_its_attempts() {
    let office = Office::open().await;
    office.api.put(&job_path("refund"), job("refund", &json!({"phase": "Running"})));
    office.api.put(&pod_path("refund-1"), pod("refund-1", 1, "Running"));
    office.api.logs("refund-1", "one\n");
    let follows = office.starts(&["events", "refund", "-f"]);
    office.api.until_requested("pods/refund-1/log").await;
    office.api.logs("refund-2", "two\n");
    office.api.put(&pod_path("refund-2"), pod("refund-2", 2, "Running"));
    office.api.until_requested("pods/refund-2/log").await;
    office.api.put(&job_path("refund"), asking(&[]));
    let ran = ended(follows).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "one\ntwo\n"), "{}", ran.err);
    assert!(ran.err.contains("AwaitingReply") && ran.err.contains("reply refund --question q-1"), "{}", ran.err);
}

#[tokio::test]
async fn a_reader_pod_reads_what_no_pod_tells_any_more() {
    let office = Office::open().await;
    office.api.put(&job_path("refund"), succeeded());
    let ran = office.runs(&["events", "refund"]).await;
    assert!(ran.exit == 2 && ran.err.contains("--image"), "nobody knows the image: {}", ran.err);
    office.api.logs("refund-events-", "1 begun\n");
    let ran = office.runs(&["events", "refund", "--image", "worker:8"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "1 begun\n"), "{}", ran.err);
    assert!(ran.err.contains("The reader pod refund-events-x1"), "{}", ran.err);
    assert_eq!(office.api.find(&pod_path("refund-events-x1")), None, "it is deleted");
    // A worker of another Job knows the image too.
    let mut other = pod("other-1", 1, "Succeeded");
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    office.api.put(&pod_path("other-1"), other);
    let ran = office.runs(&["events", "refund", "--json"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (0, "1 begun\n"), "{}", ran.err);
}

#[tokio::test]
async fn a_reader_pod_that_cannot_begin_is_told_and_deleted() {
    let office = Office::open().await;
    office.api.put(&job_path("refund"), succeeded());
    start_pods_as(&office.api, json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}));
    let ran = office.runs(&["events", "refund", "--image", "worker:8"]).await;
    assert!(ran.exit == 1 && ran.err.contains("ErrImagePull: no such image"), "{}", ran.err);
    assert_eq!(office.api.find(&pod_path("refund-events-x1")), None);
}

#[tokio::test]
async fn a_reader_pod_is_deleted_when_it_is_interrupted() {
    let office = Office::open().await;
    office.api.put(&job_path("refund"), succeeded());
    start_pods_as(&office.api, json!({"waiting": {"reason": "ContainerCreating"}}));
    let reads = office.starts(&["events", "refund", "--image", "worker:8"]);
    office.api.until_requested("WATCH").await;
    let interrupted = Command::new("kill").args(["-INT", &reads.id().unwrap().to_string()]).status().await.unwrap();
    assert!(interrupted.success());
    let ran = ended(reads).await;
    assert_eq!(ran.exit, 130, "{}", ran.err);
    assert_eq!(office.api.find(&pod_path("refund-events-x1")), None);
}

#[tokio::test]
async fn names_are_completed() {
    let office = Office::open().await;
    let mut over = succeeded();
    over["metadata"]["name"] = json!("over");
    office.api.put(&job_path("over"), over);
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
        (&["wait", "refund", "--ti"], "--timeout\tThe longest wait, such as 30s or 5m [default: no limit]\n:4\n"),
        (&["wait", "-n", "acme", "--kubeconfig", "/no/such", "o"], ":4\n"),
        (&["lint", "con"], "config\n:4\n"),
    ] {
        let ran = office.completes(args).await;
        assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (0, expected, ""), "{args:?}");
    }
}

#[tokio::test]
async fn the_script_of_bash_completes() {
    let office = Office::open().await;
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_bloomery"));
    let script = "source <(\"$BLOOMERY\" completion bash)\n\
                  COMP_WORDS=(\"$BLOOMERY\" cancel ''); COMP_CWORD=2\n\
                  _clap_complete_bloomery \"$BLOOMERY\" ''; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script])
        .env("BLOOMERY", bin)
        .env("KUBECONFIG", office.home.path().join("config"))
        .output()
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "refund\n", "{}", String::from_utf8_lossy(&output.stderr));
}
