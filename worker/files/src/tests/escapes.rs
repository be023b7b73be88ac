//! Attempts to leave a binding, and special files in it.

use super::*;
use rstest::rstest;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

pub(super) const ALL: [Tool; 6] = [Tool::Read, Tool::List, Tool::Search, Tool::Write, Tool::Edit, Tool::Patch];

/// Returns the arguments of a call of a tool for a path.
pub(super) fn about(tool: Tool, path: &str) -> Value {
    match tool {
        Tool::Read | Tool::List => json!({"path": path}),
        Tool::Search => json!({"path": path, "pattern": "outside"}),
        Tool::Write => json!({"path": path, "content": "changed", "createDirectories": true}),
        Tool::Edit => json!({"path": path, "oldText": "outside", "newText": "changed"}),
        Tool::Patch => json!({"patch": format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-outside\n+changed\n")}),
    }
}

/// Asserts that no tool reads or changes the file outside through this path.
fn assert_stays_inside(stand: &Stand, path: &str) {
    for tool in ALL {
        let error = stand.refuses(tool, about(tool, path));
        assert!(!error.contains("outside"), "{tool:?} {path}: {error}");
    }
}

#[rstest]
#[case::up("../secret")]
#[case::up_from_below("sub/../../secret")]
#[case::absolute("/etc/passwd")]
#[case::absolute_with_more("//etc/passwd")]
#[case::the_process_root("/proc/self/root/etc/passwd")]
fn paths(#[case] path: &str) {
    let stand = Stand::of(&[("sub/a", "x")]);
    assert_stays_inside(&stand, path);
    let absolute = stand.outside();
    assert_stays_inside(&stand, absolute.to_str().unwrap());
}

#[rstest]
#[case::relative("../secret", "link")]
#[case::relative_directory("..", "link/secret")]
#[case::in_the_middle("../..", "sub/link/secret")]
#[case::by_way_of_another("hop", "link/secret")]
#[case::the_root("/", "link/etc/passwd")]
#[case::magic("/proc/self/root", "link/etc/passwd")]
fn symbolic_links(#[case] to: &str, #[case] path: &str) {
    let stand = Stand::of(&[("sub/a", "x")]);
    unix::symlink("..", stand.at("hop")).unwrap();
    let link = path.split("link").next().unwrap().to_owned() + "link";
    unix::symlink(to, stand.at(&link)).unwrap();
    assert_stays_inside(&stand, path);
}

#[test]
fn an_absolute_link_to_a_file_outside() {
    let stand = Stand::new();
    unix::symlink(stand.outside(), stand.at("link")).unwrap();
    assert_stays_inside(&stand, "link");
}

/// A write must not create the target of a dangling link.
#[test]
fn a_dangling_link_is_not_written_through() {
    let stand = Stand::new();
    unix::symlink("../made", stand.at("link")).unwrap();
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = stand.refuses(tool, about(tool, "link"));
        assert!(error.contains("is a symbolic link to ../made, and no file is written through a link"), "{error}");
    }
    let patch = "--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+x\n";
    stand.refuses(Tool::Patch, json!({"patch": patch}));
    // No directories are created there either.
    unix::symlink("../elsewhere", stand.at("dir")).unwrap();
    stand.refuses(Tool::Write, json!({"path": "dir/a/b", "content": "x", "createDirectories": true}));
    assert!(!stand.dir.path().join("made").exists() && !stand.dir.path().join("elsewhere").exists());
}

#[test]
fn a_link_within_the_resource_is_read_and_not_written() {
    let stand = Stand::of(&[("sub/a", "within\n")]);
    unix::symlink("sub/a", stand.at("link")).unwrap();
    unix::symlink("sub", stand.at("dir")).unwrap();
    assert!(stand.does(Tool::Read, json!({"path": "link"})).starts_with("within\n"));
    assert!(stand.does(Tool::Read, json!({"path": "dir/a"})).starts_with("within\n"));
    let error = stand.refuses(Tool::Write, json!({"path": "link", "content": "x"}));
    assert!(error.contains("symbolic link to sub/a"), "{error}");
    for path in ["dir/a", "dir/new", "dir/deep/new"] {
        let error = stand.refuses(Tool::Write, json!({"path": path, "content": "x", "createDirectories": true}));
        assert!(error.contains("`dir` is a symbolic link to sub, and no file is written through a link"), "{error}");
    }
    assert_eq!(stand.get("sub/a"), "within\n");
    assert!(!stand.at("sub/new").exists() && !stand.at("sub/deep").exists());
}

/// An untrusted repository may contain links to its own `.git`.
#[rstest]
#[case::of_the_directory("vendor", ".git", "vendor/config")]
#[case::below("docs/inner", "../.git", "docs/inner/config")]
#[case::of_one_in_it("h", ".git/hooks", "h/post-commit")]
#[case::by_way_of_another("twice", "once", "twice/config")]
fn version_control_is_not_written_through_links(#[case] link: &str, #[case] to: &str, #[case] path: &str) {
    let stand = Stand::of(&[(".git/config", "outside\n"), (".git/hooks/post-commit", "outside\n"), ("docs/a", "x")]);
    unix::symlink(".git", stand.at("once")).unwrap();
    unix::symlink(to, stand.at(link)).unwrap();
    let before = tree(stand.dir.path());
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = stand.refuses(tool, about(tool, path));
        assert!(error.contains("symbolic link"), "{error}");
    }
    assert_eq!(tree(stand.dir.path()), before);
}

