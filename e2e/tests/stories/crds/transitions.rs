use bloomery_e2e::harness::admission::ObjectApi;
use bloomery_e2e::harness::{Refusal, Tenant, story};
use serde_json::{Value, json};

use super::{job, with_fields};

/// A Job that has ended, so that the operator does not change its status.
async fn ended_job(tenant: &Tenant) -> ObjectApi {
    let jobs = tenant.jobs();
    jobs.create("ended", &job()).await;
    jobs.change_status("ended", &json!({"phase": "Succeeded"})).await.expect("a first status is accepted");
    jobs
}

fn assert_refused(answer: Result<(), Refusal>, rule: &str) {
    match answer {
        Ok(()) => panic!("the change should be refused with `{rule}`"),
        Err(Refusal(message)) => assert!(message.contains(rule), "`{rule}` should be in: {message}"),
    }
}

// The messages of the CRD's rules.
const OUTCOME: &str = "an outcome never changes";
const LOG: &str = "the number of logged events never decreases";
const ATTEMPTS: &str = "attempts and epochs never decrease";
const TERMINAL: &str = "a terminal phase never changes";

fn log(events: u64) -> Value {
    json!({"log": {"path": "jobs/x", "events": events, "head": format!("sha256:{}", "0".repeat(64))}})
}

#[tokio::test]
async fn the_goal_of_a_job_cannot_change() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        for (field, path) in [("goal", "spec.goal"), ("skill", "spec.skill")] {
            let change = jobs.change("ended", &json!({"spec": {field: "something else"}})).await;
            let message = change.expect_err("a changed Job is refused");
            assert!(message.contains(&format!("{path}: ")), "{message}");
            assert!(message.contains("create another Job"), "{message}");
            let removal = jobs.change("ended", &json!({"spec": {field: null}})).await;
            // A removed `skill` becomes the default Skill.
            let why = if field == "skill" { "Invalid value: is immutable" } else { "Required value" };
            assert_refused(removal, &format!("{path}: {why}"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_bindings_of_a_job_cannot_change() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        let url = |url: &str| json!({"value": url});
        let docs = json!({"docs": url("https://docs.example.com")});
        // The Skill does not exist, so that the operator starts no worker.
        let absent = with_fields(job(), &json!({"skill": "absent"}));
        jobs.create("unbound", &absent).await;
        jobs.create("bound", &with_fields(absent, &json!({"resources": docs}))).await;
        let set =
            async |name: &str, resources: &Value| jobs.change(name, &json!({"spec": {"resources": resources}})).await;
        set("bound", &docs).await.expect("unchanged");
        for (what, resources) in [
            ("change", json!({"docs": url("https://elsewhere.example.com")})),
            ("change of how", json!({"docs": {"value": null, "secretKeyRef": {"name": "ci", "key": "token"}}})),
            ("one more", json!({"more": url("https://more.example.com")})),
            ("one less", json!({"docs": null})),
            ("removal", Value::Null),
            ("removal and set", json!({"docs": null, "other": url("https://docs.example.com")})),
        ] {
            let message = set("bound", &resources).await.expect_err(what);
            assert!(message.contains("spec.resources: "), "{what}: {message}");
            assert!(message.contains("create another Job"), "{what}: {message}");
        }
        assert_refused(set("unbound", &docs).await, "create another Job");
        jobs.change("bound", &json!({"spec": {"limits": {"steps": 5}}})).await.expect("other fields may change");
    })
    .await;
}

#[tokio::test]
async fn the_run_key_of_a_job_can_be_set_once_before_the_first_attempt() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so that the operator starts no worker.
        let absent = with_fields(job(), &json!({"skill": "absent"}));
        jobs.create("named", &with_fields(absent.clone(), &json!({"runKey": "first"}))).await;
        jobs.create("unnamed", &absent).await;
        let set = async |name: &str, key: Value| jobs.change(name, &json!({"spec": {"runKey": key}})).await;
        set("named", json!("first")).await.expect("unchanged");
        set("unnamed", json!("later")).await.expect("set once");
        for name in ["named", "unnamed"] {
            assert_refused(set(name, json!("second")).await, "spec.runKey: ");
            assert_refused(set(name, Value::Null).await, "can be set once, before the first attempt");
        }
        jobs.create("started", &absent).await;
        let attempt = json!({"number": 1, "pod": "started-1"});
        jobs.change_status("started", &json!({"phase": "Succeeded", "attempt": attempt})).await.expect("a status");
        assert_refused(set("started", json!("late")).await, "before the first attempt");
        for invalid in ["Upper", "-a", "a-", "a.b", ""] {
            assert!(set("started", json!(invalid)).await.is_err(), "{invalid}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_continued_job_cannot_change() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so that the operator starts no worker.
        let absent = with_fields(job(), &json!({"skill": "absent"}));
        jobs.create("first", &absent).await;
        jobs.create("follows", &with_fields(absent, &json!({"continues": "first"}))).await;
        let set = async |name: &str, of: Value| jobs.change(name, &json!({"spec": {"continues": of}})).await;
        set("follows", json!("first")).await.expect("unchanged");
        assert_refused(set("follows", json!("second")).await, "spec.continues: ");
        assert_refused(set("follows", Value::Null).await, "create another Job");
        assert_refused(set("first", json!("follows")).await, "create another Job");
    })
    .await;
}

