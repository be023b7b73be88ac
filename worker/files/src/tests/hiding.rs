//! A hidden directory within a binding: the memory of Jobs.

use super::escapes::{ALL_TOOLS, arguments_for};
use super::*;
use rstest::rstest;

const LOG: &str = "memory/greeter/jobs/log";

/// A codebase with the memory in it, and many links to the memory.
fn codebase_with_memory() -> Fixture {
    let fixture =
        Fixture::with_files(&[("src/a", "shown\n"), (LOG, "outside\n"), ("memory/greeter/.git/HEAD", "outside\n")]);
    for (to, link) in [
        ("memory", "to-memory"),
        ("memory/greeter", "to-skill-dir"),
        ("../memory/greeter/jobs", "src/to-jobs"),
        (LOG, "to-log"),
        ("to-log", "hop"),
        ("src/../src/.././memory/greeter/jobs/log", "winding"),
        ("memory/greeter/.git", ".git"),
    ] {
        unix::symlink(to, fixture.at(link)).unwrap();
    }
    fixture
}

/// Returns the workspace of the codebase, with its directory `memory` hidden.
fn workspace_without_memory(fixture: &Fixture) -> Workspace {
    fixture.workspace().with_hidden_dirs(&[&fixture.at("memory")]).unwrap()
}

/// Asserts that no tool reads, finds or changes anything at this path.
#[track_caller]
fn assert_hidden(fixture: &Fixture, workspace: &Workspace, path: &str) {
    let before = tree(fixture.dir.path());
    for tool in ALL_TOOLS {
        let error = workspace.call(tool, &arguments_for(tool, path).to_string()).unwrap_err().to_string();
        assert_eq!(tree(fixture.dir.path()), before, "{tool:?} {path}");
        assert!(!error.contains("outside"), "{tool:?} {path}: {error}");
        // Writing tools refuse every link.
        let reasons = [
            "it is in the memory of Jobs, which the file tools cannot access",
            "is a symbolic link",
            "in a directory of version control",
        ];
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{tool:?} {path}: {error}");
    }
}

#[rstest]
#[case::itself("memory")]
#[case::a_directory("memory/greeter/jobs")]
#[case::a_file(LOG)]
#[case::in_another_spelling("./memory//greeter/./jobs/log/")]
#[case::a_missing_file("memory/greeter/jobs/new")]
#[case::in_a_missing_directory("memory/greeter/new/deep/new")]
#[case::by_a_link("to-memory/greeter/jobs/log")]
#[case::by_a_link_to_a_skill_directory("to-skill-dir/jobs/log")]
#[case::by_a_link_further_down("src/to-jobs/log")]
#[case::by_a_link_to_the_file("to-log")]
#[case::by_several_links("hop")]
#[case::by_a_winding_link("winding")]
#[case::as_version_control(".git/HEAD")]
fn no_tool_reaches_a_path_in_a_hidden_directory(#[case] path: &str) {
    let fixture = codebase_with_memory();
    assert_hidden(&fixture, &workspace_without_memory(&fixture), path);
    let absolute = format!("{}/{path}", fixture.root().display());
    assert_hidden(&fixture, &workspace_without_memory(&fixture), &absolute);
}

#[test]
fn a_hidden_directory_is_not_listed_searched_or_in_overviews() {
    let fixture = codebase_with_memory();
    let workspace = workspace_without_memory(&fixture);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string()).unwrap();
    let listed = call(Tool::List, json!({"depth": 32}));
    assert!(listed.contains("src/a  6 bytes") && listed.contains("to-memory -> memory\n"), "{listed}");
    assert!(!listed.contains("memory/\n") && !listed.contains("jobs/log  "), "{listed}");
    assert_eq!(call(Tool::List, json!({"glob": "**/log"})).lines().filter(|line| line.contains(" bytes")).count(), 0);
    let found = call(Tool::Search, json!({"pattern": "outside|shown"}));
    assert_eq!(found, "src/a\n  1: shown\n[1 match in 1 file, of 1 searched]");
    for overview in workspace.overviews(OverviewSelection { structure: true, changes: true }) {
        let text = overview.text.unwrap();
        assert!(text.contains("src/a") && !text.contains("greeter/jobs/log  ") && !text.contains("git, on"), "{text}");
    }
}

#[rstest]
#[case::the_link("dangling/file")]
#[case::below_it("dangling/deep/file")]
#[case::by_another_link("hop-there/file")]
fn no_directory_is_created_through_a_link(#[case] path: &str) {
    let fixture = codebase_with_memory();
    unix::symlink("src/nowhere/further", fixture.at("dangling")).unwrap();
    unix::symlink("dangling", fixture.at("hop-there")).unwrap();
    let before = tree(fixture.dir.path());
    for workspace in [fixture.workspace(), workspace_without_memory(&fixture)] {
        let write = json!({"path": path, "content": "x", "createDirectories": true}).to_string();
        workspace.call(Tool::Write, &write).unwrap_err().to_string();
        assert_eq!(tree(fixture.dir.path()), before);
    }
    // The same with a link to an existing directory.
    unix::symlink("src", fixture.at("leads")).unwrap();
    let before = tree(fixture.dir.path());
    for workspace in [fixture.workspace(), workspace_without_memory(&fixture)] {
        let write = json!({"path": "leads/one/deep/file", "content": "x", "createDirectories": true}).to_string();
        workspace.call(Tool::Write, &write).unwrap_err().to_string();
        assert_eq!(tree(fixture.dir.path()), before);
    }
}

