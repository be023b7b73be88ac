//! Races: another thread replaces a file between the check of its name and its use.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `call` 2000 times while another thread swaps the file `name` with each file in `swaps`, by renaming.
pub(super) fn call_while_swapping(fixture: &Fixture, name: &str, swaps: [&str; 2], mut call: impl FnMut()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for from in swaps {
                    // A third name keeps both files.
                    let _ = fs::rename(fixture.at(name), fixture.at("third"));
                    let _ = fs::rename(fixture.at(from), fixture.at(name));
                    let _ = fs::rename(fixture.at("third"), fixture.at(from));
                }
            }
        });
        for _ in 0..2000 {
            call();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

fn assert_outside_is_unchanged(fixture: &Fixture) {
    assert_eq!(fs::read_to_string(fixture.outside()).unwrap(), "outside");
    let beside: Vec<String> = fs::read_dir(fixture.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "code" && name != "secret")
        .collect();
    assert_eq!(beside, [""; 0]);
}

#[test]
fn a_link_that_replaces_a_file_is_not_followed() {
    let fixture = Fixture::with_files(&[("it", "inside\n")]);
    unix::symlink("../secret", fixture.at("other")).unwrap();
    call_while_swapping(&fixture, "it", ["other", "other"], || {
        for read in fixture.reads(&json!({"path": "it"})) {
            assert!(!read.contains("outside"), "{read}");
        }
        let _ = fixture.call(Tool::Edit, json!({"path": "it", "oldText": "outside", "newText": "changed"}));
        let _ = fixture.call(Tool::Write, json!({"path": "it", "content": "inside\n"}));
    });
    assert_outside_is_unchanged(&fixture);
}

#[test]
fn a_link_that_replaces_a_directory_is_not_followed() {
    let fixture = Fixture::with_files(&[("dir/secret", "inside\n")]);
    unix::symlink("..", fixture.at("other")).unwrap();
    call_while_swapping(&fixture, "dir", ["other", "other"], || {
        for read in fixture.reads(&json!({"path": "dir/secret"})) {
            assert!(!read.contains("outside") && !read.contains("code/"), "{read}");
        }
        for (tool, arguments) in
            [(Tool::Search, json!({"path": "dir", "pattern": "side"})), (Tool::List, json!({"path": "dir"}))]
        {
            if let Ok(answer) = fixture.call(tool, arguments) {
                assert!(!answer.contains("outside") && !answer.contains("code/"), "{answer}");
            }
        }
        let _ = fixture.call(Tool::Write, json!({"path": "dir/secret", "content": "changed\n"}));
        let _ = fixture.call(Tool::Write, json!({"path": "dir/new", "content": "x"}));
    });
    assert_outside_is_unchanged(&fixture);
}

#[test]
fn a_pipe_that_replaces_a_file_does_not_block() {
    let fixture = Fixture::with_files(&[("it", "inside\n")]);
    assert!(std::process::Command::new("mkfifo").arg(fixture.at("other")).status().unwrap().success());
    call_while_swapping(&fixture, "it", ["other", "other"], || {
        for read in fixture.reads(&json!({"path": "it"})) {
            assert!(read.starts_with("inside\n"), "{read}");
        }
    });
}

#[test]
fn a_change_by_another_process_during_a_write_is_not_overwritten() {
    let fixture = Fixture::with_files(&[("a", "one\n")]);
    let root = Root::open(&Binding { name: "code".into(), path: fixture.root(), read_only: false }, None).unwrap();
    let target = replace::Target::find(&root, &root.resource_path(Some("a")).unwrap(), false).unwrap();
    let staged = target.stage(b"two\n").unwrap();
    fixture.put("a", "three, of another\n");
    let error = staged.commit().unwrap_err().to_string();
    assert!(error.contains("another process has changed it"), "{error}");
    assert_eq!(fixture.get("a"), "three, of another\n");
    let target = replace::Target::find(&root, &root.resource_path(Some("b")).unwrap(), false).unwrap();
    let staged = target.stage(b"two\n").unwrap();
    fixture.put("b", "made by another\n");
    staged.commit().unwrap_err().to_string();
    assert_eq!(fixture.get("b"), "made by another\n");
    assert!(is_tidy(&fixture));
}