#[tokio::test]
async fn the_mode_of_a_job_cannot_change() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so that the operator starts no worker.
        let absent = with_fields(job(), &json!({"skill": "absent"}));
        jobs.create("runs", &absent).await;
        jobs.create("validates", &with_fields(absent, &json!({"mode": "Validate"}))).await;
        let set = async |name: &str, mode: Value| jobs.change(name, &json!({"spec": {"mode": mode}})).await;
        set("validates", json!("Validate")).await.expect("unchanged");
        assert_refused(set("validates", json!("Run")).await, "spec.mode: ");
        assert_refused(set("validates", Value::Null).await, "create another Job");
        assert_refused(set("runs", json!("Validate")).await, "create another Job");
        let key = jobs.change("validates", &json!({"spec": {"runKey": "late"}})).await;
        assert_refused(key, "no runKey and no continues");
    })
    .await;
}

#[tokio::test]
async fn the_notes_that_a_job_reads_cannot_change() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so that the operator starts no worker.
        let absent = with_fields(job(), &json!({"skill": "absent"}));
        jobs.create("all", &absent).await;
        jobs.create("some", &with_fields(absent, &json!({"memoryScope": ["progress"]}))).await;
        let set = async |name: &str, scope: Value| jobs.change(name, &json!({"spec": {"memoryScope": scope}})).await;
        set("some", json!(["progress"])).await.expect("unchanged");
        for scope in [json!(["progress", "techContext"]), json!([]), Value::Null] {
            assert_refused(set("some", scope).await, "spec.memoryScope: ");
        }
        assert_refused(set("all", json!(["progress"])).await, "create another Job");
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_job_stays_cancelled() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        jobs.create("cancelled", &with_fields(job(), &json!({"skill": "absent"}))).await;
        let set = async |cancel: Value| jobs.change("cancelled", &json!({"spec": {"cancel": cancel}})).await;
        set(json!(false)).await.expect("false");
        set(Value::Null).await.expect("no value");
        set(json!(true)).await.expect("cancelled");
        set(json!(true)).await.expect("unchanged");
        assert_refused(set(json!(false)).await, "spec.cancel: ");
        assert_refused(set(Value::Null).await, "cannot be taken back");
    })
    .await;
}

#[tokio::test]
async fn replies_are_only_added_at_the_end() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        jobs.create("asks", &with_fields(job(), &json!({"skill": "absent"}))).await;
        let set = async |replies: Value| jobs.change("asks", &json!({"spec": {"replies": replies}})).await;
        let (first, second) = (json!({"question": "q-1", "text": "A-17"}), json!({"text": "be quick"}));
        set(json!([first])).await.expect("first set");
        set(json!([first])).await.expect("unchanged");
        set(json!([first, second])).await.expect("one more");
        for (what, replies) in [
            ("changed", json!([{"question": "q-1", "text": "A-18"}, second])),
            ("changed question", json!([{"question": "q-2", "text": "A-17"}, second])),
            ("question removed", json!([{"text": "A-17"}, second])),
            ("question added", json!([first, {"question": "q-1", "text": "be quick"}])),
            ("removed", json!([first])),
            ("removed and another", json!([first, {"text": "be slow"}])),
            ("another order", json!([second, first])),
            ("one before", json!([{"text": "hello"}, first, second])),
            ("all removed", Value::Null),
            ("emptied", json!([])),
        ] {
            let message = set(replies).await.expect_err(what);
            assert!(message.contains("spec.replies: "), "{what}: {message}");
            assert!(message.contains("may have been received"), "{what}: {message}");
        }
        let all: Vec<Value> =
            [first, second].into_iter().chain((2..32).map(|n| json!({"text": format!("{n}")}))).collect();
        set(json!(all)).await.expect("the maximum number is accepted");
    })
    .await;
}

