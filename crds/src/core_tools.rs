//! The tools that the engine performs itself, by name, and the names of tools in a Skill that has no MCP server
//! (`docs/explanation/tools.md`).

use crate::fault::Fault;
use crate::named_tools::{Place, named_tools};
use crate::nearest::{is_near, nearest_prefix, suggestion};
use crate::scripts;
use crate::tool_pattern::matches;
use crate::v1alpha1::SkillSpec;

/// Reads a part of a file.
pub const READ_FILE: &str = "read_file";

/// Lists the entries of a directory.
pub const LIST_FILES: &str = "list_files";

/// Finds lines in files.
pub const SEARCH_FILES: &str = "search_files";

/// Writes a whole file.
pub const WRITE_FILE: &str = "write_file";

/// Replaces a text in a file.
pub const EDIT_FILE: &str = "edit_file";

/// Applies a unified diff.
pub const APPLY_PATCH: &str = "apply_patch";

/// Reads more of an offloaded result.
pub const FOCUS_READ: &str = "focus_read";

/// Reads from an API.
pub const HTTP_GET: &str = "http_get";

/// Calls an API with a method that may change something.
pub const HTTP_REQUEST: &str = "http_request";

/// Reads a note.
pub const MEMORY_READ: &str = "memory_read";

/// Replaces a note.
pub const MEMORY_WRITE: &str = "memory_write";

/// Asks people a question. The answer is the result of the call.
pub const ASK_USER: &str = "ask_user";

/// Reads a section of the documentation.
pub const SKILL_DOC: &str = "skill_doc";

/// Reads a feature, which the agent then applies.
pub const APPLY_FEATURE: &str = "apply_feature";

/// Lists Skills, and invokes one in a child Job.
pub const USE_SKILL: &str = "use_skill";

/// Closes a workflow step that is not a tool.
pub const SUBGOAL_DONE: &str = "subgoal_done";

/// The core tools for files.
pub const FILES: [&str; 6] = [READ_FILE, LIST_FILES, SEARCH_FILES, WRITE_FILE, EDIT_FILE, APPLY_PATCH];

/// The core tools for APIs.
pub const HTTP: [&str; 2] = [HTTP_GET, HTTP_REQUEST];

/// All core tools, including those for resources that a Job does not bind.
pub const NAMES: [&str; 16] = [
    SUBGOAL_DONE,
    FOCUS_READ,
    ASK_USER,
    USE_SKILL,
    READ_FILE,
    LIST_FILES,
    SEARCH_FILES,
    WRITE_FILE,
    EDIT_FILE,
    APPLY_PATCH,
    HTTP_GET,
    HTTP_REQUEST,
    MEMORY_READ,
    MEMORY_WRITE,
    SKILL_DOC,
    APPLY_FEATURE,
];

/// Returns the tools that a Skill declares, allows or holds and that only an MCP server can have, without duplicates.
pub fn server_tools(spec: &SkillSpec) -> Vec<&str> {
    let is_used = |place: &Place<'_>| matches!(place, Place::Declaration(_) | Place::Approval | Place::Allowed(_));
    let mut tools = Vec::new();
    for named in named_tools(spec).filter(|named| is_used(&named.place) && !is_core_or_script(spec, named.name)) {
        if !tools.contains(&named.name) {
            tools.push(named.name);
        }
    }
    tools
}

/// Returns the names in a Skill without an MCP server that match no tool and are probably typing errors of a core tool or a script: a
/// rule with such a name protects nothing. Other names are those of a server that the Skill may get later.
pub fn misspelt(spec: &SkillSpec) -> Vec<Fault> {
    if spec.mcp_server.is_some() || spec.allows_unmatched() {
        return Vec::new();
    }
    let scripts = scripts::tools_of(spec);
    let known = || NAMES.into_iter().chain(scripts.keys().map(String::as_str));
    let near = |name: &str| match name.strip_suffix('*') {
        Some(prefix) => nearest_prefix(prefix, known()).map(|near| format!("{near}*")),
        None => known().find(|tool| is_near(name, tool)).map(str::to_owned),
    };
    // A step need not be a tool, and may be a sentence.
    let is_name = |place: &Place<'_>, name: &str| *place != Place::Step || name.contains(['_', '*']);
    let named = named_tools(spec).filter(|named| is_name(&named.place, named.name));
    let unmatched = named.filter(|named| !is_core_or_script(spec, named.name));
    let fault = |near: String, path: String, name: &str| Fault {
        path,
        message: format!(
            "no tool matches {name:?}, and the Skill has no mcpServer that could offer one{}",
            suggestion(Some(&near))
        ),
    };
    unmatched.filter_map(|named| Some(fault(near(named.name)?, named.path, named.name))).collect()
}

