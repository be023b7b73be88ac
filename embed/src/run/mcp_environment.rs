//! The environment of an MCP server that is a program: the variables that every program needs, and the variables of `options.mcp.env`.

use crate::error::Error;
use crate::local::run_document::McpProgram;
use crate::text;
use bloomery_redact::{MAX_VALUE_BYTES, Redactor};
use std::collections::BTreeMap;
use std::env;

/// The variables that every program inherits, as in the SDKs of MCP. None of them contains a secret.
const INHERITED: [&str; 10] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Returns the environment of a program. Skips variables that are not set or not valid UTF-8; [`check`] reports them.
pub fn environment(program: &McpProgram) -> BTreeMap<String, String> {
    let names = INHERITED.iter().copied().chain(program.env.iter().map(String::as_str));
    names.filter_map(|name| Some((name.to_owned(), env::var(name).ok()?))).collect()
}

/// Checks that all variables of `options.mcp.env` can be passed.
///
/// # Errors
/// All variables that cannot be passed, at once. The errors do not contain values.
pub fn check(program: &McpProgram) -> Result<(), Error> {
    let faults: Vec<Error> = program.env.iter().filter_map(|name| fault(name)).map(Error::invalid).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::join(faults)) }
}

/// Makes `redactor` remove the values of `options.mcp.env` from all texts, because programs get credentials this way. Inherited
/// variables are not secret.
pub fn redact_values(program: &McpProgram, redactor: &Redactor) {
    for (name, value) in values(program) {
        redactor.learn(name, value.as_bytes());
    }
}

/// Returns the variables of `options.mcp.env` that are not inherited, with their values.
pub fn values(program: &McpProgram) -> impl Iterator<Item = (&str, String)> {
    let names = program.env.iter().map(String::as_str).filter(|name| !INHERITED.contains(name));
    names.filter_map(|name| Some((name, env::var(name).ok()?)))
}

/// Returns why a variable cannot be passed.
fn fault(name: &str) -> Option<String> {
    if let Some((name, _)) = name.split_once('=') {
        let shown = text::sanitized_line(name);
        return Some(format!(
            "`options.mcp.env` {shown}=...: give the name of a variable without a value, because the value would be stored in clear \
             text: set {shown} in the environment, and use `options.mcp.env` {shown}"
        ));
    }
    let shown = text::sanitized_line(name);
    match env::var(name) {
        Ok(value) if value.len() > MAX_VALUE_BYTES => Some(format!(
            "`options.mcp.env` {shown}: its value has more than {MAX_VALUE_BYTES} bytes, which is too long to be redacted: write it to a \
             file, and pass its path"
        )),
        Ok(_) => None,
        Err(env::VarError::NotPresent) => {
            Some(format!("`options.mcp.env` {shown}: the environment has no such variable: set and export it"))
        }
        Err(env::VarError::NotUnicode(_)) => Some(format!("`options.mcp.env` {shown}: its value is not valid UTF-8")),
    }
}
