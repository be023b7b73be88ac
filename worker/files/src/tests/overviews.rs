use super::*;
use std::time::Duration;

const BOTH: OverviewSelection = OverviewSelection { structure: true, changes: true };

/// Sets the modification time of a file to this many seconds after the start of 2026.
fn set_modified(fixture: &Fixture, path: &str, seconds: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds);
    fs::File::options().append(true).open(fixture.at(path)).unwrap().set_modified(time).unwrap();
}

fn texts(overviews: Vec<Overview>) -> Vec<String> {
    overviews.into_iter().map(|overview| overview.text.unwrap()).collect()
}

#[test]
fn overviews_show_the_structure_and_the_recent_changes() {
    let fixture = Fixture::with_files(&[
        ("src/main.rs", "fn main() {}\n"),
        ("README.md", "# A\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (
            ".git/logs/HEAD",
            "0 1 Jane <j@x> 1767225600 +0000\tcommit (initial): Begin\n1 2 Jane <j@x> 1767225660 +0000\tcommit: Go on\n",
        ),
    ]);
    set_modified(&fixture, "README.md", 1);
    set_modified(&fixture, "src/main.rs", 2);
    assert_eq!(
        texts(fixture.workspace().overviews(BOTH)),
        [
            ".git/\nREADME.md  4 bytes\nsrc/\nsrc/main.rs  13 bytes\n\
             [4 entries; end of list; version control directories, not entered: `.git`]",
            "2026-01-01T00:00:02Z  src/main.rs\n2026-01-01T00:00:01Z  README.md\ngit, on main:\n\
             2026-01-01T00:01:00Z  commit: Go on\n2026-01-01T00:00:00Z  commit (initial): Begin\n",
        ]
    );
}

#[test]
fn only_selected_overviews_of_a_resource_that_is_one_file_are_returned() {
    let fixture = Fixture::with_files(&[("notes.md", "one\n")]);
    set_modified(&fixture, "notes.md", 0);
    let file = Workspace::new(vec![Binding { name: "notes".into(), path: fixture.at("notes.md"), read_only: true }]);
    assert_eq!(file.overviews(OverviewSelection { structure: false, changes: false }), []);
    let changes = file.overviews(OverviewSelection { structure: false, changes: true });
    assert_eq!(changes[0].kind, OverviewKind::Changes);
    assert_eq!(texts(changes), ["2026-01-01T00:00:00Z  notes.md\n"]);
    assert_eq!(
        texts(file.overviews(OverviewSelection { structure: true, changes: false })),
        ["notes.md  4 bytes\n[the path is that of a file]"]
    );
}

/// In a worktree, `.git` is a file that names another directory. A link may lead out of the resource.
#[test]
fn git_operations_of_another_directory_are_not_listed() {
    let fixture = Fixture::with_files(&[("a", "x"), (".git", "gitdir: /elsewhere\n")]);
    let overviews = texts(fixture.workspace().overviews(OverviewSelection { structure: false, changes: true }));
    assert!(!overviews[0].contains("git,"), "{overviews:?}");
    fs::remove_file(fixture.at(".git")).unwrap();
    fs::create_dir(fixture.dir.path().join("elsewhere")).unwrap();
    fs::write(fixture.dir.path().join("elsewhere/HEAD"), "ref: refs/heads/outside\n").unwrap();
    unix::symlink("../elsewhere", fixture.at(".git")).unwrap();
    let overviews = texts(fixture.workspace().overviews(OverviewSelection { structure: false, changes: true }));
    assert!(!overviews[0].contains("outside"), "{overviews:?}");
}

#[test]
fn overviews_are_limited_in_size_and_contain_errors() {
    let fixture = Fixture::new();
    for file in 0..500 {
        fixture.put(&format!("{file:03}-{}", "x".repeat(80)), "");
    }
    let bound = |name: &str, path: std::path::PathBuf| Binding { name: name.into(), path, read_only: true };
    let mut bindings: Vec<Binding> = (0..4).map(|at| bound(&format!("r{at}"), fixture.root())).collect();
    bindings.insert(0, bound("gone", fixture.at("gone")));
    let overviews = Workspace::new(bindings).overviews(BOTH);
    assert_eq!(overviews.len(), 10);
    let text = |at: usize| overviews[at].text.clone();
    assert_eq!(text(0).unwrap_err().to_string(), "The resource `gone` does not exist. Nothing was changed.");
    assert!(text(2).unwrap().contains("more entries exist"));
    assert_eq!(text(8).unwrap_err().to_string(), "The overviews together are larger than the limit.");
    let all: usize = overviews.iter().filter_map(|overview| overview.text.as_ref().ok()).map(String::len).sum();
    assert!(all <= 16 * 1024, "{all}");
}
