//! The commands of `kubectl bloomery` on a real cluster.

use bloomery_crds::names::LABEL_COMPONENT;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_e2e::harness::{Tenant, command, eventually, refund_after_question, refund_of, story};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};

/// The output of a command and its exit code.
pub(crate) struct Ran {
    exit: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    /// Checks the exit code.
    pub(crate) fn exits(self, exit: i32) -> Self {
        assert_eq!(self.exit, Some(exit), "{}\n{}", self.out, self.err);
        self
    }

    /// Checks that stdout or stderr has each of these texts.
    pub(crate) fn says(self, expected: &[&str]) -> Self {
        for expected in expected {
            let is_said = self.out.contains(expected) || self.err.contains(expected);
            assert!(is_said, "`{expected}` should be said in:\n{}\n{}", self.out, self.err);
        }
        self
    }
}

/// Runs the command as the administrator of the cluster.
pub(crate) fn run(tenant: &Tenant, arguments: &[&str]) -> Ran {
    let output = command::attempt(&mut command::bloomery(&[arguments, &["--namespace", &tenant.namespace]].concat()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { exit: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Returns what `kubectl get --output name` prints for a resource or an object.
fn kubectl_name(tenant: &Tenant, what: &str) -> String {
    let arguments = ["get", what, "--namespace", &tenant.namespace, "--output", "name"];
    command::run(&mut command::kubectl(&arguments))
}

/// Returns the image of the Job's worker.
fn image(pods: &[Pod]) -> String {
    let mut containers = pods.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers);
    containers.find_map(|container| container.image.clone()).expect("a worker has an image")
}

#[tokio::test]
async fn a_job_can_be_inspected_while_it_runs_and_after_its_pods_are_deleted() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(2, "think")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order A-17, it arrived broken").await;
        shop.model.until_held("think").await;
        job.until_phase(Phase::Running).await;

        let pod = job.pod(1).await.name_any();
        // The worker reports before the kubelet does.
        eventually("the pod to be running", async || {
            let pod = tenant.api::<Pod>().get(&pod).await.map_err(|error| error.to_string())?;
            let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
            if phase == "Running" { Ok(()) } else { Err(phase) }
        })
        .await;
        run(tenant, &["get"]).exits(0).says(&["NAME", "refund", "cs-tier-1", "Running"]);
        run(tenant, &["get", "refund"]).exits(0).says(&["Refund order A-17", "Running", &pod, "events refund"]);
        let name = run(tenant, &["get", "refund", "-o", "name"]).exits(0).out;
        assert_eq!(kubectl_name(tenant, name.trim_end()), name.trim_end(), "kubectl prints and accepts the same name");
        assert_eq!(["job", "jobs"].map(|batch| kubectl_name(tenant, batch)), [""; 2], "the names of batch/v1");
        run(tenant, &["tree"]).exits(0).says(&["Skill cs-tier-1  Ready", "└─ Job refund  Running", &pod]);
        run(tenant, &["events", "refund"]).exits(0).says(&["epoch.started"]);
        run(tenant, &["wait", "refund", "--timeout", "1s"]).exits(6).says(&["timed out waiting"]);

        shop.model.release("think").await;
        run(tenant, &["wait", "refund", "--timeout", "3m"]).exits(0).says(&["refund Succeeded"]);
        run(tenant, &["get", "refund"]).exits(0).says(&["Succeeded", "Order A-17 is refunded."]);
        let of_pod = run(tenant, &["events", "refund", "-f"]).exits(0).says(&["finished"]).out;
        shop.assert_refunded_once("A-17").await;

        // After the pod is deleted, only the memory has the log.
        let pods = tenant.api::<Pod>();
        job.pods_have_ended().await;
        let image = image(&job.pods().await);
        for pod in job.pods().await {
            pods.delete(&pod.name_any(), &DeleteParams::default()).await.expect("it can be deleted");
        }
        eventually("the pods to be gone", async || {
            let left = job.pods().await.len();
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
        run(tenant, &["events", "refund"]).exits(2).says(&["--image"]);
        let of_memory = run(tenant, &["events", "refund", "--image", &image]).exits(0);
        let of_memory = of_memory.says(&["No pod of the Job refund is left", "The reader pod refund-events-"]).out;
        let events =
            |text: &str| text.lines().filter(|line| line.contains("tool.") || line.contains("finished")).count();
        assert!(events(&of_memory) >= events(&of_pod) && events(&of_pod) > 0, "{of_pod}\n{of_memory}");
        let lines = run(tenant, &["events", "refund", "--json", "--image", &image]).exits(0).out;
        assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
        let readers = ListParams::default().labels(&format!("{LABEL_COMPONENT}=reader"));
        eventually("no reader pod to be left", async || {
            let left = pods.list(&readers).await.map_err(|error| error.to_string())?.items.len();
            if left == 0 { Ok(()) } else { Err(left.to_string()) }
        })
        .await;
        // A user without rights.
        run(tenant, &["events", "refund", "--image", &image, "--as", "nobody@acme.io"])
            .exits(1)
            .says(&["the verb get on skilljobs.bloomery.dev"]);
    })
    .await;
}

#[tokio::test]
async fn a_person_answers_a_question_with_the_command() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_after_question("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("asks").goal("Refund order A-17").await;

        let waits = run(tenant, &["wait", "asks", "--timeout", "3m"]).exits(7);
        let waits = waits.says(&["AwaitingReply", "reply asks --question"]);
        assert!(waits.err.contains("Answer with: "), "{}", waits.err);
        run(tenant, &["get", "asks"]).exits(0).says(&["Is it broken, or lost?", "2  lost", "reply asks --question"]);
        run(tenant, &["get"]).exits(0).says(&["AwaitingReply"]);
        run(tenant, &["reply", "asks", "lost", "--question", "q-99"]).exits(2).says(&["The open questions are:"]);
        run(tenant, &["reply", "asks", "2"]).exits(0).says(&[" answered ", ": lost"]);
        run(tenant, &["wait", "asks", "--for", "ended", "--timeout", "3m"]).exits(0);
        job.succeeded().await;
        run(tenant, &["reply", "asks", "broken"]).exits(6).says(&["has ended"]);
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_person_cancels_a_job_with_the_command() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(1, "think")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("over").goal("Refund order A-17").await;
        shop.model.until_held("think").await;
        run(tenant, &["cancel", "over"]).exits(2).says(&["--yes"]);
        let cancelled = run(tenant, &["cancel", "over", "--yes", "--wait", "--timeout", "2m"]).exits(0);
        cancelled.says(&["is being cancelled", "over Cancelled"]);
        job.ended(OutcomeCode::Cancelled).await;
        assert_eq!(shop.ledger.summary().await.effects, 0);
        run(tenant, &["wait", "over"]).exits(9);
        run(tenant, &["cancel", "over", "--yes"]).exits(0).says(&["has already ended"]);
    })
    .await;
}
