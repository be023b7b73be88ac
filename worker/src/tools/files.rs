//! The file tools. Each call runs on a separate thread, because file systems block, except a read that the kernel answers from memory.

use super::error::Error;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{Context, ResourceType};
use bloomery_engine::core_tools::files::{APPLY_PATCH, EDIT_FILE, LIST_FILES, READ_FILE, SEARCH_FILES, WRITE_FILE};
use bloomery_engine::event::{ContextKind, ContextPart};
use bloomery_files::{Binding, Overview, OverviewKind, OverviewSelection, Secrets, Tool, Workspace};
use std::time::Duration;

/// Returns the file systems among the resources that a Job binds.
pub(super) fn workspace(resources: &[BoundResource]) -> Workspace {
    let bindings = resources.iter().filter(|bound| bound.kind == ResourceType::Filesystem).filter_map(|bound| {
        let ResourceSource::Mount { path, read_only } = &bound.source else { return None };
        Some(Binding { name: bound.name.clone(), path: path.into(), read_only: *read_only })
    });
    Workspace::new(bindings.collect())
}

/// Returns the file tool with a name.
pub(super) fn tool(name: &str) -> Option<Tool> {
    match name {
        READ_FILE => Some(Tool::Read),
        LIST_FILES => Some(Tool::List),
        SEARCH_FILES => Some(Tool::Search),
        WRITE_FILE => Some(Tool::Write),
        EDIT_FILE => Some(Tool::Edit),
        APPLY_PATCH => Some(Tool::Patch),
        _ => None,
    }
}

/// Performs a call of a file tool.
pub(super) async fn perform(
    workspace: &Workspace,
    tool: Tool,
    arguments: &str,
    secrets: Secrets,
) -> Result<String, Error> {
    let workspace = workspace.with_secrets(secrets);
    // To hand it over to another thread would take longer than the read.
    if let Some(answer) = (tool == Tool::Read).then(|| workspace.read_at_once(arguments)).flatten() {
        return Ok(answer);
    }
    let arguments = arguments.to_owned();
    let result = tokio::task::spawn_blocking(move || workspace.call(tool, &arguments)).await;
    match result {
        Ok(answer) => answer.map_err(|error| Error::Failed(error.into())),
        Err(error) => Err(Error::Indeterminate(format!("The file tool failed: {error}."))),
    }
}

/// Returns the overviews of the file systems that the Skill wants.
pub(super) async fn gather(
    workspace: &Workspace,
    wanted: &Context,
    within: Duration,
    secrets: &Secrets,
) -> Vec<ContextPart> {
    let wanted = OverviewSelection {
        structure: wanted.project_structure == Some(true),
        changes: wanted.recent_changes == Some(true),
    };
    let workspace_copy = workspace.with_secrets(secrets.clone());
    let result =
        tokio::time::timeout(within, tokio::task::spawn_blocking(move || workspace_copy.overviews(wanted))).await;
    let overviews = match result {
        Ok(Ok(overviews)) => overviews,
        Ok(Err(error)) => workspace.failed_overviews(wanted, &format!("It could not be read: {error}.")),
        Err(_) => workspace.failed_overviews(wanted, &format!("It was not read within {within:?}.")),
    };
    overviews.into_iter().map(part).collect()
}

fn part(overview: Overview) -> ContextPart {
    let kind = match overview.kind {
        OverviewKind::Structure => ContextKind::ProjectStructure,
        OverviewKind::Changes => ContextKind::RecentChanges,
    };
    let (text, fault) = match overview.text {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error.into())),
    };
    ContextPart { kind, source: overview.resource, text, fault }
}
