//! The lint of endpoints: headers and paths that no call can have.

use super::finding::Finding;
use bloomery_crds::v1alpha1::{EndpointAuth, ResourceDeclaration, SkillSpec, is_reserved_header};

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    spec.resources.iter().enumerate().flat_map(|(at, resource)| check_resource(at, resource)).collect()
}

fn check_resource(at: usize, resource: &ResourceDeclaration) -> Vec<Finding> {
    let path = format!("spec.resources[{at}]");
    let header = resource.auth.as_ref().map(EndpointAuth::header).filter(|header| is_reserved_header(header));
    let mut findings: Vec<Finding> = header
        .map(|header| {
            let message = format!("{header:?} is a header of the request itself, so every call is denied");
            Finding::error(format!("{path}.auth.header"), message)
        })
        .into_iter()
        .collect();
    for (rule_at, rule) in resource.rules.iter().flatten().enumerate() {
        let unmatched = rule.paths.iter().enumerate().filter(|(_, pattern)| !may_match(pattern));
        findings.extend(unmatched.map(|(nth, pattern)| {
            let message = format!("{pattern:?} matches no call: a path has no empty segments, . or ..");
            Finding::warning(format!("{path}.rules[{rule_at}].paths[{nth}]"), message)
        }));
    }
    findings
}

/// Returns whether a call can have a path that matches a pattern. Only the last segment of a path may be empty.
fn may_match(pattern: &str) -> bool {
    let segments: Vec<&str> = pattern.split('/').skip(1).collect();
    let last = segments.len().saturating_sub(1);
    let is_fine =
        |(at, segment): (usize, &&str)| !matches!(*segment, "." | "..") && (!segment.is_empty() || at == last);
    segments.iter().enumerate().all(is_fine)
}
