//! Runs the suite of conversations on a cluster. The tests of `cli/` run the same cases without one.

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{ApprovalVerdict, JobStatus};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{JobHandle, Shop, Tenant, cluster, story};
use bloomery_testkit::suite::{APPROVER, Case, CaseRecord, DECIDER, Decision, FOLDER, LEDGER, Mishap, SKILL, THINKING};
use serde_json::json;

use crate::faults::WORKER;

bloomery_testkit::suite!(run_case);

/// Runs all Jobs of a case, and compares their records with the expected ones.
async fn run_case(name: &str, case: Case) {
    story(async |tenant| {
        if case.mishap.is_some() && !cluster::is_local_or_skips("SIGKILL of a worker or a server") {
            return;
        }
        let shop = tenant.shop(&case.conversations).await;
        for (name, spec) in case.models_at(&tenant.model_origin()) {
            tenant.model(name).with_spec(spec).await;
        }
        let skill = tenant.skill_of(SKILL, case.skill.clone());
        if case.has_orders { skill.with_orders() } else { skill }.await;
        if case.binds(FOLDER) {
            tenant.claim("folder").await;
        }
        let mut record = CaseRecord::default();
        for (at, goal) in case.goals.iter().enumerate() {
            let mut job = tenant.job(&format!("job-{at}")).for_skill(SKILL).goal(goal);
            if case.binds(LEDGER) {
                job = job.binding(LEDGER, json!({"value": shop.ledger.url}));
            }
            if case.binds(FOLDER) {
                job = job.binding(FOLDER, json!({"persistentVolumeClaim": {"claimName": "folder", "readOnly": false}}));
            }
            if let Some(limits) = &case.limits {
                job = job.limits(limits.clone());
            }
            let job = job.await;
            if let Some(mishap) = case.mishap.filter(|_| at == 0) {
                cause_mishap(mishap, tenant, &shop, &job).await;
            }
            if case.decision.is_some() {
                decide(&case, tenant, &job).await;
            }
            let status = answer_questions(&case, &job).await;
            let printed = job.all_logs(status.attempt.as_ref().map_or(1, |attempt| attempt.number)).await;
            record.add(status, &printed);
        }
        shop.model.assert_no_violations().await;
        record.assert_expected(name, &shop.ledger.summary().await);
    })
    .await;
}

/// Waits for the moment of the mishap, and kills the worker or the server.
async fn cause_mishap(mishap: Mishap, tenant: &Tenant, shop: &Shop, job: &JobHandle<'_>) {
    let kills_worker = match mishap {
        Mishap::WorkerKilledWhileTheModelThinks => {
            shop.model.until_held(THINKING).await;
            true
        }
        Mishap::WorkerKilledAfterRefund(order) => {
            shop.ledger.until_refunded(order).await;
            true
        }
        Mishap::ServerKilledAfterRefund(order) => {
            shop.ledger.until_refunded(order).await;
            false
        }
    };
    if kills_worker {
        Process::find(&job.pod(1).await, WORKER).await.kill();
        shop.model.release(THINKING).await;
    } else {
        tenant.orders_of(SKILL).await.kill();
    }
}

/// Waits until the Job is parked with a held call, and decides on it as the case says.
async fn decide(case: &Case, tenant: &Tenant, job: &JobHandle<'_>) {
    let Some(Decision { verdict, reason }) = case.decision else { return };
    job.until_phase(Phase::AwaitingApproval).await;
    let approval = tenant.approval_for(job, APPROVER).await;
    tenant.grant_approval(DECIDER, &[APPROVER]).await;
    let verdict = match verdict {
        ApprovalVerdict::Approve => "Approve",
        ApprovalVerdict::Deny => "Deny",
        ApprovalVerdict::Expired => "Expired",
    };
    tenant.person(DECIDER).await.decide(&approval, verdict, reason).await.expect("the decision is accepted");
    job.until("the decision to be received", |status| status.phase != Some(Phase::AwaitingApproval)).await;
}

/// Replies to the Job's questions until it ends, or waits without a reply left in the case. Returns its status then.
async fn answer_questions(case: &Case, job: &JobHandle<'_>) -> JobStatus {
    let mut replies = case.replies.iter();
    loop {
        let sent = u32::try_from(case.replies.len() - replies.len()).unwrap_or(u32::MAX);
        let is_at_rest = |status: &JobStatus| {
            let has_all_replies = status.replies_heard.unwrap_or(0) >= sent;
            status.is_terminal() || has_all_replies && status.awaits_people()
        };
        let status = job.until("the end of the Job, or a wait for people", is_at_rest).await;
        let open: Vec<_> = status.waiting_for.iter().flat_map(|waiting| &waiting.questions).collect();
        if open.is_empty() || replies.len() == 0 {
            return status;
        }
        // Sends all replies in one write: a later reply could reach another attempt.
        job.reply_all(open.iter().zip(&mut replies).map(|(asked, text)| (Some(asked.id.as_str()), *text))).await;
    }
}
