//! Races: another thread swaps the file of a name between the check of the name and its use.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls repeatedly while another thread swaps `name` with other files by renaming.
pub(super) fn racing(stand: &Stand, name: &str, swaps: [&str; 2], mut call: impl FnMut()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for from in swaps {
                    // Exchanged through a third name, so that both files continue to exist.
                    let _ = fs::rename(stand.at(name), stand.at("third"));
                    let _ = fs::rename(stand.at(from), stand.at(name));
                    let _ = fs::rename(stand.at("third"), stand.at(from));
                }
            }
        });
        for _ in 0..2000 {
            call();
        }
        over.store(true, Ordering::Relaxed);
    });
}

fn assert_outside_is_unchanged(stand: &Stand) {
    assert_eq!(fs::read_to_string(stand.outside()).unwrap(), "outside");
    let beside: Vec<String> = fs::read_dir(stand.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "code" && name != "secret")
        .collect();
    assert_eq!(beside, [""; 0]);
}

#[test]
fn a_link_that_is_swapped_in_for_a_file() {
    let stand = Stand::of(&[("it", "inside\n")]);
    unix::symlink("../secret", stand.at("other")).unwrap();
    racing(&stand, "it", ["other", "other"], || {
        if let Ok(read) = stand.call(Tool::Read, json!({"path": "it"})) {
            assert!(!read.contains("outside"), "{read}");
        }
        let _ = stand.call(Tool::Edit, json!({"path": "it", "oldText": "outside", "newText": "changed"}));
        let _ = stand.call(Tool::Write, json!({"path": "it", "content": "inside\n"}));
    });
    assert_outside_is_unchanged(&stand);
}

#[test]
fn a_link_that_is_swapped_in_for_a_directory() {
    let stand = Stand::of(&[("dir/secret", "inside\n")]);
    unix::symlink("..", stand.at("other")).unwrap();
    racing(&stand, "dir", ["other", "other"], || {
        for (tool, arguments) in [
            (Tool::Read, json!({"path": "dir/secret"})),
            (Tool::Search, json!({"path": "dir", "pattern": "side"})),
            (Tool::List, json!({"path": "dir"})),
        ] {
            if let Ok(answer) = stand.call(tool, arguments) {
                assert!(!answer.contains("outside") && !answer.contains("code/"), "{answer}");
            }
        }
        let _ = stand.call(Tool::Write, json!({"path": "dir/secret", "content": "changed\n"}));
        let _ = stand.call(Tool::Write, json!({"path": "dir/new", "content": "x"}));
    });
    assert_outside_is_unchanged(&stand);
}

/// Opening the pipe must not block.
#[test]
fn a_pipe_that_is_swapped_in_for_a_file() {
    let stand = Stand::of(&[("it", "inside\n")]);
    assert!(std::process::Command::new("mkfifo").arg(stand.at("other")).status().unwrap().success());
    racing(&stand, "it", ["other", "other"], || {
        if let Ok(read) = stand.call(Tool::Read, json!({"path": "it"})) {
            assert!(read.starts_with("inside\n"), "{read}");
        }
    });
}

#[test]
fn a_change_by_another_process_during_a_write_is_not_overwritten() {
    let stand = Stand::of(&[("a", "one\n")]);
    let root = Root::open(&Binding { name: "code".into(), path: stand.root(), read_only: false }, None).unwrap();
    let target = replace::Target::find(&root, &root.resource_path(Some("a")).unwrap(), false).unwrap();
    let staged = target.stage(b"two\n").unwrap();
    stand.put("a", "three, of another\n");
    let error = staged.commit().unwrap_err().to_string();
    assert!(error.contains("another process has changed it"), "{error}");
    assert_eq!(stand.get("a"), "three, of another\n");
    let target = replace::Target::find(&root, &root.resource_path(Some("b")).unwrap(), false).unwrap();
    let staged = target.stage(b"two\n").unwrap();
    stand.put("b", "made by another\n");
    staged.commit().unwrap_err().to_string();
    assert_eq!(stand.get("b"), "made by another\n");
    assert!(is_tidy(&stand));
}
