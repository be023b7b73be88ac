//! What a namespace allows its Skills and Models to ask for.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::v1alpha1::{GateReason, Verdict};
use bloomery_e2e::harness::admission::ObjectApi;
use bloomery_e2e::harness::{Refusal, Turn, call, conversation, eventually, refund_of, story};
use serde_json::{Value, json};

/// Returns how the refusal of an image or a URL begins that could lead out of an allowed prefix.
fn above(field: &str, namespace: &str) -> String {
    format!("spec.{field}: the namespace {namespace} allows prefixes, so a backslash")
}

fn skill_with(image: &str, limits: &Value) -> Value {
    let container = json!({"image": image});
    json!({"problem": {"statement": "p"}, "mcpServer": {"container": container}, "engine": {"limits": limits}})
}

fn model(name: &str, url: &str) -> Value {
    json!({"provider": "openai", "model": name, "baseUrl": url})
}

/// An allowed model behind a proxy.
fn through(proxy: &str) -> Value {
    json!({"provider": "openai", "model": "gpt-5-mini", "baseUrl": "https://api.openai.com/v1", "proxy": proxy})
}

async fn refuses(objects: &ObjectApi, spec: &Value, expected: &str) {
    let refusal = objects.refuses("limited", spec).await;
    assert!(refusal.contains(expected), "`{expected}` should be in: {refusal}");
}

/// Waits until the API server refuses a Skill: it sees a change of the namespace a moment later.
async fn until_refused(skills: &ObjectApi, spec: &Value) {
    eventually("the limits of the namespace to be in force", async || match skills.try_create("limited", spec).await {
        Err(Refusal(_)) => Ok(()),
        Ok(()) => Err("the Skill was accepted"),
    })
    .await;
}

#[tokio::test]
async fn a_skill_or_model_beyond_a_limit_of_its_namespace_is_refused() {
    story(async |tenant| {
        let (skills, models) = (tenant.skills(), tenant.models());
        let any = skill_with("docker.io/anyone/server:1", &json!({"tokens": 900_000}));
        skills.create("earlier", &any).await;
        tenant
            .annotate(&json!({
                "bloomery.dev/allowed-images": "registry.example/team, registry.example/shared/search",
                "bloomery.dev/max-tokens": "100000",
                "bloomery.dev/max-duration": "1h",
                "bloomery.dev/max-steps": "60",
                "bloomery.dev/allowed-models": "gpt-5-mini,claude-*",
                "bloomery.dev/allowed-model-urls": "https://api.openai.com/v1,https://gateway.example/",
            }))
            .await;
        until_refused(&skills, &any).await;
        let other = json!({"spec": {"version": 2}});
        skills.change("earlier", &other).await.expect_err("its spec is beyond the limits");
        skills.change("earlier", &json!({"metadata": {"labels": {"team": "a"}}})).await.expect("its spec is the same");

        let low = json!({"tokens": 100_000, "duration": "1h", "steps": 60});
        for image in [
            "registry.example/team/server:1",
            "registry.example/team/a/b@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "registry.example/shared/search:5",
        ] {
            skills.accepts("limited", &skill_with(image, &low)).await;
        }
        for image in [
            "docker.io/anyone/server:1",
            "registry.example/team-b/server:1",
            "registry.example/shared/search-engine:1",
            "registry.example/shared/search:5/other",
            "server",
        ] {
            refuses(&skills, &skill_with(image, &low), &format!("and not {image}")).await;
        }
        let climbing = skill_with("registry.example/team/../evil/server:1", &low);
        refuses(&skills, &climbing, &above("mcpServer.container.image", &tenant.namespace)).await;
        let scripts = |image: &str| {
            let scripts = json!({"image": image, "files": {"a.sh": "exit"}});
            json!({"problem": {"statement": "p"}, "scripts": scripts, "engine": {"limits": low}})
        };
        skills.accepts("limited", &scripts("registry.example/team/shell:1")).await;
        refuses(&skills, &scripts("busybox"), "spec.scripts.image: the namespace").await;
        let image = "registry.example/team/server:1";
        for (limits, expected) in [
            (json!({"tokens": 100_001}), "spec.engine.limits.tokens: the namespace"),
            (json!({}), "asks for 200000, which is the default"),
            (json!({"tokens": 9, "steps": 61}), "allows at most 60, and the Skill asks for 61"),
            (json!({"tokens": 9, "duration": "1h1s"}), "and the Skill asks for 1h1s"),
        ] {
            refuses(&skills, &skill_with(image, &limits), expected).await;
        }
        let without_server = json!({"problem": {"statement": "p"}, "engine": {"limits": {"tokens": 9}}});
        skills.accepts("limited", &without_server).await;

        refuses_models(&models, &tenant.namespace).await;

        // A value that is no number allows nothing.
        tenant.annotate(&json!({"bloomery.dev/max-tokens": "many"})).await;
        until_refused(&skills, &skill_with(image, &json!({"tokens": 9}))).await;
    })
    .await;
}

