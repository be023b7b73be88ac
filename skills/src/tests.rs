use super::{CheckedDocument, Finding, Form, ImportOptions, Severity, check_manifest, import, locate, yaml};
use insta::assert_snapshot;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;
use std::fmt::Write;
use yaml::{MAX_BYTES, MAX_DEPTH, MAX_DOCUMENTS, MAX_NODES};

fn shown(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |mut shown, finding| {
        writeln!(shown, "{finding}").unwrap();
        if let Some(hint) = &finding.hint {
            writeln!(shown, "    help: {hint}").unwrap();
        }
        shown
    })
}

/// Returns the findings of an input in any format.
fn findings(bytes: &[u8]) -> Vec<Finding> {
    let read = yaml::read(bytes);
    let mut findings = read.findings;
    for document in &read.documents {
        findings.extend(match document.form() {
            Form::Dialect => import(document, &ImportOptions::default()).findings,
            Form::Manifest | Form::Foreign => check_manifest(document).findings,
        });
    }
    findings
}

fn errors(text: &str) -> Vec<String> {
    let errors = findings(text.as_bytes()).into_iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.to_string()).collect()
}

fn checked(text: &str) -> CheckedDocument {
    check_manifest(&yaml::read(text.as_bytes()).documents[0])
}

#[test]
fn every_fault_of_a_dialect_file_at_once() {
    assert_snapshot!(shown(&findings(
        br#"id: 1st skill
name: 42
problem:
  statements: Help customers
  goals: Reduce response time
mcp_server: "ftp://host/x"
intents:
  supported:
    - id: refund
      entities:
        - name: order_id
          type: str
          required: "yes"
    - id: refund
  out_of_domain:
    action: reject
    messages: No
tools:
  - name: process_refund
    output: {type: object}
    policy:
      allowed: sometimes
      requires_approvals: always
  - process_refund
policy:
  guardrail: []
  guardrails:
    - Never use deleteFile
    - Do not shout
    - 7
  approvals:
    - when: amount > 500
      approver: The Supervisor
context: {project_structure: true}
engine:
  model: "!!"
  temperature: 3
  limits: {steps: 0, duration: 10 minutes}
  finalization_gate: {max_retries: "2", maxRetries: 1}
"#
    )));
}

#[test]
fn a_duration_without_a_unit_is_reported_with_a_hint() {
    let skill = b"id: a\nproblem: {statement: x}\nengine: {limits: {duration: 10}}\n";
    let shown = shown(&findings(skill));
    for says in ["must be a duration such as 30s, 10m or 1h30m, and is the number 10", "write 10s if seconds are meant"]
    {
        assert!(shown.contains(says), "{shown}");
    }
}

#[test]
fn every_fault_of_a_manifest_at_once() {
    assert_snapshot!(shown(&findings(
        br#"apiVersion: bloomery.dev/v1
kind: Skill
metadata: {name: CS-Tier-1, namespace: acme}
specs: {}
spec:
  displayName: yes
  version: 1.5
  problem: {}
  mcp_server: {}
  mcpServer:
    container: {image: x, port: 99999, path: mcp, resources: {limits: {memory: lots}}}
  tools:
    - {name: a, readOnly: yes}
    - {name: a}
  policy:
    tools: {allowed: ["a*b", "a*b"]}
  outputContract: {schema: [1]}
status: {}
"#
    )));
}

#[test]
fn an_unknown_field_is_reported_with_the_nearest_known_one() {
    let found = findings(
        b"apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: z, nmae: q, labls: {a: b}, labels: {a: b}, annotations: {c: d}, generation: 2, uid: u}
spec: {problem: {statement: a}}
statsu: {}
",
    );
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "3:21: error: metadata.nmae: there is no such field (did you mean \"name\"?)",
            "3:30: error: metadata.labls: there is no such field (did you mean \"labels\"?)",
            "5:1: error: statsu: there is no such field (did you mean \"status\"?)",
        ]
    );
}

