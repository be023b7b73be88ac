//! Imports the YAML examples of the requirement documents, called seeds. The documents are not in this repository. `seeds/`
//! has their examples, unchanged: `002-complete.yaml` is an example of document 002.

#[cfg(test)]
mod tests {
    use bloomery_skills::{CheckedDocument, Finding, ImportOptions, Severity, import, yaml};
    use insta::assert_snapshot;
    use rstest::rstest;
    use std::fmt::Write;

    fn read(text: &str, options: &ImportOptions) -> (CheckedDocument, Vec<Finding>) {
        let read = yaml::read(text.as_bytes());
        assert_eq!(read.findings, []);
        assert_eq!(read.documents.len(), 1);
        let imported = import(&read.documents[0], options);
        let findings = imported.findings.clone();
        (imported, findings)
    }

    fn named(name: &str) -> ImportOptions {
        ImportOptions { name: Some(name.to_owned()), ..ImportOptions::default() }
    }

    /// Returns the printed findings and the written Skill.
    fn shown(text: &str, options: &ImportOptions) -> String {
        let (imported, findings) = read(text, options);
        let mut shown = String::new();
        for finding in findings {
            writeln!(shown, "{finding}").unwrap();
            if let Some(hint) = finding.hint {
                writeln!(shown, "  help: {hint}").unwrap();
            }
        }
        match imported.skill {
            Some(skill) => shown + "---\n" + &serde_yaml::to_string(&skill).unwrap() + &imported.suggestions,
            None => panic!("{shown}"),
        }
    }

    fn errors(text: &str) -> Vec<String> {
        let (imported, findings) = read(text, &named("x"));
        let errors: Vec<String> =
            findings.iter().filter(|finding| finding.severity == Severity::Error).map(ToString::to_string).collect();
        assert_eq!(imported.skill.is_none(), !errors.is_empty());
        errors
    }

    /// Every skill file of the requirements is imported without options.
    #[rstest]
    #[case::mcp_server("000-mcp-server", include_str!("seeds/000-mcp-server.yaml"))]
    #[case::cs_tier_1_tools("000-cs-tier-1-tools", include_str!("seeds/000-cs-tier-1-tools.yaml"))]
    #[case::sw_dev_tier_1("000-sw-dev-tier-1", include_str!("seeds/000-sw-dev-tier-1.yaml"))]
    #[case::persona_template("000-persona-template", include_str!("seeds/000-persona-template.yaml"))]
    #[case::cs_tier_1("000-cs-tier-1", include_str!("seeds/000-cs-tier-1.yaml"))]
    #[case::sw_dev_agent("000-sw-dev-agent", include_str!("seeds/000-sw-dev-agent.yaml"))]
    #[case::sw_dev_senior("000-sw-dev-senior", include_str!("seeds/000-sw-dev-senior.yaml"))]
    #[case::complete("002-complete", include_str!("seeds/002-complete.yaml"))]
    #[case::additions("002-additions", include_str!("seeds/002-additions.yaml"))]
    fn the_file_is_imported_with_warnings_only(#[case] file: &str, #[case] text: &str) {
        let options = ImportOptions { file: Some(file.to_owned()), ..ImportOptions::default() };
        assert_snapshot!(format!("seed_{file}"), shown(text, &options));
    }

    /// One test for each field that an author of a Skill must or may define.
    mod what_the_author_must_define {
        use super::{errors, named, read};
        use bloomery_crds::v1alpha1::{Skill, When};

        const COMPLETE: &str = include_str!("seeds/002-complete.yaml");

        fn complete() -> Skill {
            read(COMPLETE, &named("x")).0.skill.unwrap()
        }

