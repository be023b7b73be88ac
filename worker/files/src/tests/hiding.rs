//! A directory that is hidden: the memory of Jobs, within what is bound.

use super::escapes::{ALL, about};
use super::*;
use rstest::rstest;

const LOG: &str = "memory/greeter/jobs/log";

/// A codebase that holds the memory, with all that leads there from within.
fn stand() -> Stand {
    let stand = Stand::of(&[("src/a", "shown\n"), (LOG, "outside\n"), ("memory/greeter/.git/HEAD", "outside\n")]);
    for (to, link) in [
        ("memory", "to-memory"),
        ("memory/greeter", "to-slag"),
        ("../memory/greeter/jobs", "src/to-jobs"),
        (LOG, "to-log"),
        ("to-log", "hop"),
        ("src/../src/.././memory/greeter/jobs/log", "winding"),
        ("memory/greeter/.git", ".git"),
    ] {
        unix::symlink(to, stand.at(link)).unwrap();
    }
    stand
}

fn hiding(stand: &Stand) -> Workspace {
    stand.workspace().hiding(&[&stand.at("memory")]).unwrap()
}

/// Nobody reads, finds or changes anything by this path.
#[track_caller]
fn is_not_reached(stand: &Stand, workspace: &Workspace, path: &str) {
    let before = tree(stand.dir.path());
    for tool in ALL {
        let error = workspace.call(tool, &about(tool, path).to_string()).unwrap_err().to_string();
        assert_eq!(tree(stand.dir.path()), before, "{tool:?} {path}");
        assert!(!error.contains("outside"), "{tool:?} {path}: {error}");
        // Links are not written through, wherever they lead.
        let says =
            ["it is in the memory of Jobs, which no file tool reaches", "is a symbolic link", "version control's"];
        assert!(says.iter().any(|says| error.contains(says)), "{tool:?} {path}: {error}");
    }
}

#[rstest]
#[case::itself("memory")]
#[case::a_directory("memory/greeter/jobs")]
#[case::a_file(LOG)]
#[case::spelt_otherwise("./memory//greeter/./jobs/log/")]
#[case::what_is_not_there("memory/greeter/jobs/new")]
#[case::in_a_directory_that_is_not_there("memory/greeter/new/deep/new")]
#[case::by_a_link("to-memory/greeter/jobs/log")]
#[case::by_a_link_to_a_slag("to-slag/jobs/log")]
#[case::by_a_link_further_down("src/to-jobs/log")]
#[case::by_a_link_to_the_file("to-log")]
#[case::by_several_links("hop")]
#[case::by_a_winding_link("winding")]
#[case::as_version_control(".git/HEAD")]
fn what_is_hidden_is_reached_by_no_path(#[case] path: &str) {
    let stand = stand();
    is_not_reached(&stand, &hiding(&stand), path);
    let absolute = format!("{}/{path}", stand.root().display());
    is_not_reached(&stand, &hiding(&stand), &absolute);
}

#[test]
fn what_is_hidden_is_not_listed_found_or_summed_up() {
    let stand = stand();
    let workspace = hiding(&stand);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string()).unwrap();
    let listed = call(Tool::List, json!({"depth": 32}));
    assert!(listed.contains("src/a  6 bytes") && listed.contains("to-memory -> memory\n"), "{listed}");
    assert!(!listed.contains("memory/\n") && !listed.contains("jobs/log  "), "{listed}");
    assert_eq!(call(Tool::List, json!({"glob": "**/log"})).lines().filter(|line| line.contains(" bytes")).count(), 0);
    let found = call(Tool::Search, json!({"pattern": "outside|shown"}));
    assert_eq!(found, "src/a\n  1: shown\n[1 match in 1 file, of 1 looked at]");
    for overview in workspace.overviews(Wanted { structure: true, changes: true }) {
        let text = overview.text.unwrap();
        assert!(text.contains("src/a") && !text.contains("greeter/jobs/log  ") && !text.contains("git, on"), "{text}");
    }
}

/// The directories of a link's target are not made, whether something is hidden or not.
#[rstest]
#[case::the_link("dangling/file")]
#[case::below_it("dangling/deep/file")]
#[case::by_another_link("hop-there/file")]
fn no_directory_is_made_through_a_link_that_leads_nowhere(#[case] path: &str) {
    let stand = stand();
    unix::symlink("src/nowhere/further", stand.at("dangling")).unwrap();
    unix::symlink("dangling", stand.at("hop-there")).unwrap();
    let before = tree(stand.dir.path());
    for workspace in [stand.workspace(), hiding(&stand)] {
        let write = json!({"path": path, "content": "x", "createDirectories": true}).to_string();
        workspace.call(Tool::Write, &write).unwrap_err().to_string();
        assert_eq!(tree(stand.dir.path()), before);
    }
    // Nor through one that leads somewhere.
    unix::symlink("src", stand.at("leads")).unwrap();
    let before = tree(stand.dir.path());
    for workspace in [stand.workspace(), hiding(&stand)] {
        let write = json!({"path": "leads/one/deep/file", "content": "x", "createDirectories": true}).to_string();
        workspace.call(Tool::Write, &write).unwrap_err().to_string();
        assert_eq!(tree(stand.dir.path()), before);
    }
}