#[test]
fn the_known_fields_are_always_listed() {
    let found = findings(
        b"apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: z}
spec: {problem: {statement: a, xyzzy: 1, statements: b}}
",
    );
    let reported: Vec<_> = found.iter().map(|finding| (finding.message.as_str(), finding.hint.as_deref())).collect();
    let known = Some("known here: goals, statement");
    let near = "there is no such field (did you mean \"statement\"?)";
    assert_eq!(reported, [("there is no such field", known), (near, known)]);
}

#[rstest]
#[case::alias("a: &x [1]\nb: *x\n", "2:4: error: b: aliases are not supported: a few of them can expand to gigabytes")]
#[case::unknown_alias("b: *x\n", "1:4: error: b: aliases are not supported: a few of them can expand to gigabytes")]
#[case::tag("a: !!binary aGk=\n", "1:13: error: a: the tag \"!!binary\" is not supported")]
#[case::own_tag("a: !Ref {b: 1}\n", "1:9: error: a: the tag \"!Ref\" is not supported")]
#[case::double("a: 1\nb: 2\na: 3\n", "3:1: error: a: the key is in the map twice, first on line 1")]
#[case::key_of_a_list("[a, b]: 1\n", "1:1: error: a key must be text, and this is a list")]
#[case::infinity("a: [.inf]\n", "1:5: error: a[0]: infinity and not-a-number do not exist in JSON")]
fn unsupported_parts_of_yaml_are_reported(#[case] text: &str, #[case] expected: &str) {
    let found: Vec<String> = yaml::read(text.as_bytes()).findings.iter().map(ToString::to_string).collect();
    assert_eq!(found, [expected]);
}

#[test]
fn a_document_with_a_duplicate_key_is_checked_but_not_used() {
    let text = "id: x\nproblem: {statement: a}\nproblem: {statement: b}\nengines: {}\n";
    let read = yaml::read(text.as_bytes());
    assert_eq!(read.findings.len(), 1);
    let imported = import(&read.documents[0], &ImportOptions::default());
    assert!(imported.skill.is_none());
    assert!(shown(&imported.findings).contains("there is no such field (did you mean \"engine\"?)"));
}

#[test]
fn nested_aliases_are_refused() {
    let mut bomb = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..30 {
        writeln!(bomb, "a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]", level - 1)
            .unwrap();
    }
    assert_eq!(yaml::read(bomb.as_bytes()).findings.len(), 29 * 8);
}

#[rstest]
#[case::flow("[".repeat(100_000))]
#[case::flow_maps("{a: ".repeat(50_000))]
#[case::block((0..2_000).map(|depth| " ".repeat(depth) + "a:\n").collect())]
#[case::lists("- ".repeat(100_000))]
#[case::just_too_deep(format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1)))]
fn deep_nesting_is_refused(#[case] text: String) {
    let read = yaml::read(text.as_bytes());
    assert_eq!(read.documents.len(), 0);
    assert_eq!(read.findings.len(), 1, "{}", shown(&read.findings));
}

