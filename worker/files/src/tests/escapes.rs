//! Attempts to reach files outside of a binding, and special files in a binding.

use super::*;
use rstest::rstest;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

pub(super) const ALL_TOOLS: [Tool; 6] = [Tool::Read, Tool::List, Tool::Search, Tool::Write, Tool::Edit, Tool::Patch];

/// Returns the arguments of a call of a tool for a path.
pub(super) fn arguments_for(tool: Tool, path: &str) -> Value {
    match tool {
        Tool::Read | Tool::List => json!({"path": path}),
        Tool::Search => json!({"path": path, "pattern": "outside"}),
        Tool::Write => json!({"path": path, "content": "changed", "createDirectories": true}),
        Tool::Edit => json!({"path": path, "oldText": "outside", "newText": "changed"}),
        Tool::Patch => json!({"patch": format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-outside\n+changed\n")}),
    }
}

/// Asserts that no tool reads or changes the file outside through this path.
fn assert_stays_inside(fixture: &Fixture, path: &str) {
    for tool in ALL_TOOLS {
        let error = fixture.expect_refusal(tool, arguments_for(tool, path));
        assert!(!error.contains("outside"), "{tool:?} {path}: {error}");
    }
}

#[rstest]
#[case::up("../secret")]
#[case::up_from_below("sub/../../secret")]
#[case::absolute("/etc/passwd")]
#[case::absolute_with_more("//etc/passwd")]
#[case::the_process_root("/proc/self/root/etc/passwd")]
fn no_tool_reaches_a_path_outside_of_the_resource(#[case] path: &str) {
    let fixture = Fixture::with_files(&[("sub/a", "x")]);
    assert_stays_inside(&fixture, path);
    let absolute = fixture.outside();
    assert_stays_inside(&fixture, absolute.to_str().unwrap());
}

#[rstest]
#[case::relative("../secret", "link")]
#[case::relative_directory("..", "link/secret")]
#[case::in_the_middle("../..", "sub/link/secret")]
#[case::through_another_link("hop", "link/secret")]
#[case::the_root("/", "link/etc/passwd")]
#[case::link_to_the_process_root("/proc/self/root", "link/etc/passwd")]
fn no_tool_follows_a_link_out_of_the_resource(#[case] to: &str, #[case] path: &str) {
    let fixture = Fixture::with_files(&[("sub/a", "x")]);
    unix::symlink("..", fixture.at("hop")).unwrap();
    let link = path.split("link").next().unwrap().to_owned() + "link";
    unix::symlink(to, fixture.at(&link)).unwrap();
    assert_stays_inside(&fixture, path);
}

#[test]
fn no_tool_follows_an_absolute_link_to_a_file_outside() {
    let fixture = Fixture::new();
    unix::symlink(fixture.outside(), fixture.at("link")).unwrap();
    assert_stays_inside(&fixture, "link");
}

/// A write must not create the target of a dangling link.
#[test]
fn a_dangling_link_is_not_written_through() {
    let fixture = Fixture::new();
    unix::symlink("../made", fixture.at("link")).unwrap();
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = fixture.expect_refusal(tool, arguments_for(tool, "link"));
        assert!(error.contains("is a symbolic link to ../made, and no file is written through a link"), "{error}");
    }
    let patch = "--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+x\n";
    fixture.expect_refusal(Tool::Patch, json!({"patch": patch}));
    // No directory is created through a dangling link either.
    unix::symlink("../elsewhere", fixture.at("dir")).unwrap();
    fixture.expect_refusal(Tool::Write, json!({"path": "dir/a/b", "content": "x", "createDirectories": true}));
    assert!(!fixture.dir.path().join("made").exists() && !fixture.dir.path().join("elsewhere").exists());
}

#[test]
fn a_link_within_the_resource_is_read_and_not_written() {
    let fixture = Fixture::with_files(&[("sub/a", "within\n")]);
    unix::symlink("sub/a", fixture.at("link")).unwrap();
    unix::symlink("sub", fixture.at("dir")).unwrap();
    assert!(fixture.expect_answer(Tool::Read, json!({"path": "link"})).starts_with("within\n"));
    assert!(fixture.expect_answer(Tool::Read, json!({"path": "dir/a"})).starts_with("within\n"));
    let error = fixture.expect_refusal(Tool::Write, json!({"path": "link", "content": "x"}));
    assert!(error.contains("symbolic link to sub/a"), "{error}");
    for path in ["dir/a", "dir/new", "dir/deep/new"] {
        let error =
            fixture.expect_refusal(Tool::Write, json!({"path": path, "content": "x", "createDirectories": true}));
        assert!(error.contains("`dir` is a symbolic link to sub, and no file is written through a link"), "{error}");
    }
    assert_eq!(fixture.get("sub/a"), "within\n");
    assert!(!fixture.at("sub/new").exists() && !fixture.at("sub/deep").exists());
}

/// An untrusted repository may contain links to its own `.git`.
#[rstest]
#[case::of_the_directory("vendor", ".git", "vendor/config")]
#[case::below("docs/inner", "../.git", "docs/inner/config")]
#[case::of_a_subdirectory("h", ".git/hooks", "h/post-commit")]
#[case::through_another_link("twice", "once", "twice/config")]
fn version_control_is_not_written_through_links(#[case] link: &str, #[case] to: &str, #[case] path: &str) {
    let fixture =
        Fixture::with_files(&[(".git/config", "outside\n"), (".git/hooks/post-commit", "outside\n"), ("docs/a", "x")]);
    unix::symlink(".git", fixture.at("once")).unwrap();
    unix::symlink(to, fixture.at(link)).unwrap();
    let before = tree(fixture.dir.path());
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = fixture.expect_refusal(tool, arguments_for(tool, path));
        assert!(error.contains("symbolic link"), "{error}");
    }
    assert_eq!(tree(fixture.dir.path()), before);
}

