//! Probes of MCP servers: a Skill is ready only if its tools are verified and pinned, and Jobs are denied tools that changed.

use bloomery_crds::Digest;
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{ApprovalRule, BankUse, Policy};
use bloomery_e2e::harness::machine;
use bloomery_e2e::harness::{SkillHandle, Tenant, Turn, call, cluster, conversation, eventually, refund_of, story};
use bloomery_testkit::json::typed;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;

/// Waits until the Skill has no pods of probes.
async fn until_no_probe(tenant: &Tenant, skill: &SkillHandle<'_>) {
    let labels = format!("{}={},{}=probe", names::LABEL_SKILL, skill.name, names::LABEL_COMPONENT);
    eventually("the pods of the probes to be gone", async || {
        let found = tenant.api::<Pod>().list(&ListParams::default().labels(&labels)).await;
        match found.map_err(|error| error.to_string())?.items.len() {
            0 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    })
    .await;
}

/// Returns a rule that holds the calls of a tool.
fn holding(tool: &str) -> Policy {
    let rule: ApprovalRule = typed(json!({"toolId": tool, "action": "require_approval", "approver": "supervisor"}));
    Policy { approvals: vec![rule], ..Policy::default() }
}

#[tokio::test]
async fn the_tools_of_a_server_are_verified_and_pinned_before_a_job_runs() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let status = skill.ready().await;
        for kind in [ConditionType::McpVerified, ConditionType::ToolsPinned] {
            assert!(conditions::is_true(&status.conditions, kind), "{kind}: {:#?}", status.conditions);
        }
        let tools = status.tools.expect("the tools are in the status");
        let names: Vec<String> = tools.pins.expect("they are pinned").tools.into_iter().map(|pin| pin.name).collect();
        assert_eq!(names, ["check_eligibility", "process_refund", "track_order", "verify_identity"]);
        assert_eq!(tools.digest.as_ref(), Some(&tools.found.digest));
        until_no_probe(tenant, &skill).await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        // Another edit of the Skill starts no probe.
        tenant.skill("cs-tier-1").with(|spec| spec.display_name = Some("Orders".into())).await;
        let edited = skill.until("the edit", |status| status.observed_generation == Some(2)).await;
        assert_eq!(edited.tools.map(|tools| tools.found.at), Some(tools.found.at));
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_changes_under_a_skill_is_denied_until_its_digest_is_accepted() {
    let checks = |order: &str, expected: &str| {
        let turns = [call("check_eligibility", json!({"order_id": order})), Turn::answer(order).after_result(expected)];
        conversation(order, turns)
    };
    let changes =
        [call("track_order", json!({"order_id": "NEWS-1"})), Turn::answer("NEWS-1").after_result("delivered")];
    let denied = "it differs from the tool that is pinned for the Skill";
    story(async |tenant| {
        let conversations = [conversation("NEWS-1", changes), checks("A-17", denied), checks("A-18", "eligible")];
        let shop = tenant.shop(&conversations).await;
        tenant.orders_server().await;
        let skill = tenant.skill("cs-tier-1").served_by("orders").await;
        let first = skill.ready().await.tools.expect("the tools are pinned");

        tenant.job("news").goal("Where is order NEWS-1?").await.succeeded().await;
        if !cluster::is_local_or_skips("the cached list of tools, which is valid for a minute") {
            return;
        }
        let cache = machine::memory(tenant).await.join("cs-tier-1/cache");
        std::fs::remove_dir_all(cache).expect("the cache can be removed");
        let job = tenant.job("denied").goal("Can A-17 be refunded?").await;
        let status = job.succeeded().await;
        let remarks = conditions::find(&status.conditions, ConditionType::SkillAsWritten).expect("a remark");
        assert_eq!(remarks.reason, "ToolsChanged");
        assert!(remarks.message.contains("check_eligibility: its description changed"), "{}", remarks.message);
        job.until_event("ToolsChanged", &["check_eligibility: its description changed"]).await;

        // The Job leads to another probe, which finds the same.
        let what = ["check_eligibility: its description changed", "toolsDigest"];
        skill.until_reason(ConditionType::ToolsPinned, "ToolsChanged", &what).await;
        let found = skill.until("the tools", |status| status.tools.is_some()).await.tools.expect("tools").found.digest;
        assert_ne!(Some(&found), first.digest.as_ref());

        let accepted = Some(found.clone());
        let draft = tenant.skill("cs-tier-1").served_by("orders");
        draft.with(|spec| spec.mcp_server.as_mut().expect("a server").tools_digest = accepted).await;
        let accepts = |digest: Option<&Digest>| digest == Some(&found);
        skill
            .until("the new tools to be pinned", |status| {
                accepts(status.tools.as_ref().and_then(|tools| tools.digest.as_ref()))
                    && conditions::is_true(&status.conditions, ConditionType::Ready)
            })
            .await;
        tenant.job("accepted").goal("Can A-18 be refunded?").await.succeeded().await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_rule_for_a_missing_tool_is_named_before_a_job_runs() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| spec.policy = Some(holding("process_refnd"))).await;
        let job = tenant.job("refund").await;
        let what = ["spec.policy.approvals[0].toolId", "did you mean \"process_refund\""];
        skill.until_reason(ConditionType::McpVerified, "RulesInvalid", &what).await;
        job.until_reason("SkillNotReady", &["McpVerified", "process_refnd"]).await;
        assert_eq!(job.pods().await.len(), 0);
        let allowed = Policy { allow_unmatched: Some(true), ..holding("process_refnd") };
        tenant.skill("cs-tier-1").with(|spec| spec.policy = Some(allowed)).await;
        job.succeeded().await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_condition_that_is_no_cel_keeps_a_skill_without_a_server_from_being_ready() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        let mut policy = holding("write_file");
        policy.approvals[0].when = Some("../../etc/passwd".to_owned());
        let skill = tenant.skill("cs-tier-1").with(|spec| {
            spec.mcp_server = None;
            spec.policy = Some(policy);
        });
        let skill = skill.await;
        skill.until_reason(ConditionType::Accepted, "Invalid", &["spec.policy.approvals[0].when"]).await;
    })
    .await;
}

