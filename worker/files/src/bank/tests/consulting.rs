//! The notes that a conversation starts with.

use super::*;

fn consulted(fixture: &Fixture) -> Vec<(String, String)> {
    fixture.bank().consult().into_iter().map(|note| (note.file, note.text.unwrap())).collect()
}

#[test]
fn an_empty_bank_has_no_notes() {
    let fixture = Fixture::new();
    assert!(!fixture.bank().has_notes() && fixture.bank().consult().is_empty());
    assert!(!Bank::new(&fixture.dir.path().join("absent"), "uid-1").has_notes());
    // Reading creates no directory.
    assert!(!fixture.at("").exists());
    fs::create_dir_all(fixture.at("details")).unwrap();
    fixture.put("details/no note.txt", "x");
    assert!(!fixture.bank().has_notes() && fixture.bank().consult().is_empty());
}

#[test]
fn core_notes_come_in_their_order_and_the_index_lists_all_notes() {
    let fixture =
        Fixture::with_notes(&[("progress.md", "Half done.\n"), ("details/b.md", "xx"), ("details/a.md", "x")]);
    fixture.write("projectbrief.md", "Orders.\n", NONE).unwrap();
    assert!(fixture.bank().has_notes());
    let notes = consulted(&fixture);
    let names: Vec<&str> = notes.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(names, ["projectbrief.md", "progress.md", INDEX]);
    assert_eq!(notes[0].1, "Orders.\n");
    let (brief, progress) = (NoteContent::new("Orders.\n".into()), NoteContent::new("Half done.\n".into()));
    let expected = format!(
        "projectbrief.md  1 words, 8 bytes, hash {}, written by Job `acme/refund` at `2026-01-01T00:00:00.000Z`\n\
         progress.md  2 words, 11 bytes, hash {}\ndetails/a.md  1 bytes\ndetails/b.md  2 bytes\n",
        brief.hash(),
        progress.hash()
    );
    assert_eq!(notes[2].1, expected);
}

#[test]
fn notes_beyond_the_scope_are_only_in_the_index() {
    let fixture = Fixture::with_notes(&[("projectbrief.md", &"x".repeat(100_000)), ("progress.md", "Half done.\n")]);
    let notes = fixture.bank().with_scope(vec!["progress.md".to_owned()]).consult();
    let names: Vec<&str> = notes.iter().map(|note| note.file.as_str()).collect();
    assert_eq!(names, ["progress.md", INDEX]);
    assert_eq!(notes[0].text.as_deref(), Ok("Half done.\n"));
    let index = notes[1].text.as_deref().unwrap();
    assert!(
        index.starts_with("projectbrief.md  1 words, 100000 bytes") && index.contains("\nprogress.md  "),
        "{index}"
    );
    let without = fixture.bank().with_scope(Vec::new()).consult();
    assert_eq!(without.iter().map(|note| note.file.as_str()).collect::<Vec<_>>(), [INDEX]);
}

#[test]
fn all_notes_together_are_limited_and_cuts_are_noted() {
    let fixture = Fixture::with_notes(&[("projectbrief.md", &"ä".repeat(100_000)), ("activeContext.md", "short\n")]);
    for number in 0..200 {
        fixture.put(&format!("details/{number:0>60}.md"), "x");
    }
    let notes = consulted(&fixture);
    assert!(notes.iter().map(|(_, text)| text.len()).sum::<usize>() <= 12 * 1024 + 200);
    let (long, short, index) = (&notes[0].1, &notes[1].1, &notes[2].1);
    assert!(long.ends_with("bytes. Call memory_read for the whole note.]") && long.len() > 8000, "{}", long.len());
    assert_eq!(short, "short\n");
    assert!(index.ends_with("[the memory bank has more notes, which are not listed]\n"), "{index}");
}