#[test]
fn the_deepest_allowed_nesting_is_read() {
    let text = format!("{}a{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(yaml::read(text.as_bytes()).findings, []);
}

#[test]
fn too_large_inputs_are_refused() {
    let large = "a".repeat(MAX_BYTES + 1);
    assert_eq!(
        yaml::read(large.as_bytes()).findings[0].message,
        "the input is larger than 1 MiB, the largest allowed size"
    );
    let many = "- 1\n".repeat(MAX_NODES + 1);
    let read = yaml::read(many.as_bytes());
    assert_eq!((read.documents.len(), read.findings.len()), (0, 1));
    let many_documents = "--- {}\n".repeat(MAX_DOCUMENTS + 1);
    let read = yaml::read(many_documents.as_bytes());
    assert_eq!((read.documents.len(), read.findings.len()), (MAX_DOCUMENTS, 1));
}

#[rstest]
#[case::utf8(b"id: x\nname: caf\xe9\n".as_slice(), "2:10: error: the byte 0xE9 is not UTF-8")]
#[case::utf16(b"\xff\xfei\0d\0".as_slice(), "1:1: error: the input is UTF-16")]
fn other_encodings_are_reported(#[case] bytes: &[u8], #[case] expected: &str) {
    assert_eq!(shown(&yaml::read(bytes).findings).lines().next(), Some(expected));
}

#[test]
fn tabs_are_named_with_their_place() {
    let read = yaml::read(b"problem:\n\tstatement: x\n");
    assert_snapshot!(shown(&read.findings));
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let read = yaml::read(b"id: [1\n---\nid: x\n---\n---\nb: \"open\n---\nid: z\n");
    assert_snapshot!(format!("{} documents\n{}", read.documents.len(), shown(&read.findings)));
}

#[rstest]
#[case("id: x\n", Form::Dialect)]
#[case("apiVersion: bloomery.dev/v1alpha1\n", Form::Manifest)]
#[case("kind: Skill\n", Form::Manifest)]
#[case("apiVersion: v1\nkind: ConfigMap\n", Form::Foreign)]
#[case("apiVersion: apps/v1\nkind: Deployment\n", Form::Foreign)]
#[case("- 1\n", Form::Dialect)]
fn the_format_follows_from_api_version_and_kind(#[case] text: &str, #[case] expected: Form) {
    assert_eq!(yaml::read(text.as_bytes()).documents[0].form(), expected);
}

#[test]
fn empty_fields_count_as_absent() {
    let whole =
        "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec:\n  problem: {statement: help}\n";
    let checked = checked(&format!("{whole}  role:\n  tools: ~\n"));
    assert_eq!(checked.findings, []);
    assert_eq!(checked.skill.unwrap().spec.role, None);
    assert_eq!(
        errors(&whole.replace(" {statement: help}", "")),
        ["5:3: error: spec.problem: is required, and is empty"]
    );
}

#[rstest]
#[case::service("http://mcp-host:4310/cs-tier-1", Some(("mcp-host", 4310, "/cs-tier-1")))]
#[case::default_port("http://orders", Some(("orders", 80, "/")))]
#[case::its_own_namespace("http://orders.acme.svc:81/mcp", Some(("orders", 81, "/mcp")))]
#[case::the_whole_name("http://orders.acme.svc.cluster.local/mcp", Some(("orders", 80, "/mcp")))]
#[case::no_service("http://orders.acme.pod/mcp", None)]
#[case::localhost("http://localhost:4310", None)]
#[case::loopback("http://127.0.0.1:4310", None)]
#[case::ipv6("http://[::1]:4310", None)]
#[case::outside("https://mcp.example.com/x", None)]
#[case::other_namespace("http://orders.other.svc:80/mcp", None)]
#[case::password("http://user:pw@orders/mcp", None)]
#[case::query("http://orders/mcp?key=1", None)]
#[case::scheme("stdio://orders", None)]
fn only_the_uri_of_a_service_in_the_namespace_is_imported(
    #[case] uri: &str,
    #[case] expected: Option<(&str, u16, &str)>,
) {
    let text = format!("id: x\nproblem: {{statement: y}}\nmcp_server: {uri:?}\n");
    let options = ImportOptions { namespace: Some("acme".to_owned()), ..ImportOptions::default() };
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &options);
    let found = imported.findings.iter().filter(|finding| finding.path == "mcp_server").count();
    assert_eq!(found, 1, "one finding describes the conversion");
    let server = imported.skill.unwrap().spec.mcp_server.and_then(|server| server.service);
    assert_eq!(server.as_ref().map(|service| (service.name.as_str(), service.port, service.path.as_str())), expected);
}