/// Checks which Models the namespace of the story accepts.
async fn refuses_models(models: &ObjectApi, namespace: &str) {
    models.accepts("limited", &model("claude-sonnet-5", "https://gateway.example/anthropic")).await;
    models.accepts("limited", &model("gpt-5-mini", "https://api.openai.com/v1")).await;
    refuses(models, &model("gpt-5", "https://api.openai.com/v1"), "and not gpt-5").await;
    let elsewhere = "https://api.openai.com/v1.evil.example";
    refuses(models, &model("gpt-5-mini", elsewhere), &format!("and not {elsewhere}")).await;

    models.accepts("limited", &model("gpt-5-mini", "https://api.openai.com/v1/eu..west/v1.2")).await;
    for path in ["..", "../v2", "./v1", "%2e%2E/v2", ".%2e/v2", "..%2Fv2", "..\\v2", ".\t./v2", "%252e%252e/v2"] {
        let url = format!("https://api.openai.com/v1/{path}");
        refuses(models, &model("gpt-5-mini", &url), &above("baseUrl", namespace)).await;
    }

    models.accepts("limited", &through("https://gateway.example/")).await;
    refuses(models, &through("http://elsewhere.example:3128"), "spec.proxy: the namespace").await;
}

#[tokio::test]
async fn a_skill_or_model_beyond_a_limit_that_was_lowered_later_is_named_and_starts_no_job() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17"), refund_of("A-18")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.ready().await;
        tenant.annotate(&json!({"bloomery.dev/max-tokens": "1000"})).await;
        let parts = ["spec.engine.limits.tokens", "allows at most 1000"];
        skill.until_reason(ConditionType::WithinLimits, "BeyondLimit", &parts).await;
        let job = tenant.job("late").await;
        job.until_reason("SkillNotReady", &["cs-tier-1", "beyond a limit of its namespace"]).await;
        tenant.annotate(&json!({"bloomery.dev/max-tokens": null})).await;
        job.succeeded().await;
        skill.ready().await;
        shop.assert_refunded_once("A-17").await;

        tenant.annotate(&json!({"bloomery.dev/allowed-models": "another-model"})).await;
        tenant.until_model_stalled("default", "BeyondLimit", "another-model").await;
        let job = tenant.job("later").goal("Refund order A-18").await;
        job.until_reason("ModelNotReady", &["the Model default", "BeyondLimit", "spec.model"]).await;
        tenant.annotate(&json!({"bloomery.dev/allowed-models": null})).await;
        job.succeeded().await;
        shop.assert_refunded_once("A-18").await;
    })
    .await;
}

#[tokio::test]
async fn the_tool_policy_of_a_namespace_cuts_that_of_every_skill() {
    let turns = [
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"})),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("the tool policy of the namespace"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        tenant.annotate(&json!({"bloomery.dev/blocked-tools": "verify_*, process_refund"})).await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.until_reason(ConditionType::ToolsAllowed, "ToolsDenied", &["verify_identity"]).await;
        skill.ready().await;
        let status = tenant.job("cut").goal("Can A-17 be refunded?").await.succeeded().await;
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        let first = gate.last.first().expect("a ruling");
        assert_eq!((first.verdict, first.rule), (Verdict::Deny, Some(GateReason::Policy)), "{gate:#?}");
        assert!(first.reason.as_deref().unwrap_or_default().contains("blocks \"verify_*\""), "{first:?}");

        // A policy that cannot be read denies every tool.
        tenant.annotate(&json!({"bloomery.dev/blocked-tools": "*_refund"})).await;
        let unreadable = ["bloomery.dev/blocked-tools", "cannot be read", "check_eligibility"];
        skill.until_reason(ConditionType::ToolsAllowed, "ToolsDenied", &unreadable).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn who_edits_in_a_namespace_cannot_change_its_limits() {
    story(async |tenant| {
        tenant.bind("lea@acme.io", "admin", "skills").await;
        let asked = |verb: &str| {
            json!({
                "namespace": tenant.namespace, "group": "", "resource": "namespaces", "name": tenant.namespace,
                "verb": verb,
            })
        };
        assert!(tenant.is_allowed("lea@acme.io", &asked("get")).await, "an admin of the namespace reads it");
        for verb in ["update", "patch"] {
            assert!(!tenant.is_allowed("lea@acme.io", &asked(verb)).await, "{verb}");
        }
    })
    .await;
}
