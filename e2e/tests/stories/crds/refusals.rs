use bloomery_e2e::harness::admission::ObjectApi;
use bloomery_e2e::harness::{command, story};
use serde_json::{Value, json};

use super::{job, model, skill, with_fields};

/// Checks that the API server accepts the spec `whole`, and refuses it with the fields of each case. Its message must have the
/// path and the text of the case.
async fn refuses_each(api: &ObjectApi, whole: &Value, cases: Vec<(&str, &str, Value)>) {
    api.accepts("whole", whole).await;
    for (path, why, more) in cases {
        let message = api.refuses("broken", &with_fields(whole.clone(), &more)).await;
        assert!(message.contains(&format!("{path}: ")), "`{path}` should be named in: {message}");
        assert!(message.contains(why), "`{why}` should be in: {message}");
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
            ("spec.tools[0].timeout", "at most 4m", json!({"tools": [{"name": "a", "timeout": "5m"}]})),
            ("spec.policy.tools.blocked[1]", "Duplicate value", tools(json!({"blocked": ["a", "a"]}))),
            ("spec.policy.tools.allowed[0]", "should match", tools(json!({"allowed": ["a*b"]}))),
            ("spec.role.persona", "8192", json!({"role": {"persona": "x".repeat(8193)}})),
            ("spec.acceptanceCriteria[0]", "at least 1", json!({"acceptanceCriteria": [""]})),
            ("spec.problem.statement", "at least 1", json!({"problem": {"statement": ""}})),
            ("spec.problem", "Required value", json!({"problem": null})),
            ("spec.version", "greater than or equal to 1", json!({"version": 0})),
            ("spec.memory.notes", "each name must be", json!({"memory": {"notes": {"progress": "x", "../x": "x"}}})),
            ("spec.memory.notes.progress", "4096", json!({"memory": {"notes": {"progress": "x".repeat(4097)}}})),
            ("spec.memory.scope[0]", "Unsupported value", json!({"memory": {"scope": ["progress.md"]}})),
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
    let secret = json!({"name": "tools", "key": "token"});
    let with_ca = server(json!({"service": {"name": "orders", "port": 80}, "ca": {"secretKeyRef": secret}}));
    let header = |name: &str| {
        let headers = json!([{"name": name, "secretKeyRef": {"name": "tools", "key": "token"}}]);
        server(json!({"uri": "https://tools.example/mcp", "headers": headers}))
    };
    let egress = |server_fields: Value, host: &str| {
        let mut fields = server_fields;
        fields["egress"] = json!([{"host": host}]);
        server(fields)
    };
    let both = server(json!({"container": {"image": "orders"}, "service": {"name": "orders", "port": 8080}}));
    story(async |tenant| {
        let cases = vec![
            ("spec.mcpServer", "exactly one of container", server(json!({}))),
            ("spec.mcpServer", "exactly one of container", both),
            ("spec.mcpServer.container.image", "at least 1", server(json!({"container": {"image": ""}}))),
            ("spec.mcpServer.container.port", "less than or equal to 65535", container(70_000, "/mcp")),
            ("spec.mcpServer.container.path", "should match", container(80, "mcp?x")),
            ("spec.mcpServer.uri", "must be an https URL", server(json!({"uri": "http://tools.example/mcp"}))),
            ("spec.mcpServer.uri", "must be an https URL", server(json!({"uri": "https://me@tools.example/mcp"}))),
            ("spec.mcpServer.ca", "only allowed with uri", with_ca),
            ("spec.mcpServer.headers[0].name", "is a header of MCP itself", header("Mcp-Session-Id")),
            ("spec.mcpServer.headers[0].name", "the request itself uses", header("Host")),
            (
                "spec.mcpServer.container.command",
                "needed with transport stdio",
                server(json!({"container": {"image": "i", "transport": "stdio", "args": ["x"]}})),
            ),
            (
                "spec.mcpServer.egress",
                "only allowed with container",
                egress(json!({"service": {"name": "orders", "port": 80}}), "api.example.com"),
            ),
            (
                "spec.mcpServer.egress[0].host",
                "should match",
                egress(json!({"container": {"image": "i"}}), "https://api.example.com"),
            ),
            ("spec.mcpServer.service.name", "should match", service("other.namespace", 80)),
            ("spec.mcpServer.service.port", "greater than or equal to 1", service("orders", 0)),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_with_bad_intents_is_refused_with_the_path_of_the_field() {
    let supported = |intents: Value| json!({"intents": {"supported": intents}});
    let entity = |entity: Value| supported(json!([{"id": "refund", "entities": [entity]}]));
    let out = |out: Value| json!({"intents": {"supported": [{"id": "refund"}], "outOfDomain": out}});
    let first = "spec.intents.supported[0]";
    story(async |tenant| {
        let (id, kind) = (format!("{first}.id"), format!("{first}.entities[0].type"));
        let entities = format!("{first}.entities[1]");
        let twice =
            json!([{"id": "refund", "entities": [{"name": "a", "type": "string"}, {"name": "a", "type": "number"}]}]);
        let cases = vec![
            ("spec.intents.supported", "at least 1", supported(json!([]))),
            ("spec.intents.supported[1]", "Duplicate value", supported(json!([{"id": "refund"}, {"id": "refund"}]))),
            (id.as_str(), "should match", supported(json!([{"id": "re fund"}]))),
            (
                kind.as_str(),
                "must be string, number, integer or boolean",
                entity(json!({"name": "a", "type": "array"})),
            ),
            (kind.as_str(), "Unsupported value", entity(json!({"name": "a", "type": "date"}))),
            (entities.as_str(), "Duplicate value", supported(twice)),
            ("spec.intents.outOfDomain.action", "Unsupported value", out(json!({"action": "ignore"}))),
            ("spec.intents.outOfDomain.action", "Required value", out(json!({"message": "No."}))),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_with_bad_resources_or_tools_is_refused_with_the_path_of_the_field() {
    let resource = |name: &str, kind: &str| json!({"resources": [{"name": name, "type": kind}]});
    let twice = json!({"resources": [{"name": "a", "type": "credential"}, {"name": "a", "type": "filesystem"}]});
    let tool = |more: Value| json!({"tools": [with_fields(json!({"name": "process_refund"}), &more)]});
    let policy = |policy: Value| tool(json!({"policy": policy}));
    let inputs = json!({"inputs": [{"name": "amount", "type": "number"}, {"name": "amount", "type": "number"}]});
    story(async |tenant| {
        let cases = vec![
            ("spec.resources[0].name", "should match", resource("Code-Base", "filesystem")),
            ("spec.resources[0].type", "Unsupported value", resource("codebase", "volume")),
            ("spec.resources[1]", "Duplicate value", twice),
            ("spec.tools[0].inputs[1]", "Duplicate value", tool(inputs)),
            (
                "spec.tools[0].inputs[0].type",
                "Unsupported value",
                tool(json!({"inputs": [{"name": "a", "type": "money"}]})),
            ),
            ("spec.tools[0].policy.allowed", "Unsupported value", policy(json!({"allowed": "sometimes"}))),
            (
                "spec.tools[0].policy.condition",
                "conditional needs a condition",
                policy(json!({"allowed": "conditional"})),
            ),
            (
                "spec.tools[0].policy.condition",
                "conditional needs a condition",
                policy(json!({"requiresApproval": "conditional"})),
            ),
            ("spec.tools[0].policy.condition", "1024", policy(json!({"condition": "a".repeat(1025)}))),
        ];
        refuses_each(&tenant.skills(), &skill(), cases).await;
    })
    .await;
}

/// Returns a Skill that declares a resource of a type, and a credential.
fn declares(kind: &str, more: &Value) -> Value {
    let resource = with_fields(json!({"name": "shop", "type": kind}), more);
    json!({"resources": [resource, {"name": "key", "type": "credential"}]})
}

#[tokio::test]
async fn an_endpoint_with_bad_rules_is_refused_with_the_path_of_the_field() {
    let rule = |more: Value| {
        let rule = with_fields(json!({"methods": ["GET"], "paths": ["/orders/*"]}), &more);
        declares("api_endpoint", &json!({"rules": [rule]}))
    };
    let methods = |methods: Value| rule(json!({"methods": methods}));
    let paths = |paths: Value| rule(json!({"paths": paths}));
    let whole = rule(json!({"methods": ["GET", "POST"], "paths": ["/", "/a/*", "/a/**/z", "/v*/x*y", "/a/"]}));
    let many: Vec<String> = (0..17).map(|n| format!("/{n}")).collect();
    let of_a_file_system = declares("filesystem", &json!({"rules": [{"methods": ["GET"], "paths": ["/"]}]}));
    story(async |tenant| {
        let rules = "spec.resources[0].rules";
        let [of_methods, first_method, second_method] = ["", "[0]", "[1]"].map(|at| format!("{rules}[0].methods{at}"));
        let [of_paths, first_path, second_path] = ["", "[0]", "[1]"].map(|at| format!("{rules}[0].paths{at}"));
        let mut cases = vec![
            (rules, "is only allowed for an api_endpoint", of_a_file_system),
            (rules, "at least 1", declares("api_endpoint", &json!({"rules": []}))),
            (&first_method, "Unsupported value", methods(json!(["get"]))),
            (&first_method, "Unsupported value", methods(json!(["CONNECT"]))),
            (&of_methods, "at least 1", methods(json!([]))),
            (&second_method, "Duplicate value", methods(json!(["GET", "GET"]))),
            (&of_paths, "at least 1", paths(json!([]))),
            (&of_paths, "16", paths(json!(many))),
            (&second_path, "Duplicate value", paths(json!(["/a", "/a"]))),
            (&first_path, "256", paths(json!([format!("/{}", "a".repeat(256))]))),
        ];
        for path in ["orders", "/a?b", "/a#b", "/a%2fb", "/a b", "/a\\b", "/a**", "/***"] {
            cases.push((&first_path, "should match", paths(json!([path]))));
        }
        refuses_each(&tenant.skills(), &with_fields(skill(), &whole), cases).await;
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_with_bad_auth_is_refused_with_the_path_of_the_field() {
    let auth = |more: Value| {
        let auth = with_fields(json!({"credential": "key"}), &more);
        declares("api_endpoint", &json!({"auth": auth}))
    };
    let header = |header: &str| auth(json!({"header": header}));
    let credential = |credential: &str| auth(json!({"credential": credential}));
    let of_a_file_system = declares("filesystem", &json!({"auth": {"credential": "key"}}));
    let not_a_credential = "must be the name of a resource of the type credential";
    story(async |tenant| {
        let path = "spec.resources[0].auth.header";
        let mut cases = vec![
            ("spec.resources[0].auth", "is only allowed for an api_endpoint", of_a_file_system),
            ("spec.resources", not_a_credential, credential("other")),
            ("spec.resources", not_a_credential, credential("shop")),
            ("spec.resources[0].auth.credential", "Required value", declares("api_endpoint", &json!({"auth": {}}))),
            ("spec.resources[0].auth.scheme", "should match", auth(json!({"scheme": "Bearer "}))),
            (path, "should match", header("X Key")),
            (path, "should match", header("X-Key\r\nHost")),
            (path, "at least 1", header("")),
        ];
        let long = "x".repeat(65);
        cases.push((path, "64", header(&long)));
        for reserved in ["Host", "TRANSFER-ENCODING", "Content-Type", "idempotency-key"] {
            cases.push((path, "the request itself uses", header(reserved)));
        }
        let whole = auth(json!({"header": "X-Api-Key", "scheme": "Token"}));
        refuses_each(&tenant.skills(), &with_fields(skill(), &whole), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_with_a_bad_policy_is_refused_with_the_path_of_the_field() {
    let policy = |policy: Value| json!({"policy": policy});
    let never = |never: Value| policy(json!({"guardrails": {"never": never}}));
    let flow = |steps: Value, intents: Value| json!({"name": "refund", "steps": steps, "intents": intents});
    let flows = |flows: Value| policy(json!({"workflows": flows}));
    let approval =
        |more: Value| policy(json!({"approvals": [with_fields(json!({"toolId": "process_refund"}), &more)]}));
    story(async |tenant| {
        let good = flow(json!(["verify"]), json!([]));
        let cases = vec![
            ("spec.policy.guardrails.never[0]", "at least 1", never(json!([""]))),
            ("spec.policy.guardrails.never[0]", "512", never(json!(["x".repeat(513)]))),
            ("spec.policy.guardrails.never", "64", never(json!(vec!["x"; 65]))),
            ("spec.policy.workflows[1]", "Duplicate value", flows(json!([good, good]))),
            ("spec.policy.workflows[0].steps", "at least 1", flows(json!([flow(json!([]), json!([]))]))),
            ("spec.policy.workflows[0].steps", "16", flows(json!([flow(json!(vec!["s"; 17]), json!([]))]))),
            (
                "spec.policy.workflows[0].intents[1]",
                "Duplicate value",
                flows(json!([flow(json!(["s"]), json!(["a", "a"]))])),
            ),
            ("spec.policy.approvals[0].toolId", "Required value", policy(json!({"approvals": [{"when": "a > 1"}]}))),
            ("spec.policy.approvals[0].action", "Unsupported value", approval(json!({"action": "allow"}))),
            ("spec.policy.approvals[0].approver", "should match", approval(json!({"approver": "The Boss"}))),
            ("spec.policy.approvals[0].when", "at least 1", approval(json!({"when": ""}))),
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
    let validation = |validation: Value| engine(json!({ "validation": validation }));
    story(async |tenant| {
        let cases = vec![
            ("spec.engine.model", "should match", engine(json!({"model": "Fast_1"}))),
            ("spec.engine.temperature", "less than or equal to 2", engine(json!({"temperature": 2.5}))),
            ("spec.engine.temperature", "greater than or equal to 0", engine(json!({"temperature": -0.1}))),
            ("spec.engine.finalizationGate.maxRetries", "less than or equal to 5", gate(6)),
            (
                "spec.engine.finalizationGate.model",
                "should match",
                engine(json!({"finalizationGate": {"model": "Fast_1"}})),
            ),
            ("spec.engine.replyPolisher.model", "should match", engine(json!({"replyPolisher": {"model": "Fast_1"}}))),
            ("spec.engine.approver", "should match", engine(json!({"approver": "The Boss"}))),
            ("spec.engine.approvalExpiry", "should match", engine(json!({"approvalExpiry": "0s"}))),
            ("spec.engine.approvalExpiry", "at most 8760h", engine(json!({"approvalExpiry": "8760h1s"}))),
            ("spec.engine.replyExpiry", "should match", engine(json!({"replyExpiry": "soon"}))),
            ("spec.engine.replyExpiry", "at most 8760h", engine(json!({"replyExpiry": "8760h1s"}))),
            ("spec.engine.validation.runs", "less than or equal to 20", validation(json!({"runs": 21}))),
            ("spec.engine.validation.runs", "greater than or equal to 1", validation(json!({"runs": 0}))),
            // The API server compares a whole number with the whole part of a limit: it accepts 0, which means at least one passed test.
            ("spec.engine.validation.passRate", "greater than or equal to 0.05", validation(json!({"passRate": 0.01}))),
            ("spec.engine.validation.passRate", "less than or equal to 1", validation(json!({"passRate": 1.5}))),
            ("spec.engine.validation.tokens", "greater than or equal to 1", validation(json!({"tokens": 0}))),
            ("spec.engine.validation.requireFor", "Unsupported value", validation(json!({"requireFor": "all"}))),
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
    let replies = |reply: Value| json!({"replies": [reply]});
    story(async |tenant| {
        let cases = vec![
            ("spec.goal", "at least 1", json!({"goal": ""})),
            ("spec.goal", "must not be blank", json!({"goal": " \n\t "})),
            ("spec.goal", "Required value", json!({"goal": null})),
            ("spec.goal", "8192", json!({"goal": "x".repeat(8193)})),
            ("spec.skill", "at least 1", json!({"skill": ""})),
            ("spec.skill", "should match", json!({"skill": "CS Tier 1"})),
            ("spec.limits.steps", "greater than or equal to 1", limits(json!({"steps": 0}))),
            ("spec.limits.toolCalls", "greater than or equal to 1", limits(json!({"toolCalls": 0}))),
            ("spec.limits.tokens", "greater than or equal to 1", limits(json!({"tokens": 0}))),
            ("spec.limits.duration", "should match", limits(json!({"duration": "soon"}))),
            ("spec.runKey", "should match", json!({"runKey": "Refund 0"})),
            ("spec.memoryScope[0]", "Unsupported value", json!({"memoryScope": ["notes"]})),
            ("spec.memoryScope[1]", "Duplicate value", json!({"memoryScope": ["progress", "progress"]})),
            ("spec.continues", "should match", json!({"continues": "Refund 0"})),
            ("spec.continues", "at least 1", json!({"continues": ""})),
            ("spec.continues", "cannot continue itself", json!({"continues": "broken"})),
            ("spec.mode", "Unsupported value", json!({"mode": "Try"})),
            ("spec.mode", "no runKey and no continues", json!({"mode": "Validate", "continues": "first"})),
            ("spec.mode", "no runKey and no continues", json!({"mode": "Validate", "runKey": "nightly"})),
            ("spec.ttlSecondsAfterFinished", "greater than or equal to 0", json!({"ttlSecondsAfterFinished": -1})),
            ("spec.ttlSecondsAfterFinished", "less than or equal to", json!({"ttlSecondsAfterFinished": 31_536_001})),
            ("spec.replies[0].text", "at least 1", replies(json!({"question": "q-1", "text": ""}))),
            ("spec.replies[0].text", "must not be blank", replies(json!({"text": " \n"}))),
            ("spec.replies[0].text", "Required value", replies(json!({"question": "q-1"}))),
            ("spec.replies[0].text", "1024", replies(json!({"text": "x".repeat(1025)}))),
            ("spec.replies[0].text", "at most 1024 bytes", replies(json!({"text": "\u{e4}".repeat(600)}))),
            ("spec.replies[0].question", "at least 1", replies(json!({"question": "", "text": "A-17"}))),
            ("spec.replies[0].question", "16", replies(json!({"question": "q".repeat(17), "text": "A-17"}))),
            ("spec.replies", "32", json!({"replies": vec![json!({"text": "A-17"}); 33]})),
        ];
        refuses_each(&tenant.jobs(), &job(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_job_with_bad_bindings_is_refused_with_the_path_of_the_field() {
    let bind = |binding: Value| json!({"resources": {"docs": binding}});
    let claim = |claim: Value| bind(json!({"persistentVolumeClaim": claim}));
    let path = |path: &str| claim(json!({"claimName": "src", "subPath": path}));
    let both = json!({"value": "https://docs.example.com", "secretKeyRef": {"name": "ci", "key": "token"}});
    let many = (0..17).map(|at| (format!("r{at}"), json!({"value": "https://docs.example.com"})));
    let many = json!({"resources": many.collect::<serde_json::Map<_, _>>()});
    // A rule names the entry of a map in brackets, a schema with a dot.
    let (ruled, bound) = ("spec.resources[docs]", "spec.resources.docs");
    let (claim_name, sub_path) =
        (format!("{ruled}.persistentVolumeClaim.claimName"), format!("{ruled}.persistentVolumeClaim.subPath"));
    let (bad_name, bad_key, long) = (
        format!("{bound}.persistentVolumeClaim.claimName"),
        format!("{bound}.secretKeyRef.key"),
        format!("{bound}.value"),
    );
    story(async |tenant| {
        let cases = vec![
            (ruled, "exactly one of value, secretKeyRef and persistentVolumeClaim", bind(json!({}))),
            (ruled, "exactly one of value, secretKeyRef and persistentVolumeClaim", bind(both)),
            (claim_name.as_str(), "is the tenant's memory", claim(json!({"claimName": "bloomery-memory"}))),
            (sub_path.as_str(), "must stay within the volume", path("../other")),
            (sub_path.as_str(), "must stay within the volume", path("app/../../other")),
            (sub_path.as_str(), "must stay within the volume", path("/app")),
            (bad_name.as_str(), "should match", claim(json!({"claimName": "Src"}))),
            (bad_key.as_str(), "should match", bind(json!({"secretKeyRef": {"name": "ci", "key": "../token"}}))),
            (long.as_str(), "512", bind(json!({"value": "x".repeat(513)}))),
            ("spec.resources", "16", many),
        ];
        refuses_each(&tenant.jobs(), &job(), cases).await;
        for good in ["app", "app/..hidden", "a..b/c"] {
            tenant.jobs().accepts("bound", &with_fields(job(), &path(good))).await;
        }
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
            ("spec.contextWindow", "greater than or equal to 8192", json!({"contextWindow": 8191})),
            ("spec.contextWindow", "less than or equal to", json!({"contextWindow": 10_000_001})),
            ("spec.maxOutputTokens", "greater than or equal to 256", json!({"maxOutputTokens": 255})),
            ("spec.maxOutputTokens", "leave room for the prompt", json!({"maxOutputTokens": 128_000})),
        ];
        refuses_each(&tenant.models(), &model(), cases).await;
    })
    .await;
}

#[tokio::test]
async fn a_model_with_a_bad_endpoint_is_refused_with_the_path_of_the_field() {
    let secret = json!({"secretKeyRef": {"name": "corporate", "key": "ca.crt"}});
    let both = with_fields(secret.clone(), &json!({"configMapKeyRef": {"name": "corporate", "key": "ca.crt"}}));
    let plain = json!({"baseUrl": "http://llm.internal/v1", "ca": secret.clone()});
    let fallback = |names: &[&str]| json!({ "fallback": names });
    story(async |tenant| {
        let cases = vec![
            ("spec.ca", "exactly one of secretKeyRef and configMapKeyRef", json!({"ca": {}})),
            ("spec.ca", "exactly one of secretKeyRef and configMapKeyRef", json!({ "ca": both })),
            ("spec.ca", "is only allowed with an https baseUrl", plain),
            ("spec.ca.secretKeyRef.key", "Required value", json!({"ca": {"secretKeyRef": {"name": "corporate"}}})),
            ("spec.proxy", "without user and path", json!({"proxy": "http://jane:secret@proxy.example:3128"})),
            ("spec.proxy", "without user and path", json!({"proxy": "http://proxy.example/way"})),
            ("spec.proxy", "must be an http or https URL", json!({"proxy": "socks5://proxy.example"})),
            ("spec.fallback", "cannot be its own fallback", fallback(&["fast", "broken"])),
            ("spec.fallback[1]", "Duplicate value", fallback(&["fast", "fast"])),
            ("spec.fallback[0]", "should match", fallback(&["other/fast"])),
            ("spec.fallback", "at most 4", fallback(&["a", "b", "c", "d", "e"])),
        ];
        refuses_each(&tenant.models(), &model(), cases).await;
        let good = json!({
            "baseUrl": "https://llm.internal/v1", "ca": secret, "proxy": "http://proxy.example:3128", "fallback": ["fast"],
        });
        tenant.models().accepts("reached", &with_fields(model(), &good)).await;
    })
    .await;
}

#[tokio::test]
async fn a_name_that_is_no_valid_label_is_refused() {
    story(async |tenant| {
        for (api, spec) in [(tenant.skills(), skill()), (tenant.jobs(), job()), (tenant.models(), model())] {
            api.accepts(&"x".repeat(50), &spec).await;
            for name in [&"x".repeat(51), "a.b", "1st", "-a"] {
                let message = api.refuses(name, &spec).await;
                assert!(message.contains("metadata.name"), "the path should be named in: {message}");
            }
            let message = api.refuses("1st", &spec).await;
            assert!(message.contains("DNS-1035"), "the rule for names should be in: {message}");
        }
    })
    .await;
}

#[tokio::test]
async fn kubectl_explain_describes_each_field() {
    story(async |_| {
        for (field, expected) in [
            ("skill", "the definition of an agent"),
            ("skill.spec.mcpServer", "provides the Skill's tools"),
            ("skill.spec.policy.tools", "The tools that the model can see and call"),
            ("skill.spec.intents", "The intents that the Skill serves"),
            ("skill.spec.resources.rules", "Other calls are denied"),
            ("skill.spec.resources.auth.credential", "The worker reads it before each call"),
            ("skill.spec.policy.guardrails", "Rules in words"),
            ("sj", "one conversation with a Skill"),
            ("sj.spec.resources", "The bindings of the Skill's resources"),
            ("sj.status.waitingFor", "that the Job waits for"),
            ("sj.spec.replies", "Replies can only be added at the end"),
            ("sj.spec.goal", "The goal in natural language"),
            ("sj.status.gates.preTool", "The gate for tool calls"),
            ("model.spec.apiKey", "Omit it for a server that needs none"),
        ] {
            let shown = command::run(&mut command::kubectl(&["explain", field]));
            // Lines are wrapped to the terminal.
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(expected), "kubectl explain {field} should say `{expected}`: {shown}");
        }
    })
    .await;
}