#[tokio::test]
async fn a_misspelt_core_tool_keeps_a_skill_without_a_server_from_being_ready() {
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("hello", [Turn::answer("Hello.")])]).await;
        let without_server = |tool: &str| {
            let policy = holding(tool);
            tenant.skill("cs-tier-1").with(|spec| {
                spec.mcp_server = None;
                spec.memory.get_or_insert_default().bank = Some(BankUse::Write);
                spec.policy = Some(policy);
            })
        };
        let skill = without_server("memory_writ").await;
        let job = tenant.job("hello").goal("Say hello").await;
        let what = ["spec.policy.approvals[0].toolId", "did you mean \"memory_write\""];
        skill.until_reason(ConditionType::Accepted, "Invalid", &what).await;
        job.until_reason("SkillNotReady", &["memory_writ"]).await;
        assert_eq!(job.pods().await.len(), 0);
        // The tool of a server that the Skill may get later.
        without_server("process_refund").await;
        skill
            .until_reason(ConditionType::McpAvailable, "NoMcpServer", &["without these tools", "process_refund"])
            .await;
        job.succeeded().await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_needs_25_seconds_to_start_is_verified_then() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").with_server_env("START_AFTER", "25").await;
        let job = tenant.job("refund").await;
        skill.ready().await;
        assert_eq!(job.succeeded().await.attempt.map(|attempt| attempt.number), Some(1));
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_named_and_its_probe_ends() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").with_server_env("SILENT", "true").await;
        let job = tenant.job("refund").await;
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &["cs-tier-1-mcp", "cannot be listed"]).await;
        job.until_reason("SkillNotReady", &["McpVerified"]).await;
        assert_eq!(job.pods().await.len(), 0);
        tenant.skill("cs-tier-1").await;
        skill.ready().await;
        job.ended(OutcomeCode::Succeeded).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