#[rstest]
#[case::a_path("https://mcp.example.com/x", Some("https://mcp.example.com/x"))]
#[case::a_port("https://mcp.example.com:8443", Some("https://mcp.example.com:8443/"))]
#[case::http("http://mcp.example.com/x", None)]
#[case::a_password("https://user:pw@mcp.example.com/x", None)]
#[case::a_query("https://mcp.example.com/x?key=1", None)]
#[case::an_ip_address("https://10.0.0.1/x", None)]
#[case::localhost("https://localhost/x", None)]
#[case::a_service("https://orders.acme.svc/x", None)]
fn an_https_url_outside_of_the_cluster_is_imported(#[case] uri: &str, #[case] expected: Option<&str>) {
    let text = format!("id: x\nproblem: {{statement: y}}\nmcp_server: {uri:?}\n");
    let checked = super::check(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    assert_eq!(checked.suggestions.is_empty(), expected.is_some(), "{}", checked.suggestions);
    let found = checked.findings.iter().filter(|finding| finding.path == "mcp_server").count();
    assert_eq!(found, 1, "one finding describes the conversion: {:?}", checked.findings);
    let server = checked.skill.unwrap().spec.mcp_server;
    assert_eq!(server.and_then(|server| server.uri).as_deref(), expected);
}

/// The hint contains text that can be copied into the document.
#[rstest]
#[case::localhost("http://localhost:4310/x", "write mcp_server: {service: {name: NAME, port: 4310, path: /x}} for")]
#[case::a_namespace(
    "http://orders.acme.svc/mcp",
    "give --namespace acme to `bloomery import`, or write mcp_server: {service: {name: orders, port: 80, path: /mcp}} for"
)]
#[case::http_outside(
    "http://mcp.example.com/x",
    "write mcp_server: {service: {name: NAME, port: 80, path: /x}} for a Service of the Skill's namespace, or mcp_server: \
     {container: {image: IMAGE, port: 80, path: /x}} for a server that the operator runs, or mcp_server: {uri: \
     \"https://mcp.example.com/x\"} for a server outside of the cluster"
)]
fn the_hint_about_a_rejected_uri_says_what_to_write(#[case] uri: &str, #[case] hint: &str) {
    let found = findings(format!("id: x\nproblem: {{statement: y}}\nmcp_server: {uri:?}\n").as_bytes());
    let found = found.iter().find(|finding| finding.path == "mcp_server").unwrap();
    assert!(found.hint.as_ref().unwrap().starts_with(hint), "{found:?}");
}

#[rstest]
#[case::its_name_and_persona(
    "id: x\nname: SW Dev\nrole: {persona: \"You write code.\\nBriefly.\"}\n",
    "Do the work of SW Dev. You write code."
)]
#[case::a_persona_with_resources("id: sw-dev\nrole: {persona: \"See {{resources.a}}.\"}\n", "Do the work of sw-dev")]
#[case::its_file("version: 1\n", "Do the work of orders")]
fn a_missing_problem_is_derived_with_a_warning(#[case] text: &str, #[case] statement: &str) {
    let options = ImportOptions { file: Some("02-orders".to_owned()), ..ImportOptions::default() };
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &options);
    assert_eq!(imported.skill.unwrap().spec.problem.statement, statement);
    let found = imported.findings.iter().find(|finding| finding.path == "problem").unwrap();
    assert_eq!(
        found.to_string(),
        format!("1:1: warning: problem: is missing: the Skill has the problem statement {statement:?}")
    );
    assert!(found.hint.as_ref().unwrap().contains("--problem TEXT"), "{found:?}");
}

#[test]
fn a_problem_without_a_statement_is_an_error_with_an_example() {
    let found = findings(b"id: sw-dev\nproblem: {goals: [a]}\n");
    let found = found.iter().find(|finding| finding.severity == Severity::Error).unwrap();
    assert_eq!(found.path, "problem.statement");
    assert!(found.hint.as_ref().unwrap().contains("such as statement: \"Do the work of sw-dev\""), "{found:?}");
}

