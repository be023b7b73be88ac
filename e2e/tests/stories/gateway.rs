//! The gateway: people and programs use Jobs over HTTP, each with its own rights.

use bloomery_crds::v1alpha1::{Job, JobSpec};
use bloomery_e2e::harness::gateway::{self, LocalGateway, SentEvent, with_gateway};
use bloomery_e2e::harness::{Tenant, eventually, refund_after_question, refund_of, story, typed};
use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview};
use kube::Api;
use kube::api::{ListParams, PostParams};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The name of the last event of a Job.
const LAST_EVENT: &str = "conversation.finished";

/// Returns the rules of an account in the tenant's namespace, as `kubectl auth can-i --list` prints them.
async fn rules(tenant: &Tenant, account: &str) -> Vec<ResourceRule> {
    let client = tenant.cluster.impersonating(account, &["system:serviceaccounts"]).await;
    let review: SelfSubjectRulesReview = typed(json!({"metadata": {}, "spec": {"namespace": tenant.namespace}}));
    let answer = Api::<SelfSubjectRulesReview>::all(client).create(&PostParams::default(), &review).await;
    let status = answer.unwrap_or_else(|error| panic!("the rules of {account} cannot be read: {error}")).status;
    status.expect("the API server answers").resource_rules
}

/// Checks that these are all events of a Job, in their order and each once.
pub fn assert_complete(events: &[SentEvent], in_log: u64) {
    let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=in_log).collect::<Vec<u64>>(), "{events:?}");
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some(LAST_EVENT));
}

/// Waits until a Job has succeeded. Returns the number of events in its log.
pub async fn events_in_log(tenant: &Tenant, job: &str) -> u64 {
    let job = tenant.api::<Job>().get(job).await.expect("the gateway has created the Job");
    tenant.existing_job(&job).succeeded().await.log.expect("the Job has a log").events
}

#[tokio::test]
async fn a_client_starts_a_job_and_follows_it_with_its_own_rights() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let ((editor, client), (_, stranger)) = tokio::join!(tenant.account("client"), tenant.account("stranger"));
        tenant.bind(&editor, "edit", "skilljobs").await;
        let gateway = LocalGateway::start(tenant).await;
        let body = json!({"goal": "Refund order A-17, it arrived broken", "skillSlug": "cs-tier-1"});
        let start = async |token: &str| {
            let request = gateway.request("POST", "/api/chat", token).header("Idempotency-Key", "one").json(&body);
            request.send().await.expect("the gateway responds")
        };
        // The API server takes some time to see the role.
        let job = eventually("the client to start a Job", async || {
            let response = start(&client).await;
            let status = response.status();
            let text = response.text().await.expect("the gateway responds");
            if status == StatusCode::ACCEPTED { Ok(text) } else { Err(text) }
        })
        .await;
        let job = serde_json::from_str::<Value>(&job).expect("JSON")["job"].as_str().expect("a name").to_owned();
        assert_eq!(start(&client).await.status(), StatusCode::ACCEPTED, "the same Job");

        let refused = start(&stranger).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let text = refused.text().await.expect("the gateway responds");
        assert!(text.contains("the verb create on skilljobs.bloomery.dev"), "{text}");
        let unknown = gateway.request("GET", "/api/jobs", "no-token").send().await.expect("the gateway responds");
        assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);

        let in_log = events_in_log(tenant, &job).await;
        shop.assert_refunded_once("A-17").await;
        let events = gateway.request("GET", &format!("/api/jobs/{job}/events"), &client).send().await;
        let events = events.expect("the gateway responds").text().await.expect("the events end with the Job");
        assert!(events.contains("id: 1\n") && events.contains(&format!("event: {LAST_EVENT}\n")), "{events}");
        assert!(events.contains(&format!("id: {in_log}\n")), "{events}");
        let refused = gateway.request("GET", &format!("/api/jobs/{job}/events"), &stranger).send().await;
        assert_eq!(refused.expect("the gateway responds").status(), StatusCode::FORBIDDEN);
    })
    .await;
}

