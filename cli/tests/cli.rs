//! The binary, as people and CI call it.

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rstest::rstest;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    /// Runs the binary in this crate's directory. The binary may exit before it reads `stdin`, for example after an error in its
    /// arguments.
    fn bloomery(args: &[&str], stdin: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bloomery"))
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let Err(error) = child.stdin.take().unwrap().write_all(stdin) {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
        child.wait_with_output().unwrap()
    }

    fn shown(output: &Output) -> String {
        format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }

    /// A complete Skill in the older format.
    const COMPLETE_SKILL: &str = "../skills/tests/seeds/002-complete.yaml";

    #[test]
    fn the_skill_of_a_seed_is_imported() {
        let output = bloomery(
            &["import", COMPLETE_SKILL, "--name", "cs-tier-1", "--namespace", "acme", "--model", "default"],
            b"",
        );
        assert_snapshot!(shown(&output));
    }

    #[test]
    fn an_imported_manifest_passes_lint_from_stdin() {
        let imported = bloomery(&["import", COMPLETE_SKILL, "--name", "cs-tier-1"], b"");
        let linted = bloomery(&["lint", "-"], &imported.stdout);
        assert_eq!(linted.status.code(), Some(0), "{}", shown(&linted));
    }

    #[test]
    fn the_skills_of_a_list_from_a_cluster_are_linted_and_exported() {
        let item = |name: &str| {
            format!(
                "- apiVersion: bloomery.dev/v1alpha1\n  kind: Skill\n  metadata: {{name: {name}}}\n  spec: {{problem: {{statement: Help}}}}\n"
            )
        };
        let list = format!("apiVersion: v1\nitems:\n{}{}kind: List\n", item("one"), item("two"));
        let linted = bloomery(&["lint", "-"], list.as_bytes());
        assert!(shown(&linted).starts_with("exit 0") && shown(&linted).contains("2 objects"), "{}", shown(&linted));
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().to_str().unwrap();
        let exported = bloomery(&["export", "--format", "agent-skill", "-", "-o", to], list.as_bytes());
        assert_eq!(exported.status.code(), Some(0), "{}", shown(&exported));
        assert!(directory.path().join("one/SKILL.md").exists() && directory.path().join("two/SKILL.md").exists());
    }

    #[test]
    fn import_writes_to_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skill.yaml");
        let output = bloomery(&["import", COMPLETE_SKILL, "--name", "x", "-o", file.to_str().unwrap()], b"");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        assert!(std::fs::read_to_string(file).unwrap().starts_with("apiVersion: bloomery.dev/v1alpha1\nkind: Skill\n"));
    }

    #[test]
    fn an_import_with_errors_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skill.yaml");
        let output = bloomery(&["import", "tests/files/domain.yaml", "-o", file.to_str().unwrap()], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(!Path::exists(&file));
        assert_snapshot!(shown(&output));
    }

    #[test]
    fn import_accepts_one_document_of_the_older_dialect() {
        let manifest = bloomery(&["import", "-"], b"apiVersion: bloomery.dev/v1alpha1\nkind: Skill\n");
        assert!(shown(&manifest).contains("<stdin>:1:1: error: is a manifest already"), "{}", shown(&manifest));
        let two = bloomery(&["import", "-"], b"id: a\n---\nid: b\n");
        assert!(shown(&two).contains("<stdin>:3:1: error: is a second document"), "{}", shown(&two));
        let none = bloomery(&["import", "-"], b"# nothing\n");
        assert!(shown(&none).contains("error: the file has no document"), "{}", shown(&none));
    }

    #[test]
    fn lint_reports_all_findings_of_all_files() {
        assert_snapshot!(shown(&bloomery(
            &["lint", "tests/files/broken.yaml", "tests/files/domain.yaml", "no-such-file.yaml"],
            b""
        )));
    }

    /// Lints a text. Returns the path and the message of each finding.
    fn lint(text: &str) -> Vec<String> {
        let output = bloomery(&["lint", "--json", "-"], text.as_bytes());
        let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        findings.iter().map(|found| format!("{}: {}", text(&found["path"]), text(&found["message"]))).collect()
    }

    /// Returns whether a finding begins with this text.
    fn has(findings: &[String], beginning: &str) -> bool {
        findings.iter().any(|finding| finding.starts_with(beginning))
    }

    #[test]
    fn a_schema_error_does_not_hide_findings_of_the_engine() {
        let skill = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(COMPLETE_SKILL)).unwrap();
        let broken = skill
            .replace("out_of_domain", "out_of_domian")
            .replace("condition: \"amount > 500\"", "condition: \"amount >> 500\"")
            .replace("tool_id: process_refund", "tool_id: proces_refund")
            .replace("Friendly and", "{{resources.nope}}")
            + "resources: [{name: docs, type: filesystem}]\n";
        let findings = lint(&broken);
        for expected in [
            "intents.out_of_domian: there is no such field",
            "tools[0].policy.condition: the condition cannot be compiled",
            "policy.approvals[0].tool_id: spec.tools declares no tool \"proces_refund\"",
            "role.persona: (line 1, column 1): resources.nope is not declared",
        ] {
            assert!(has(&findings, expected), "{expected}: {findings:#?}");
        }
        let import = bloomery(&["import", "-", "--name", "x"], broken.as_bytes());
        assert_eq!((import.status.code(), import.stdout.len()), (Some(1), 0));
        let stderr = String::from_utf8(import.stderr).unwrap();
        assert!(stderr.contains("cannot be compiled") && stderr.contains("resources.nope"), "{stderr}");
    }

    const MANIFEST: &str =
        "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec:\n  problem: {statement: help}\n";

    #[test]
    fn rules_are_checked_against_a_list_of_tools() {
        let skill = format!("{MANIFEST}{SERVER}  policy: {{approvals: [{{toolId: send_emial}}]}}\n");
        assert_eq!(bloomery(&["lint", "-"], skill.as_bytes()).status.code(), Some(0));
        let tool = r#"{"name": "send_email", "inputSchema": {"type": "object"}, "_meta": {}}"#;
        let result = format!(r#"{{"tools": [{tool}]}}"#);
        let answer = format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}}}"#);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tools.json");
        let lint = |content: &str| {
            std::fs::write(&file, content).unwrap();
            shown(&bloomery(&["lint", "-", "--tools", file.to_str().unwrap()], skill.as_bytes()))
        };
        for content in [&result, &answer, &format!("[{tool}]")] {
            let shown = lint(content);
            let finding = "spec.policy.approvals[0].toolId: no tool of the MCP server matches \"send_emial\": the rule protects \
                nothing\n    help: did you mean \"send_email\"?";
            assert!(shown.starts_with("exit 1\n") && shown.contains(finding), "{shown}");
        }
        for (content, why) in [("{}", "must be JSON: the result of tools/list"), ("[]", "there is no tool in the list")]
        {
            let shown = lint(content);
            assert!(shown.starts_with("exit 2\n") && shown.contains(why), "{shown}");
        }
    }

    const SERVER: &str = "  mcpServer: {service: {name: orders, port: 8080}}\n";

    #[test]
    fn an_error_in_a_manifest_does_not_hide_findings_of_the_engine() {
        let findings = lint(&format!(
            "{MANIFEST}{SERVER}  engine: {{temprature: 1}}\n  role: {{persona: \"{{{{resources.nope}}}}\"}}\n  policy: {{approvals: [{{toolId: a, when: \"amount >\"}}]}}\n"
        ));
        assert_eq!(findings.len(), 3, "{findings:#?}");
        assert!(has(&findings, "spec.engine.temprature: there is no such field"), "{findings:#?}");
        assert!(
            has(&findings, "spec.role.persona: (line 1, column 1): resources.nope is not declared"),
            "{findings:#?}"
        );
        assert!(has(&findings, "spec.policy.approvals[0].when: the condition cannot be compiled"), "{findings:#?}");
    }

    /// Each document has one error. All other possible findings would be consequences of it.
    #[test]
    fn a_consequence_of_an_error_is_not_reported() {
        let persona = "  role: {persona: \"{{resources.docs}}\"}\n";
        let approvals =
            "  policy: {approvals: [{toolId: refund}], workflows: [{name: w, steps: [refund], intents: [i]}]}\n";
        let intents = "  intents: {supported: [{id: i}]}\n";
        for spec in [
            format!("{persona}  resource: [{{name: docs, type: filesystem, required: true}}]\n"),
            format!("{persona}  resources: [{{name: docs, type: file system, required: true}}]\n"),
            format!("{persona}  resources: [{{name: docs, type: filesystem, requird: true}}]\n"),
            format!("{persona}  resources: {{docs: filesystem}}\n"),
            format!("{approvals}{intents}  tools: [{{name: other}}, refund]\n"),
            format!("{approvals}{intents}  tools: {{refund: {{}}}}\n"),
            format!("{approvals}  intents: {{supported: i}}\n"),
            format!("{approvals}  intent: {{supported: [{{id: i}}]}}\n"),
            "  tools: [{name: a, policy: {allowed: conditional, conditon: \"amount > 5\"}}]\n".to_owned(),
            "  tools: [{name: a, inputs: [{name: b, type: strin}], policy: {allowed: conditional, condition: \"b > 5\"}}]\n".to_owned(),
            "  tools: [{name: a}, {name: a}]\n".to_owned(),
            "  mcpServer: {contianer: {image: x}}\n".to_owned(),
        ] {
            let server = if spec.contains("mcpServer") { "" } else { SERVER };
            let findings = lint(&format!("{MANIFEST}{server}{spec}"));
            assert_eq!(findings.len(), 1, "{spec}{findings:#?}");
        }
    }

    #[test]
    fn a_job_is_checked_against_its_skill_in_the_same_file() {
        let skill = format!(
            "{MANIFEST}  resources: [{{name: codebase, type: filesystem, required: true}}, {{name: docs, type: api_endpoint}}]\n"
        );
        let job =
            "---\napiVersion: bloomery.dev/v1alpha1\nkind: Job\nmetadata: {name: y}\nspec:\n  skill: x\n  goal: work\n";
        let missing = "spec.resources: the Skill requires this filesystem: bind a persistentVolumeClaim";
        assert_eq!(lint(&format!("{skill}{job}")), [missing.replace("spec.resources", "spec")]);
        let bound = lint(&format!(
            "{skill}{job}  resources:\n    codbase: {{persistentVolumeClaim: {{claimName: c}}}}\n    docs: {{value: \"ftp://x\"}}\n"
        ));
        assert_eq!(
            bound,
            [
                missing,
                "spec.resources.codbase: the Skill declares no such resource, only codebase, docs. Did you mean \"codebase\"?",
                "spec.resources.docs: the value is not an http or https URL, such as https://api.example.com/v1",
            ]
        );
        // A Job that names no Skill is one of the default Skill.
        let skill_of_default = skill.replace("{name: x}", "{name: sw-dev-agent}");
        let unnamed = lint(&format!("{skill_of_default}{}", job.replace("  skill: x\n", "")));
        assert_eq!(unnamed, [missing.replace("spec.resources", "spec")]);
        // No finding: the Skill is not in the file, is in another namespace, or the bindings cannot be read.
        assert_eq!(lint(&format!("{skill}{}", job.replace("skill: x", "skill: z"))), Vec::<String>::new());
        assert_eq!(
            lint(&format!("{skill}{}", job.replace("{name: y}", "{name: y, namespace: z}"))),
            Vec::<String>::new()
        );
        assert_eq!(lint(&format!("{skill}{job}  resource: {{}}\n")).len(), 1);
        assert_eq!(lint(&format!("{skill}{job}  resources: {{codebase: 7}}\n")).len(), 1);
        let skill = format!("{MANIFEST}  memory: {{scope: [progress]}}\n");
        assert_eq!(lint(&format!("{skill}{job}  memoryScope: [progress]\n")), Vec::<String>::new());
        assert_eq!(
            lint(&format!("{skill}{job}  memoryScope: [progress, techContext]\n")),
            ["spec.memoryScope[1]: memory.scope of the Skill has only progress: leave techContext out"]
        );
    }

    #[test]
    fn a_feature_that_refers_to_nothing_is_found_at_its_place() {
        let features = "  features:\n    - name: a\n      testScenario: Given x\n      expectedResult: It is said\n      ext: {skillMdRef: \"#refnuds\"}\n";
        let input = format!("{MANIFEST}  docs: \"# Refunds\"\n{features}");
        let output = bloomery(&["lint", "-"], input.as_bytes());
        let out = String::from_utf8(output.stdout).unwrap();
        let line = 1 + input.lines().position(|line| line.contains("skillMdRef")).unwrap();
        let finding = format!(
            "<stdin>:{line}:25: error: Skill/x: spec.features[0].ext.skillMdRef: \"#refnuds\" is no section of spec.docs (did you mean \"#refunds\"?)\n"
        );
        assert_eq!(out, finding);
        // The error of a field that cannot be read is not repeated.
        assert_eq!(lint(&format!("{MANIFEST}  docs: [a]\n{features}")).len(), 1);
    }

    #[test]
    fn the_skills_of_all_files_are_checked_for_cycles() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, subskill: &str| {
            let feature = format!("{{name: f, testScenario: x, expectedResult: z, ext: {{subskill: {subskill}}}}}");
            let skill = format!("{MANIFEST}  goal: help\n  skills: [{subskill}]\n  features: [{feature}]\n");
            let path = directory.path().join(format!("{name}.yaml"));
            std::fs::write(&path, skill.replace("{name: x}", &format!("{{name: {name}}}"))).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (first, second, own) = (file("first", "second"), file("second", "first"), file("own", "own"));
        let linted = bloomery(&["lint", &first, &second], b"");
        let expected = "error: Skill/second: spec.features[0].ext.subskill: closes a cycle of subskills: first -> second -> first\n";
        let shown = String::from_utf8(linted.stdout).unwrap();
        assert!(linted.status.code() == Some(1) && shown.starts_with(&second) && shown.contains(expected), "{shown}");
        // Alone, each may name a Skill of the namespace.
        assert_eq!(bloomery(&["lint", "--strict", &first], b"").status.code(), Some(0));
        assert_eq!(bloomery(&["lint", &own], b"").status.code(), Some(1));
        assert_eq!(bloomery(&["lint", &first, &own], b"").status.code(), Some(1));
        let second = file("second", "third");
        let linted = bloomery(&["lint", &first, &second], b"");
        let shown = String::from_utf8(linted.stdout).unwrap();
        assert!(linted.status.code() == Some(0) && shown.contains("there is no Skill \"third\""), "{shown}");
        assert_eq!(bloomery(&["lint", "--strict", &first, &second], b"").status.code(), Some(1));
    }

    #[test]
    fn findings_in_a_template_are_sorted_by_position() {
        let findings = lint(&format!(
            "{MANIFEST}  role: {{persona: \"{{{{resources.a}}}} {{{{goal}}}} {{{{#if resources.b}}}} {{{{resources.c}}}}\"}}\n"
        ));
        let places: Vec<usize> = findings
            .iter()
            .map(|finding| finding.split_once("column ").unwrap().1.split_once(')').unwrap().0.parse().unwrap())
            .collect();
        assert!(places.len() > 2 && places.is_sorted(), "{findings:#?}");
    }

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).fold(String::new(), |lines, at| lines + &line(at))
    }

    #[test]
    fn thousands_of_findings_are_counted_and_not_shown() {
        let unknown = lines(20_000, |at| format!("  field{at}: 1\n"));
        let begun = std::time::Instant::now();
        let output = bloomery(&["lint", "-"], format!("{MANIFEST}{unknown}").as_bytes());
        let (out, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        // 100 findings, the summary of the others, and two lines of hints.
        assert_eq!(out.lines().count(), 103, "{out}");
        assert!(out.contains("further findings from this line on are not shown: 19900 errors"), "{out}");
        assert_eq!(stderr, "1 object: 20000 errors\n");
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    }

    /// Suggestions compare names with each other, so the number of compared names must be bounded.
    #[test]
    fn a_hostile_skill_is_checked_within_seconds() {
        let tools = lines(8_000, |at| format!("    - {{name: process_refund_number_{at}}}\n"));
        let rules = lines(8_000, |at| format!("      - {{toolId: refund_process_number_{at}}}\n"));
        let begun = std::time::Instant::now();
        let output = bloomery(
            &["lint", "-"],
            format!("{MANIFEST}  tools:\n{tools}  policy:\n    approvals:\n{rules}").as_bytes(),
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    }

    /// The skill files of the requirements.
    #[rstest]
    #[case("000-cs-tier-1")]
    #[case("000-cs-tier-1-tools")]
    #[case("000-mcp-server")]
    #[case("000-persona-template")]
    #[case("000-sw-dev-agent")]
    #[case("000-sw-dev-senior")]
    #[case("000-sw-dev-tier-1")]
    #[case("002-additions")]
    #[case("002-complete")]
    fn every_skill_file_of_the_requirements_is_imported(#[case] name: &str) {
        let file = format!("../skills/tests/seeds/{name}.yaml");
        let (imported, linted) = (bloomery(&["import", &file], b""), bloomery(&["lint", &file], b""));
        for output in [&imported, &linted, &bloomery(&["lint", "-"], &imported.stdout)] {
            assert_eq!(output.status.code(), Some(0), "{}", shown(output));
        }
        let with_problem = bloomery(&["import", &file, "--problem", "Do the work of a developer"], b"");
        assert!(!shown(&with_problem).contains("problem: is missing"), "{}", shown(&with_problem));
    }

    #[test]
    fn a_skill_without_its_server_runs_without_its_tools() {
        let tools = "../skills/tests/seeds/000-cs-tier-1-tools.yaml";
        let linted = shown(&bloomery(&["lint", tools], b""));
        assert_eq!(linted.matches("runs without its tools").count(), 1, "{linted}");
        let imported = bloomery(&["import", tools], b"");
        let linted = shown(&bloomery(&["lint", "-"], &imported.stdout));
        let says = "Skill/cs-tier-1: spec: the Skill has no MCP server, so it runs without its tools: check_order_status, handle_standard_refund";
        assert!(linted.contains(says), "{linted}");
        // This file names no tools.
        let imported = bloomery(&["import", "../skills/tests/seeds/000-cs-tier-1.yaml"], b"");
        let says =
            "the MCP server was not imported, so the Skill runs without its tools: \"localhost\" is not reachable";
        let linted = bloomery(&["lint", "-"], &imported.stdout);
        assert!(linted.status.success() && shown(&linted).contains(says), "{}", shown(&linted));
        let manifest = String::from_utf8(imported.stdout).unwrap();
        let chosen = manifest.replace("  # mcpServer: {service: {name: NAME", "  mcpServer: {service: {name: orders");
        let linted = shown(&bloomery(&["lint", "-"], chosen.as_bytes()));
        assert!(chosen != manifest && !linted.contains("was not imported"), "{linted}");
    }

    #[test]
    fn all_errors_of_a_condition_are_reported_with_the_object() {
        let findings = bloomery(
            &["lint", "-"],
            format!("{MANIFEST}{SERVER}  policy: {{approvals: [{{toolId: a, when: \"kind = 'x' && amount = 5 || b >\"}}]}}\n").as_bytes(),
        );
        let found = shown(&findings);
        assert_eq!(found.matches(": write == to compare").count(), 2, "{found}");
        assert!(found.contains("found the end"), "{found}");
        assert_eq!(found.matches("error: Skill/x: spec.policy.approvals[0].when: ").count(), 3, "{found}");
    }

    #[test]
    fn a_policy_is_tested_against_expected_verdicts() {
        assert_snapshot!(shown(&bloomery(&["policy", "test", "tests/files/policy-test.yaml"], b"")));
    }

    /// Runs `policy test` with a file of cases for the Skill `payments`.
    fn policy_test(cases: &str, args: &[&str]) -> Output {
        let args = [&["policy", "test", "-", "--skill", "tests/files/payments.yaml"], args].concat();
        bloomery(&args, cases.as_bytes())
    }

    /// Runs `policy test` with a file of cases for a Skill.
    fn policy_test_of(skill: &str, cases: &str) -> Output {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skill.yaml");
        std::fs::write(&file, skill).unwrap();
        bloomery(&["policy", "test", "-", "--skill", file.to_str().unwrap()], cases.as_bytes())
    }

    /// The run stores the large result in the focus cache, so its conditions do not find the payee either.
    #[rstest]
    #[case::a_small_one(100, "allow")]
    #[case::a_large_one(17_000, "hold")]
    fn a_result_is_a_source_of_values_only_if_a_run_does_not_offload_it(#[case] bytes: usize, #[case] verdict: &str) {
        let skill =
            "{apiVersion: bloomery.dev/v1alpha1, kind: Skill, metadata: {name: x}, spec: {problem: {statement: help},
          mcpServer: {service: {name: bank, port: 8080}},
          tools: [{name: pay, inputs: [{name: to, type: string}]}, {name: get_payees, readOnly: true}],
          policy: {approvals: [{toolId: pay, when: \"!fromTool(to, 'get_payees')\"}]}}}";
        let note = "x".repeat(bytes);
        let cases = format!(
            "cases: [{{name: a, calls: [
          {{tool: get_payees, result: {{payees: [Ann], note: {note}}}, expect: allow}},
          {{tool: pay, arguments: {{to: Ann}}, expect: {verdict}}},
        ]}}]"
        );
        let output = policy_test_of(skill, &cases);
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    }

    #[test]
    fn an_unexpected_verdict_or_reason_fails() {
        let cases = "cases:
  - name: refused
    intent: pay
    calls:
      - {tool: send_money, arguments: {recipient: DE12345678, amount: 5}, expect: deny}
      - {tool: send_money, arguments: {recipient: DE12345678, amount: 501}, expect: hold, reason: Small}
      - {tool: get_payees, expect: allow}
";
        let output = policy_test(cases, &["-o", "json"]);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
        let rulings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let passed: Vec<_> = rulings.as_array().unwrap().iter().map(|ruling| &ruling["passed"]).collect();
        assert_eq!(passed, [false, false, true]);
        assert_eq!(rulings[1]["verdict"], "hold");
        assert_eq!(rulings[1]["reasons"][0], "Large payments");
        assert!(String::from_utf8_lossy(&output.stderr).ends_with("3 calls in 1 case: 2 are not as expected\n"));
    }

    #[rstest]
    #[case::a_tool(
        "{tool: send_moneys, expect: deny}",
        "there is no tool \"send_moneys\". Did you mean \"send_money\"?"
    )]
    #[case::an_argument(
        "{tool: send_money, arguments: {recipient: DE12345678, amuont: 501}, expect: deny}",
        "send_money has no argument \"amuont\". Did you mean \"amount\"?"
    )]
    fn a_denial_of_what_does_not_exist_tests_no_rule(#[case] call: &str, #[case] why: &str) {
        let cases = |call: &str| format!("cases: [{{name: a, intent: pay, calls: [{call}]}}]");
        let output = policy_test(&cases(call), &[]);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(why), "{}", shown(&output));
        let meant = call.replace("expect: deny}", "expect: deny, reason: e}");
        assert_eq!(policy_test(&cases(&meant), &[]).status.code(), Some(0), "{meant}");
    }

    /// The schema accepts every argument, and `effects` holds every call.
    #[rstest]
    #[case::a_misspelt_argument("priorty: 5, expect: hold", 1)]
    #[case::an_argument("priority: 5, expect: hold", 0)]
    #[case::meant("priorty: 5, expect: hold, reason: effects", 0)]
    fn a_hold_of_a_misspelt_argument_tests_no_rule(#[case] call: &str, #[case] code: i32) {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            std::fs::write(directory.path().join(name), content).unwrap();
            directory.path().join(name).display().to_string()
        };
        let skill = write("skill.yaml", &format!("{MANIFEST}{SERVER}  policy: {{effects: require_approval}}\n"));
        let schema =
            r#"{"type": "object", "properties": {"order_id": {"type": "string"}, "priority": {"type": "integer"}}}"#;
        let tools =
            write("tools.json", &format!(r#"{{"tools": [{{"name": "update_order", "inputSchema": {schema}}}]}}"#));
        let (argument, verdict) = call.split_once(", ").unwrap();
        let cases = format!(
            "cases: [{{name: a, calls: [{{tool: update_order, arguments: {{order_id: A, {argument}}}, {verdict}}}]}}]"
        );
        let output = bloomery(&["policy", "test", "-", "--skill", &skill, "--tools", &tools], cases.as_bytes());
        assert_eq!(output.status.code(), Some(code), "{}", shown(&output));
        let why = "update_order has no argument \"priorty\". Did you mean \"priority\"?";
        assert_eq!(shown(&output).contains(why), code == 1, "{}", shown(&output));
    }

    /// A server's tools that accept texts and numbers only.
    const TYPED_TOOLS: &str = r#"{"tools": [
        {"name": "get_payees", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}},
        {"name": "send_money", "inputSchema": {"type": "object", "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}}}}
    ]}"#;

    #[rstest]
    #[case::without_inputs("{tool: get_payees, arguments: {query: 5}, expect: deny}", 1)]
    #[case::meant("{tool: get_payees, arguments: {query: 5}, expect: deny, reason: is not of type}", 0)]
    #[case::with_inputs("{tool: send_money, arguments: {recipient: DE12345678, amount: much}, expect: deny}", 0)]
    fn a_denial_by_the_schema_of_the_server_tests_no_rule(#[case] call: &str, #[case] code: i32) {
        let directory = tempfile::tempdir().unwrap();
        let tools = directory.path().join("tools.json");
        std::fs::write(&tools, TYPED_TOOLS).unwrap();
        let cases = format!("cases: [{{name: a, intent: pay, calls: [{call}]}}]");
        let output = policy_test(&cases, &["--tools", tools.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", shown(&output));
        let why = "this tests no rule: the schema of get_payees at the server refuses the arguments";
        assert_eq!(shown(&output).contains(why), code == 1, "{}", shown(&output));
    }

    #[test]
    fn a_policy_test_counts_the_findings_of_a_lint_with_the_same_tools() {
        let rule = "{toolId: send_money, when: \"!fromTool(recipient, 'get_payees')\"}";
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            std::fs::write(directory.path().join(name), content).unwrap();
            directory.path().join(name).display().to_string()
        };
        let skill = write("skill.yaml", &format!("{MANIFEST}{SERVER}  policy: {{approvals: [{rule}]}}\n"));
        let tools = write("tools.json", TYPED_TOOLS);
        let linted = shown(&bloomery(&["lint", &skill, "--tools", &tools], b""));
        assert!(linted.ends_with("1 object: 1 warning\n"), "{linted}");
        let cases = "cases: [{name: a, calls: [{tool: send_money, arguments: {recipient: x}, expect: hold}]}]";
        let tested = bloomery(&["policy", "test", "-", "--skill", &skill, "--tools", &tools], cases.as_bytes());
        let remark = format!("{skill}: 1 warning: run `bloomery lint --tools` for details\n");
        assert!(shown(&tested).contains(&remark), "{}", shown(&tested));
    }

    /// The evidence is the number of a call of the case.
    #[test]
    fn a_step_in_words_is_closed_with_the_result_of_a_call_of_the_case() {
        let skill =
            "{apiVersion: bloomery.dev/v1alpha1, kind: Skill, metadata: {name: x}, spec: {problem: {statement: help},
          mcpServer: {service: {name: bank, port: 8080}}, tools: [{name: pay}, {name: look, readOnly: true}],
          policy: {workflows: [{name: w, required: true, steps: [ask the customer, pay],
            expect: [{step: ask the customer, evidence: {tool: ask_user}}]}]}}}";
        let cases = "cases: [{name: a, calls: [
          {tool: look, expect: allow},
          {tool: subgoal_done, arguments: {step: ask the customer, evidence: 1}, expect: deny, reason: call 1 does not close},
          {tool: subgoal_done, arguments: {step: ask the customer, evidence: 9}, expect: deny, reason: call 9 is not the result of},
          {tool: pay, expect: deny, reason: must come first},
          {tool: ask_user, arguments: {text: May I pay}, result: Please do, expect: allow},
          {tool: subgoal_done, arguments: {step: ask the customer, evidence: 5}, expect: allow},
          {tool: pay, expect: allow},
        ]}]";
        let output = policy_test_of(skill, cases);
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    }

    #[test]
    fn calls_after_the_end_of_a_job_have_no_verdict() {
        let call = "{tool: send_money, arguments: {recipient: DE12345678, amount: 5}, failed: closed, expect: allow}";
        let cases = format!("cases: [{{name: stuck, intent: pay, calls: [{}]}}]", [call; 4].join(", "));
        let output = policy_test(&cases, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("the Job had ended: "), "{}", shown(&output));
    }

    /// A Skill with a list, and the ConfigMap with its texts in the same file.
    const WITH_LIST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: lists}
