//! The suite of conversations, held without a cluster. The stories of e2e hold the same cases on one.

use super::stand::Stand;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{JobStatus, Limits, Model, Skill};
use bloomery_e2e::harness::script_text;
use bloomery_e2e::ledger::{self, Summary};
use bloomery_e2e::model_server::Violations;
use bloomery_e2e::orders;
use bloomery_e2e::suite::{Case, FOLDER, LEDGER, SKILL, Told};
use serde::Serialize;
use serde_json::Value;
use std::fs;

bloomery_e2e::suite!(held);

async fn held(name: &str, case: Case) {
    let stand = Stand::new(&script_text(&case.conversations)).await;
    let here = || "127.0.0.1:0".parse().unwrap();
    let ledger = ledger::start(here(), stand.dir.path()).await.unwrap();
    let options = orders::Options { ledger: Some(ledger.url()), tenant: None, allowed_hosts: Vec::new() };
    let orders = orders::start(here(), options).await.unwrap();
    fs::create_dir(stand.path("folder")).unwrap();
    stand.write("skill.yaml", &yaml(&Skill::new(SKILL, case.skill.clone())));
    let origin = stand.model.url();
    let models = case.models_at(&origin).map(|(name, spec)| yaml(&Model::new(name, spec)));
    stand.write("models.yaml", &models.collect::<Vec<_>>().join("---\n"));

    let mut told = Told::default();
    for (at, goal) in case.goals.iter().enumerate() {
        let key = format!("job-{at}");
        let mut args =
            vec!["run", "--skill", "./skill.yaml", "--model", "models.yaml", "--run-key", &key, "--goal", goal];
        let mcp = format!("{}/mcp", orders.url());
        let resources = [(FOLDER, format!("{FOLDER}=folder")), (LEDGER, format!("{LEDGER}={}", ledger.url()))];
        if case.has_orders {
            args.extend(["--mcp", &mcp]);
        }
        for (_, bound) in resources.iter().filter(|(name, _)| case.binds(name)) {
            args.extend(["--resource", bound]);
        }
        let limits: Vec<String> = case.limits.iter().flat_map(named).collect();
        args.extend(limits.iter().flat_map(|limit| ["--limit", limit.as_str()]));
        let ran = stand.bloomery(&args).await;
        let seen = stand.bloomery(&["get", &key, "-o", "json"]).await;
        let seen: Value = serde_json::from_str(&seen.out).unwrap_or_else(|error| panic!("{error}: {ran:#?} {seen:#?}"));
        let status: JobStatus = serde_json::from_value(seen["status"].clone()).unwrap();
        assert_eq!(ran.code, exit_code(&status), "{ran:#?}");
        let answer = status.result.as_ref().map(|result| result.text.as_str()).unwrap_or_default();
        assert!(ran.out.starts_with(answer), "{ran:#?}");
        told.add(status, &stand.bloomery(&["events", &key]).await.out);
    }
    let found: Violations = get(&format!("{}/control/violations", stand.model.url())).await;
    assert_eq!(found.total, 0, "the model server was sent what it does not take: {:#?}", found.violations);
    let summary: Summary = get(&format!("{}/effects/summary", ledger.url())).await;
    told.is_as_told(name, &summary);
}

fn exit_code(status: &JobStatus) -> i32 {
    match status.phase.unwrap() {
        Phase::Succeeded => 0,
        Phase::Failed => 3,
        Phase::Refused => 4,
        Phase::Escalated => 5,
        _ => 7,
    }
}

async fn get<T: serde::de::DeserializeOwned>(url: &str) -> T {
    serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap()
}

fn yaml(object: &impl Serialize) -> String {
    serde_yaml::to_string(object).unwrap()
}

fn named(limits: &Limits) -> Vec<String> {
    let Value::Object(limits) = serde_json::to_value(limits).unwrap() else { panic!("limits are an object") };
    limits.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}
