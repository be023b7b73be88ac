//! The full check of a document: its schema, the rules of its kind, and the lint of the engine.

use bloomery_crds::lists::{self, ConfigMaps};
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_engine::lint;
use bloomery_engine::tool::ListedTool;
use bloomery_skills::{CheckedDocument, Document, Finding, ImportOptions, Severity, check};

/// Checks a document, which is a manifest or is written in the older dialect. `tools` are those of the MCP server; they are empty if it
/// is not known. `config_maps` are those in the same file, for the lists of the policy.
pub fn check_document(
    document: &Document,
    options: &ImportOptions,
    tools: &[ListedTool],
    config_maps: &ConfigMaps,
) -> CheckedDocument {
    let mut checked = check(document, options);
    // The import has already said that the server is not imported. `bloomery run` finds the server by its own options, and the
    // tools of `--tools` are those of a server.
    let is_about_server = |finding: &Finding| matches!(finding.path.as_str(), "mcp_server" | "mcpServer");
    let knows_server = options.local || !tools.is_empty() || checked.findings.iter().any(is_about_server);
    let of_engine = engine_findings(&checked, (tools, knows_server), config_maps);
    checked.findings.extend(of_engine);
    checked
}

/// Adds the findings of the engine to a Skill of a repository. `tools` are those of the MCP server; they are empty if it is not known.
pub fn add_engine_findings(checked: &mut CheckedDocument, tools: &[ListedTool]) {
    let of_engine = engine_findings(checked, (tools, !tools.is_empty()), &ConfigMaps::new());
    checked.findings.extend(of_engine);
    checked.findings.sort_by_key(Finding::position);
}

/// Runs the engine's lint on the draft of a document. Returns the findings with their places in the document. `knows_server` says whether
/// its Jobs get an MCP server that the document need not name. Drops findings that may only be consequences of a value that could not be
/// read.
fn engine_findings(
    checked: &CheckedDocument,
    (tools, knows_server): (&[ListedTool], bool),
    config_maps: &ConfigMaps,
) -> Vec<Finding> {
    let Some(draft) = &checked.draft else { return Vec::new() };
    let to_severity = |severity| match severity {
        lint::Severity::Error => Severity::Error,
        lint::Severity::Warning => Severity::Warning,
    };
    let listed = tools.iter().map(lint::ServerTool::from);
    let mut spec = draft.spec.clone();
    // A list that the file cannot fill has a finding of its own, or its ConfigMap is in the cluster.
    let _ = lists::resolve(&mut spec, config_maps);
    let mut findings = lint::skill(&spec, listed);
    if !knows_server {
        findings.extend(lint::without_server(&spec));
    }
    let findings = findings.into_iter().map(|finding| {
        let path = as_written(finding.path, &draft.spec);
        lint::Finding { path, ..finding }
    });
    let findings = findings.filter(|finding| !draft.is_doubtful(&finding.path));
    let placed = findings.map(|lint::Finding { severity, path, message, hint }| Finding {
        hint,
        ..Finding::at_api_path(&draft.root, &path, to_severity(severity), message)
    });
    placed.collect()
}

/// Returns the path of a text of a list, which may come from a ConfigMap, as the path of the field in the Skill.
fn as_written(path: String, spec: &SkillSpec) -> String {
    let Some(list) = path.strip_prefix("spec.policy.lists.").and_then(|rest| rest.split('[').next()) else {
        return path;
    };
    let is_from_config_map = spec.policy.as_ref().is_some_and(|policy| policy.lists_from.contains_key(list));
    if is_from_config_map { format!("spec.policy.listsFrom.{list}") } else { path }
}