#[rstest]
#[case::a_plain_name("orders", Some("orders"))]
#[case::digits_first("002_Complete Skill", Some("complete-skill"))]
#[case::no_letters("002", None)]
fn a_skill_without_an_id_has_the_name_of_its_file(#[case] file: &str, #[case] name: Option<&str>) {
    let options = ImportOptions { file: Some(file.to_owned()), ..ImportOptions::default() };
    let imported = import(&yaml::read(b"problem: {statement: y}\n").documents[0], &options);
    let found = imported.findings.iter().find(|finding| finding.path == "id").unwrap();
    assert_eq!(found.severity, if name.is_some() { Severity::Warning } else { Severity::Error });
    assert_eq!(imported.skill.and_then(|skill| skill.metadata.name).as_deref(), name);
}

/// Removes the `#` of all comments but those that explain.
fn uncommented(suggestions: &str, explanation: &str) -> String {
    let lines = suggestions.lines().filter(|line| !line.contains(explanation));
    lines.map(|line| line.replacen("# ", "", 1) + "\n").collect()
}

#[test]
fn a_provider_s_model_is_suggested_as_a_valid_model() {
    let text = "id: x\nproblem: {statement: y}\nengine: {model: claude-3-sonnet, reply_polisher: {model: \"GPT 4 \\\"mini\\\"\"}}\n";
    let options = ImportOptions { namespace: Some("acme".to_owned()), ..ImportOptions::default() };
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &options);
    let read = yaml::read(uncommented(&imported.suggestions, "The Skill needs").as_bytes());
    let models: Vec<CheckedDocument> = read.documents.iter().map(check_manifest).collect();
    assert!(models.iter().all(|model| model.findings.is_empty()), "{models:#?}");
    let field = |model: &CheckedDocument, path: &str| model.object.pointer(path).unwrap().as_str().unwrap().to_owned();
    let named = models.iter().map(|model| (field(model, "/metadata/name"), field(model, "/spec/model")));
    let expected = [("claude-3-sonnet", "claude-3-sonnet"), ("gpt-4-mini", "GPT 4 \"mini\"")];
    assert_eq!(named.collect::<Vec<_>>(), expected.map(|(name, model)| (name.to_owned(), model.to_owned())));
    assert_eq!(field(&models[0], "/spec/provider"), "anthropic");
    assert_eq!(field(&models[1], "/metadata/namespace"), "acme");
    let named = ImportOptions { model: Some("fast".to_owned()), ..ImportOptions::default() };
    let text = "id: x\nproblem: {statement: y}\nengine: {model: claude-3-sonnet}\n";
    assert_eq!(import(&yaml::read(text.as_bytes()).documents[0], &named).suggestions, "");
}

#[rstest]
#[case::localhost("http://localhost:4310/x", &["service", "container"])]
#[case::outside("http://mcp.example.com/x", &["service", "container", "uri"])]
fn a_server_that_is_not_imported_is_suggested_as_fields_of_the_spec(#[case] uri: &str, #[case] fields: &[&str]) {
    let text = format!("id: x\nproblem: {{statement: y}}\nmcp_server: {uri:?}\n");
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    let written = serde_yaml::to_string(&imported.skill.unwrap()).unwrap();
    let uncommented = uncommented(&imported.suggestions, "not imported");
    assert_eq!(uncommented.lines().count(), fields.len(), "{uncommented}");
    for field in fields {
        let chosen: Vec<&str> = uncommented.lines().filter(|line| line.contains(&format!("{{{field}:"))).collect();
        let completed = format!("{written}{}\n", chosen.join("\n").replace("NAME", "orders"));
        let checked = checked(&completed);
        assert_eq!(checked.findings, [], "{completed}");
        assert!(checked.object.pointer(&format!("/spec/mcpServer/{field}")).is_some(), "{completed}");
    }
    for password in [text.replace("://", "://user:pw@"), text.replace("http://", "ftp://user:pw@")] {
        let imported = import(&yaml::read(password.as_bytes()).documents[0], &ImportOptions::default());
        let written = format!("{:?}{}", imported.skill.unwrap(), imported.suggestions);
        assert!(!written.contains("pw"), "{written}");
    }
}