/// It is known by what it is: another name does not show it, and another directory of its name is not hidden.
#[test]
fn what_is_hidden_may_be_renamed() {
    let stand = stand();
    let workspace = hiding(&stand);
    fs::rename(stand.at("memory"), stand.at("Memory")).unwrap();
    is_not_reached(&stand, &workspace, "Memory/greeter/jobs/log");
    fs::rename(stand.at("Memory"), stand.at("src/deeper")).unwrap();
    is_not_reached(&stand, &workspace, "src/deeper/greeter");
    stand.put("memory/a", "another\n");
    let read = workspace.call(Tool::Read, &json!({"path": "memory/a"}).to_string()).unwrap();
    assert!(read.starts_with("another"), "{read}");
    // Brought back by way of a mount, it would be the same directory; so would be what a resource was swapped for.
    fs::remove_dir_all(stand.at("memory")).unwrap();
    fs::rename(stand.at("src/deeper"), stand.dir.path().join("kept")).unwrap();
    fs::rename(stand.root(), stand.dir.path().join("away")).unwrap();
    fs::rename(stand.dir.path().join("kept"), stand.root()).unwrap();
    is_not_reached(&stand, &workspace, "greeter/jobs/log");
}

#[test]
fn nothing_in_what_is_hidden_is_a_resource() {
    let stand = stand();
    for within in ["memory", "memory/greeter", LOG, "to-slag"] {
        let binding = Binding { name: "code".into(), path: stand.at(within), read_only: false };
        let workspace = Workspace::new(vec![binding]).hiding(&[&stand.at("memory")]).unwrap();
        let error = workspace.call(Tool::List, "{}").unwrap_err().to_string();
        assert!(error.contains("it is in the memory of Jobs"), "{within}: {error}");
    }
    assert!(stand.workspace().hiding(&[&stand.at("none")]).is_err());
}

/// A part of the memory may lie elsewhere: a link in it leads there.
#[test]
fn several_directories_are_hidden() {
    let stand = stand();
    fs::rename(stand.at("memory/greeter"), stand.at("src/slag")).unwrap();
    unix::symlink("../src/slag", stand.at("memory/greeter")).unwrap();
    let slag = stand.at("memory/greeter");
    let workspace = stand.workspace().hiding(&[&stand.at("memory"), &slag]).unwrap();
    for path in ["src/slag/jobs/log", "memory/greeter", "memory"] {
        is_not_reached(&stand, &workspace, path);
    }
    let listed = workspace.call(Tool::List, &json!({"path": "src"}).to_string()).unwrap();
    assert!(!listed.contains("slag/") && listed.contains("src/a"), "{listed}");
}

/// What is beside it is read and changed as ever, with directories that are made on the way too.
#[test]
fn what_is_beside_is_changed_as_ever() {
    let stand = stand();
    let workspace = hiding(&stand);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string());
    call(Tool::Write, json!({"path": "src/new/deep/b", "content": "one\n", "createDirectories": true})).unwrap();
    call(Tool::Edit, json!({"path": "src/new/deep/b", "oldText": "one", "newText": "two"})).unwrap();
    call(Tool::Patch, json!({"patch": "--- /dev/null\n+++ b/docs/c\n@@ -0,0 +1 @@\n+three\n"})).unwrap();
    call(Tool::Patch, json!({"patch": "--- src/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-shown\n"})).unwrap();
    assert_eq!((stand.get("src/new/deep/b").as_str(), stand.get("docs/c").as_str()), ("two\n", "three\n"));
    assert!(!stand.at("src/a").exists() && is_tidy(&stand));
    let error = call(Tool::Write, json!({"path": "no/b", "content": "x"})).unwrap_err().to_string();
    assert!(error.contains("There is no directory `no`: set createDirectories"), "{error}");
}

#[test]
fn links_that_go_round_are_not_followed_for_ever() {
    let stand = stand();
    unix::symlink("round", stand.at("round")).unwrap();
    unix::symlink("b/x", stand.at("a")).unwrap();
    unix::symlink("a/x", stand.at("b")).unwrap();
    let workspace = hiding(&stand);
    for path in ["round", "round/x", "a", "b/y"] {
        let error = workspace.call(Tool::Read, &json!({"path": path}).to_string()).unwrap_err().to_string();
        assert!(error.contains("too many symbolic links"), "{path}: {error}");
    }
}

/// A directory and a link into the memory take turns.
#[test]
fn a_link_into_it_that_is_swapped_in_is_not_followed() {
    let stand = Stand::of(&[("dir/log", "inside\n"), ("memory/log", "outside\n")]);
    unix::symlink("memory", stand.at("other")).unwrap();
    let workspace = hiding(&stand);
    let call = |tool, arguments: Value| workspace.call(tool, &arguments.to_string());
    super::racing::racing(&stand, "dir", ["other", "other"], || {
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
    assert_eq!(stand.get("memory/log"), "outside\n");
    assert!(!stand.at("memory/new").exists());
}
