//! Repositories of skills: `bloomery import DIR`, `bloomery new` and `bloomery export`, as people and CI call them.

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rstest::rstest;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output, Stdio};
    use tempfile::TempDir;

    /// The example of the documentation, from the top of the checkout.
    const EXAMPLE: &str = "docs/examples/skills-repo";

    /// The image of its scripts.
    const IMAGE: [&str; 2] = ["--script-image", "busybox:1.37"];

    fn top() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// Returns a command that runs the binary in a directory. Of the environment, it has only PATH.
    fn command(dir: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .stdin(Stdio::null());
        command
    }

    fn run(dir: &Path, args: &[&str]) -> Output {
        command(dir, args).output().unwrap()
    }

    fn stdout(output: &Output) -> String {
        String::from_utf8(output.stdout.clone()).unwrap()
    }

    fn stderr(output: &Output) -> String {
        String::from_utf8(output.stderr.clone()).unwrap()
    }

    fn shown(output: &Output) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", output.status.code().unwrap(), stdout(output), stderr(output))
    }

    /// Runs the binary with an input.
    fn run_with_stdin(dir: &Path, args: &[&str], stdin: &str) -> Output {
        let mut child =
            command(dir, args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Creates a directory with files.
    fn directory(files: &[(&str, &str)]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, content) in files {
            write(dir.path(), file, content);
        }
        dir
    }

    fn write(dir: &Path, file: &str, content: impl AsRef<[u8]>) {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Returns a valid `skill.json` with an extension of its only feature, on line 2.
    fn skill(extension: &str) -> String {
        format!(
            "{{\"goal\": \"x\", \"acceptance_criteria\": [], \"features\": [{{\"name\": \"a\", \"test_scenario\": \"b\", \
             \"expected_result\": \"c\",\n\"ext\": {extension}}}]}}\n"
        )
    }

    #[test]
    fn the_example_is_imported() {
        let args = [&["import", EXAMPLE, "--namespace", "acme"][..], &IMAGE].concat();
        assert_snapshot!(shown(&run(&top(), &args)));
    }

    #[test]
    fn a_repository_is_linted_without_an_import() {
        let linted = run(&top(), &["lint", EXAMPLE]);
        assert_eq!(linted.status.code(), Some(0), "{}", shown(&linted));
        assert!(stderr(&linted).contains("3 objects"), "{}", shown(&linted));
        let dir = directory(&[("shop/skills/a/skill.json", &skill(r#"{"script": "absent.sh"}"#)), ("empty/x.txt", "")]);
        let linted = run(dir.path(), &["lint", "shop", "--json"]);
        assert_eq!(linted.status.code(), Some(1), "{}", shown(&linted));
        assert!(stdout(&linted).contains("\"file\": \"shop/skills/a/skill.json\""), "{}", shown(&linted));
        let linted = run(dir.path(), &["lint", "empty"]);
        assert_eq!(linted.status.code(), Some(1), "{}", shown(&linted));
        assert!(stdout(&linted).contains("there is no skill in the directory"), "{}", shown(&linted));
    }

    /// The directories, the schema and the core skill of the requirement document 003.
    #[test]
    fn a_repository_of_the_requirement_document_is_imported() {
        let script = r##"{"script": "script.py", "skill_md_ref": "#header", "subskill": "sub-skill-name"}"##;
        let (bare, named, list) = (skill("{}"), skill(script), skill(r#"{"subskill": "list"}"#));
        let dir = directory(&[
            ("about.md", "The skills of a shop.\n"),
            ("memory-bank/projectbrief.md", "brief\n"),
            ("memory-bank/productContext.md", "product\n"),
            ("memory-bank/systemPatterns.md", "patterns\n"),
            ("memory-bank/techContext.md", "tech\n"),
            ("memory-bank/activeContext.md", "active\n"),
            ("memory-bank/progress.md", "progress\n"),
            ("memory-bank/details/stock.md", "stock\n"),
            ("templates/basic/skill.json", &bare),
            ("examples/hello/skill.json", &bare),
            ("skills/skill-name/skill.json", &named),
            ("skills/skill-name/skill.md", "# header\n\nRead it.\n"),
            ("skills/skill-name/script.py", "print(1)\n"),
            ("skills/skill-name/sub-skill-name/skill.json", &bare),
            ("skills/use-skill/skill.json", &list),
            ("skills/use-skill/list/skill.json", &bare),
            ("skills/use-skill/find/skill.json", &bare),
        ]);
        let output = run(dir.path(), &[&["import", "."][..], &IMAGE].concat());
        let text = stdout(&output);
        let mut skills: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
        skills.sort_unstable();
        let expected = ["skill-name", "skill-name-sub-skill-name", "use-skill", "use-skill-find", "use-skill-list"];
        assert_eq!((output.status.code(), skills.as_slice()), (Some(0), &expected[..]), "{}", shown(&output));
        for part in ["subskill: skill-name-sub-skill-name", "script: script.py", "skillMdRef: \"#header\"", "stock\n"] {
            assert!(text.contains(part), "{part}: {}", shown(&output));
        }
        for note in ["projectbrief", "productContext", "systemPatterns", "techContext", "activeContext", "progress"] {
            assert_eq!(text.matches(&format!("\n      {note}: ")).count(), expected.len(), "{note}");
        }
    }

    #[test]
    fn an_import_is_repeatable_and_its_manifests_pass_lint() {
        let args = [&["import", EXAMPLE][..], &IMAGE].concat();
        let (first, second) = (run(&top(), &args), run(&top(), &args));
        assert_eq!(first.stdout, second.stdout);
        let linted = run_with_stdin(&top(), &["lint", "-"], &stdout(&first));
        assert_eq!(linted.status.code(), Some(0), "{}", shown(&linted));
        assert!(stderr(&linted).contains("3 objects"), "{}", shown(&linted));
        // The order in which the file system lists the entries does not matter.
        let copy = tempfile::tempdir().unwrap();
        for file in ["skills/write-minutes/SKILL.md", "skills/write-minutes/references/STYLE.md", "about.md"] {
            write(copy.path(), file, fs::read(top().join(EXAMPLE).join(file)).unwrap());
        }
        for file in ["script.sh", "script.ps1", "skill.md", "skill.json"] {
            let file = format!("skills/orders/refund/{file}");
            write(copy.path(), &file, fs::read(top().join(EXAMPLE).join(&file)).unwrap());
        }
        for file in [
            "skills/orders/skill.md",
            "skills/orders/skill.json",
            "memory-bank/progress.md",
            "memory-bank/projectbrief.md",
        ] {
            write(copy.path(), file, fs::read(top().join(EXAMPLE).join(file)).unwrap());
        }
        let copied = run(copy.path(), &[&["import", "."][..], &IMAGE].concat());
        assert_eq!(stdout(&copied), stdout(&first));
    }

    #[test]
    fn an_import_writes_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("skills.yaml");
        let args = [&["import", EXAMPLE, "-o", file.to_str().unwrap()][..], &IMAGE].concat();
        let output = run(&top(), &args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", shown(&output));
        assert_eq!(fs::read_to_string(file).unwrap().matches("kind: Skill\n").count(), 3);
    }

    /// Each repository has one error. Its place and its beginning are expected on stderr, and nothing on stdout.
    #[rstest]
    #[case::unknown_field("skills/a/skill.json", &skill("{\"x\": 1}"), "skills/a/skill.json:2:9: error: features[0].ext.x: there is no such field")]
    #[case::not_json("skills/a/skill.json", "{\n", "skills/a/skill.json:2:")]
    #[case::a_missing_subskill("skills/a/skill.json", &skill("{\"subskill\": \"b\"}"), "skills/a/skill.json:2:21: error: features[0].ext.subskill: names no skill")]
    #[case::a_subskill_outside("skills/a/skill.json", &skill("{\"subskill\": \"../../b\"}"), "skills/a/skill.json:2:21: error: features[0].ext.subskill: must be the path")]
    #[case::a_cycle("skills/a/skill.json", &skill("{\"subskill\": \"a\"}"), "skills/a/skill.json:2:21: error: features[0].ext.subskill: closes a cycle of subskills: a -> a")]
    #[case::a_long_name("skills/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/skill.json", &skill("{}"), "/skill.json:1:1: error: the name")]
    #[case::no_skill("skills/a/README.md", "", "there is no skill in the directory")]
    #[case::no_image(
        "skills/a/script.sh",
        "echo",
        "skills/a/script.sh:1:1: error: a script needs an image with its interpreter"
    )]
    fn a_repository_with_an_error_writes_nothing(#[case] file: &str, #[case] content: &str, #[case] expected: &str) {
        let dir = directory(&[(file, content)]);
        if expected.contains("needs an image") {
            write(dir.path(), "skills/a/skill.json", skill("{}"));
        }
        let output = run(dir.path(), &["import", "."]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{}", shown(&output));
        assert!(stderr(&output).contains(expected), "{}", shown(&output));
        assert!(stderr(&output).ends_with(": nothing was written\n"), "{}", shown(&output));
    }

    #[test]
    fn two_skills_of_one_name_are_refused() {
        let dir = directory(&[("skills/a/b-c/skill.json", &skill("{}")), ("skills/a-b/c/skill.json", &skill("{}"))]);
        let output = run(dir.path(), &["import", "."]);
        let expected =
            "./skills/a/b-c/skill.json:1:1: error: the Skill is named \"a-b-c\", and so is that of \"a-b/c\"";
        let other = "./skills/a-b/c/skill.json:1:1: error: the Skill is named \"a-b-c\", and so is that of \"a/b-c\"";
        assert!([expected, other].iter().any(|line| stderr(&output).contains(line)), "{}", shown(&output));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    }

    #[test]
    fn symbolic_links_are_refused_wherever_they_are() {
        let outside = directory(&[("skill.json", &skill("{}")), ("note.md", "secret")]);
        for link in [
            "skills/linked",
            "skills/a/skill.md",
            "skills/a/skill.json",
            "memory-bank/progress.md",
            "memory-bank",
            "about.md",
            "skills",
        ] {
            let dir = directory(&[("skills/a/skill.json", &skill("{}"))]);
            let at = dir.path().join(link);
            if at.is_dir() {
                fs::remove_dir_all(&at).unwrap();
            } else if at.exists() {
                fs::remove_file(&at).unwrap();
            }
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let is_file = link.contains('.');
            symlink(if is_file { outside.path().join("note.md") } else { outside.path().to_owned() }, &at).unwrap();
            let output = run(dir.path(), &["import", "."]);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{link}: {}", shown(&output));
            let expected = format!("./{link}:1:1: error: ");
            assert!(stderr(&output).contains(&expected), "{link}: {}", shown(&output));
            assert!(!shown(&output).contains("secret"), "{link}: {}", shown(&output));
        }
    }

    #[test]
    fn the_repository_of_the_environment_is_used() {
        let group = directory(&[("shop/skills/a/skill.json", &skill("{}")), ("own/skills/b/skill.json", &skill("{}"))]);
        let own = group.path().join("own");
        let names = |args: &[&str], variables: &[(&str, &Path)]| {
            let output = command(group.path(), args).envs(variables.iter().copied()).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
            let text = stdout(&output);
            text.lines().filter_map(|line| line.strip_prefix("  name: ")).map(str::to_owned).collect::<Vec<_>>()
        };
        let (mine, shared) = (("MY_SKILLS_REPO", own.as_path()), ("SKILLS_GROUP_DIR", group.path()));
        assert_eq!(names(&["import", "--repo", "shop"], &[mine, shared]), ["b"]);
        assert_eq!(names(&["import", "--repo", "shop"], &[shared]), ["a"]);
        assert_eq!(names(&["import", "shop"], &[mine, shared]), ["a"]);
        let neither = run(group.path(), &["import"]);
        assert_eq!(neither.status.code(), Some(2));
        let message = stderr(&neither);
        assert!(message.contains("MY_SKILLS_REPO") && message.contains("SKILLS_GROUP_DIR"), "{message}");
    }

    #[rstest]
    #[case::a_name(&["import", EXAMPLE, "--name", "x"], "--name and --problem are for a single file")]
    #[case::an_image(&["import", "docs/examples/bank.yaml", "--script-image", "x"], "are for a directory of skills")]
    #[case::no_directory(&["import", "--repo", "../x"], "is not known")]
    #[case::a_part_of_a_skill(&["import", "docs/examples/skills-repo/skills/orders/skill.json"], "name the directory of the skill")]
    #[case::no_format(&["export", "docs/examples/bank.yaml"], "--format")]
    #[case::no_repository(&["new", "x", "--dir", "no-such-directory"], "there is no directory no-such-directory")]
    fn arguments_that_do_not_fit_are_refused(#[case] args: &[&str], #[case] expected: &str) {
        let output = run(&top(), args);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(stderr(&output).contains(expected), "{}", shown(&output));
    }

    /// `make bench` imports 10,000, and measures the time and the memory.
    #[test]
    fn two_thousand_skills_are_imported() {
        const SKILLS: usize = 2_000;
        let dir = tempfile::tempdir().unwrap();
        for nth in 0..SKILLS {
            let next = skill(&format!("{{\"subskill\": \"s{:05}\"}}", nth + 1));
            let last = skill("{}");
            write(dir.path(), &format!("skills/s{nth:05}/skill.json"), if nth + 1 < SKILLS { next } else { last });
        }
        let output = run(dir.path(), &["import", "."]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output).matches("\n  name: s").count(), SKILLS);
    }

    #[test]
    fn a_single_skill_and_a_directory_of_agent_skills_are_imported() {
        let agent_skill = |name: &str| format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n");
        let dir = directory(&[
            ("one/SKILL.md", &agent_skill("one")),
            ("two/SKILL.md", &agent_skill("two")),
            ("both/skill.json", &skill("{}")),
            ("both/SKILL.md", &agent_skill("both")),
        ]);
        let names = |args: &[&str]| {
            let output = run(dir.path(), args);
            assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
            stdout(&output)
                .lines()
                .filter_map(|line| line.strip_prefix("  name: "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["import", "."]), ["both", "one", "two"]);
        assert_eq!(names(&["import", "one"]), ["one"]);
        let both = run(dir.path(), &["import", "both"]);
        assert!(stderr(&both).contains("SKILL.md:1:1: warning: is not imported"), "{}", shown(&both));
    }

    #[test]
    fn a_new_skill_comes_from_the_template_and_is_valid() {
        let dir = directory(&[]);
        let new = |args: &[&str]| {
            let output = run(dir.path(), &[&["new", "--dir", "."][..], args].concat());
            (output.status.code().unwrap(), shown(&output))
        };
        let (code, output) = new(&["greet"]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("--- stdout\n./skills/greet/skill.json\n./skills/greet/skill.md\n"), "{output}");
        assert_eq!(new(&["greet/kindly"]).0, 0);
        let imported = run(dir.path(), &["import", "."]);
        assert_eq!(imported.status.code(), Some(0), "{}", shown(&imported));
        assert!(stdout(&imported).contains("  name: greet-kindly\n"), "{}", shown(&imported));

        let before = fs::read(dir.path().join("skills/greet/skill.json")).unwrap();
        let (code, output) = new(&["greet"]);
        assert!(code == 2 && output.contains("exists already"), "{output}");
        assert_eq!(fs::read(dir.path().join("skills/greet/skill.json")).unwrap(), before);

        write(dir.path(), "templates/answer/skill.json", skill("{\"script\": \"tools/run.sh\"}"));
        write(dir.path(), "templates/answer/script.sh", "echo\n");
        assert_eq!(new(&["from-the-only-one"]).0, 0);
        assert!(dir.path().join("skills/from-the-only-one/script.sh").exists());
        write(dir.path(), "templates/report/SKILL.md", "---\nname: report\ndescription: x\n---\n");
        let (code, output) = new(&["undecided"]);
        assert!(code == 2 && output.contains("choose one with --template: answer, report"), "{output}");
        let (code, output) = new(&["misspelt", "--template", "answ"]);
        assert!(code == 2 && output.contains("(did you mean \"answer\"?)"), "{output}");
        assert_eq!(new(&["chosen", "--template", "report"]).0, 0);
        for refused in ["../x", "X", "a//b", "/a", "a/../../b"] {
            let (code, output) = new(&[refused]);
            assert!(code == 2 && output.contains("is not valid"), "{refused}: {output}");
        }
    }

    #[test]
    fn a_new_skill_is_written_through_no_link() {
        let outside = directory(&[]);
        let dir = directory(&[("templates/a/skill.json", "{}")]);
        symlink("/etc/hostname", dir.path().join("templates/a/link")).unwrap();
        let output = run(dir.path(), &["new", "x", "--dir", "."]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("link is a symbolic link"), "{}", shown(&output));
        fs::remove_file(dir.path().join("templates/a/link")).unwrap();
        symlink(outside.path(), dir.path().join("skills")).unwrap();
        let output = run(dir.path(), &["new", "x", "--dir", "."]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("a link is not followed"), "{}", shown(&output));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn skills_are_exported_and_imported_again() {
        let dir = tempfile::tempdir().unwrap();
        let imported = run(&top(), &[&["import", EXAMPLE][..], &IMAGE].concat());
        let export = ["export", "--format", "agent-skill", "-", "-o", "out"];
        let exported = run_with_stdin(dir.path(), &export, &stdout(&imported));
        assert_snapshot!(shown(&exported));
        let text = fs::read_to_string(dir.path().join("out/orders-refund/SKILL.md")).unwrap();
        assert!(text.starts_with(
            "---\nname: orders-refund\ndescription: \"Decide whether an order can be refunded\"\n---\n\n# deadline\n"
        ));
        let again = run(dir.path(), &[&["import", "out"][..], &IMAGE].concat());
        assert_eq!(again.status.code(), Some(0), "{}", shown(&again));
        for kept in ["script.sh: |", "goal: Decide whether an order can be refunded", "# deadline"] {
            assert!(stdout(&imported).contains(kept) && stdout(&again).contains(kept), "{kept}: {}", shown(&again));
        }
        let twice = run_with_stdin(dir.path(), &export, &stdout(&imported));
        assert_eq!(twice.status.code(), Some(1));
        assert!(stderr(&twice).contains("exists already"), "{}", shown(&twice));
    }

    #[test]
    fn an_export_reads_the_manifests_of_a_directory_and_writes_nothing_with_an_error() {
        let manifest = |name: &str| {
            format!(
                "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {{name: {name}}}\nspec:\n  problem: {{statement: x}}\n"
            )
        };
        let dir = directory(&[("in/a.yaml", &manifest("a")), ("in/b.yml", &manifest("b--c")), ("in/notes.txt", "x")]);
        let args = ["export", "--format", "agent-skill", "in", "-o", "out"];
        let output = run(dir.path(), &args);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("in/b.yml:3:"), "{}", shown(&output));
        assert!(!dir.path().join("out").exists());
        fs::remove_file(dir.path().join("in/b.yml")).unwrap();
        let output = run(dir.path(), &args);
        assert_eq!(
            (output.status.code(), stdout(&output).as_str()),
            (Some(0), "out/a/SKILL.md\n"),
            "{}",
            shown(&output)
        );
    }

    /// Runs every `sh` block of the page in one shell and in an empty directory. In place of kubectl, a script checks that the
    /// applied manifests pass lint.
    #[test]
    fn the_commands_of_the_page_work_from_an_empty_directory() {
        let page = fs::read_to_string(top().join("docs/how-to/skills-repository.md")).unwrap();
        let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        let script: String = blocks.collect::<Vec<_>>().join("\n");
        assert!(script.contains("kubectl apply -f skills.yaml") && script.contains("bloomery new"), "{script}");
        let dir = directory(&[
            ("bin/kubectl", "#!/bin/sh\nif [ \"$1\" = apply ]; then exec bloomery lint \"$3\"; fi\n"),
            ("work/empty", ""),
        ]);
        let kubectl = dir.path().join("bin/kubectl");
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
        let programs = Path::new(env!("CARGO_BIN_EXE_bloomery")).parent().unwrap();
        let path = format!("{}/bin:{}:{}", dir.path().display(), programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &script]).current_dir(dir.path().join("work"));
        let output = shell.env_clear().env("PATH", path).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
        let skills = fs::read_to_string(dir.path().join("work/skills.yaml")).unwrap();
        assert!(skills.contains("  name: orders-refund\n"), "{skills}");
    }
}
