use super::*;
use proptest::prelude::*;
use rstest::rstest;
use std::time::Duration;

fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
    lines.map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat()
}

#[rstest]
#[case::all(json!({}), "line 1\nline 2\nline 3\n[lines 1 to 3, bytes 0 to 21 of 21; end of file]")]
#[case::from_a_line(json!({"line": 3}), "line 3\n[lines 3 to 3, bytes 14 to 21 of 21; end of file]")]
#[case::some_lines(json!({"line": 2, "lines": 1}), "line 2\n[lines 2 to 2, bytes 7 to 14 of 21; continue with line 3]")]
#[case::more_lines_than_there_are(json!({"lines": 9}), "line 1\nline 2\nline 3\n[lines 1 to 3, bytes 0 to 21 of 21; end of file]")]
#[case::from_an_offset(json!({"offset": 14}), "line 3\n[bytes 14 to 21 of 21; end of file]")]
fn a_part_of_a_file_is_read(#[case] arguments: Value, #[case] expected: &str) {
    let fixture = Fixture::with_files(&[("a", &numbered(1..=3))]);
    let mut arguments = arguments;
    arguments["path"] = json!("a");
    assert_eq!(fixture.expect_answer(Tool::Read, arguments), expected);
}

#[rstest]
#[case::no_such_line(json!({"path": "a", "line": 9}), "`a` has 3 lines, so line 9 does not exist.")]
#[case::the_line_after_the_last(json!({"path": "a", "line": 4}), "`a` has 3 lines, so line 4 does not exist.")]
#[case::no_such_offset(json!({"path": "a", "offset": 21}), "`a` has 21 bytes, so offset 21 is after its end.")]
#[case::line_and_offset(json!({"path": "a", "line": 1, "offset": 0}), "exclude each other")]
#[case::no_such_file(json!({"path": "b"}), "`b` does not exist")]
#[case::a_directory(json!({"path": "."}), "The resource itself is a directory")]
#[case::a_part_that_is_no_directory(json!({"path": "a/b"}), "a part of the path is not a directory")]
fn an_invalid_read_is_refused(#[case] arguments: Value, #[case] why: &str) {
    let fixture = Fixture::with_files(&[("a", &numbered(1..=3))]);
    let error = fixture.expect_refusal(Tool::Read, arguments);
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_binary_file_is_refused_with_its_size() {
    let fixture = Fixture::new();
    fixture.put("a.png", b"\x89PNG\0\0\0");
    assert_eq!(
        fixture.expect_refusal(Tool::Read, json!({"path": "a.png"})),
        "`a.png` is not a text file: it has 7 bytes, including NUL bytes."
    );
}

#[test]
fn notes_report_crlf_and_invalid_utf_8() {
    let fixture = Fixture::with_files(&[("crlf", "a\r\nb\r\n"), ("empty", "")]);
    fixture.put("latin", b"caf\xe9\n");
    assert!(fixture.expect_answer(Tool::Read, json!({"path": "crlf"})).ends_with("end of file; lines end with CRLF]"));
    assert!(fixture.expect_answer(Tool::Read, json!({"path": "latin"})).contains("the file is not UTF-8"));
    assert_eq!(fixture.expect_answer(Tool::Read, json!({"path": "empty"})), "[the file is empty]");
}

/// The file system of the temporary directory may be one without such reads.
#[test]
fn a_file_is_read_at_once_only_if_the_kernel_does_not_wait() {
    let fixture = Fixture::with_files(&[("a", "x\n"), ("large", &"x\n".repeat(40_000)), ("empty", "")]);
    unix::symlink(fixture.outside(), fixture.at("link")).unwrap();
    let workspace = fixture.workspace();
    let at_once = |path: &str| workspace.read_at_once(&json!({ "path": path }).to_string());
    assert_eq!(at_once("a"), None, "no call has opened the file system");
    let answer = workspace.call(Tool::Read, r#"{"path":"a"}"#).unwrap();
    let has_such_reads = workspace.bindings[0].opens_at_once.is_known();
    for path in ["a", fixture.at("a").to_str().unwrap()] {
        // The kernel may have to wait for another process that changes its cache.
        let found = (0..100).find_map(|_| at_once(path));
        assert_eq!(found, has_such_reads.then(|| answer.clone()), "{path}");
    }
    for path in ["large", "empty", "b", ".", "../secret", "link"] {
        assert_eq!(at_once(path), None, "{path}");
    }
    // A file system of the kernel below the binding, which may take any time.
    let workspace = Workspace::new(vec![Binding { name: "all".into(), path: "/".into(), read_only: true }]);
    let comm = r#"{"path":"proc/self/comm"}"#;
    assert!(workspace.call(Tool::Read, comm).is_ok());
    assert_eq!(workspace.read_at_once(comm), None);
}

/// Memory use does not depend on the size of the file.
#[test]
fn a_huge_file_is_read_from_anywhere() {
    let fixture = Fixture::new();
    let file = fs::File::create(fixture.at("huge")).unwrap();
    let line = format!("{}\n", "x".repeat(99));
    std::io::Write::write_all(&mut &file, line.repeat(20_000).as_bytes()).unwrap();
    let answer = fixture.expect_answer(Tool::Read, json!({"path": "huge", "line": 19_000}));
    assert!(answer.len() < 16 * 1024);
    assert!(answer.contains("[lines 19000 to 19142, bytes 1899900 to 1914200 of 2000000; continue with line 19143]"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A model that continues as each note says reads the whole file, with lines of any length.
    #[test]
    fn all_parts_together_are_the_file(lines in prop::collection::vec((0_usize..20_000, 0_usize..3), 1..6), ended: bool) {
        let lines: Vec<String> = lines.into_iter().map(|(length, kind)| ["x", "é", "€"][kind].repeat(length / 3)).collect();
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        prop_assume!(!text.is_empty());
        let fixture = Fixture::with_files(&[("a", &text)]);
        let (mut read, mut arguments) = (String::new(), json!({"path": "a"}));
        loop {
            let answer = fixture.expect_answer(Tool::Read, arguments.clone());
            let (part, note) = answer.rsplit_once('[').unwrap();
            let (_, range) = note.split_once("bytes ").unwrap();
            let (start, rest) = range.split_once(" to ").unwrap();
            let end: usize = rest.split(' ').next().unwrap().parse().unwrap();
            prop_assert_eq!(start.parse::<usize>().unwrap(), read.len());
            read.push_str(&part[..end - read.len()]);
            if note.contains("end of file") {
                break;
            }
            let (text, number) = note.trim_end_matches(']').rsplit_once(' ').unwrap();
            let key = if text.ends_with("line") { "line" } else { "offset" };
            arguments = json!({"path": "a", key: number.parse::<u64>().unwrap()});
        }
        prop_assert_eq!(read, text);
    }
}

fn project() -> Fixture {
    Fixture::with_files(&[
        ("src/main.rs", "fn main() {}\n"),
        ("src/lib/deep/far.rs", "pub fn far() {}\n"),
        ("Cargo.toml", "[package]\n"),
        (".gitignore", "target\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ])
}

#[rstest]
#[case::two_levels(json!({}), &[
    ".git/", ".gitignore  7 bytes", "Cargo.toml  10 bytes", "src/", "src/lib/", "src/main.rs  13 bytes",
    "[6 entries; end of list; version control directories, not entered: `.git`; 1 deeper directories, not entered]",
])]
#[case::one_level(json!({"path": "src", "depth": 1}), &[
    "src/lib/", "src/main.rs  13 bytes", "[2 entries; end of list; 1 deeper directories, not entered]",
])]
#[case::by_name(json!({"glob": "*.rs", "depth": 9}), &[
    "src/main.rs  13 bytes", "src/lib/deep/far.rs  16 bytes",
    "[2 entries; end of list; version control directories, not entered: `.git`]",
])]
#[case::with_excluded_entries(json!({"exclude": "{src,.git}"}), &[
    ".gitignore  7 bytes", "Cargo.toml  10 bytes", "[2 entries; end of list]",
])]
#[case::version_control_if_the_path_names_it(json!({"path": ".git"}), &[".git/HEAD  21 bytes", "[1 entry; end of list]"])]
#[case::continued_after_an_entry(json!({"after": "Cargo.toml", "depth": 1, "exclude": ".git"}), &[
    "src/", "[1 entry; end of list; 1 deeper directories, not entered]",
])]
fn a_directory_is_listed(#[case] arguments: Value, #[case] lines: &[&str]) {
    assert_eq!(project().expect_answer(Tool::List, arguments).lines().collect::<Vec<_>>(), lines);
}

