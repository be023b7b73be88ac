use super::*;
use crate::printer::Format;
use crate::settings::AddressArgs;
use bloomery_crds::Digest;
use bloomery_crds::probe::{SkillIdentity, Subject};
use bloomery_crds::report::ServerToken;
use bloomery_crds::run::{CaFile, CaObject, KeyFile, SecretHeader, seal};
use bloomery_journal::fixture;
use bloomery_testkit::report_server::{Reply, ReportServer};
use bloomery_testkit::shop::Shop;
use serde_json::json;
use std::fs;

mod sessions;

/// The files of a probe, and its operator.
struct Files {
    dir: tempfile::TempDir,
    operator: ReportServer,
    args: ProbeArgs,
}

/// Writes the files of a probe of the server at `url`, with these rules.
async fn files(url: &str, policy: serde_json::Value) -> Files {
    files_of(url, policy, json!({"service": {"name": "orders", "port": 80}})).await
}

/// Writes the files of a probe of the server at `url`, with these rules and this `mcpServer`.
async fn files_of(url: &str, policy: serde_json::Value, server: serde_json::Value) -> Files {
    let dir = tempfile::tempdir().unwrap();
    let operator = ReportServer::start([]).await;
    let mut spec = fixture::skill();
    spec.policy = serde_json::from_value(policy).unwrap();
    spec.tools = Vec::new();
    spec.mcp_server = serde_json::from_value(server).unwrap();
    let is_external = spec.mcp_server.as_ref().is_some_and(|server| server.uri.is_some());
    let revision = seal(&Revision::new("orders", spec, Some(McpEndpoint { url: url.to_owned() }))).unwrap();
    let digest = || Digest::of_bytes(b"");
    let path = dir.path().join("secret").to_str().unwrap().to_owned();
    let file = KeyFile { path, secret: "tools".into(), key: "token".into() };
    let header = SecretHeader { name: "Authorization".into(), scheme: Some("Bearer".into()), file };
    let part = seal(&ProbePart {
        skill: SkillIdentity { namespace: "acme".into(), name: "orders".into(), uid: "u-skill".into() },
        pod: "orders-probe-1".into(),
        subject: Subject { server: digest(), rules: digest(), key: digest() },
        report: operator.probe_endpoint(),
        external_mcp: is_external.then(|| ExternalMcp { headers: vec![header], ca: None }),
    })
    .unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let args = ProbeArgs {
        revision: file("revision.json", &revision.text),
        revision_digest: revision.digest,
        part: file("part.json", &part.text),
        part_digest: part.digest,
        token: file("token", "token"),
        termination_log: dir.path().join("termination"),
        log_format: Format::Text,
        patience: 60,
        addresses: AddressArgs::default(),
    };
    Files { dir, operator, args }
}

#[tokio::test]
async fn the_tools_and_the_errors_of_rules_are_reported() {
    let shop = Shop::start(None).await;
    let policy = json!({"approvals": [
        {"toolId": "process_refnd", "action": "require_approval"},
        {"toolId": "process_refund", "when": "amounts > 500", "action": "require_approval"},
    ]});
    let probe = files(&shop.mcp_url(), policy).await;
    probe.operator.answer_next(Reply::Status(503));
    run(&probe.args, &Redactor::default()).await.unwrap();
    let reports = probe.operator.probes.lock().unwrap().clone();
    assert_eq!(reports.len(), 1);
    let names: Vec<&str> = reports[0].tools.tools.iter().map(|pin| pin.name.as_str()).collect();
    assert_eq!(names, ["check_eligibility", "process_refund", "track_order", "verify_identity"]);
    assert_eq!((reports[0].count, reports[0].pod.as_str()), (4, "orders-probe-1"));
    let errors = &reports[0].rule_errors;
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("spec.policy.approvals[0].toolId: ") && errors[0].contains("\"process_refund\""));
    assert!(errors[1].starts_with("spec.policy.approvals[1].when: ") && errors[1].contains("\"amount\""));
    assert!(!probe.dir.path().join("termination").exists());
}

