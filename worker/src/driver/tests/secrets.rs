//! No secret is in anything that a run stores, prints, reports or sends to a model (`docs/explanation/design.md`, invariant 9). The test
//! puts secrets into every text that comes from outside, and searches everything that the run leaves.

use super::*;
use crate::fixture::stand::Printed;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{GateReason, ResourceType, Verdict};
use bloomery_engine::event::{RulingReason, ToolProgress};
use bloomery_redact::Redactor;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const KEY: &str = "sk-model-0123456789";
const CREDENTIAL: &str = "p\"ss/w\\rd ä+1";
const ROTATED: &str = "the-next-password";
const TOKEN: &str = "eyJhbGciOi.report.token";

/// Returns the forms of a secret that must not appear: unchanged, in JSON, in JSON within JSON, and in a URL.
fn forms(secret: &str) -> Vec<String> {
    let json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    let url = secret.bytes().fold(String::new(), |url, byte| url + &format!("%{byte:02X}"));
    let minimal_url = secret.replace('"', "%22").replace('/', "%2F").replace('\\', "%5C").replace('ä', "%C3%A4");
    let once = json(secret);
    vec![secret.to_owned(), json(&once), once, url, minimal_url.replace('+', "%2B").replace(' ', "+")]
}

/// The model key in base64 (`printf '%s' "$before$secret$after" | base64`), and the base64 digits of the key that must not appear.
const ENCODED: [(&str, &str); 3] = [
    ("c2stbW9kZWwtMDEyMzQ1Njc4OQ==", "c2stbW9kZWwtMDEyMzQ1Njc4"),
    ("dXNlcjpzay1tb2RlbC0wMTIzNDU2Nzg5Cg==", "zay1tb2RlbC0wMTIzNDU2Nzg5"),
    ("YTpzay1tb2RlbC0wMTIzNDU2Nzg5Og==", "zay1tb2RlbC0wMTIzNDU2Nzg5"),
];

/// Tools whose answers contain secrets. They record their calls.
struct Leaky {
    credential: PathBuf,
    calls: Mutex<Vec<String>>,
}

impl Tools for Leaky {
    async fn list(&self, _within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let tool = |name: &str| ListedTool {
            name: name.into(),
            description: format!("The tool {name} uses {KEY}"),
            input_schema: json!({ "type": "object", "description": CREDENTIAL }),
            ..ListedTool::default()
        };
        Ok(["lookup", "verify", "refund", "notify"].map(tool).into())
    }

    async fn call(&self, call: &ToolCall<'_>, _within: Duration, listener: &dyn Fn(ToolProgress)) -> FinishedCall {
        self.calls.lock().unwrap().push(format!("{} {}", call.tool, call.arguments));
        let id = call.id.clone();
        let outcome = match call.tool {
            "lookup" => Event::ToolCompleted { call: id, text: planted() },
            // This answer is too large for the history, so it is stored in the focus cache.
            "verify" => Event::ToolCompleted { call: id, text: format!("{}{}", planted(), "x".repeat(20_000)) },
            "refund" => {
                // The kubelet replaces the credential while the call runs.
                let next = self.credential.with_extension("next");
                fs::write(&next, ROTATED).unwrap();
                fs::rename(&next, &self.credential).unwrap();
                Event::ToolFailed { call: id, text: format!("{ROTATED} is no {CREDENTIAL}") }
            }
            _ => Event::ToolIndeterminate { call: id, text: format!("lost after {ROTATED}, {}", planted()) },
        };
        listener(ToolProgress { message: Some(planted()), ..ToolProgress::default() });
        outcome.into()
    }
}

/// Returns a text with every form of every secret.
fn planted() -> String {
    let plain = [KEY, CREDENTIAL, TOKEN].into_iter().flat_map(forms);
    plain.chain(ENCODED.map(|(text, _)| text.to_owned())).collect::<Vec<_>>().join(" | ")
}

/// Returns the path and the text of each file below a directory.
fn files_in(dir: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_in(&entry.path()));
        } else {
            let content = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            files.push((entry.path().display().to_string(), content));
        }
    }
    files
}

fn secret_file(stand: &Stand, name: &str, value: &str) -> (PathBuf, KeyFile) {
    let path = stand.dir.path().join(name);
    fs::write(&path, value).unwrap();
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: name.into(), key: "value".into() };
    (path, file)
}

/// Writes the diagnostics of this thread to `out`, as `main` writes them to stderr.
fn log_to(stand: &Stand, out: &Printed) -> tracing::subscriber::DefaultGuard {
    let (redactor, trace, out) = (stand.redactor.clone(), stand.trace.clone(), out.clone());
    let out = move || redactor.writer(trace.tee(out.clone()));
    let lines = tracing_subscriber::fmt().with_writer(out).with_ansi(false).finish();
    tracing::subscriber::set_default(lines)
}

