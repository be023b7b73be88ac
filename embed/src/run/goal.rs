//! The goal of a Job.

use crate::error::Error;
use crate::run::options::RunOptions;

/// The maximum length of a goal, in bytes, as on a cluster.
const MAX_GOAL_BYTES: usize = 8192;

/// Returns the goal of the options.
///
/// # Errors
/// If it is missing, empty or too long.
pub fn read(options: &RunOptions) -> Result<String, Error> {
    let Some(goal) = options.goal.as_deref() else { return Err(missing(options)) };
    if goal.trim().is_empty() {
        return Err(Error::invalid("`options.goal` must not be empty"));
    }
    if goal.len() > MAX_GOAL_BYTES {
        return Err(Error::invalid(format!("`options.goal` has {} bytes; the limit is {MAX_GOAL_BYTES}", goal.len())));
    }
    Ok(goal.to_owned())
}

/// Returns the error for options without a goal.
fn missing(options: &RunOptions) -> Error {
    let is_goal = |word: &String| word == "--goal" || word.starts_with("--goal=");
    Error::invalid(if options.mcp.command.iter().any(is_goal) {
        "`options.goal` is an argument of the program here, like all words after `options.mcp.command`: write `options.goal` before `options.mcp.command`, or write \
         ';' after the arguments of the program"
    } else {
        "`options.goal` is missing"
    })
}