data: {payees: \"Power\\nWater\"}
---
apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: x}
spec:
  problem: {statement: help}
  mcpServer: {service: {name: bank, port: 8080}}
  tools: [{name: pay, inputs: [{name: to, type: string}]}]
  policy:
    listsFrom: {payees: {configMapKeyRef: {name: lists, key: payees}}}
    approvals: [{toolId: pay, when: '!(to in lists.payees)', reason: No known payee}]
";

    #[rstest]
    #[case::in_the_file(WITH_LIST, 0, "2 calls in 1 case: all as expected")]
    #[case::not_in_the_file(
        WITH_LIST.split_once("---\n").unwrap().1, 2, "spec.policy.listsFrom.payees: the ConfigMap lists is not in this file"
    )]
    fn a_policy_is_tested_with_the_list_in_its_file(#[case] skill: &str, #[case] code: i32, #[case] message: &str) {
        let cases = "cases: [{name: a, calls: [
          {tool: pay, arguments: {to: Water}, expect: allow},
          {tool: pay, arguments: {to: Eve}, expect: hold, reason: No known payee},
        ]}]";
        let output = policy_test_of(skill, cases);
        assert_eq!(output.status.code(), Some(code), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{}", shown(&output));
    }

    #[test]
    fn lint_reads_a_list_only_in_the_same_file() {
        let lint = |text: &str| shown(&bloomery(&["lint", "-"], text.as_bytes()));
        let clean = lint(WITH_LIST);
        assert!(clean.starts_with("exit 0\n") && clean.contains("1 object: no problems"), "{clean}");
        assert_eq!(lint(WITH_LIST.split_once("---\n").unwrap().1), clean);
        let compared = WITH_LIST.replace("'!(to in", "'!(host(to) in");
        let message = "spec.policy.listsFrom.payees: the comparison can never be true: host() is never \"Power\"";
        let found = lint(&compared);
        assert!(found.starts_with("exit 1\n") && found.contains(message), "{found}");
        let found = lint(&WITH_LIST.replace("data: {payees:", "data: {payers:"));
        let message =
            "error: Skill/x: spec.policy.listsFrom.payees: the ConfigMap lists has no key payees; it has payers";
        assert!(found.starts_with("exit 1\n") && found.contains(message), "{found}");
    }

    #[rstest]
    #[case::no_yaml("cases: [", "<stdin>: ")]
    #[case::an_unknown_field("cases: [{name: a, cals: []}]", "cals")]
    #[case::no_call("cases: []", "has no call to test")]
    #[case::an_unknown_intent("cases: [{name: a, intent: pey, calls: [{tool: get_payees}]}]", "Did you mean \"pay\"?")]
    #[case::an_unknown_resource(
        "cases: [{name: a, resources: {x: y}, calls: [{tool: get_payees}]}]",
        "no resource \"x\""
    )]
    #[case::an_unknown_verdict("cases: [{name: a, calls: [{tool: get_payees, expect: maybe}]}]", "maybe")]
    fn an_unusable_file_of_cases_exits_with_2(#[case] cases: &str, #[case] message: &str) {
        let output = policy_test(cases, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{}", shown(&output));
    }

    #[test]
    fn rules_that_fit_no_tool_exit_with_2() {
        let directory = tempfile::tempdir().unwrap();
        let tools = directory.path().join("tools.json");
        std::fs::write(&tools, r#"{"tools": [{"name": "sendMoney", "inputSchema": {"type": "object"}}]}"#).unwrap();
        let cases = "cases: [{name: a, intent: pay, calls: [{tool: get_payees}]}]";
        let output = policy_test(cases, &["--tools", tools.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no tool of the MCP server matches \"send_money\""));
    }

    #[test]
    fn lint_prints_json() {
        let output = bloomery(&["lint", "--json", "tests/files/domain.yaml"], b"");
        let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_snapshot!(serde_json::to_string_pretty(&findings).unwrap());
    }

    #[test]
    fn warnings_fail_only_a_strict_lint() {
        let text = b"id: x\nproblem: {statement: y}\n";
        assert_eq!(bloomery(&["lint", "-"], text).status.code(), Some(0));
        assert_eq!(bloomery(&["lint", "--strict", "-"], text).status.code(), Some(1));
    }

    #[test]
    fn objects_of_other_apis_are_skipped() {
        let text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec: {problem: {statement: help}}\n";
        let output = bloomery(&["lint", "-"], text);
        assert_eq!(shown(&output), "exit 0\n--- stdout\n--- stderr\n1 object: no problems\n");
        let only = bloomery(&["lint", "-"], b"apiVersion: v1\nkind: ConfigMap\n");
        assert_eq!(only.status.code(), Some(1));
    }

    #[test]
    fn invalid_arguments_exit_with_2() {
        for args in [
            &[][..],
            &["lint"],
            &["import"],
            &["import", "x", "--name", "No Name"],
            &["import", "x", "--namespace", "-"],
            &["lints"],
        ] {
            assert_eq!(bloomery(args, b"").status.code(), Some(2), "{args:?}");
        }
    }

    #[test]
    fn the_help_lists_every_command() {
        for command in ["import", "lint", "completion"] {
            let output = bloomery(&[command, "--help"], b"");
            assert_eq!(output.status.code(), Some(0));
        }
        assert_snapshot!(shown(&bloomery(&["--help"], b"")));
    }

    #[test]
    fn completions_are_printed() {
        for (shell, expected) in [
            ("bash", "-F _clap_complete_bloomery bloomery"),
            ("zsh", "compdef _clap_dynamic_completer_bloomery bloomery"),
            ("fish", "complete --keep-order --exclusive --command bloomery"),
            ("kubectl", "export BLOOMERY_COMPLETE=kubectl\nexec kubectl-bloomery"),
            ("elvish", "BLOOMERY_COMPLETE"),
            ("powershell", "BLOOMERY_COMPLETE"),
        ] {
            let output = bloomery(&["completion", shell], b"");
            assert_eq!(output.status.code(), Some(0));
            assert!(String::from_utf8(output.stdout).unwrap().contains(expected), "{shell}");
        }
    }

    /// Runs every `console` block of a page. It has the form `$ command`, followed by the expected output.
    #[rstest]
    #[case::of_skills("write-a-skill.md")]
    #[case::of_policies("write-a-policy.md")]
    fn the_examples_of_the_page_are_correct(#[case] name: &str) {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(top.join("docs/how-to").join(name)).unwrap();
        let blocks: Vec<&str> =
            page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            let (command, expected) = block.split_once('\n').unwrap();
            let args = command.strip_prefix("$ bloomery ").unwrap().split(' ');
            let program = env!("CARGO_BIN_EXE_bloomery");
            let output = Command::new(program).args(args).current_dir(&top).output().unwrap();
            let printed = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8(printed).unwrap(), expected, "{command}");
        }
    }
}