fn script() -> Vec<Answer> {
    vec![
        Answer::Calls(vec![("lookup", json!({ "order": "A-17" })), ("verify", json!({ "order": "A-17" }))]),
        Answer::Calls(vec![("refund", json!({ "amount": 20, "note": { "password": CREDENTIAL } }))]),
        Answer::Calls(vec![("refund", json!({ "note": "Basic dXNlcjpzay1tb2RlbC0wMTIzNDU2Nzg5" }))]),
        Answer::Calls(vec![(
            "memory_write",
            json!({ "file": "activeContext.md", "content": format!("It is {KEY}."), "expect": "none" }),
        )]),
        Answer::Calls(vec![("memory_read", json!({ "file": "progress.md" }))]),
        Answer::Calls(vec![("refund", json!({ "amount": 20 }))]),
        Answer::Calls(vec![("notify", json!({ "order": "A-17" }))]),
    ]
}

#[tokio::test]
async fn a_run_leaves_no_secret_in_any_place() {
    for format in [Format::Text, Format::Json] {
        let mut stand = Stand::new(script(), Refund::Answers).await;
        stand.format = format;
        fs::write(stand.dir.path().join("token"), TOKEN).unwrap();
        let (_, key) = secret_file(&stand, "llm", KEY);
        stand.key = Some(key);
        let (credential, source) = secret_file(&stand, "ci", CREDENTIAL);
        let bound = |name: &str, kind, source| BoundResource { name: name.into(), kind, source };
        stand.resources = vec![
            bound("password", ResourceType::Credential, ResourceSource::Secret(source)),
            bound("docs", ResourceType::ApiEndpoint, ResourceSource::Value(format!("https://docs.example/{KEY}"))),
        ];
        stand.goal = format!("Refund order A-17 with {KEY}");
        stand.redactor.watch("report token", &stand.dir.path().join("token"));
        stand.trace.open(&stand.memory(), "k-1").unwrap();
        let diagnostics = Printed::default();
        let _guard = log_to(&stand, &diagnostics);
        // Writes a note as another Job or a person does.
        stand.skill.memory = serde_json::from_value(json!({ "bank": "write" })).unwrap();
        let note = fs::create_dir(stand.memory().join("memory-bank"))
            .and_then(|()| fs::write(stand.memory().join("memory-bank/progress.md"), planted()));
        note.unwrap();
        let tools = Leaky { credential, calls: Mutex::default() };
        let exit = stand.run_on(1, Disk, Stop::default(), &tools).await.unwrap();
        assert_eq!(exit, Exit::Finished);
        assert_eq!(outcome(&stand, 1), OutcomeCode::ToolIndeterminate);
        tracing::warn!("a diagnostic of {KEY}");

        let calls = tools.calls.lock().unwrap();
        let made: Vec<&str> = calls.iter().map(|call| call.split_once(' ').unwrap().0).collect();
        assert_eq!(made, ["lookup", "verify", "refund", "notify"], "a call with a secret was made");
        let denials = denials(&stand);
        assert_eq!(denials.len(), 3);
        assert!(denials[0].contains("the value of password") && denials[1].contains("the value of default"));

        // The note with the planted secret is not searched. No other note was written.
        let mut sinks = files_in(&stand.memory());
        sinks.retain(|(path, _)| !path.ends_with("memory-bank/progress.md"));
        for sink in ["/focus-cache/", "/logs/k-1.log", "/jobs/k-1.json", "/jobs/k-1/"] {
            assert!(sinks.iter().any(|(path, text)| path.contains(sink) && !text.is_empty()), "nothing in {sink}");
        }
        assert!(!sinks.iter().any(|(path, _)| path.contains("memory-bank")), "a secret was noted");
        sinks.push(("stdout".into(), stand.printed.text()));
        let stderr = diagnostics.text();
        assert!(stderr.contains("a diagnostic of [redacted: default]"), "{stderr}");
        sinks.push(("stderr".into(), stderr));
        sinks.push(("the termination message".into(), stand.failure(1)));
        for received in stand.reports() {
            sinks.push(("a report".into(), serde_json::to_string(&received.report).unwrap()));
        }
        for request in stand.model.requests() {
            sinks.push(("a prompt".into(), request.to_string()));
        }
        for (place, text) in &sinks {
            for secret in [KEY, CREDENTIAL, ROTATED, TOKEN].into_iter().flat_map(forms) {
                assert!(!text.contains(&secret), "{secret} appears in {place}: {text}");
            }
            for (_, digits) in ENCODED {
                assert!(!text.contains(digits), "{digits} appears in {place}: {text}");
            }
        }
        assert!(sinks.iter().any(|(place, text)| place == "a prompt" && text.contains("[redacted: password]")));
    }
}

/// Returns the reasons for which the gate denied calls.
fn denials(stand: &Stand) -> Vec<String> {
    let denied = |event: Event| match event {
        Event::ToolRuled { verdict: Verdict::Deny, reasons, .. } => Some(reasons),
        _ => None,
    };
    let reasons = stand.log().into_iter().filter_map(|entry| denied(entry.event)).flatten();
    reasons.filter(|reason| reason.layer == GateReason::Secret).map(|RulingReason { detail, .. }| detail).collect()
}

#[test]
fn an_event_that_is_invalid_after_redaction_is_an_error() {
    let redactor = Redactor::default();
    redactor.learn("odd", b"Succeeded");
    let done = Event::Finished { outcome: Outcome::new(OutcomeCode::Succeeded, "Done."), result: None };
    assert!(redactor.redact_event(done).is_err());
}
