//! The file of `bloomery policy test` (`docs/how-to/write-a-skill.md`).

use crate::error::Error;
use crate::source;
use bloomery_skills::yaml::MAX_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Cases for the rules of one Skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestFile {
    /// The Skill: a file, relative to this one, or a name as for `bloomery run --skill`.
    #[serde(default)]
    pub skill: Option<String>,
    /// The tools of the MCP server: a file with the result of `tools/list`, relative to this one, or a URL.
    #[serde(default)]
    pub tools: Option<String>,
    /// The cases. Each is a Job of its own.
    pub cases: Vec<Case>,
}

/// The calls of one Job, in their order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The goal of the Job.
    #[serde(default)]
    pub goal: String,
    /// The id of the detected intent.
    #[serde(default)]
    pub intent: Option<String>,
    /// The bound resources that are not secret: paths and URLs by name.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// The calls.
    pub calls: Vec<TestedCall>,
}

/// A call of the model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestedCall {
    /// The messages of people before the call.
    #[serde(default)]
    pub replies: Vec<String>,
    /// The tool.
    pub tool: String,
    /// The arguments. `evidence` of `subgoal_done` is the position of an earlier call in the case, from 1.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The decision of people if the call is held. By default, they deny it.
    #[serde(default)]
    pub approve: bool,
    /// The result if the call is made: a text, or a value that the server returns as JSON. Default: `ok`.
    #[serde(default)]
    pub result: Option<Value>,
    /// The error if the call is made and fails.
    #[serde(default)]
    pub failed: Option<String>,
    /// The expected verdict.
    #[serde(default)]
    pub expect: Option<CaseVerdict>,
    /// A text that the reasons must contain.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A verdict, in the spelling of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CaseVerdict {
    /// The call is made.
    Allow,
    /// The call waits for people.
    Hold,
    /// The call is denied.
    Deny,
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or is not of this form.
pub fn read(file: &Path) -> Result<TestFile, Error> {
    let name = source::name(file);
    let unusable = |why: String| Error::usage(format!("{name}: {why}"));
    let source = source::read(file).map_err(|error| unusable(format!("cannot be read: {error}")))?;
    if source.bytes.len() > MAX_BYTES {
        return Err(unusable(format!("has more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(source.bytes).map_err(|_| unusable("is not UTF-8".to_owned()))?;
    let read: TestFile = serde_yaml::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    if read.cases.iter().all(|case| case.calls.is_empty()) {
        return Err(unusable("has no call to test".to_owned()));
    }
    Ok(read)
}