#[tokio::test]
async fn a_probe_of_a_server_that_the_operator_runs_first_gets_its_token() {
    let shop = Shop::start(None).await;
    let container = json!({"container": {"image": "orders:1", "protect": true}});
    let mut probe = files_of(&shop.mcp_url(), json!({}), container).await;
    probe.args.patience = 0;
    let error = run(&probe.args, &Redactor::default()).await.unwrap_err();
    assert!(matches!(error, Error::NoToken(_)), "{error}");
    probe.args.patience = 60;
    let token = ServerToken { token: "e30.e30.signature-of-the-token".into(), valid_seconds: 540 };
    *probe.operator.server_token.lock().unwrap() = Some(token);
    let redactor = Redactor::default();
    run(&probe.args, &redactor).await.unwrap();
    assert_eq!(probe.operator.probes.lock().unwrap()[0].count, 4);
    assert_eq!(redactor.redact_text("signature-of-the-token"), "[redacted: server token]");
}

#[tokio::test]
async fn a_probe_of_a_server_without_a_bridge_goes_on_without_a_token() {
    let shop = Shop::start(None).await;
    let probe = files_of(&shop.mcp_url(), json!({}), json!({"container": {"image": "orders:1"}})).await;
    run(&probe.args, &Redactor::default()).await.unwrap();
    assert_eq!(probe.operator.probes.lock().unwrap()[0].count, 4);
}

#[tokio::test]
async fn a_server_outside_of_the_cluster_is_probed_with_its_credentials_at_an_allowed_address() {
    let shop = Shop::start(None).await;
    let mut probe = files_of(&shop.mcp_url(), json!({}), json!({"uri": "https://tools.example/mcp"})).await;
    let failure = |probe: &Files| fs::read_to_string(&probe.args.termination_log).unwrap();
    run(&probe.args, &Redactor::default()).await.unwrap_err();
    let missing = "the MCP server needs the key `token` of the Secret `tools`, which is missing or empty";
    assert!(failure(&probe).starts_with(missing), "{}", failure(&probe));

    fs::write(probe.dir.path().join("secret"), "s3cret-value\n").unwrap();
    probe.args.patience = 1;
    run(&probe.args, &Redactor::default()).await.unwrap_err();
    assert!(failure(&probe).contains("a loopback address"), "{}", failure(&probe));
    assert!(probe.operator.probes.lock().unwrap().is_empty());

    probe.args.patience = 60;
    probe.args.addresses.endpoint_range = vec!["127.0.0.0/8".parse().unwrap()];
    let redactor = Redactor::default();
    run(&probe.args, &redactor).await.unwrap();
    assert_eq!(probe.operator.probes.lock().unwrap()[0].count, 4);
    assert_eq!(redactor.redact_text("s3cret-value"), "[redacted: Authorization]");
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    fs::write(&path, "no certificate").unwrap();
    let object = CaObject::ConfigMap("corporate".into());
    let ca = CaFile { path: path.to_str().unwrap().to_owned(), object, key: "ca.crt".into() };
    let reason = check_credentials(&ExternalMcp { headers: Vec::new(), ca: Some(ca) }).unwrap_err();
    assert!(reason.contains("the key `ca.crt` of the ConfigMap `corporate`"), "{reason}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_the_termination_message() {
    let mut probe = files("http://127.0.0.1:1/mcp", json!({})).await;
    probe.args.patience = 0;
    run(&probe.args, &Redactor::default()).await.unwrap_err();
    let message = fs::read_to_string(&probe.args.termination_log).unwrap();
    assert!(message.starts_with("the tools of the MCP server http://127.0.0.1:1/mcp cannot be listed: "), "{message}");
    assert!(probe.operator.probes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_changed_part_is_refused() {
    let probe = files("http://127.0.0.1:1/mcp", json!({})).await;
    fs::write(&probe.args.part, "{}").unwrap();
    let error = run(&probe.args, &Redactor::default()).await.unwrap_err();
    assert!(matches!(error, Error::Part(run::Error::Digest { .. })), "{error}");
}