/// Files there can run as programs, so a binding in them is read-only even if the user did not mean that.
#[rstest]
#[case::the_directory(".git")]
#[case::one_in_it(".git/hooks")]
#[case::one_file(".git/config")]
#[case::by_a_link("link")]
fn a_binding_in_version_control_is_read_only(#[case] bound: &str) {
    let stand = Stand::of(&[(".git/config", "outside\n"), (".git/hooks/post-commit", "outside\n")]);
    unix::symlink(".git/config", stand.at("link")).unwrap();
    let binding = Binding { name: "code".into(), path: stand.at(bound), read_only: false };
    let is_file = binding.path.is_file();
    let workspace = Workspace::new(vec![binding]);
    let before = tree(stand.dir.path());
    let file = json!({"path": if is_file { "" } else { "new" }, "content": "x"});
    let error = workspace.call(Tool::Write, &file.to_string()).unwrap_err().to_string();
    assert!(error.contains("in a directory of version control"), "{error}");
    assert_eq!(tree(stand.dir.path()), before);
}

/// Links out of the resource and circles of links are not followed.
#[test]
fn walks_follow_no_links() {
    let stand = Stand::of(&[("sub/a", "inside outside\n")]);
    unix::symlink("..", stand.at("sub/up")).unwrap();
    unix::symlink("..", stand.at("out")).unwrap();
    unix::symlink("../secret", stand.at("file")).unwrap();
    let listed = stand.does(Tool::List, json!({"depth": 32}));
    assert_eq!(listed.lines().count(), 6, "{listed}");
    let found = stand.does(Tool::Search, json!({"pattern": "outside"}));
    assert_eq!(found, "sub/a\n  1: inside outside\n[1 match in 1 file, of 1 searched]");
}

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
    let stand = Stand::new();
    if !make(kind, &stand.at("it")) {
        // Only root can create devices.
        assert_eq!(kind, "device");
        return;
    }
    for tool in ALL {
        let error = stand.refuses(tool, about(tool, "it"));
        assert!(error.contains(described), "{tool:?}: {error}");
    }
    assert_eq!(stand.does(Tool::List, json!({})), format!("it  ({described})\n[1 entry; end of list]"));
    assert_eq!(stand.does(Tool::Search, json!({"pattern": "x"})), "[0 matches in 0 files, of 0 searched]");
}

/// The check of the name found a file, but then a pipe is opened. The check of the open file detects it.
#[test]
fn a_pipe_that_was_swapped_in_is_detected_once_it_is_open() {
    let stand = Stand::new();
    assert!(make("fifo", &stand.at("it")));
    let root = Root::open(&Binding { name: "code".into(), path: stand.root(), read_only: true }, None).unwrap();
    let mut options = cap_std::fs::OpenOptions::new();
    cap_fs_ext::OpenOptionsSyncExt::nonblock(options.read(true), true);
    let opened = root.dir.open_with("it", &options).unwrap();
    assert_eq!(root::kind(&opened.metadata().unwrap()), "a named pipe");
}

#[test]
fn a_socket_is_refused() {
    let stand = Stand::new();
    let _listener = std::os::unix::net::UnixListener::bind(stand.at("it")).unwrap();
    for tool in ALL {
        let error = stand.refuses(tool, about(tool, "it"));
        assert!(error.contains("a socket"), "{error}");
    }
}

/// A hard link to a file outside looks like any other file. The file outside must not change.
#[rstest]
#[case::written(Tool::Write)]
#[case::edited(Tool::Edit)]
#[case::patched(Tool::Patch)]
fn a_hard_link_is_replaced_and_not_written_through(#[case] tool: Tool) {
    let stand = Stand::new();
    fs::hard_link(stand.outside(), stand.at("it")).unwrap();
    let answer = stand.does(tool, about(tool, "it"));
    let has_note = answer.contains("had 2 names (hard links); only this one has the new content.");
    assert!(has_note && !answer.contains(".."), "{answer}");
    assert!(stand.get("it").starts_with("changed"));
    assert_eq!(fs::read_to_string(stand.outside()).unwrap(), "outside");
    assert_eq!(stand.outside().metadata().unwrap().nlink(), 1);
}

/// Files there can run as programs when a person uses the version control system.
#[rstest]
#[case::as_it_is(".git/hooks/post-checkout")]
#[case::where_upper_and_lower_case_are_the_same(".GIT/config")]
#[case::with_a_character_that_is_not_seen(".g\u{200c}it/config")]
#[case::of_a_submodule("sub/.git")]
#[case::of_another_system(".hg/hgrc")]
fn version_control_is_read_and_never_written(#[case] path: &str) {
    let stand = Stand::of(&[(path, "outside\n")]);
    for tool in [Tool::Write, Tool::Edit, Tool::Patch] {
        let error = stand.refuses(tool, about(tool, path));
        assert!(error.contains("in a directory of version control"), "{error}");
    }
    assert!(stand.does(Tool::Read, json!({"path": path})).starts_with("outside"));
}

/// Two names can be the same file: hard links, or names that differ in case only.
#[test]
fn two_names_of_one_file_are_not_patched_as_two() {
    let stand = Stand::of(&[("Readme", "one\n")]);
    fs::hard_link(stand.at("Readme"), stand.at("README")).unwrap();
    let patch = ["Readme", "README"].map(|name| format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-one\n+two\n")).concat();
    let error = stand.refuses(Tool::Patch, json!({"patch": patch}));
    assert!(error.contains("`Readme` and `README` are the same file"), "{error}");
}