#[test]
fn a_merge_key_is_reported_as_unsupported() {
    let both = format!("base: {{}}\n<<: {{a: 1}}\n---\n{}", "kind: Skill\nspec: {<<: {a: 1}}\n");
    let found = findings(both.as_bytes());
    let hints: Vec<&str> = found.iter().filter_map(|finding| finding.hint.as_deref()).collect();
    assert_eq!(hints.iter().filter(|hint| hint.starts_with("merges (<<) are not supported")).count(), 2, "{found:?}");
}

/// A CEL rule excludes `array` and `object`, so the message does not offer them.
#[test]
fn only_allowed_values_are_offered() {
    let text = "problem: {statement: y}\nintents: {supported: [{id: a, entities: [{name: b, type: strin}]}]}\n";
    let found = errors(text);
    assert!(found.contains(&"2:58: error: intents.supported[0].entities[0].type: must be string, number, integer or boolean, and is \"strin\" (did you mean \"string\"?)".to_owned()), "{found:?}");
}

#[test]
fn an_mcp_server_may_have_the_form_of_the_api() {
    let text = "id: x\nproblem: {statement: y}\nmcp_server:\n  container:\n    image: orders:1\n    env:\n      - name: KEY\n        valueFrom: {secretKeyRef: {name: s, key: k}}\n";
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    let container = imported.skill.unwrap().spec.mcp_server.unwrap().container.unwrap();
    assert_eq!((container.image.as_str(), container.port), ("orders:1", 8080));
    assert_eq!(container.env[0].value_from.as_ref().unwrap().secret_key_ref.as_ref().unwrap().name, "s");
}

#[rstest]
#[case("cs-tier-1", Ok("cs-tier-1"))]
#[case("CS:Tier-1", Ok("cs-tier-1"))]
#[case("1st", Err("2:5: error: id: cannot become the name of an object"))]
#[case("客服", Err("2:5: error: id: cannot become the name of an object"))]
#[case("a-name-that-is-far-too-long-to-be-a-name-of-an-object-of-ours", Err("2:5: error: id: cannot become"))]
fn an_id_becomes_a_name_or_is_reported(#[case] id: &str, #[case] expected: Result<&str, &str>) {
    let text = format!("problem: {{statement: y}}\nid: {id:?}\n");
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    match expected {
        Ok(name) => assert_eq!(imported.skill.unwrap().metadata.name.as_deref(), Some(name)),
        Err(message) => assert!(shown(&imported.findings).contains(message), "{}", shown(&imported.findings)),
    }
}

/// The names of lists are those of the author, so they stay as they are.
#[test]
fn the_rules_of_a_policy_are_read_in_the_dialect() {
    let text = r#"
id: bank
problem: {statement: Pay bills}
intents: {supported: [{id: pay, tools: ["send_*"]}]}
tools:
  - {name: read_page, read_only: true, sends: [url]}
  - name: send_money
    inputs: [{name: amount, type: number, minimum: 0.01, maximum: 500}, {name: to, type: string, pattern: "[A-Z]+", enum: [A]}]
  - {name: add_payee, policy: {requires_approval: always, reason: New payees}}
policy:
  effects: require_approval
  allow_unmatched: true
  lists: {own_hosts: [own.com]}
  lists_from: {known_payees: {config_map_key_ref: {name: lists, key: known_payees}}}
  approvals: [{tool_id: "send_*", when: "!(to in lists.known_payees)", action: deny, reason: Unknown}]
  limits: [{tool: send_money, sum: amount, per: skill, window: 24h, max: 5000, action: deny, reason: Too much}]
  workflows:
    - name: pay
      steps: [ask the person, the lead agrees, send_money]
      expect:
        - {step: ask the person, evidence: {tool: ask_user}}
        - {step: the lead agrees, approver: lead, reason: Check it}
        - {step: send_money, condition: "args.amount > 0"}
"#;
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    let spec = serde_json::to_value(imported.skill.unwrap().spec).unwrap();
    let expected = json!({
        "effects": "require_approval", "allowUnmatched": true, "lists": {"own_hosts": ["own.com"]},
        "listsFrom": {"known_payees": {"configMapKeyRef": {"name": "lists", "key": "known_payees"}}},
        "approvals": [
            {"toolId": "send_*", "when": "!(to in lists.known_payees)", "action": "deny", "reason": "Unknown"},
        ],
        "limits": [{
            "tool": "send_money", "sum": "amount", "per": "skill", "window": "86400s", "max": 5000, "action": "deny",
            "reason": "Too much",
        }],
        "workflows": [{"name": "pay", "steps": ["ask the person", "the lead agrees", "send_money"], "expect": [
            {"step": "ask the person", "evidence": {"tool": "ask_user"}},
            {"step": "the lead agrees", "approver": "lead", "reason": "Check it"},
            {"step": "send_money", "condition": "args.amount > 0"},
        ]}],
    });
    assert_eq!(spec["policy"], expected);
    assert_eq!(spec["intents"]["supported"][0]["tools"], json!(["send_*"]));
    assert_eq!(spec["tools"][0]["sends"], json!(["url"]));
    let inputs = json!([
        {"name": "amount", "type": "number", "minimum": 0.01, "maximum": 500},
        {"name": "to", "type": "string", "pattern": "[A-Z]+", "enum": ["A"]},
    ]);
    assert_eq!(spec["tools"][1]["inputs"], inputs);
    assert_eq!(spec["tools"][2]["policy"], json!({"requiresApproval": "always", "reason": "New payees"}));
}