#[test]
fn a_long_listing_is_cut_and_continues_after_the_entry_in_its_note() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..900).map(|at| format!("file-{at:03}")).collect();
    for name in &names {
        fixture.put(name, "");
    }
    let (mut listed, mut arguments) = (Vec::new(), json!({}));
    loop {
        let answer = fixture.expect_answer(Tool::List, arguments.clone());
        assert!(answer.len() < 13 * 1024, "{}", answer.len());
        let (entries, note) = answer.rsplit_once('[').unwrap();
        listed.extend(entries.lines().map(|line| line.split(' ').next().unwrap().to_owned()));
        let Some((_, after)) = note.split_once("set after to `") else { break };
        arguments = json!({"after": after.split('`').next().unwrap()});
    }
    assert_eq!(listed, names);
    let gone = fixture.expect_refusal(Tool::List, json!({"after": "file-999"}));
    assert!(gone.contains("has no entry `file-999`"), "{gone}");
}

#[test]
fn a_listing_shows_the_types_of_other_files() {
    let fixture = Fixture::new();
    unix::symlink("../secret\nx", fixture.at("link")).unwrap();
    std::os::unix::net::UnixListener::bind(fixture.at("socket")).unwrap();
    fixture.put("new\nline", "");
    assert_eq!(
        fixture.expect_answer(Tool::List, json!({})),
        "link -> ../secret\\u{a}x\nnew\\u{a}line  0 bytes\nsocket  (a socket)\n[3 entries; end of list]"
    );
}

