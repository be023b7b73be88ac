//! The suite of conversations, held on a cluster. The tests of `cli/` hold the same cases without one.

use bloomery_crds::v1alpha1::JobStatus;
use bloomery_e2e::harness::story;
use bloomery_e2e::suite::{Case, FOLDER, LEDGER, SKILL, Told};
use serde_json::json;

bloomery_e2e::suite!(held);

async fn held(name: &str, case: Case) {
    story(async |tenant| {
        let shop = tenant.shop(&case.conversations).await;
        for (name, spec) in case.models_at(&tenant.model_origin()) {
            tenant.model(name).of(spec).await;
        }
        let skill = tenant.skill_of(SKILL, case.skill.clone());
        if case.has_orders { skill.with_orders() } else { skill }.await;
        if case.binds(FOLDER) {
            tenant.claim("folder").await;
        }
        let mut told = Told::default();
        for (at, goal) in case.goals.iter().enumerate() {
            let mut job = tenant.job(&format!("job-{at}")).of(SKILL).goal(goal);
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
            let status = job.until("an end, or a call that waits", is_at_rest).await;
            job.pods_have_ended().await;
            told.add(status, &job.logs(1).await);
        }
        shop.model.found_no_fault().await;
        told.is_as_told(name, &shop.ledger.summary().await);
    })
    .await;
}

fn is_at_rest(status: &JobStatus) -> bool {
    status.is_terminal() || status.waiting_for.is_some()
}