#[test]
fn options_replace_values_of_the_document() {
    let options = ImportOptions {
        name: Some("mine".to_owned()),
        namespace: Some("acme".to_owned()),
        model: Some("fast".to_owned()),
        problem: Some("Mine".to_owned()),
        file: None,
        local: false,
    };
    for engine in ["", "engine:\n", "engine: {model: gpt-4.1, temperature: 0.7}\n"] {
        let text = format!("id: x\nproblem: {{statement: y}}\n{engine}");
        let skill = import(&yaml::read(text.as_bytes()).documents[0], &options).skill.unwrap();
        assert_eq!(skill.metadata.name.as_deref(), Some("mine"));
        assert_eq!(skill.metadata.namespace.as_deref(), Some("acme"));
        assert_eq!(skill.spec.engine.unwrap().model.as_deref(), Some("fast"), "{engine:?}");
        assert_eq!(skill.spec.problem.statement, "Mine");
    }
}

#[test]
fn local_mode_returns_the_address_and_derives_the_problem_from_the_name() {
    let local = |text: &str| {
        import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions { local: true, ..ImportOptions::default() })
    };
    let imported = local("id: x\nname: 'X: One'\nmcp_server: http://localhost:4310/x\n");
    assert_eq!(imported.mcp_address.as_deref(), Some("http://localhost:4310/x"));
    let spec = imported.skill.unwrap().spec;
    assert_eq!((spec.mcp_server, spec.problem.statement.as_str()), (None, "Do the work of X: One"));
    let own = local("id: x\nproblem: {statement: y}\nmcp_server: {service: {name: orders, port: 80, path: /mcp}}\n");
    assert_eq!(own.mcp_address, None);
    let spec = own.skill.unwrap().spec;
    assert_eq!((spec.mcp_server.is_some(), spec.problem.statement.as_str()), (true, "y"));
    let half = local("id: x\nproblem: {goals: [a]}\n");
    assert!(shown(&half.findings).contains("problem.statement: is required"), "{}", shown(&half.findings));
}

#[test]
fn a_path_of_the_api_is_found_in_the_dialect() {
    let text = "id: x\nproblem: {statement: y}\npolicy:\n  approvals:\n    - tool_id: refund\n      when: amount >\n";
    let imported = import(&yaml::read(text.as_bytes()).documents[0], &ImportOptions::default());
    let found = locate(&imported.root, "spec.policy.approvals[0].when");
    assert_eq!(found, (6, 13, "policy.approvals[0].when".to_owned()));
    let nearest = locate(&imported.root, "spec.policy.approvals[0].approver");
    assert_eq!(nearest, (5, 7, "policy.approvals[0]".to_owned()));
}