/// Files of version control can run as programs, so a binding within them is read-only even if `read_only` is not set.
#[rstest]
#[case::the_directory(".git")]
#[case::a_subdirectory(".git/hooks")]
#[case::one_file(".git/config")]
#[case::by_a_link("link")]
fn a_binding_in_version_control_is_read_only(#[case] bound: &str) {
    let fixture = Fixture::with_files(&[(".git/config", "outside\n"), (".git/hooks/post-commit", "outside\n")]);
    unix::symlink(".git/config", fixture.at("link")).unwrap();
    let binding = Binding { name: "code".into(), path: fixture.at(bound), read_only: false };
    let is_file = binding.path.is_file();
    let workspace = Workspace::new(vec![binding]);
    let before = tree(fixture.dir.path());
    let file = json!({"path": if is_file { "" } else { "new" }, "content": "x"});
    let error = workspace.call(Tool::Write, &file.to_string()).unwrap_err().to_string();
    assert!(error.contains("in a directory of version control"), "{error}");
    assert_eq!(tree(fixture.dir.path()), before);
}

/// Links out of the resource and circles of links are not followed.
#[test]
fn listings_and_searches_follow_no_links() {
    let fixture = Fixture::with_files(&[("sub/a", "inside outside\n")]);
    unix::symlink("..", fixture.at("sub/up")).unwrap();
    unix::symlink("..", fixture.at("out")).unwrap();
    unix::symlink("../secret", fixture.at("file")).unwrap();
    let listed = fixture.expect_answer(Tool::List, json!({"depth": 32}));
    assert_eq!(listed.lines().count(), 6, "{listed}");
    let found = fixture.expect_answer(Tool::Search, json!({"pattern": "outside"}));
    assert_eq!(found, "sub/a\n  1: inside outside\n[1 match in 1 file, of 1 searched]");
}

/// Creates a named pipe or a device. Returns whether this succeeded.
fn make(kind: &str, path: &Path) -> bool {
    let made = match kind {
        "fifo" => Command::new("mkfifo").arg(path).status(),
        // `/dev/zero`, which never ends.
        _ => Command::new("mknod").arg(path).args(["c", "1", "5"]).status(),
    };
    made.unwrap().success()
}

