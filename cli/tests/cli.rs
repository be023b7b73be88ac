//! The binary, as people and CI call it.

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    /// Runs the binary in this crate's directory.
    fn bloomery(args: &[&str], stdin: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bloomery"))
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
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

    const SEED: &str = "../skills/tests/seeds/002-complete.yaml";

    #[test]
    fn the_seeds_skill_is_imported() {
        let output =
            bloomery(&["import", SEED, "--name", "cs-tier-1", "--namespace", "acme", "--model", "default"], b"");
        assert_snapshot!(shown(&output));
    }

    #[test]
    fn what_was_imported_passes_lint_and_stdin_is_a_file() {
        let imported = bloomery(&["import", SEED, "--name", "cs-tier-1"], b"");
        let linted = bloomery(&["lint", "-"], &imported.stdout);
        assert_eq!(linted.status.code(), Some(0), "{}", shown(&linted));
    }

    #[test]
    fn an_import_goes_to_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skill.yaml");
        let output = bloomery(&["import", SEED, "--name", "x", "-o", file.to_str().unwrap()], b"");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        assert!(std::fs::read_to_string(file).unwrap().starts_with("apiVersion: bloomery.dev/v1alpha1\nkind: Skill\n"));
    }

    #[test]
    fn an_import_with_errors_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skill.yaml");
        let output = bloomery(&["import", SEED, "-o", file.to_str().unwrap()], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(!Path::exists(&file));
        assert_snapshot!(shown(&output));
    }

    #[test]
    fn an_import_takes_one_document_of_the_dialect() {
        let manifest = bloomery(&["import", "-"], b"apiVersion: bloomery.dev/v1alpha1\nkind: Skill\n");
        assert!(shown(&manifest).contains("<stdin>:1:1: error: is a manifest already"), "{}", shown(&manifest));
        let two = bloomery(&["import", "-"], b"id: a\n---\nid: b\n");
        assert!(shown(&two).contains("<stdin>:3:1: error: is a second document"), "{}", shown(&two));
        let none = bloomery(&["import", "-"], b"# nothing\n");
        assert!(shown(&none).contains("error: there is no document in it"), "{}", shown(&none));
    }

    #[test]
    fn lint_says_all_at_once_of_all_files() {
        assert_snapshot!(shown(&bloomery(
            &["lint", "tests/files/broken.yaml", "tests/files/domain.yaml", "no-such-file.yaml"],
            b""
        )));
    }

    /// What is said of an input on stdin: each place and path, without the message.
    fn told(text: &str) -> Vec<String> {
        let output = bloomery(&["lint", "--json", "-"], text.as_bytes());
        let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        findings.iter().map(|found| format!("{}: {}", text(&found["path"]), text(&found["message"]))).collect()
    }

    fn has(told: &[String], beginning: &str) -> bool {
        told.iter().any(|told| told.starts_with(beginning))
    }

    #[test]
    fn a_fault_of_the_schema_hides_none_of_the_engines() {
        let seed = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SEED)).unwrap();
        let broken = seed
            .replace("out_of_domain", "out_of_domian")
            .replace("condition: \"amount > 500\"", "condition: \"amount >> 500\"")
            .replace("tool_id: process_refund", "tool_id: proces_refund")
            .replace("Friendly and", "{{resources.nope}}");
        let told = told(&broken);
        for expected in [
            "intents.out_of_domian: there is no such field",
            "tools[0].policy.condition: the condition cannot be compiled",
            "policy.approvals[0].tool_id: spec.tools declares no tool \"proces_refund\"",
            "role.persona: (line 1, column 1): resources.nope is not declared",
        ] {
            assert!(has(&told, expected), "{expected}: {told:#?}");
        }
        let import = bloomery(&["import", "-", "--name", "x"], broken.as_bytes());
        assert_eq!((import.status.code(), import.stdout.len()), (Some(1), 0));
        let said = String::from_utf8(import.stderr).unwrap();
        assert!(said.contains("cannot be compiled") && said.contains("resources.nope"), "{said}");
    }

    const MANIFEST: &str =
        "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec:\n  problem: {statement: help}\n";

    #[test]
    fn a_fault_of_a_manifest_hides_none_of_the_engines() {
        let told = told(&format!(
            "{MANIFEST}  engine: {{temprature: 1}}\n  role: {{persona: \"{{{{resources.nope}}}}\"}}\n  policy: {{approvals: [{{toolId: a, when: \"amount >\"}}]}}\n"
        ));
        assert_eq!(told.len(), 3, "{told:#?}");
        assert!(has(&told, "spec.engine.temprature: there is no such field"), "{told:#?}");
        assert!(has(&told, "spec.role.persona: (line 1, column 1): resources.nope is not declared"), "{told:#?}");
        assert!(has(&told, "spec.policy.approvals[0].when: the condition cannot be compiled"), "{told:#?}");
    }

    /// Each document has one fault, and everything else that could be said of it would only follow from that.
    #[test]
    fn what_only_follows_from_a_fault_is_not_said() {
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
            let told = told(&format!("{MANIFEST}{spec}"));
            assert_eq!(told.len(), 1, "{spec}{told:#?}");
        }
    }

    #[test]
    fn a_job_is_held_against_the_skill_beside_it() {
        let skill = format!(
            "{MANIFEST}  resources: [{{name: codebase, type: filesystem, required: true}}, {{name: docs, type: api_endpoint}}]\n"
        );
        let job =
            "---\napiVersion: bloomery.dev/v1alpha1\nkind: Job\nmetadata: {name: y}\nspec:\n  skill: x\n  goal: work\n";
        let missing = "spec.resources: the Skill requires this filesystem: bind a persistentVolumeClaim";
        assert_eq!(told(&format!("{skill}{job}")), [missing.replace("spec.resources", "spec")]);
        let bound = told(&format!(
            "{skill}{job}  resources:\n    codbase: {{persistentVolumeClaim: {{claimName: c}}}}\n    docs: {{value: \"ftp://x\"}}\n"
        ));
        assert_eq!(
            bound,
            [
                missing,
                "spec.resources.codbase: the Skill declares no such resource, but codebase, docs. Did you mean \"codebase\"?",
                "spec.resources.docs: the value is not an http or https URL, such as https://api.example.com/v1",
            ]
        );
        // Nothing is known of another Skill, of one in another namespace, and of bindings that cannot be read.
        assert_eq!(told(&format!("{skill}{}", job.replace("skill: x", "skill: z"))), Vec::<String>::new());
        assert_eq!(
            told(&format!("{skill}{}", job.replace("{name: y}", "{name: y, namespace: z}"))),
            Vec::<String>::new()
        );
        assert_eq!(told(&format!("{skill}{job}  resource: {{}}\n")).len(), 1);
        assert_eq!(told(&format!("{skill}{job}  resources: {{codebase: 7}}\n")).len(), 1);
    }

    #[test]
    fn faults_of_a_text_stand_in_its_order() {
        let told = told(&format!(
            "{MANIFEST}  role: {{persona: \"{{{{resources.a}}}} {{{{goal}}}} {{{{#if resources.b}}}} {{{{resources.c}}}}\"}}\n"
        ));
        let places: Vec<usize> = told
            .iter()
            .map(|told| told.split_once("column ").unwrap().1.split_once(')').unwrap().0.parse().unwrap())
            .collect();
        assert!(places.len() > 2 && places.is_sorted(), "{told:#?}");
    }

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).fold(String::new(), |lines, at| lines + &line(at))
    }

    #[test]
    fn thousands_of_faults_are_counted_and_not_shown() {
        let unknown = lines(20_000, |at| format!("  field{at}: 1\n"));
        let begun = std::time::Instant::now();
        let output = bloomery(&["lint", "-"], format!("{MANIFEST}{unknown}").as_bytes());
        let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        // What is known instead is said once.
        assert_eq!(out.lines().count(), 103, "{out}");
        assert!(out.contains("more is wrong from here on, and not shown: 19900 errors"), "{out}");
        assert_eq!(said, "1 object: 20000 errors\n");
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    }

    /// What compares names with each other meets no more of them than a Skill may have.
    #[test]
    fn a_hostile_skill_takes_no_more_than_seconds() {
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

    #[test]
    fn the_skills_of_seed_000_are_imported_with_a_problem() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills/tests/seeds");
        let mut imported = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            // A fragment that shows a template, and declares none of what it names.
            if !name.starts_with("000-") || name == "000-persona-template.yaml" {
                continue;
            }
            let file = file.to_str().unwrap();
            let without = bloomery(&["import", file], b"");
            assert!(shown(&without).contains("--problem TEXT"), "{}", shown(&without));
            let with = bloomery(&["import", file, "--problem", "Do the work of a developer"], b"");
            assert_eq!(with.status.code(), Some(0), "{}", shown(&with));
            let linted = bloomery(&["lint", "-"], &with.stdout);
            assert_eq!(linted.status.code(), Some(0), "{}", shown(&linted));
            imported += 1;
        }
        assert_eq!(imported, 6);
    }

    #[test]
    fn lint_speaks_json() {
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
    fn objects_of_others_are_passed_over() {
        let text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec: {problem: {statement: help}}\n";
        let output = bloomery(&["lint", "-"], text);
        assert_eq!(shown(&output), "exit 0\n--- stdout\n--- stderr\n1 object: no problems\n");
        let only = bloomery(&["lint", "-"], b"apiVersion: v1\nkind: ConfigMap\n");
        assert_eq!(only.status.code(), Some(1));
    }

    #[test]
    fn wrong_usage_is_2() {
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
    fn help_of_every_command() {
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
            ("kubectl", "BLOOMERY_COMPLETE=kubectl exec kubectl-bloomery"),
            ("elvish", "BLOOMERY_COMPLETE"),
            ("powershell", "BLOOMERY_COMPLETE"),
        ] {
            let output = bloomery(&["completion", shell], b"");
            assert_eq!(output.status.code(), Some(0));
            assert!(String::from_utf8(output.stdout).unwrap().contains(expected), "{shell}");
        }
    }

    /// Every `console` block of the page is run: `$ command`, then what it prints.
    #[test]
    fn the_examples_of_the_docs_are_true() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(top.join("docs/how-to/write-a-skill.md")).unwrap();
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
