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
    let Some(goal) = options.goal.as_deref() else { return Err(Error::invalid("`options.goal` is missing")) };
    if goal.trim().is_empty() {
        return Err(Error::invalid("`options.goal` must not be empty"));
    }
    if goal.len() > MAX_GOAL_BYTES {
        return Err(Error::invalid(format!("`options.goal` has {} bytes; the limit is {MAX_GOAL_BYTES}", goal.len())));
    }
    Ok(goal.to_owned())
}