/// Returns whether a name of a tool, or a pattern, may stand for a core tool or for a script of a Skill.
fn is_core_or_script(spec: &SkillSpec, pattern: &str) -> bool {
    NAMES.iter().any(|tool| matches(pattern, tool)) || scripts::may_match(spec, pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn misspelt_in(fields: &Value) -> Vec<String> {
        let mut skill = json!({"problem": {"statement": "help"}});
        skill.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let faults = misspelt(&serde_json::from_value(skill).unwrap());
        faults.into_iter().map(|Fault { path, message }| format!("{path}: {message}")).collect()
    }

    fn approval(tool: &str) -> Value {
        json!({"policy": {"approvals": [{"toolId": tool}]}})
    }

    #[rstest]
    #[case::an_approval(approval("http_gett"), "spec.policy.approvals[0].toolId", "http_gett", "http_get")]
    #[case::another_style(approval("httpRequest"), "spec.policy.approvals[0].toolId", "httpRequest", "http_request")]
    #[case::a_pattern(approval("memori_*"), "spec.policy.approvals[0].toolId", "memori_*", "memory_*")]
    #[case::a_blocked_tool(
        json!({"policy": {"tools": {"blocked": ["http_*", "edit_fil"]}}}),
        "spec.policy.tools.blocked[1]", "edit_fil", "edit_file"
    )]
    #[case::an_allowed_tool(
        json!({"policy": {"tools": {"allowed": ["read_fil"]}}}), "spec.policy.tools.allowed[0]", "read_fil", "read_file"
    )]
    #[case::a_declared_tool(json!({"tools": [{"name": "list_file"}]}), "spec.tools[0].name", "list_file", "list_files")]
    #[case::a_step(
        json!({"policy": {"workflows": [{"name": "w", "steps": ["look", "apply_patches"]}]}}),
        "spec.policy.workflows[0].steps[1]", "apply_patches", "apply_patch"
    )]
    #[case::a_script(
        json!({"scripts": {"image": "bash", "files": {"check.sh": "true"}}, "tools": [{"name": "script_chekc"}]}),
        "spec.tools[0].name", "script_chekc", "script_check"
    )]
    fn a_misspelt_tool_of_a_skill_without_a_server_is_a_fault(
        #[case] fields: Value,
        #[case] path: &str,
        #[case] name: &str,
        #[case] near: &str,
    ) {
        let expected = format!(
            "{path}: no tool matches {name:?}, and the Skill has no mcpServer that could offer one (did you mean {near:?}?)"
        );
        assert_eq!(misspelt_in(&fields), [expected]);
    }

    #[rstest]
    #[case::a_core_tool(approval("http_get"))]
    #[case::every_tool(approval("*"))]
    #[case::a_tool_of_a_later_server(approval("process_refund"))]
    #[case::a_step_that_is_a_sentence(json!({"policy": {"workflows": [{"name": "w", "steps": ["Read file", "readfiles"]}]}}))]
    #[case::a_script_that_is_not_read_yet(
        json!({"scripts": {"image": "bash", "configMap": "checks"}, "tools": [{"name": "script_chekc"}]})
    )]
    #[case::with_a_server(json!({
        "mcpServer": {"service": {"name": "api", "port": 80}}, "policy": {"approvals": [{"toolId": "http_gett"}]},
    }))]
    #[case::on_purpose(json!({"policy": {"allowUnmatched": true, "approvals": [{"toolId": "http_gett"}]}}))]
    fn other_names_are_no_fault(#[case] fields: Value) {
        assert_eq!(misspelt_in(&fields), [""; 0]);
    }

    #[rstest]
    #[case::a_script(json!({"image": "busybox", "files": {"check.sh": "true"}}), &[])]
    #[case::not_read_yet(json!({"image": "busybox", "configMap": "checks"}), &[])]
    #[case::none(Value::Null, &["script_check"])]
    fn a_script_needs_no_server(#[case] scripts: Value, #[case] expected: &[&str]) {
        let spec = json!({"problem": {"statement": "x"}, "tools": [{"name": "script_check"}], "scripts": scripts});
        assert_eq!(server_tools(&serde_json::from_value(spec).unwrap()), expected);
    }
}