        /// Returns the example without one block: the line that begins with `begin`, and the more deeply indented lines after it.
        fn without(begin: &str) -> String {
            let indent = begin.len() - begin.trim_start().len();
            let mut kept = String::new();
            let mut inside = false;
            for line in COMPLETE.lines() {
                let depth = line.len() - line.trim_start().len();
                if line.starts_with(begin) {
                    inside = true;
                } else if inside && !line.trim().is_empty() && depth <= indent {
                    inside = false;
                }
                if !inside {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
            assert!(kept.len() < COMPLETE.len(), "{begin:?} is not in the example");
            kept
        }

        fn skill_without(begin: &str) -> Skill {
            read(&without(begin), &named("x")).0.skill.unwrap()
        }

        #[test]
        fn problem_statement_is_required_if_problem_is_set() {
            assert_eq!(complete().spec.problem.statement, "Help customers track orders and process refunds");
            assert_eq!(
                errors(&without("  statement:")),
                ["5:3: error: problem.statement: is required, and is missing"]
            );
            let statement = skill_without("problem:").spec.problem.statement;
            assert_eq!(statement, "Do the work of x. Friendly and empathetic customer support specialist");
        }

        #[test]
        fn problem_goals_is_optional() {
            assert_eq!(complete().spec.problem.goals, ["Reduce response time", "Increase satisfaction"]);
            assert!(skill_without("  goals:").spec.problem.goals.is_empty());
        }

        #[test]
        fn role_persona_is_optional() {
            let persona = complete().spec.role.unwrap().persona.unwrap();
            assert_eq!(persona, "Friendly and empathetic customer support specialist");
            assert_eq!(skill_without("  persona:").spec.role.unwrap().persona, None);
        }

        #[test]
        fn intents_supported_is_required_if_intents_is_set() {
            assert_eq!(complete().spec.intents.unwrap().supported[0].id, "intent_refund");
            assert_eq!(
                errors(&without("  supported:")),
                ["18:3: error: intents.supported: is required, and is missing"]
            );
            assert_eq!(
                errors(&without("  supported:").replace("intents:", "intents:\n  supported: []")),
                ["18:14: error: intents.supported: must not be empty"]
            );
        }

        /// A Skill without intents is valid and accepts every goal, so the finding is only a warning.
        #[test]
        fn missing_intents_are_a_warning() {
            let (imported, findings) = read(&without("intents:"), &named("x"));
            assert!(imported.skill.unwrap().spec.intents.is_none());
            let found = findings.iter().find(|finding| finding.path == "intents.supported").unwrap();
            assert_eq!(found.to_string(), "4:1: warning: intents.supported: is missing: the Skill accepts every goal");
        }

        #[test]
        fn missing_tools_are_a_warning() {
            let (imported, findings) = read(&without("tools:"), &named("x"));
            assert!(imported.skill.unwrap().spec.tools.is_empty());
            assert!(findings.iter().any(|finding| finding.path == "tools"));
        }

        #[test]
        fn tools_need_a_name_and_their_inputs_a_type() {
            assert_eq!(complete().spec.tools[0].inputs[1].name, "amount");
            let nameless = COMPLETE.replace("  - name: process_refund\n    description", "  - description");
            assert_eq!(errors(&nameless), ["36:5: error: tools[0].name: is required, and is missing"]);
            let typeless = COMPLETE.replace("      - name: amount\n        type: number\n", "      - name: amount\n");
            assert_eq!(errors(&typeless), ["42:9: error: tools[0].inputs[1].type: is required, and is missing"]);
        }

        #[test]
        fn tools_policy_is_optional() {
            let policy = complete().spec.tools[0].policy.clone().unwrap();
            assert_eq!((policy.allowed, policy.requires_approval), (Some(When::Always), Some(When::Conditional)));
            assert_eq!(policy.condition.as_deref(), Some("amount > 500"));
            assert_eq!(skill_without("    policy:").spec.tools[0].policy, None);
        }

        #[test]
        fn policy_guardrails_is_optional() {
            let guardrails = complete().spec.policy.unwrap().guardrails.unwrap();
            assert_eq!((guardrails.never.len(), guardrails.always.len()), (3, 2));
            assert_eq!(skill_without("  guardrails:").spec.policy.unwrap().guardrails, None);
        }

        #[test]
        fn policy_workflows_is_optional() {
            let workflow = complete().spec.policy.unwrap().workflows.remove(0);
            assert_eq!(workflow.steps, ["verify_identity", "check_eligibility", "process_refund"]);
            assert_eq!(workflow.required, Some(true));
            assert!(skill_without("  workflows:").spec.policy.unwrap().workflows.is_empty());
        }

        #[test]
        fn policy_approvals_is_optional() {
            let approval = complete().spec.policy.unwrap().approvals.remove(0);
            assert_eq!(
                (approval.tool_id.as_str(), approval.approver.as_deref()),
                ("process_refund", Some("supervisor"))
            );
            assert!(skill_without("  approvals:").spec.policy.unwrap().approvals.is_empty());
        }

        #[test]
        fn output_contract_is_optional() {
            let contract = complete().spec.output_contract.unwrap();
            assert_eq!(contract.required_fields, ["order_id", "status", "next_steps"]);
            assert_eq!(skill_without("output_contract:").spec.output_contract, None);
        }

        #[test]
        fn engine_finalization_gate_is_optional() {
            let gate = complete().spec.engine.unwrap().finalization_gate.unwrap();
            assert_eq!((gate.enabled, gate.max_retries), (Some(true), Some(2)));
            assert_eq!(skill_without("  finalization_gate:").spec.engine.unwrap().finalization_gate, None);
        }
    }
}