/// Opening a named pipe waits for its other end, and opening a device can have any effect.
#[rstest]
#[case::fifo("fifo", "a named pipe")]
#[case::device("device", "a device")]
fn pipes_and_devices_are_not_opened(#[case] kind: &str, #[case] described: &str) {
    let fixture = Fixture::new();
    if !make(kind, &fixture.at("it")) {
        // Only root can create devices.
        assert_eq!(kind, "device");
        return;
    }
    for tool in ALL_TOOLS {
        let error = fixture.expect_refusal(tool, arguments_for(tool, "it"));
        assert!(error.contains(described), "{tool:?}: {error}");
    }
    assert_eq!(fixture.expect_answer(Tool::List, json!({})), format!("it  ({described})\n[1 entry; end of list]"));
    assert_eq!(fixture.expect_answer(Tool::Search, json!({"pattern": "x"})), "[0 matches in 0 files, of 0 searched]");
}

/// Another process replaces a file by a pipe after the check of the name. The check of the open file detects the pipe.
#[test]
fn a_pipe_that_was_swapped_in_is_detected_once_it_is_open() {
    let fixture = Fixture::new();
    assert!(make("fifo", &fixture.at("it")));
    let root = Root::open(&Binding { name: "code".into(), path: fixture.root(), read_only: true }, None).unwrap();
    let mut options = cap_std::fs::OpenOptions::new();
    cap_fs_ext::OpenOptionsSyncExt::nonblock(options.read(true), true);
    let opened = root.dir.open_with("it", &options).unwrap();
    assert_eq!(root::kind(&opened.metadata().unwrap()), "a named pipe");
}

#[test]
fn a_socket_is_refused() {
    let fixture = Fixture::new();
    let _listener = std::os::unix::net::UnixListener::bind(fixture.at("it")).unwrap();
    for tool in ALL_TOOLS {
        let error = fixture.expect_refusal(tool, arguments_for(tool, "it"));
        assert!(error.contains("a socket"), "{error}");
    }
}

/// A hard link to a file outside looks like any other file. The file outside must not change.
#[rstest]
#[case::written(Tool::Write)]
#[case::edited(Tool::Edit)]
#[case::patched(Tool::Patch)]
fn a_hard_link_is_replaced_and_not_written_through(#[case] tool: Tool) {
    let fixture = Fixture::new();
    fs::hard_link(fixture.outside(), fixture.at("it")).unwrap();
    let answer = fixture.expect_answer(tool, arguments_for(tool, "it"));
    let has_note = answer.contains("had 2 names (hard links); only this one has the new content.");
    assert!(has_note && !answer.contains(".."), "{answer}");
    assert!(fixture.get("it").starts_with("changed"));
    assert_eq!(fs::read_to_string(fixture.outside()).unwrap(), "outside");
    assert_eq!(fixture.outside().metadata().unwrap().nlink(), 1);
}

/// Files of version control can run as programs when a person uses the version control system.
#[rstest]
#[case::as_it_is(".git/hooks/post-checkout")]
#[case::in_upper_case(".GIT/config")]
#[case::with_an_invisible_character(".g\u{200c}it/config")]
#[case::of_a_submodule("sub/.git")]
#[case::of_another_system(".hg/hgrc")]
fn version_control_is_read_and_never_written(#[case] path: &str) {
    let fixture = Fixture::with_files(&[(path, "outside\n")]);
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = fixture.expect_refusal(tool, arguments_for(tool, path));
        assert!(error.contains("in a directory of version control"), "{error}");
    }
    assert!(fixture.expect_answer(Tool::Read, json!({"path": path})).starts_with("outside"));
}

/// Two names can be the same file: hard links, or names that differ in case only.
#[test]
fn two_names_of_one_file_are_not_patched_as_two() {
    let fixture = Fixture::with_files(&[("Readme", "one\n")]);
    fs::hard_link(fixture.at("Readme"), fixture.at("README")).unwrap();
    let patch = ["Readme", "README"].map(|name| format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-one\n+two\n")).concat();
    let error = fixture.expect_refusal(Tool::Patch, json!({"patch": patch}));
    assert!(error.contains("`Readme` and `README` are the same file"), "{error}");
}
