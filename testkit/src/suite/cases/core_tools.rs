//! The tools that the worker provides.

use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::json;

use crate::json::typed;
use crate::orders::terms;
use crate::script::{Turn, call, conversation, say};
use crate::skills::refunds;
use crate::suite::{Case, FOLDER, LEDGER};

/// Two Jobs bind the same folder. The first writes a file. The second has the file in its prompt, searches it and
/// changes it. Calls outside of the folder and in `.git` are refused.
pub fn files_are_written_read_and_changed_in_what_is_bound_only() -> Case {
    let write = [
        call(
            "write_file",
            json!({"path": "notes/today.md", "content": "one\ntwo\nthree\n", "createDirectories": true}),
        )
        .offered(&["read_file", "list_files", "search_files", "write_file", "edit_file", "apply_patch"]),
        call("read_file", json!({"path": "../../etc/passwd"})).after_result("a new file of 14 bytes"),
        call("write_file", json!({"path": ".git/hooks/post-checkout", "content": "#!/bin/sh"}))
            .after_result("contains `..`"),
        say("It is written.").after_result("in a directory of version control"),
    ];
    let patch = "--- notes/today.md\n+++ notes/today.md\n@@ -1,3 +1,3 @@\n one\n-2\n+second\n three\n";
    let change = [
        call("search_files", json!({"pattern": "^tw[o]$"})),
        call("edit_file", json!({"path": "notes/today.md", "oldText": "two", "newText": "2"})).after_result("2: two"),
        call("apply_patch", json!({"patch": patch})).after_result("at line 2"),
        call("list_files", json!({"depth": 3})).after_result("notes/today.md"),
        call("read_file", json!({"path": "notes/today.md", "line": 2, "lines": 1})).after_result("today.md"),
        say("It is changed.").after_result("second"),
    ];
    let mut case = Case::new(coding(), "Write it down", conversation("Write it down", write));
    case.conversations.push(conversation("Change it", change).expect_system("notes/"));
    case.goals.push("Change it");
    case.has_orders = false;
    case
}

/// Returns a Skill that binds a folder.
fn coding() -> SkillSpec {
    typed(json!({
        "problem": {"statement": "Keep notes"},
        "resources": [{"name": FOLDER, "type": "filesystem", "required": true}],
        "context": {"projectStructure": true},
    }))
}

/// The worker makes the requests that the Skill's rules allow. It denies the others, and the model continues.
pub fn an_endpoint_is_called_by_its_rules() -> Case {
    let skill: SkillSpec = typed(json!({
        "problem": {"statement": "Keep the ledger"},
        "resources": [{"name": LEDGER, "type": "api_endpoint", "required": true, "rules": [
            {"methods": ["GET"], "paths": ["/effects/**"]}, {"methods": ["POST"], "paths": ["/effects"]},
        ]}],
    }));
    let effect = json!({"callKey": "by-hand", "tool": "http_request", "order": "A-17", "amount": 5});
    let turns = [
        call("http_get", json!({"path": "/effects/summary"})).offered(&["http_get", "http_request"]),
        call("http_request", json!({"method": "POST", "path": "/effects", "json": effect})).after_result("HTTP 200 OK"),
        call("http_request", json!({"method": "POST", "path": "/holds/A-17/release"})).after_result("HTTP 200 OK"),
        call("http_get", json!({"path": "/effects/%2e%2e/healthz"})).after_result("allow no POST of /holds"),
        say("It is in the ledger.").after_result("not"),
    ];
    let mut case = Case::new(skill, "Note A-17", conversation("A-17", turns));
    case.has_orders = false;
    case
}

/// A Job writes a note to the memory bank. The prompt of the Skill's next Job contains the note.
pub fn what_one_job_notes_the_next_begins_with() -> Case {
    let skill: SkillSpec = typed(json!({"problem": {"statement": "Remember"}, "memory": {"bank": "write"}}));
    let note = |content: &str, expect: &str| {
        call("memory_write", json!({"file": "activeContext.md", "content": content, "expect": expect}))
    };
    let first = [
        note("Ada likes mornings.", "none").offered(&["memory_read", "memory_write"]),
        note("Ada likes evenings.", "none").after_result("Wrote"),
        say("Noted.").after_result("Failed"),
    ];
    let second = [
        call("memory_read", json!({"file": "activeContext.md"})),
        say("She likes mornings.").after_result("Ada likes mornings."),
    ];
    let mut case = Case::new(skill, "Note it", conversation("Note it", first));
    case.conversations.push(conversation("What does Ada like?", second).expect_system("Ada likes mornings."));
    case.goals.push("What does Ada like?");
    case.has_orders = false;
    case
}

/// A result that is too long for the prompt is offloaded. The model sees its beginning, and reads the rest with `focus_read`.
pub fn a_large_result_is_put_aside_and_read_on() -> Case {
    let eligibility =
        json!({"order_id": "TERMS-17", "eligible": false, "reason": terms(), "amount": 49.9, "currency": "EUR"});
    let handle = Digest::of_bytes(eligibility.to_string().as_bytes());
    let read = |offset: u64| call("focus_read", json!({"handle": handle, "offset": offset}));
    let turns = [
        call("check_eligibility", json!({"order_id": "TERMS-17"})),
        read(1024).after_result("Read more with focus_read"),
        read(22_000).after_result("clause 100 of the terms"),
        read(1_000_000).after_result("clause 600 of the terms"),
        Turn::answer("TERMS-17").after_result("so offset 1000000 is behind its end"),
    ];
    Case::new(refunds(), "Refund order TERMS-17", conversation("TERMS-17", turns))
}
