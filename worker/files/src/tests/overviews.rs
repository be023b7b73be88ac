use super::*;
use std::time::Duration;

const BOTH: Wanted = Wanted { structure: true, changes: true };

/// Says that a file was changed so many seconds after 2026 began.
fn changed(stand: &Stand, path: &str, seconds: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds);
    fs::File::options().append(true).open(stand.at(path)).unwrap().set_modified(time).unwrap();
}

fn texts(overviews: Vec<Overview>) -> Vec<String> {
    overviews.into_iter().map(|overview| overview.text.unwrap()).collect()
}

#[test]
fn what_there_is_and_what_has_changed_lately() {
    let stand = Stand::of(&[
        ("src/main.rs", "fn main() {}\n"),
        ("README.md", "# A\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (
            ".git/logs/HEAD",
            "0 1 Jane <j@x> 1767225600 +0000\tcommit (initial): Begin\n1 2 Jane <j@x> 1767225660 +0000\tcommit: Go on\n",
        ),
    ]);
    changed(&stand, "README.md", 1);
    changed(&stand, "src/main.rs", 2);
    assert_eq!(
        texts(stand.workspace().overviews(BOTH)),
        [
            ".git/\nREADME.md  4 bytes\nsrc/\nsrc/main.rs  13 bytes\n\
             [4 entries; the end; of version control, not looked into: `.git`]",
            "2026-01-01T00:00:02Z  src/main.rs\n2026-01-01T00:00:01Z  README.md\ngit, on main:\n\
             2026-01-01T00:01:00Z  commit: Go on\n2026-01-01T00:00:00Z  commit (initial): Begin\n",
        ]
    );
}

#[test]
fn what_is_wanted_and_of_one_file_too() {
    let stand = Stand::of(&[("notes.md", "one\n")]);
    changed(&stand, "notes.md", 0);
    let file = Workspace::new(vec![Binding { name: "notes".into(), path: stand.at("notes.md"), read_only: true }]);
    assert_eq!(file.overviews(Wanted { structure: false, changes: false }), []);
    let changes = file.overviews(Wanted { structure: false, changes: true });
    assert_eq!(changes[0].kind, OverviewKind::Changes);
    assert_eq!(texts(changes), ["2026-01-01T00:00:00Z  notes.md\n"]);
    assert_eq!(
        texts(file.overviews(Wanted { structure: true, changes: false })),
        ["notes.md  4 bytes\n[it is one file]"]
    );
}

/// `.git` of a worktree is a file, and one that links elsewhere is not ours to read.
#[test]
fn git_that_is_elsewhere_is_not_told() {
    let stand = Stand::of(&[("a", "x"), (".git", "gitdir: /elsewhere\n")]);
    let told = texts(stand.workspace().overviews(Wanted { structure: false, changes: true }));
    assert!(!told[0].contains("git,"), "{told:?}");
    fs::remove_file(stand.at(".git")).unwrap();
    fs::create_dir(stand.dir.path().join("elsewhere")).unwrap();
    fs::write(stand.dir.path().join("elsewhere/HEAD"), "ref: refs/heads/outside\n").unwrap();
    unix::symlink("../elsewhere", stand.at(".git")).unwrap();
    let told = texts(stand.workspace().overviews(Wanted { structure: false, changes: true }));
    assert!(!told[0].contains("outside"), "{told:?}");
}

#[test]
fn however_much_there_is_an_overview_is_short_and_faults_are_told() {
    let stand = Stand::new();
    for file in 0..500 {
        stand.put(&format!("{file:03}-{}", "x".repeat(80)), "");
    }
    let bound = |name: &str, path: std::path::PathBuf| Binding { name: name.into(), path, read_only: true };
    let mut bindings: Vec<Binding> = (0..4).map(|at| bound(&format!("r{at}"), stand.root())).collect();
    bindings.insert(0, bound("gone", stand.at("gone")));
    let overviews = Workspace::new(bindings).overviews(BOTH);
    assert_eq!(overviews.len(), 10);
    let text = |at: usize| overviews[at].text.clone();
    assert_eq!(text(0).unwrap_err().to_string(), "There is no resource `gone`; nothing was done.");
    assert!(text(2).unwrap().contains("there are more"));
    assert_eq!(text(8).unwrap_err().to_string(), "There is no room for it beside the others.");
    let all: usize = overviews.iter().filter_map(|overview| overview.text.as_ref().ok()).map(String::len).sum();
    assert!(all <= 16 * 1024, "{all}");
}
