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

    const SEED: &str = "../crds/tests/seeds/002-complete.yaml";

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
        assert_eq!(shown(&output), "exit 0\n--- stdout\n--- stderr\n1 object: nothing is wrong\n");
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
        let output = bloomery(&["completion", "bash"], b"");
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("--namespace"));
    }

    /// Every `console` block of the page is run: `$ command`, then what it prints.
    #[test]
    fn the_examples_of_the_docs_are_true() {
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")).unwrap();
        let blocks: Vec<&str> =
            page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            let (command, expected) = block.split_once('\n').unwrap();
            let args: Vec<&str> = command.strip_prefix("$ bloomery ").unwrap().split(' ').collect();
            let output = bloomery(&args, b"");
            let printed = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8(printed).unwrap(), expected, "{command}");
        }
    }
}
