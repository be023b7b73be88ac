//! The scripts of a Skill are tools that rules can name.

use super::*;

fn with_rule_for(tool: &str, scripts: &Value) -> SkillSpec {
    let rule = json!({"toolId": tool, "action": "require_approval", "approver": "lead"});
    with(json!({"scripts": scripts, "policy": {"approvals": [rule]}}))
}

fn check() -> Value {
    json!({"image": "busybox", "files": {"check.sh": "exit 0"}})
}

#[rstest]
#[case::of_the_script("script_check", check(), true)]
#[case::misspelled("script_checks", check(), false)]
#[case::of_no_script("script_check", Value::Null, false)]
#[case::not_read_yet("script_other", json!({"image": "busybox", "configMap": "checks"}), true)]
fn a_rule_must_match_a_script_if_the_tools_of_the_server_are_known(
    #[case] tool: &str,
    #[case] scripts: Value,
    #[case] matches: bool,
) {
    let spec = with_rule_for(tool, &scripts);
    let (schema, listed) = (json!({"type": "object"}), ["process_refund", "verify_identity", "check_eligibility"]);
    let errors = rule_errors(&spec, listed.map(|name| (name, &schema)));
    let found = errors.iter().any(|finding| finding.path == "spec.policy.approvals[0].toolId");
    assert_eq!(found, !matches, "{errors:?}");
}

#[test]
fn the_faults_of_scripts_are_errors() {
    let scripts = json!({"image": "busybox", "files": {"a.b.sh": "exit 0", "a_b.sh": "exit 0"}});
    let findings = declared_only(&with(json!({"scripts": scripts})));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Error, "spec.scripts.files"));
    assert!(finding.message.contains("which are both the tool script_a_b"), "{finding:?}");
}
