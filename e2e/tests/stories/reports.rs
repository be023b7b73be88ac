//! Reports count only from the pod that the operator recorded.

use bloomery_crds::names::REPORT_AUDIENCE;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{PodEnd, Projection, Report};
use bloomery_crds::run::JobIdentity;
use bloomery_crds::v1alpha1::JobStatus;
use bloomery_e2e::harness::{JobHandle, Tenant, cluster, refund_of, story};

/// Returns a false report: the Job has succeeded, although its model still works.
fn forged(tenant: &Tenant, job: &JobHandle<'_>, status: &JobStatus) -> Report {
    let mut log = status.log.clone().expect("a Job at work has a log");
    log.events += 1;
    let (attempt, epoch) = status.attempt.as_ref().map_or((0, None), |attempt| (attempt.number, attempt.epoch));
    Report {
        memory: None,
        job: JobIdentity { namespace: tenant.namespace.clone(), name: job.name.clone(), uid: job.uid.clone() },
        attempt,
        epoch: epoch.expect("a Job at work has an epoch"),
        projection: Projection {
            phase: Phase::Succeeded,
            outcome: Some(Outcome::new(OutcomeCode::Succeeded, "Forged.")),
            result: None,
            gates: *status.gates.clone().unwrap_or_default(),
            features: Vec::new(),
            workflows: Vec::new(),
            waiting_for: None,
            tool_names: Vec::new(),
            tools_changed: false,
            replies_heard: 0,
            stray_replies: Vec::new(),
            remarks: Vec::new(),
            usage: *status.usage.clone().unwrap_or_default(),
            log,
        },
        waiting: None,
        hold: None,
        children: Vec::new(),
        wait_seconds: 0,
        end: Some(PodEnd::Finished),
    }
}

#[tokio::test]
async fn a_report_from_any_other_than_the_recorded_pod_is_refused() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("reaching a Service from outside") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-1").hold(3, "thinking"), refund_of("A-2").hold(3, "thinking")]).await;
        tenant.skill("cs-tier-1").await;
        let (job, other) = tokio::join!(
            tenant.job("refund").goal("Refund order A-1").into_future(),
            tenant.job("other").goal("Refund order A-2").into_future()
        );
        let running = |status: &JobStatus| status.log.is_some() && status.phase == Some(Phase::Running);
        let status = job.until("a report of its worker", running).await;
        other.until("a report of its worker", running).await;
        let (pod, others) = (job.pod(1).await, other.pod(1).await);
        let endpoint = tenant.report_endpoint().await;
        let report = forged(tenant, &job, &status);

        let api_server = "https://kubernetes.default.svc.cluster.local";
        let (own, wrong_audience, unbound, of_other) = tokio::join!(
            tenant.token(&pod, REPORT_AUDIENCE, true),
            tenant.token(&pod, api_server, true),
            tenant.token(&pod, REPORT_AUDIENCE, false),
            tenant.token(&others, REPORT_AUDIENCE, true),
        );
        for (whose, token, expected) in [
            ("no", None, 401),
            ("an invalid", Some("x.y.z"), 401),
            ("the API server's", Some(wrong_audience.as_str()), 401),
            ("an unbound", Some(unbound.as_str()), 401),
            ("another Job's", Some(of_other.as_str()), 403),
        ] {
            let (code, answer) = endpoint.send(token, &report).await;
            assert_eq!(code, expected, "a report with {whose} token: {answer}");
            let why = answer["error"].as_str().unwrap_or_default();
            assert!(!why.is_empty(), "the refusal should say why: {answer}");
        }

        let elsewhere =
            Report { job: JobIdentity { namespace: "default".to_owned(), ..report.job.clone() }, ..report.clone() };
        assert_eq!(endpoint.send(Some(&own), &elsewhere).await.0, 403, "a Job of another namespace");
        let unknown = Report { job: JobIdentity { uid: other.uid.clone(), ..report.job.clone() }, ..report.clone() };
        assert_eq!(endpoint.send(Some(&own), &unknown).await.0, 404, "a Job of another UID");
        let early = Report { attempt: 2, ..report.clone() };
        assert_eq!(endpoint.send(Some(&own), &early).await.0, 409, "an attempt that is not recorded");

        shop.model.release("thinking").await;
        let (status, _) = tokio::join!(job.succeeded(), other.succeeded());
        assert_ne!(status.outcome.map(|outcome| outcome.message).as_deref(), Some("Forged."));
        shop.assert_refunded_once("A-1").await;
        shop.assert_refunded_once("A-2").await;
    })
    .await;
}