#[rstest]
#[case::a_pattern(json!({"pattern": "fn \\w+"}), &[
    "src/main.rs", "  1: fn main() {}", "src/lib/deep/far.rs", "  1: pub fn far() {}",
    "[2 matches in 2 files, of 4 searched; version control directories, not entered: `.git`]",
])]
#[case::literal(json!({"pattern": "() {", "literal": true, "path": "src/main.rs"}), &[
    "src/main.rs", "  1: fn main() {}", "[1 match in 1 file, of 1 searched]",
])]
#[case::ignoring_case(json!({"pattern": "PACKAGE", "ignoreCase": true, "glob": "*.toml"}), &[
    "Cargo.toml", "  1: [package]", "[1 match in 1 file, of 1 searched; version control directories, not entered: `.git`]",
])]
#[case::nothing(json!({"pattern": "nothing like it", "exclude": ".git"}), &["[0 matches in 0 files, of 4 searched]"])]
#[case::version_control_if_the_path_names_it(json!({"pattern": "main", "path": ".git"}), &[
    ".git/HEAD", "  1: ref: refs/heads/main", "[1 match in 1 file, of 1 searched]",
])]
fn matching_lines_are_found(#[case] arguments: Value, #[case] lines: &[&str]) {
    assert_eq!(project().expect_answer(Tool::Search, arguments).lines().collect::<Vec<_>>(), lines);
}

#[test]
fn context_lines_between_two_matches_are_shown_once() {
    let fixture = Fixture::with_files(&[("a", "1\n2\nx\n4\nx\n6\n7\n8\n9\nx\n")]);
    assert_eq!(
        fixture.expect_answer(Tool::Search, json!({"pattern": "x", "context": 1})),
        "a\n  2- 2\n  3: x\n  4- 4\n  5: x\n  6- 6\n  --\n  9- 9\n  10: x\n[3 matches in 1 file, of 1 searched]"
    );
}

#[test]
fn many_matches_are_cut_and_the_search_continues_after_the_file_in_its_note() {
    let fixture = Fixture::new();
    for file in 0..9 {
        fixture.put(&format!("f{file}"), "x\n".repeat(30));
    }
    fixture.put("binary", b"x\0x");
    let answer = fixture.expect_answer(Tool::Search, json!({"pattern": "x"}));
    assert!(answer.contains("[this file has more matches: search this file alone, or read it]"), "{answer}");
    assert!(answer.ends_with("[100 matches in 5 files, of 6 searched; more matches may exist: set after to `f4` to continue; 1 binary file not searched]"), "{answer}");
    let answer = fixture.expect_answer(Tool::Search, json!({"pattern": "x", "after": "f4"}));
    assert!(answer.ends_with("[80 matches in 4 files, of 4 searched]"), "{answer}");
}

#[test]
fn a_long_line_is_cut_to_the_part_around_the_match() {
    let fixture = Fixture::with_files(&[("min.js", &format!("{}needle{}", "a".repeat(5000), "b".repeat(5000)))]);
    let answer = fixture.expect_answer(Tool::Search, json!({"pattern": "needle"}));
    assert!(answer.len() < 500 && answer.contains("aaneedlebb"), "{answer}");
}

/// These patterns take exponential time in an engine that backtracks.
#[rstest]
#[case::nested("(a+)+$")]
#[case::alternatives("(a|a)*b")]
#[case::repeated("(.*)(.*)(.*)(.*)(.*)[^a]$")]
fn matching_takes_linear_time(#[case] pattern: &str) {
    let fixture = Fixture::with_files(&[("a", &format!("{}!", "a".repeat(30_000)))]);
    fixture.expect_answer(Tool::Search, json!({"pattern": pattern}));
}

#[rstest]
#[case::look_ahead("(?=x)", "look-around")]
#[case::back_reference("(a)\\1", "back-references")]
#[case::open("(", "unclosed group")]
#[case::huge("(a{1000}){1000}", "size limit")]
#[case::nested(&"(".repeat(500), "pattern is invalid")]
fn an_invalid_pattern_is_refused(#[case] pattern: &str, #[case] why: &str) {
    let error = project().expect_refusal(Tool::Search, json!({"pattern": pattern}));
    assert!(error.contains(why) && error.len() < 900, "{error}");
}

#[test]
fn a_call_after_its_deadline_reports_the_time_limit() {
    let fixture = project();
    let root = Root::open(&Binding { name: "code".into(), path: fixture.root(), read_only: true }, None).unwrap();
    let over = Deadline::start(Duration::ZERO);
    let listed = list::list(&root, &serde_json::from_value(json!({})).unwrap(), &over).unwrap();
    assert_eq!(listed, "[0 entries; end of list; stopped early: time limit]");
    let arguments = serde_json::from_value(json!({"pattern": "x", "path": "src/main.rs"})).unwrap();
    let found = search::search(&root, &arguments, &over).unwrap();
    assert!(found.contains("was not searched to its end"), "{found}");
    let arguments = serde_json::from_value(json!({"path": "src/main.rs", "line": 2})).unwrap();
    assert!(
        read::read(&root, &arguments, &over)
            .unwrap_err()
            .to_string()
            .contains("was not reached in time. Set offset instead of line")
    );
}