/// Checks that the result of an import is a manifest without findings.
fn assert_import_is_valid(text: &str) {
    for document in &yaml::read(text.as_bytes()).documents {
        if let Some(skill) = import(document, &ImportOptions::default()).skill {
            let written = serde_yaml::to_string(&skill).unwrap();
            let again = checked(&written);
            assert_eq!(again.findings, [], "{written}");
            assert_eq!(again.skill, Some(skill));
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    // Compiled once: a pattern that is itself the strategy is compiled for each value, and this one is large.
    let of_any_script = proptest::string::string_regex("\\PC{0,12}").unwrap();
    prop_oneof!["[a-z]{1,8}", "yes|on|010|1_0|0x1F|1e3|null|~|true", of_any_script, "[ -~]{0,20}", "[a-z .\n]{100,300}"]
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        findings(&bytes);
    }

    #[test]
    fn no_yaml_panics(text in "([-a-z:{}\\[\\],&*!|>%@#'\"\\n\\t ]|problem:|id:|policy:\\n|  |- ){0,80}") {
        findings(text.as_bytes());
    }

    #[test]
    fn every_import_is_a_manifest_without_findings(
        statement in word(), display in word(), goals in proptest::collection::vec(word(), 0..4), steps in 0_u32..20_000,
    ) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let goals: Vec<String> = goals.iter().map(|goal| quoted(goal)).collect();
        assert_import_is_valid(&format!(
            "id: x\nname: {}\nproblem: {{statement: {}, goals: [{}]}}\nengine: {{limits: {{steps: {steps}}}}}\n",
            quoted(&display), quoted(&statement), goals.join(", "),
        ));
    }
}

/// The output of `kubectl get skills -o yaml`. The last Skill has a value that is refused.
const LIST: &str = "apiVersion: v1
items:
- apiVersion: bloomery.dev/v1alpha1
  kind: Skill
  metadata: {name: one}
  spec:
    problem: {statement: Help, extra: [x]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: texts}
- apiVersion: bloomery.dev/v1alpha1
  kind: Skill
  metadata: {name: two}
  spec: {problem: {statement: Help}}
- apiVersion: bloomery.dev/v1alpha1
  kind: Skill
  metadata: {name: three}
  spec: {problem: {statement: *help}}
kind: List
metadata: {resourceVersion: x}
";

#[test]
fn each_item_of_a_list_is_a_document_with_its_own_paths() {
    let read = yaml::read(LIST.as_bytes());
    let forms: Vec<Form> = read.documents.iter().map(crate::Document::form).collect();
    assert_eq!(forms, [Form::Manifest, Form::Foreign, Form::Manifest, Form::Manifest]);
    let checked: Vec<CheckedDocument> = read.documents.iter().map(check_manifest).collect();
    let [one, _, two, three] = &checked[..] else { panic!("{checked:?}") };
    let found: Vec<String> = one.findings.iter().map(ToString::to_string).collect();
    assert!(
        found.len() == 1 && found[0].starts_with("7:32: error: spec.problem.extra: "),
        "the path begins at the Skill: {found:?}"
    );
    assert!(two.findings.is_empty() && two.skill.is_some(), "{two:?}");
    assert!(three.skill.is_none(), "a refused value keeps only its own Skill from being used");
    assert_eq!(read.findings.len(), 1);
    assert!(read.findings[0].to_string().contains("aliases are not supported"), "{:?}", read.findings);
}

#[test]
fn a_list_without_items_and_an_object_with_items_are_no_lists() {
    assert_eq!(yaml::read(b"apiVersion: v1\nkind: List\nitems: []\n").documents.len(), 0);
    assert_eq!(yaml::read(b"apiVersion: v1\nkind: List\n").documents.len(), 1);
    assert_eq!(yaml::read(b"kind: List\nitems: [{a: 1}, {b: 2}]\n").documents.len(), 1);
}