#[tokio::test]
async fn a_chat_has_the_question_of_a_job_and_then_the_answer_to_the_reply() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_after_question("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let (editor, token) = tenant.account("client").await;
        tenant.bind(&editor, "edit", "skilljobs").await;
        let gateway = LocalGateway::start(tenant).await;
        let answer = async |messages: Value| {
            let body = json!({"model": "cs-tier-1", "messages": messages});
            let response = gateway.request("POST", "/v1/chat/completions", &token).json(&body).send().await;
            let response: Value = response.expect("the gateway responds").json().await.expect("JSON");
            response["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
        };
        let goal = json!({"role": "user", "content": "Refund order A-17"});
        let asked = answer(json!([goal])).await;
        assert!(asked.contains("waits for the answer to q-1."), "{asked}");
        let said = json!({"role": "assistant", "content": asked});
        let answered = answer(json!([goal, said, {"role": "user", "content": "lost"}])).await;
        assert!(!answered.contains("q-1") && answered.contains("A-17"), "{answered}");
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn who_may_not_follow_a_job_starts_none_by_a_stream_or_a_chat() {
    story(async |tenant| {
        let (account, token) = tenant.account("client").await;
        // It has no rights on pods.
        tenant.bind(&account, "bloomery-edit", "skilljobs").await;
        let gateway = LocalGateway::start(tenant).await;
        let start = gateway.request("POST", "/api/chat", &token).header("Accept", "text/event-stream");
        let start = start.json(&json!({"goal": "Refund order A-17", "skillSlug": "cs-tier-1"}));
        let messages = json!([{"role": "user", "content": "Refund order A-17"}]);
        let chat = gateway.request("POST", "/v1/chat/completions", &token);
        let chat = chat.json(&json!({"model": "cs-tier-1", "messages": messages}));
        for request in [start, chat] {
            let refused = request.send().await.expect("the gateway responds");
            assert_eq!(refused.status(), StatusCode::FORBIDDEN);
            let text = refused.text().await.expect("the gateway responds");
            assert!(text.contains("the verb get on pods/log"), "{text}");
        }
        let jobs = tenant.api::<Job>().list(&ListParams::default()).await.expect("the Jobs are listed");
        assert!(jobs.items.is_empty(), "{:?}", jobs.items);
    })
    .await;
}

#[tokio::test]
async fn a_request_for_a_skill_that_does_not_exist_creates_no_job() {
    story(async |tenant| {
        let ((editor, client), (creator, without_skills)) =
            tokio::join!(tenant.account("client"), tenant.account("creator"));
        tenant.bind(&editor, "edit", "skilljobs").await;
        let create = json!({"apiGroups": ["bloomery.dev"], "resources": ["skilljobs"], "verbs": ["create"]});
        tenant.grant(&creator, &[create]).await;
        let gateway = LocalGateway::start(tenant).await;
        let body = json!({"goal": "Refund order A-17", "skillSlug": "cs-tier-1"});
        let messages = json!([{"role": "user", "content": "Refund order A-17"}]);
        let chat = json!({"model": "cs-tier-1", "messages": messages});
        for request in [
            gateway.request("POST", "/api/chat", &client).json(&body),
            gateway.request("POST", "/v1/chat/completions", &client).json(&chat),
            gateway.request("GET", "/api/skills/cs-tier-1/tools", &client),
        ] {
            let refused = request.send().await.expect("the gateway responds");
            assert_eq!(refused.status(), StatusCode::NOT_FOUND);
            let text = refused.text().await.expect("the gateway responds");
            assert!(text.contains(&format!("the namespace {} has no Skill cs-tier-1.", tenant.namespace)), "{text}");
        }
        assert!(skills_of_jobs(tenant).await.is_empty());
        // The operator checks the Jobs of who may not read Skills, and creates the default Skill from its template.
        for (token, body) in [(&without_skills, body), (&client, json!({"goal": "Explain the project"}))] {
            let started = gateway.request("POST", "/api/chat", token).json(&body).send().await;
            assert_eq!(started.expect("the gateway responds").status(), StatusCode::ACCEPTED);
        }
        assert_eq!(skills_of_jobs(tenant).await, ["cs-tier-1", JobSpec::DEFAULT_SKILL]);
    })
    .await;
}

/// Returns the names of the Skills of all Jobs, sorted.
async fn skills_of_jobs(tenant: &Tenant) -> Vec<String> {
    let jobs = tenant.api::<Job>().list(&ListParams::default()).await.expect("the Jobs are listed");
    let mut skills: Vec<String> = jobs.items.into_iter().map(|job| job.spec.skill).collect();
    skills.sort();
    skills
}

/// There is no Model, so the Job waits.
#[tokio::test]
async fn a_repeated_request_finds_its_job_after_the_skill_has_changed_or_is_gone() {
    story(async |tenant| {
        let skill = tenant.skill("cs-tier-1").await;
        let (editor, client) = tenant.account("client").await;
        tenant.bind(&editor, "edit", "skilljobs").await;
        let gateway = LocalGateway::start(tenant).await;
        let body = json!({"goal": "Refund order A-17", "skillSlug": "cs-tier-1"});
        let start = async |key: &str| {
            let request = gateway.request("POST", "/api/chat", &client).header("Idempotency-Key", key).json(&body);
            let response = request.send().await.expect("the gateway responds");
            (response.status(), response.text().await.expect("the gateway responds"))
        };
        let first = start("one").await;
        assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);

        let notes = json!([{"name": "notes", "type": "filesystem", "required": true}]);
        tenant.skill("cs-tier-1").with(|spec| spec.resources = typed(notes)).await;
        assert_eq!(start("one").await, first);
        assert_eq!(start("two").await.0, StatusCode::BAD_REQUEST);
        skill.delete().await;
        skill.gone().await;
        assert_eq!(start("one").await, first);
        assert_eq!(start("two").await.0, StatusCode::NOT_FOUND);
        assert_eq!(skills_of_jobs(tenant).await, ["cs-tier-1"]);
    })
    .await;
}

/// These install the release again, which disturbs all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;
    use bloomery_e2e::harness::{cluster, operator, story_alone};
    use kube::ResourceExt;
    use kube::api::DeleteParams;

    #[tokio::test]
    async fn people_use_jobs_through_the_gateway_with_their_own_rights() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("reaching a Service from outside") {
                return;
            }
            with_gateway(&tenant.cluster, async || {
                let shop = tenant.shop(&[refund_of("A-17")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                let ((editor, token), (stranger, other)) =
                    tokio::join!(tenant.account("editor"), tenant.account("stranger"));
                tenant.bind(&editor, "edit", "skilljobs").await;

                let client = tenant.gateway(&token).await;
                let (job, mut stream) = client.chat("cs-tier-1", "Refund order A-17").await;
                let events = stream.rest().await;
                assert_complete(&events, events_in_log(tenant, &job).await);
                shop.assert_refunded_once("A-17").await;

                let (status, problem) = tenant.gateway(&other).await.start("cs-tier-1", "Refund order A-17").await;
                let detail = problem["detail"].as_str().unwrap_or_default();
                assert_eq!(status, 403, "{problem}");
                for part in ["create", "skilljobs", tenant.namespace.as_str()] {
                    assert!(detail.contains(part), "`{part}` should be named: {problem}");
                }
                let (status, problem) = tenant.gateway("no-token").await.start("cs-tier-1", "Refund order A-17").await;
                assert_eq!(status, 401, "{problem}");

                // The gateway itself has only the rights of every account, and one more.
                let (mut own, every) = tokio::join!(rules(tenant, gateway::ACCOUNT), rules(tenant, &stranger));
                own.retain(|rule| !every.contains(rule));
                let review: ResourceRule = typed(json!({
                    "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"],
                }));
                assert_eq!(own, [review]);
            })
            .await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_of_a_killed_gateway_pod_continues_at_another_one_without_loss() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("reaching a pod from outside") {
                return;
            }
            with_gateway(&tenant.cluster, async || {
                let shop = tenant.shop(&[refund_of("A-17").hold(2, "thinking")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                let (editor, token) = tenant.account("editor").await;
                tenant.bind(&editor, "edit", "skilljobs").await;
                let pods = eventually("two ready pods of the gateway", async || {
                    let pods = gateway::pods(&tenant.cluster).await;
                    if pods.len() == 2 { Ok(pods) } else { Err(pods.len()) }
                })
                .await;

                let killed = pods.first().expect("two pods");
                let (job, mut stream) = tenant.gateway_pod(killed, &token).chat("cs-tier-1", "Refund order A-17").await;
                shop.model.until_held("thinking").await;
                let mut events = stream.take(3).await;
                let at_once = DeleteParams::default().grace_period(0);
                let pods = operator::api(&tenant.cluster);
                pods.delete(&killed.name_any(), &at_once).await.expect("the pod is deleted");
                events.extend(stream.rest().await);
                assert!(
                    events.iter().all(|event| event.kind != LAST_EVENT),
                    "the stream ends before the Job: {events:?}"
                );

                let seen = events.last().map_or(0, |event| event.id);
                let mut stream = tenant.gateway(&token).await.follow(&job, seen).await;
                shop.model.release("thinking").await;
                events.extend(stream.rest().await);
                assert_complete(&events, events_in_log(tenant, &job).await);
                shop.assert_refunded_once("A-17").await;
            })
            .await;
        })
        .await;
    }
}
