//! Finds limits that hold or deny every call, or that apply to no call.

use super::finding::Finding;
use super::known_tools::KnownTools;
use crate::amount::Amount;
use crate::condition::{Kinds, Signature};
use crate::core_tools;
use bloomery_crds::v1alpha1::{CallLimit, SkillSpec, whole_seconds};

/// The longest window, in hours. The API server refuses longer ones.
const MAX_WINDOW_HOURS: u64 = 744;

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let limits = spec.policy.iter().flat_map(|policy| &policy.limits).enumerate();
    let of_limit = |(at, limit): (usize, &CallLimit)| check(&format!("spec.policy.limits[{at}]"), limit, known);
    limits.flat_map(of_limit).collect()
}

fn check(path: &str, limit: &CallLimit, known: &KnownTools) -> Vec<Finding> {
    let tools: Vec<(&str, &Signature)> = known.matching(&limit.tool).collect();
    let mut findings = Vec::new();
    if !tools.is_empty() && tools.iter().all(|(tool, _)| core_tools::acts_on_conversation(tool)) {
        let message = format!("limits do not apply to {}", limit.tool);
        findings.push(Finding::error(format!("{path}.tool"), message).hint("they act only on the conversation"));
    }
    if Amount::of_number(&limit.max).is_none() {
        let message = "must be a number of at least 0, with at most 18 decimals";
        findings.push(Finding::error(format!("{path}.max"), message));
    }
    if limit.window.as_ref().is_some_and(|window| whole_seconds(window) > MAX_WINDOW_HOURS * 3600) {
        let message = format!("must be at most {MAX_WINDOW_HOURS}h");
        findings.push(Finding::error(format!("{path}.window"), message));
    }
    if let Some(argument) = &limit.sum {
        let limited = tools.into_iter().filter(|(tool, _)| !core_tools::acts_on_conversation(tool)).collect::<Vec<_>>();
        findings.extend(check_argument(&format!("{path}.sum"), argument, &limit.tool, &limited, known));
    }
    findings
}

/// Finds tools whose calls have no number in the argument that a limit adds.
fn check_argument(
    path: &str,
    argument: &str,
    pattern: &str,
    tools: &[(&str, &Signature)],
    known: &KnownTools,
) -> Vec<Finding> {
    let (with, without): (Vec<_>, Vec<_>) = tools.iter().partition(|(_, signature)| signature.may_have(argument));
    if with.is_empty() && !tools.is_empty() {
        let names = tools.iter().flat_map(|(_, signature)| signature.names());
        let finding = if known.is_complete() {
            Finding::error(path, format!("no tool that {pattern:?} matches has an argument {argument:?}"))
        } else {
            let message =
                format!("{pattern} declares no input {argument:?}: if the MCP server lists none either, no Job begins");
            Finding::warning(path, message)
        };
        return vec![finding.nearest(argument, names)];
    }
    let of_other_type = with.iter().filter_map(|(tool, signature)| {
        let kinds = signature.kinds(argument).filter(|kinds| !kinds.may_be(Kinds::NUMBER))?;
        let message = format!("{tool} has {argument} as {kinds}, so every call is beyond the limit");
        Some(Finding::error(path, message))
    });
    // Without the server's list, the core tools are those that an author does not think of.
    let lacking = without.first().filter(|_| known.is_complete()).map(|(tool, _)| {
        let message = format!("{tool} has no argument {argument:?}, so every call of it is beyond the limit");
        Finding::warning(path, message).hint("name only tools that have the argument")
    });
    of_other_type.chain(lacking).collect()
}
