//! The core tools for files. Tools that read need a bound file system; tools that write need a writable one.

use super::definition::{ToolEffect, core_tool, one_of};
use crate::run::Run;
use crate::tool::CatalogueTool;
pub use bloomery_crds::core_tools::{APPLY_PATCH, EDIT_FILE, LIST_FILES, READ_FILE, SEARCH_FILES, WRITE_FILE};
use bloomery_crds::run::ResourceSource;
use bloomery_crds::v1alpha1::ResourceType;
use serde_json::{Map, Value, json};

/// The depth of a listing if the call names none.
pub const DEFAULT_DEPTH: u64 = 2;

/// Returns the tools that the bound file systems allow.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    let bound_names = |writable_only: bool| -> Vec<&str> {
        let bound = run.resources.iter().filter(|resource| match &resource.source {
            ResourceSource::Mount { read_only, .. } => {
                resource.kind == ResourceType::Filesystem && !(writable_only && *read_only)
            }
            ResourceSource::Value(_) | ResourceSource::Secret(_) | ResourceSource::ForServer { .. } => false,
        });
        bound.map(|resource| resource.name.as_str()).collect()
    };
    let (readable, writable) = (bound_names(false), bound_names(true));
    let mut tools = Vec::new();
    if !readable.is_empty() {
        tools.extend([read_file(&readable), list_files(&readable), search_files(&readable)]);
    }
    if !writable.is_empty() {
        tools.extend([write_file(&writable), edit_file(&writable), apply_patch(&writable)]);
    }
    tools
}

/// Returns the schema of a tool's arguments: the resource, which is required if there are several, and the other arguments.
fn schema(resources: &[&str], required: &[&str], properties: Value) -> Value {
    let mut all = Map::from_iter([("resource".to_owned(), one_of(resources, "The bound file system."))]);
    if let Value::Object(properties) = properties {
        all.extend(properties);
    }
    let required_resource: &[&str] = if resources.len() > 1 { &["resource"] } else { &[] };
    let required = [required_resource, required].concat();
    json!({"type": "object", "required": required, "additionalProperties": false, "properties": all})
}

pub(super) fn read_file(resources: &[&str]) -> CatalogueTool {
    core_tool(
        READ_FILE,
        "Reads a text file, or a part of it. The result ends with a note in brackets: which lines it has, and how to \
         read on.",
        schema(
            resources,
            &[],
            json!({
                "path": {"type": "string", "description": "The file, relative to the resource. Omit it if the resource is a single file."},
                "line": {"type": "integer", "minimum": 1, "description": "The first line to read. Default: 1."},
                "lines": {"type": "integer", "minimum": 1, "description": "How many lines. Default: as many as one call returns."},
                "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes. Use it instead of line."},
            }),
        ),
        ToolEffect::None,
    )
}

pub(super) fn list_files(resources: &[&str]) -> CatalogueTool {
    core_tool(
        LIST_FILES,
        "Lists files and directories, level by level. Directories end in /. The content of version control \
         directories is listed only if path names one.",
        schema(
            resources,
            &[],
            json!({
                "path": {"type": "string", "description": "The directory, relative to the resource. Default: the resource itself."},
                "depth": {"type": "integer", "minimum": 1, "maximum": 32, "description": format!("How many levels. Default {DEFAULT_DEPTH}.")},
                "glob": {"type": "string", "maxLength": 256, "description": GLOB},
                "exclude": {"type": "string", "maxLength": 256, "description": "What to leave out, with everything below it, as a glob."},
                "after": {"type": "string", "description": "Continues after this path: the last one of the previous call."},
            }),
        ),
        ToolEffect::None,
    )
}

pub(super) fn search_files(resources: &[&str]) -> CatalogueTool {
    core_tool(
        SEARCH_FILES,
        "Finds the lines of text files that match. Version control files are searched only if path names them.",
        schema(
            resources,
            &["pattern"],
            json!({
                "pattern": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "A regular expression, matched line by line: no look-around, no back-references."},
                "literal": {"type": "boolean", "description": "True if the pattern is a literal text."},
                "ignoreCase": {"type": "boolean", "description": "True to ignore case."},
                "path": {"type": "string", "description": "A directory or a file, relative to the resource. Default: the whole resource."},
                "glob": {"type": "string", "maxLength": 256, "description": GLOB},
                "exclude": {"type": "string", "maxLength": 256, "description": "What to leave out, with everything below it, as a glob."},
                "context": {"type": "integer", "minimum": 0, "maximum": 5, "description": "How many lines of context around each match. Default: 0."},
                "after": {"type": "string", "description": "Continues after this file: the last one of the previous call."},
            }),
        ),
        ToolEffect::None,
    )
}

pub(super) fn write_file(resources: &[&str]) -> CatalogueTool {
    core_tool(
        WRITE_FILE,
        "Writes a whole file: creates it, or replaces its content.",
        schema(
            resources,
            &["content"],
            json!({
                "path": {"type": "string", "description": "The file, relative to the resource. Omit it if the resource is a single file."},
                "content": {"type": "string", "description": "All of the file."},
                "createDirectories": {"type": "boolean", "description": "True to create missing directories."},
            }),
        ),
        ToolEffect::Idempotent,
    )
}

pub(super) fn edit_file(resources: &[&str]) -> CatalogueTool {
    core_tool(
        EDIT_FILE,
        "Replaces a text that occurs exactly once in a file. Include enough surrounding lines to make it unique.",
        schema(
            resources,
            &["oldText", "newText"],
            json!({
                "path": {"type": "string", "description": "The file, relative to the resource. Omit it if the resource is a single file."},
                "oldText": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as in the file."},
                "newText": {"type": "string", "description": "The new text."},
            }),
        ),
        ToolEffect::Repeated,
    )
}

pub(super) fn apply_patch(resources: &[&str]) -> CatalogueTool {
    core_tool(
        APPLY_PATCH,
        "Applies a unified diff of one or several files, completely or not at all. --- /dev/null creates a file, +++ \
         /dev/null removes one. Context lines and removed lines must match the file exactly.",
        schema(
            resources,
            &["patch"],
            json!({
                "patch": {"type": "string", "minLength": 1, "description": "The diff, its paths relative to the resource, with or without a/ and b/."},
            }),
        ),
        ToolEffect::Repeated,
    )
}

/// The description of the argument `glob`.
const GLOB: &str = "Only matching files: * and ? within a name, ** across directories, {a,b}, [a-z]. Without a / it \
    matches names, otherwise paths relative to the searched directory.";