/// The directory is identified by its inode, not by its name.
#[test]
fn a_hidden_directory_stays_hidden_when_it_is_renamed() {
    let fixture = codebase_with_memory();
    let workspace = workspace_without_memory(&fixture);
    fs::rename(fixture.at("memory"), fixture.at("Memory")).unwrap();
    assert_hidden(&fixture, &workspace, "Memory/greeter/jobs/log");
    fs::rename(fixture.at("Memory"), fixture.at("src/deeper")).unwrap();
    assert_hidden(&fixture, &workspace, "src/deeper/greeter");
    fixture.put("memory/a", "another\n");
    let read = workspace.call(Tool::Read, &json!({"path": "memory/a"}).to_string()).unwrap();
    assert!(read.starts_with("another"), "{read}");
    // The hidden directory takes the place of the resource itself.
    fs::remove_dir_all(fixture.at("memory")).unwrap();
    fs::rename(fixture.at("src/deeper"), fixture.dir.path().join("kept")).unwrap();
    fs::rename(fixture.root(), fixture.dir.path().join("away")).unwrap();
    fs::rename(fixture.dir.path().join("kept"), fixture.root()).unwrap();
    assert_hidden(&fixture, &workspace, "greeter/jobs/log");
}

#[test]
fn a_resource_in_a_hidden_directory_cannot_be_opened() {
    let fixture = codebase_with_memory();
    for within in ["memory", "memory/greeter", LOG, "to-skill-dir"] {
        let binding = Binding { name: "code".into(), path: fixture.at(within), read_only: false };
        let workspace = Workspace::new(vec![binding]).with_hidden_dirs(&[&fixture.at("memory")]).unwrap();
        let error = workspace.call(Tool::List, "{}").unwrap_err().to_string();
        assert!(error.contains("it is in the memory of Jobs"), "{within}: {error}");
    }
    assert!(fixture.workspace().with_hidden_dirs(&[&fixture.at("none")]).is_err());
}

/// A directory of the memory may be a link to a directory elsewhere in the binding. Both are hidden.
#[test]
fn several_directories_are_hidden() {
    let fixture = codebase_with_memory();
    fs::rename(fixture.at("memory/greeter"), fixture.at("src/skill-dir")).unwrap();
    unix::symlink("../src/skill-dir", fixture.at("memory/greeter")).unwrap();
    let skill_dir = fixture.at("memory/greeter");
    let workspace = fixture.workspace().with_hidden_dirs(&[&fixture.at("memory"), &skill_dir]).unwrap();
    for path in ["src/skill-dir/jobs/log", "memory/greeter", "memory"] {
        assert_hidden(&fixture, &workspace, path);
    }
    let listed = workspace.call(Tool::List, &json!({"path": "src"}).to_string()).unwrap();
    assert!(!listed.contains("skill-dir/") && listed.contains("src/a"), "{listed}");
}

#[test]
fn other_directories_are_changed_as_usual() {
    let fixture = codebase_with_memory();
    let workspace = workspace_without_memory(&fixture);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string());
    call(Tool::Write, json!({"path": "src/new/deep/b", "content": "one\n", "createDirectories": true})).unwrap();
    call(Tool::Edit, json!({"path": "src/new/deep/b", "oldText": "one", "newText": "two"})).unwrap();
    call(Tool::Patch, json!({"patch": "--- /dev/null\n+++ b/docs/c\n@@ -0,0 +1 @@\n+three\n"})).unwrap();
    call(Tool::Patch, json!({"patch": "--- src/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-shown\n"})).unwrap();
    assert_eq!((fixture.get("src/new/deep/b").as_str(), fixture.get("docs/c").as_str()), ("two\n", "three\n"));
    assert!(!fixture.at("src/a").exists() && is_tidy(&fixture));
    let error = call(Tool::Write, json!({"path": "no/b", "content": "x"})).unwrap_err().to_string();
    assert!(error.contains("The directory `no` does not exist. Nothing was changed. Set createDirectories"), "{error}");
}

#[test]
fn circular_links_are_refused() {
    let fixture = codebase_with_memory();
    unix::symlink("round", fixture.at("round")).unwrap();
    unix::symlink("b/x", fixture.at("a")).unwrap();
    unix::symlink("a/x", fixture.at("b")).unwrap();
    let workspace = workspace_without_memory(&fixture);
    for path in ["round", "round/x", "a", "b/y"] {
        let error = workspace.call(Tool::Read, &json!({"path": path}).to_string()).unwrap_err().to_string();
        assert!(error.contains("too many symbolic links"), "{path}: {error}");
    }
}

#[test]
fn a_link_to_a_hidden_directory_that_is_swapped_in_is_not_followed() {
    let fixture = Fixture::with_files(&[("dir/log", "inside\n"), ("memory/log", "outside\n")]);
    unix::symlink("memory", fixture.at("other")).unwrap();
    let workspace = workspace_without_memory(&fixture);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string());
    super::racing::call_while_swapping(&fixture, "dir", ["other", "other"], || {
        for (tool, arguments) in [
            (Tool::Read, json!({"path": "dir/log"})),
            (Tool::Search, json!({"path": "dir", "pattern": "side"})),
            (Tool::Search, json!({"pattern": "side"})),
        ] {
            if let Ok(answer) = call(tool, arguments) {
                assert!(!answer.contains("outside"), "{answer}");
            }
        }
        let _ = call(Tool::Write, json!({"path": "dir/log", "content": "inside\n"}));
        let _ = call(Tool::Write, json!({"path": "dir/new", "content": "inside\n"}));
    });
    assert_eq!(fixture.get("memory/log"), "outside\n");
    assert!(!fixture.at("memory/new").exists());
}
