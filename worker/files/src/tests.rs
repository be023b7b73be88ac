//! The tools on real directories.

mod escapes;
mod hiding;
mod keeping;
mod marking;
mod overviews;
mod patching;
mod racing;
mod reading;
mod writing;

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs as unix;
use std::path::Path;

/// A directory that is bound as `code`, next to a file that is not bound.
struct Fixture {
    dir: tempfile::TempDir,
    read_only: bool,
}

// The arguments are passed as `json!` returns them.
#[allow(clippy::needless_pass_by_value)]
impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("code")).unwrap();
        fs::write(dir.path().join("secret"), "outside").unwrap();
        Self { dir, read_only: false }
    }

    fn with_files(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            fixture.put(path, content);
        }
        fixture
    }

    fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("code")
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.root().join(path)
    }

    fn outside(&self) -> std::path::PathBuf {
        self.dir.path().join("secret")
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(vec![Binding { name: "code".into(), path: self.root(), read_only: self.read_only }])
    }

    fn call(&self, tool: Tool, arguments: Value) -> Result<String, Error> {
        self.workspace().call(tool, &arguments.to_string())
    }

    /// Reads a file, and reads it again without waiting. Returns the answers.
    fn reads(&self, arguments: &Value) -> Vec<String> {
        let (workspace, arguments) = (self.workspace(), arguments.to_string());
        let answer = workspace.call(Tool::Read, &arguments).ok();
        answer.into_iter().chain(workspace.read_at_once(&arguments)).collect()
    }

    /// Returns the workspace with a hidden directory elsewhere. With hidden directories, `resolve` resolves each path step by
    /// step.
    fn step_by_step_workspace(&self) -> Workspace {
        self.workspace().with_hidden_dirs(&[Path::new("/dev")]).unwrap()
    }

    /// Calls a tool, and returns the answer. Asserts that a read-only tool answers the same if paths are resolved step by step, and that a
    /// read answers the same without waiting.
    fn expect_answer(&self, tool: Tool, arguments: Value) -> String {
        let reads = if matches!(tool, Tool::Read) { self.reads(&arguments) } else { Vec::new() };
        let is_read_only = matches!(tool, Tool::Read | Tool::List | Tool::Search);
        let step_by_step =
            is_read_only.then(|| self.step_by_step_workspace().call(tool, &arguments.to_string()).unwrap());
        let answer = self.call(tool, arguments).unwrap();
        assert!(step_by_step.iter().chain(&reads).all(|other| *other == answer), "{reads:?} {step_by_step:?}");
        answer
    }

    /// Calls a tool, and returns the error. Asserts that the call has changed nothing.
    fn expect_refusal(&self, tool: Tool, arguments: Value) -> String {
        let before = tree(self.dir.path());
        if matches!(tool, Tool::Read) {
            assert_eq!(self.reads(&arguments), [""; 0]);
        }
        let step_by_step = self.step_by_step_workspace().call(tool, &arguments.to_string()).unwrap_err().to_string();
        let error = self.call(tool, arguments).unwrap_err().to_string();
        // Step by step, a link out of the resource is detected earlier, with its own error.
        assert!(step_by_step == error || step_by_step.contains("leads out of the resource"), "{step_by_step}: {error}");
        assert_eq!(tree(self.dir.path()), before, "{error}");
        error
    }
}

/// Returns everything below a directory: names, types, and contents of files.
fn tree(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            all.extend(tree(&path));
            "directory".to_owned()
        } else if metadata.is_file() {
            String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
        } else {
            format!("{:?}", metadata.file_type())
        };
        all.push(format!("{}: {content}", path.display()));
    }
    all.sort();
    all
}

/// Returns whether no temporary file is left.
fn is_tidy(fixture: &Fixture) -> bool {
    tree(fixture.dir.path()).iter().all(|entry| !entry.contains(".bloomery-"))
}

#[test]
fn a_call_must_name_the_resource_only_if_several_are_suitable() {
    let fixture = Fixture::with_files(&[("a", "in code\n")]);
    let docs = fixture.dir.path().join("docs");
    fs::create_dir(&docs).unwrap();
    fs::write(docs.join("a"), "in docs\n").unwrap();
    assert!(fixture.expect_answer(Tool::Read, json!({"path": "a"})).starts_with("in code\n"));
    let both = Workspace::new(vec![
        Binding { name: "code".into(), path: fixture.root(), read_only: false },
        Binding { name: "docs".into(), path: docs.clone(), read_only: true },
    ]);
    let call = |tool, arguments: Value| both.call(tool, &arguments.to_string());
    assert!(
        call(Tool::Read, json!({"path": "a"})).unwrap_err().to_string().contains("Set it to one of: `code`, `docs`")
    );
    assert!(call(Tool::Read, json!({"resource": "docs", "path": "a"})).unwrap().starts_with("in docs\n"));
    assert!(
        call(Tool::Read, json!({"resource": "tests", "path": "a"}))
            .unwrap_err()
            .to_string()
            .contains("binds no file system `tests`")
    );
    // Only `code` is writable, so a write needs no name.
    call(Tool::Write, json!({"path": "b", "content": "x"})).unwrap();
    assert!(fixture.at("b").exists());
    let refused = call(Tool::Write, json!({"resource": "docs", "path": "b", "content": "x"})).unwrap_err().to_string();
    assert_eq!(refused, "The resource `docs` is bound read-only. Nothing was changed.");
    assert!(!docs.join("b").exists());
}

