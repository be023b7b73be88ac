use bloomery_e2e::harness::admission::Door;
use bloomery_e2e::harness::{command, story};
use serde_json::{Value, json};

use super::{but, job, model, skill};

/// Every case is refused, in a sentence that names the path of the field and what is wrong with it.
async fn refuses_each(door: &Door, whole: &Value, cases: Vec<(&str, &str, Value)>) {
    door.takes("whole", whole).await;
    for (path, why, more) in cases {
        let sentence = door.refuses("broken", &but(whole.clone(), &more)).await;
        assert!(sentence.contains(&format!("{path}: ")), "`{path}` should be named in: {sentence}");
        assert!(sentence.contains(why), "`{why}` should be said in: {sentence}");
    }
}

#[tokio::test]
async fn a_bad_skill_is_refused_with_the_path_of_the_field() {
    let contract = |fields: [&str; 2]| json!({"outputContract": {"requiredFields": fields}});
    let tools = |policy: Value| json!({"policy": {"tools": policy}});
    story(async |tenant| {
        let cases = vec![
            ("spec.outputContract.requiredFields[1]", "Duplicate value", contract(["order_id", "order_id"])),
            ("spec.tools[1]", "Duplicate value", json!({"tools": [{"name": "a"}, {"name": "a"}]})),
            ("spec.policy.tools.blocked[1]", "Duplicate value", tools(json!({"blocked": ["a", "a"]}))),
            ("spec.policy.tools.allowed[0]", "should match", tools(json!({"allowed": ["a*b"]}))),
            ("spec.role.persona", "plain text, without {{", json!({"role": {"persona": "Docs: {{resources.docs}}"}})),
            ("spec.problem.statement", "at least 1", json!({"problem": {"statement": ""}})),
            ("spec.problem", "Required value", json!({"problem": null})),
            ("spec.version", "greater than or equal to 1", json!({"version": 0})),
            ("spec.version", "less than or equal to 2147483647", json!({"version": 202_601_011_200_u64})),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_with_a_bad_server_is_refused_with_the_path_of_the_field() {
    let server = |server: Value| json!({"mcpServer": server});
    let container = |port: u32, path: &str| server(json!({"container": {"image": "i", "port": port, "path": path}}));
    let service = |name: &str, port: u32| server(json!({"service": {"name": name, "port": port}}));
    let both = server(json!({"container": {"image": "orders"}, "service": {"name": "orders", "port": 8080}}));
    story(async |tenant| {
        let cases = vec![
            ("spec.mcpServer", "exactly one of container", server(json!({}))),
            ("spec.mcpServer", "exactly one of container", both),
            ("spec.mcpServer.container.image", "at least 1", server(json!({"container": {"image": ""}}))),
            ("spec.mcpServer.container.port", "less than or equal to 65535", container(70_000, "/mcp")),
            ("spec.mcpServer.container.path", "should match", container(80, "mcp?x")),
            ("spec.mcpServer.service.name", "should match", service("other.namespace", 80)),
            ("spec.mcpServer.service.port", "greater than or equal to 1", service("orders", 0)),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_with_a_bad_engine_is_refused_with_the_path_of_the_field() {
    let engine = |engine: Value| json!({"engine": engine});
    let limits = |limits: Value| engine(json!({"limits": limits}));
    let gate = |retries: u32| engine(json!({"finalizationGate": {"maxRetries": retries}}));
    story(async |tenant| {
        let cases = vec![
            ("spec.engine.model", "should match", engine(json!({"model": "Fast_1"}))),
            ("spec.engine.temperature", "less than or equal to 2", engine(json!({"temperature": 2.5}))),
            ("spec.engine.temperature", "greater than or equal to 0", engine(json!({"temperature": -0.1}))),
            ("spec.engine.finalizationGate.maxRetries", "less than or equal to 5", gate(6)),
            ("spec.engine.limits.steps", "greater than or equal to 1", limits(json!({"steps": 0}))),
            ("spec.engine.limits.toolCalls", "greater than or equal to 1", limits(json!({"toolCalls": 0}))),
            ("spec.engine.limits.tokens", "greater than or equal to 1", limits(json!({"tokens": 0}))),
            ("spec.engine.limits.duration", "should match", limits(json!({"duration": "0s"}))),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_bad_job_is_refused_with_the_path_of_the_field() {
    let limits = |limits: Value| json!({"limits": limits});
    story(async |tenant| {
        let cases = vec![
            ("spec.goal", "at least 1", json!({"goal": ""})),
            ("spec.goal", "must say what is to be reached", json!({"goal": " \n\t "})),
            ("spec.goal", "Required value", json!({"goal": null})),
            ("spec.goal", "8192", json!({"goal": "x".repeat(8193)})),
            ("spec.skill", "Required value", json!({"skill": null})),
            ("spec.skill", "at least 1", json!({"skill": ""})),
            ("spec.skill", "should match", json!({"skill": "CS Tier 1"})),
            ("spec.limits.steps", "greater than or equal to 1", limits(json!({"steps": 0}))),
            ("spec.limits.toolCalls", "greater than or equal to 1", limits(json!({"toolCalls": 0}))),
            ("spec.limits.tokens", "greater than or equal to 1", limits(json!({"tokens": 0}))),
            ("spec.limits.duration", "should match", limits(json!({"duration": "soon"}))),
        ];
        refuses_each(&tenant.jobs(), &job(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_bad_model_is_refused_with_the_path_of_the_field() {
    let key = |key: Value| json!({"apiKey": {"secretKeyRef": key}});
    story(async |tenant| {
        let cases = vec![
            ("spec.provider", "Unsupported value: \"acme\": supported values: \"openai\"", json!({"provider": "acme"})),
            ("spec.model", "at least 1", json!({"model": ""})),
            (
                "spec.baseUrl",
                "without user, query or fragment",
                json!({"baseUrl": "https://jane:secret@api.openai.com/v1"}),
            ),
            ("spec.baseUrl", "must be an http or https URL", json!({"baseUrl": "ftp://api.openai.com"})),
            ("spec.baseUrl", "without user, query or fragment", json!({"baseUrl": "https://api.openai.com/v1?key=x"})),
            ("spec.apiKey.secretKeyRef", "Required value", json!({"apiKey": {}})),
            ("spec.apiKey.secretKeyRef.key", "Required value", key(json!({"name": "llm"}))),
            ("spec.apiKey.secretKeyRef.key", "should match", key(json!({"name": "llm", "key": "../token"}))),
            ("spec.timeout", "should match", json!({"timeout": "0s"})),
        ];
        refuses_each(&tenant.models(), &model(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_name_that_could_become_no_label_is_refused() {
    story(async |tenant| {
        for (door, spec) in [(tenant.skills(), skill()), (tenant.jobs(), job()), (tenant.models(), model())] {
            door.takes(&"x".repeat(50), &spec).await;
            for name in [&"x".repeat(51), "a.b", "1st", "-a"] {
                let sentence = door.refuses(name, &spec).await;
                assert!(sentence.contains("metadata.name"), "the path should be named in: {sentence}");
            }
            let sentence = door.refuses("1st", &spec).await;
            assert!(sentence.contains("DNS-1035"), "what a name may be should be said in: {sentence}");
        }
    })
    .await;
}

#[tokio::test]
async fn explain_says_what_each_field_is_for() {
    story(async |_| {
        for (field, promised) in [
            ("skill", "what an agent may do"),
            ("skill.spec.mcpServer", "brings the Skill's tools"),
            ("skill.spec.policy.tools", "Which tools may be seen and called"),
            ("sj", "one conversation with a Skill"),
            ("sj.spec.goal", "as a person would ask for it"),
            ("sj.status.gates.preTool", "The gate before every tool call"),
            ("model.spec.apiKey", "Leave it out for a server that asks for none"),
        ] {
            let shown = command::run(&mut command::kubectl(&["explain", field]));
            // Lines are wrapped to the terminal.
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(promised), "kubectl explain {field} should say `{promised}`: {shown}");
        }
    })
    .await;
}
