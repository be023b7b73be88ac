//! The first content of notes, which the Skill has.

use super::*;
use std::os::unix::fs as unix;

fn write_first(fixture: &Fixture, file: &str, content: &str) -> Result<(), String> {
    fixture.bank().write_first(file, content, &author("0-0")).map_err(|error| error.to_string())
}

#[test]
fn a_note_gets_its_first_content_once() {
    let fixture = Fixture::new();
    write_first(&fixture, "progress.md", "Nothing is done.\n").unwrap();
    write_first(&fixture, "details/api.md", "Slow.\n").unwrap();
    assert_eq!(fixture.get("progress.md"), "Nothing is done.\n");
    let hash = hash_in(&fixture.read("progress.md").unwrap());
    fixture.write("progress.md", "Half done.\n", &hash).unwrap();
    fixture.put("details/api.md", "Fast.\n");
    write_first(&fixture, "progress.md", "Nothing is done.\n").unwrap();
    write_first(&fixture, "details/api.md", "Slow.\n").unwrap();
    assert_eq!((fixture.get("progress.md"), fixture.get("details/api.md")), ("Half done.\n".into(), "Fast.\n".into()));
    assert_eq!((fixture.claims().len(), fixture.staged_files()), (3, Vec::new()));
    // A person wants it again.
    fs::remove_file(fixture.at("progress.md")).unwrap();
    write_first(&fixture, "progress.md", "Nothing is done.\n").unwrap();
    assert_eq!(fixture.get("progress.md"), "Nothing is done.\n");
}

#[test]
fn an_existing_note_needs_no_rights_to_write() {
    let fixture = Fixture::with_notes(&[("progress.md", "By hand.\n")]);
    write_first(&fixture, "progress.md", "Nothing is done.\n").unwrap();
    assert_eq!(fixture.get("progress.md"), "By hand.\n");
    assert!(!fixture.at(".ledger").exists() && !fixture.at(DETAILS).exists());
}

#[test]
fn a_link_or_an_invalid_name_gets_no_content() {
    let fixture = Fixture::with_notes(&[("projectbrief.md", "Orders.\n")]);
    let secret = fixture.dir.path().join("secret");
    fs::write(&secret, "outside").unwrap();
    unix::symlink(&secret, fixture.at("progress.md")).unwrap();
    unix::symlink(fixture.dir.path().join("nothing"), fixture.at("techContext.md")).unwrap();
    for file in ["progress.md", "techContext.md"] {
        let error = write_first(&fixture, file, "x").unwrap_err();
        assert!(error.contains("a symbolic link") && fixture.at(file).is_symlink(), "{error}");
    }
    for file in ["../progress.md", "details/../progress.md", "progress", "notes.md"] {
        assert!(write_first(&fixture, file, "x").unwrap_err().contains("is not the name of a note"), "{file}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "outside");
    assert!(!fixture.dir.path().join("nothing").exists());
}

#[test]
fn one_of_many_workers_writes_the_first_content() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let bank = Bank::new(fixture.dir.path(), &format!("uid-{worker}"));
            scope.spawn(move || {
                for file in ["progress.md", "details/api.md"] {
                    bank.write_first(file, &format!("{file} of {worker}\n"), &author(&format!("0-{worker}"))).unwrap();
                }
            });
        }
    });
    for file in ["progress.md", "details/api.md"] {
        assert!(fixture.get(file).starts_with(&format!("{file} of ")));
    }
    assert_eq!((fixture.claims().len(), fixture.staged_files()), (2, Vec::new()));
}