#[test]
fn a_read_only_resource_is_never_written() {
    let fixture = Fixture { read_only: true, ..Fixture::with_files(&[("a", "x")]) };
    fixture.expect_refusal(Tool::Write, json!({"path": "a", "content": "y"}));
    fixture.expect_refusal(Tool::Edit, json!({"path": "a", "oldText": "x", "newText": "y"}));
    fixture.expect_refusal(Tool::Patch, json!({"patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"}));
}

#[test]
fn unknown_or_malformed_arguments_are_refused() {
    let fixture = Fixture::new();
    let error = fixture.expect_refusal(Tool::Write, json!({"path": "a", "content": "x", "mode": 511}));
    assert!(error.contains("unknown field `mode`"), "{error}");
    assert!(fixture.workspace().call(Tool::Read, "[").unwrap_err().to_string().contains("are invalid"));
}

/// The persona may mention the path of a binding. No other absolute path is accepted.
#[test]
fn a_path_may_begin_with_the_path_of_the_binding() {
    let fixture = Fixture::with_files(&[("a/b", "x\n")]);
    let root = fixture.root().to_str().unwrap().to_owned();
    assert!(fixture.expect_answer(Tool::Read, json!({"path": format!("{root}/a/b")})).starts_with("x\n"));
    assert!(fixture.expect_answer(Tool::List, json!({"path": root})).starts_with("a/\n"));
    for out in ["/../secret", "-other/x", "//../secret"] {
        let path = format!("{root}{out}");
        fixture.expect_refusal(Tool::Read, json!({ "path": path }));
    }
}

#[test]
fn a_missing_resource_is_reported() {
    let fixture = Fixture::new();
    fs::remove_dir(fixture.root()).unwrap();
    let error = fixture.call(Tool::List, json!({})).unwrap_err().to_string();
    assert_eq!(error, "The resource `code` does not exist. Nothing was changed.");
}

/// No tool reaches the files next to a resource that is one file.
#[test]
fn a_resource_may_be_one_file() {
    let fixture = Fixture::with_files(&[("notes.md", "one\ntwo\n"), ("other", "beside\n")]);
    let file = Workspace::new(vec![Binding { name: "notes".into(), path: fixture.at("notes.md"), read_only: false }]);
    let call = |tool, arguments: Value| file.call(tool, &arguments.to_string());
    assert!(call(Tool::Read, json!({})).unwrap().starts_with("one\ntwo\n"));
    assert!(call(Tool::Read, json!({"path": "notes.md"})).unwrap().starts_with("one\n"));
    assert_eq!(call(Tool::List, json!({})).unwrap(), "notes.md  8 bytes\n[the path is that of a file]");
    assert!(call(Tool::Search, json!({"pattern": "t.o"})).unwrap().starts_with("notes.md\n  2: two\n"));
    for tool in [Tool::Read, Tool::List] {
        let error = call(tool, json!({"path": "other"})).unwrap_err().to_string();
        assert_eq!(error, "`other` does not exist: the resource is the one file `notes.md`.");
    }
    // The file may be a mount, which cannot be replaced. So its inode stays the same.
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let before = inode(&fixture.at("notes.md"));
    call(Tool::Write, json!({"content": "three\n"})).unwrap();
    call(Tool::Edit, json!({"oldText": "three", "newText": "3"})).unwrap();
    call(Tool::Patch, json!({"patch": "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1,2 @@\n 3\n+four\n"})).unwrap();
    assert_eq!(fixture.get("notes.md"), "3\nfour\n");
    assert_eq!(inode(&fixture.at("notes.md")), before);
    call(Tool::Patch, json!({"patch": "--- a/notes.md\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-3\n-four\n"}))
        .unwrap_err()
        .to_string();
    call(Tool::Write, json!({"path": "new", "content": "x"})).unwrap_err().to_string();
    assert_eq!(fixture.get("notes.md"), "3\nfour\n");
    assert_eq!(fixture.get("other"), "beside\n");
}

/// A write in place would also change the other names.
#[test]
fn a_resource_that_is_one_file_with_hard_links_is_not_written() {
    let fixture = Fixture::with_files(&[("notes.md", "one\n")]);
    fs::hard_link(fixture.at("notes.md"), fixture.at("other")).unwrap();
    let file = Workspace::new(vec![Binding { name: "notes".into(), path: fixture.at("notes.md"), read_only: false }]);
    let error = file.call(Tool::Write, &json!({"content": "x"}).to_string()).unwrap_err().to_string();
    assert!(error.contains("2 names (hard links)"), "{error}");
    assert_eq!(fixture.get("other"), "one\n");
}