#[tokio::test]
async fn the_limits_of_a_job_can_only_be_lowered() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so that the operator starts no worker.
        jobs.create("bounded", &with_fields(job(), &json!({"skill": "absent"}))).await;
        let set = async |limits: Value| jobs.change("bounded", &json!({"spec": {"limits": limits}})).await;
        for (field, first, lower, higher) in [
            ("steps", json!(10), json!(9), json!(11)),
            ("toolCalls", json!(10), json!(9), json!(11)),
            ("tokens", json!(10_000), json!(9_000), json!(11_000)),
            // Durations are compared as values, not as strings: "90m" is less than "2h".
            ("duration", json!("2h"), json!("90m"), json!("1h31m")),
        ] {
            let rule = format!("{field} may be lowered, never raised or removed");
            set(json!({field: first})).await.expect("first set");
            set(json!({field: lower})).await.expect("lowered");
            assert_refused(set(json!({field: higher})).await, &rule);
            assert_refused(set(json!({field: null})).await, &rule);
            assert_refused(set(Value::Null).await, &rule);
            let message = set(json!({field: null, "steps": 1})).await.err();
            assert_eq!(message.is_none(), field == "steps", "removal while another is set: {message:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_terminal_phase_is_never_left() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        for other in
            ["Running", "Pending", "AwaitingApproval", "AwaitingReply", "Failed", "Refused", "Escalated", "Cancelled"]
        {
            assert_refused(jobs.change_status("ended", &json!({"phase": other})).await, TERMINAL);
        }
        assert_refused(jobs.remove_from_status("ended", "/status/phase").await, TERMINAL);
        assert_refused(jobs.remove_from_status("ended", "/status").await, TERMINAL);
        assert_refused(jobs.change_status("ended", &Value::Null).await, TERMINAL);
        jobs.change_status("ended", &json!({"phase": "Succeeded", "observedGeneration": 1}))
            .await
            .expect("other fields may change");
        jobs.create("refused", &job()).await;
        jobs.change_status("refused", &json!({"phase": "Refused"})).await.expect("a first status is accepted");
        assert_refused(jobs.change_status("refused", &json!({"phase": "AwaitingApproval"})).await, TERMINAL);
    })
    .await;
}

#[tokio::test]
async fn an_outcome_is_written_once() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        jobs.change_status("ended", &json!({"outcome": {"code": "Succeeded", "message": "Done."}}))
            .await
            .expect("first set");
        assert_refused(jobs.change_status("ended", &json!({"outcome": {"code": "Stuck"}})).await, OUTCOME);
        assert_refused(jobs.change_status("ended", &json!({"outcome": {"message": "Done!"}})).await, OUTCOME);
        assert_refused(jobs.change_status("ended", &json!({"outcome": null})).await, OUTCOME);
        assert_refused(jobs.remove_from_status("ended", "/status").await, OUTCOME);
    })
    .await;
}

#[tokio::test]
async fn a_log_never_shrinks() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        jobs.change_status("ended", &log(7)).await.expect("first set");
        jobs.change_status("ended", &log(8)).await.expect("grown");
        jobs.change_status("ended", &log(8)).await.expect("unchanged");
        assert_refused(jobs.change_status("ended", &log(7)).await, LOG);
        assert_refused(jobs.change_status("ended", &json!({"log": null})).await, LOG);
        assert_refused(
            jobs.remove_from_status("ended", "/status/log/events").await,
            "status.log.events: Required value",
        );
        assert_refused(jobs.remove_from_status("ended", "/status").await, LOG);
    })
    .await;
}

#[tokio::test]
async fn attempts_and_epochs_never_go_back() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        let attempt = async |attempt: Value| jobs.change_status("ended", &json!({"attempt": attempt})).await;
        attempt(json!({"number": 2, "pod": "ended-2"})).await.expect("first set");
        attempt(json!({"epoch": 5})).await.expect("first epoch");
        attempt(json!({"number": 3, "epoch": 6})).await.expect("counted up");
        assert_refused(attempt(json!({"number": 2})).await, ATTEMPTS);
        assert_refused(attempt(json!({"epoch": 5})).await, ATTEMPTS);
        assert_refused(attempt(json!({"epoch": null})).await, ATTEMPTS);
        assert_refused(attempt(json!({"number": 4, "epoch": null})).await, ATTEMPTS);
        assert_refused(attempt(Value::Null).await, ATTEMPTS);
        assert_refused(jobs.remove_from_status("ended", "/status").await, ATTEMPTS);
    })
    .await;
}

#[tokio::test]
async fn a_spec_that_changes_does_not_lift_the_rules_of_status() {
    story(async |tenant| {
        let jobs = ended_job(tenant).await;
        jobs.change_status("ended", &log(8)).await.expect("first set");
        // A status beside a changed spec is ignored: the stored status remains.
        jobs.change("ended", &json!({"spec": {"limits": {"steps": 5}}, "status": null})).await.expect("limits are set");
        assert_refused(jobs.change_status("ended", &log(7)).await, LOG);
        assert_refused(jobs.change_status("ended", &json!({"phase": "Running"})).await, TERMINAL);
    })
    .await;
}
