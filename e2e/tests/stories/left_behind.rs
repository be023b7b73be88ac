//! Approvals that remain after their Job has ended or was deleted.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{Approval, ApprovalRule, ApprovalVerdict, SkillSpec};
use bloomery_e2e::harness::{JobHandle, Shop, Tenant, command, eventually, refund_of, story};
use kube::{Api, ResourceExt};

/// An order whose refund needs two approvals: the supervisor's and that of `finance`.
const LARGE_ORDER: &str = "A-443";

/// Creates a shop and a Job that waits for both approvals.
async fn waiting(tenant: &Tenant) -> (Shop, JobHandle<'_>) {
    let shop = tenant.shop(&[refund_of(LARGE_ORDER)]).await;
    let add_finance = |spec: &mut SkillSpec| {
        let approvals = &mut spec.policy.as_mut().expect("a policy").approvals;
        let rule = approvals.first().expect("a rule").clone();
        approvals.push(ApprovalRule { approver: Some("finance".to_owned()), ..rule });
    };
    tenant.skill("cs-tier-1").tier_one().with(add_finance).await;
    let job = tenant.job("large-refund").goal(&format!("Refund order {LARGE_ORDER}")).await;
    job.until_phase(Phase::AwaitingApproval).await;
    (shop, job)
}

/// Waits until the Approval's condition `Ready` has this reason and `text` in its message.
async fn until_ready_says(api: &Api<Approval>, approval: &Approval, reason: &str, text: &str) -> Approval {
    eventually(&format!("{reason} of {} with {text:?}", approval.name_any()), async || {
        let found = api.get(&approval.name_any()).await.map_err(|error| error.to_string())?;
        let ready = found.status.as_ref().and_then(|status| conditions::find(&status.conditions, ConditionType::Ready));
        match ready {
            Some(ready) if ready.reason == reason && ready.message.contains(text) => Ok(found),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn an_approval_shows_that_its_job_was_cancelled_before_the_call() {
    story(async |tenant| {
        let (shop, job) = waiting(tenant).await;
        tenant.grant_approval("jane@acme.io", &["supervisor"]).await;
        let jane = tenant.person("jane@acme.io").await;
        let first = tenant.approval_for(&job, "supervisor").await;
        jane.decide(&first, "Approve", "").await.expect("the decision is accepted");
        job.until_reason("AwaitingApproval", &["waits for finance:"]).await;
        job.cancel().await;
        let status = job.ended(OutcomeCode::Cancelled).await;
        let people = conditions::find(&status.conditions, ConditionType::AwaitingPeople);
        assert_eq!(people.map(|people| (people.status.as_str(), people.reason.as_str())), Some(("False", "NotBegun")));
        let approvals = tenant.api::<Approval>();
        let first =
            until_ready_says(&approvals, &first, "JobEnded", "before the call was started: it is not made").await;
        let counted = first.status.and_then(|status| status.counted).map(|counted| counted.verdict);
        assert_eq!(counted, Some(ApprovalVerdict::Approve), "what counted stays");
        assert_eq!(shop.ledger.summary().await.effects, 0);
    })
    .await;
}

#[tokio::test]
async fn an_approval_of_a_deleted_job_expires_and_cannot_be_decided() {
    story(async |tenant| {
        let (_shop, job) = waiting(tenant).await;
        tenant.grant_approval("jane@acme.io", &["supervisor"]).await;
        let approval = tenant.approval_for(&job, "supervisor").await;
        let delete = ["delete", "skilljob", &job.name, "--cascade=orphan", "--namespace", &tenant.namespace];
        command::run(&mut command::kubectl(&delete));
        job.gone().await;
        let left =
            until_ready_says(&tenant.api::<Approval>(), &approval, "Expired", "the Job large-refund is gone").await;
        assert_eq!(left.spec.decision.map(|decision| decision.verdict), Some(ApprovalVerdict::Expired));
        let name = approval.name_any();
        let approve = ["approve", &name, "--yes", "--namespace", &tenant.namespace, "--as", "jane@acme.io"];
        let said = command::attempt(&mut command::bloomery(&approve));
        assert_eq!(said.status.code(), Some(6), "{}", String::from_utf8_lossy(&said.stderr));
    })
    .await;
}
