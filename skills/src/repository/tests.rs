use super::*;
use crate::check_manifest;
use crate::finding::{Finding, Severity};
use crate::yaml;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A directory in memory.
struct Files {
    names: Vec<String>,
    contents: BTreeMap<String, Vec<u8>>,
}

impl Files {
    fn new<T: AsRef<[u8]>>(files: impl IntoIterator<Item = (impl Into<String>, T)>) -> Self {
        let contents: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(name, content)| (name.into(), content.as_ref().to_vec())).collect();
        Self { names: contents.keys().cloned().collect(), contents }
    }
}

impl SkillDirectory for Files {
    fn files(&self) -> &[String] {
        &self.names
    }

    fn read(&self, file: &str, max_bytes: usize) -> Result<Vec<u8>, ReadFault> {
        let content = self.contents.get(file).ok_or_else(|| ReadFault::Other("is missing".to_owned()))?;
        if content.len() > max_bytes { Err(ReadFault::TooLarge) } else { Ok(content.clone()) }
    }
}

fn found(path: &str, format: Format) -> FoundSkill {
    FoundSkill { path: path.to_owned(), format }
}

fn with_image() -> RepositoryOptions {
    RepositoryOptions { script_image: Some("tools:1".to_owned()), ..RepositoryOptions::default() }
}

/// Converts the skill `orders` of a repository that also has `orders/list` and `refunds`.
fn convert_orders(files: &Files, options: &RepositoryOptions) -> ConvertedSkill {
    let skills = ["orders", "orders/list", "refunds"].map(|path| found(path, Format::SkillJson));
    convert(&skills[0], files, &Catalogue::new(&skills).0, options)
}

fn convert_agent_skill(files: &Files, options: &RepositoryOptions) -> ConvertedSkill {
    let skill = found("office/pdf", Format::AgentSkill);
    let (catalogue, findings) = Catalogue::new(std::slice::from_ref(&skill));
    assert_eq!(findings, FileFindings::new());
    convert(&skill, files, &catalogue, options)
}

/// Returns all findings, each with its file.
fn shown(converted: &ConvertedSkill, main: &str) -> Vec<String> {
    let of_main = converted.checked.findings.iter().map(|finding| format!("{main}:{finding}"));
    of_main.chain(of_files(&converted.others)).collect()
}

fn of_files(findings: &FileFindings) -> Vec<String> {
    findings
        .iter()
        .flat_map(|(file, findings)| findings.iter().map(move |finding| format!("{file}:{finding}")))
        .collect()
}

fn manifest(converted: &ConvertedSkill) -> Value {
    serde_json::to_value(converted.checked.skill.as_ref().expect("the skill is valid")).unwrap()
}

const ORDERS: &str = r##"{
  "goal": "Answer questions about orders",
  "acceptance_criteria": ["The status is named"],
  "features": [
    {
      "name": "list",
      "test_scenario": "Given two orders, when listed, then both are there",
      "expected_result": "Two lines",
      "ext": {"subskill": "list", "script": "script.ps1", "skill_md_ref": "#listing"}
    },
    {
      "name": "refund",
      "test_scenario": "Given an order, when refunded, then it is closed",
      "expected_result": "Closed",
      "optional": true,
      "ext": {"subskill": "refunds"}
    }
  ]
}
"##;

#[test]
fn a_skill_json_and_the_files_beside_it_become_a_skill() {
    let files = Files::new([
        ("skill.json", ORDERS),
        ("skill.md", "\n# listing\n\nOne line each.\n"),
        ("script.sh", "echo sh\n"),
        ("script.ps1", "echo ps1\n"),
    ]);
    let notes = BTreeMap::from([("projectbrief".to_owned(), "A shop.\n".to_owned())]);
    let namespace = Some("acme".to_owned());
    let options = RepositoryOptions { namespace, model: Some("fast".to_owned()), notes, ..with_image() };
    let converted = convert_orders(&files, &options);
    assert_eq!(shown(&converted, "skill.json"), Vec::<String>::new());
    let expected = json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Skill",
        "metadata": {"name": "orders", "namespace": "acme"},
        "spec": {
            "problem": {"statement": "Answer questions about orders"},
            "goal": "Answer questions about orders",
            "acceptanceCriteria": ["The status is named"],
            "features": [
                {
                    "name": "list",
                    "testScenario": "Given two orders, when listed, then both are there",
                    "expectedResult": "Two lines",
                    "ext": {"subskill": "orders-list", "script": "script.sh", "skillMdRef": "#listing"},
                },
                {
                    "name": "refund",
                    "testScenario": "Given an order, when refunded, then it is closed",
                    "expectedResult": "Closed",
                    "optional": true,
                    "ext": {"subskill": "refunds"},
                },
            ],
            "docs": "# listing\n\nOne line each.",
            "scripts": {"image": "tools:1", "files": {"script.sh": "echo sh\n"}},
            "skills": ["orders-list", "refunds"],
            "memory": {"notes": {"projectbrief": "A shop.\n"}},
            "engine": {"model": "fast"},
        },
    });
    assert_eq!(manifest(&converted), expected);
    let subskills: Vec<(&str, usize)> =
        converted.subskills.iter().map(|subskill| (subskill.skill.as_str(), subskill.line)).collect();
    assert_eq!(subskills, [("orders-list", 9), ("refunds", 16)]);
    // The result depends on nothing else.
    assert_eq!(manifest(&convert_orders(&files, &options)), expected);
}

#[test]
fn windows_selects_the_script_of_powershell() {
    let files = Files::new([("skill.json", ORDERS), ("script.sh", "echo sh\n"), ("script.ps1", "echo ps1\n")]);
    let converted = convert_orders(&files, &RepositoryOptions { os: Os::Windows, ..with_image() });
    assert_eq!(manifest(&converted).pointer("/spec/scripts/files").unwrap(), &json!({"script.ps1": "echo ps1\n"}));
    assert_eq!(manifest(&converted).pointer("/spec/features/0/ext/script").unwrap(), "script.ps1");
}

/// Returns a `skill.json` with one feature, whose extension is on line 4.
fn with_extension(extension: &str) -> String {
    format!(
        "{{\"goal\": \"x\",\n\"acceptance_criteria\": [],\n\"features\": [{{\"name\": \"a\", \"test_scenario\": \"b\", \
         \"expected_result\": \"c\",\n\"ext\": {extension}}}]}}"
    )
}

#[rstest]
#[case::unknown(
    "{\"goal\": \"x\",\n \"acceptance_criteria\": [],\n \"feature\": []}",
    "3:2: error: feature: there is no such field (did you mean \"features\"?)"
)]
#[case::missing(
    "{\"goal\": \"x\",\n \"features\": []}",
    "1:1: error: acceptance_criteria: is required, and is missing"
)]
#[case::null(
    "{\"goal\": null,\n \"acceptance_criteria\": [], \"features\": []}",
    "1:2: error: goal: is required, and is empty"
)]
#[case::wrong(
    "{\"goal\": \"x\", \"acceptance_criteria\": [],\n \"features\": {}}",
    "2:14: error: features: must be a list, and is an object"
)]
#[case::empty(
    "{\"goal\": \"\",\n \"acceptance_criteria\": [], \"features\": []}",
    "1:10: error: goal: must not be empty"
)]
#[case::in_a_feature(&with_extension("{\"scrip\": \"a.sh\"}"), "4:9: error: features[0].ext.scrip: there is no such field (did you mean \"script\"?)")]
#[case::no_object("[]", "1:1: error: must be an object, and is a list")]
#[case::outside(&with_extension("{\"subskill\": \"../refunds\"}"), "4:21: error: features[0].ext.subskill: must be the path of a skill within the repository")]
#[case::no_skill(&with_extension("{\"subskill\": \"lst\"}"), "4:21: error: features[0].ext.subskill: names no skill")]
#[case::no_script(&with_extension("{\"script\": \"script.sh\"}"), "4:19: error: features[0].ext.script: names no file")]
#[case::a_script_elsewhere(&with_extension("{\"script\": \"../script.sh\"}"), "4:19: error: features[0].ext.script: must be the name of a file beside skill.json")]
fn a_fault_of_a_skill_json_is_reported_with_its_line(#[case] text: &str, #[case] expected: &str) {
    let converted = convert_orders(&Files::new([("skill.json", text)]), &with_image());
    let found: Vec<String> = converted.checked.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|finding| finding.starts_with(expected)), "{found:#?}");
    assert!(converted.checked.skill.is_none());
}

#[test]
fn all_faults_are_reported_at_once() {
    let converted = convert_orders(&Files::new([("skill.json", "{\"goal\": 1, \"x\": 2}")]), &with_image());
    assert_eq!(shown(&converted, "skill.json").len(), 4, "{:#?}", converted.checked.findings);
}

#[rstest]
#[case::named_by_a_feature(&with_extension("{\"script\": \"script.sh\"}"), "skill.json:4:19: error: features[0].ext.script: a script needs an image")]
#[case::named_by_none(&with_extension("{}"), "script.sh:1:1: error: a script needs an image with its interpreter")]
fn a_script_without_an_image_is_an_error(#[case] text: &str, #[case] expected: &str) {
    let files = Files::new([("skill.json", text), ("script.sh", "echo")]);
    let found = shown(&convert_orders(&files, &RepositoryOptions::default()), "skill.json");
    let [finding] = found.as_slice() else { panic!("{found:#?}") };
    assert!(finding.starts_with(expected), "{finding}");
}

#[rstest]
#[case::large_json("skill.json", vec![b' '; yaml::MAX_BYTES + 1], "skill.json:1:1: error: is larger than 1048576 bytes")]
#[case::json_not_utf8("skill.json", b"{\n\"goal\": \"\xff\"}".to_vec(), "skill.json:2:10: error: the byte 0xFF is not UTF-8")]
#[case::large_docs("skill.md", vec![b'x'; 100_000], "skill.md:1:1: error: has more than")]
#[case::docs_not_utf8("skill.md", b"a\nb\xff".to_vec(), "skill.md:2:2: error: the byte 0xFF is not UTF-8")]
#[case::large_script("script.sh", vec![b'x'; 100_000], "script.sh:1:1: error: has more than")]
#[case::script_not_utf8("script.sh", vec![0xff], "script.sh:1:1: error: the byte 0xFF is not UTF-8")]
#[case::empty_script("script.sh", Vec::new(), "script.sh:1:1: error: is empty")]
#[case::another_file("notes.txt", Vec::new(), "notes.txt:1:1: warning: is not imported")]
#[case::another_directory("conditions/a.md", b"a".to_vec(), "conditions/a.md:1:1: warning: is not imported")]
fn a_file_that_cannot_be_used_is_named(#[case] file: &str, #[case] content: Vec<u8>, #[case] expected: &str) {
    let mut contents = BTreeMap::from([("skill.json", with_extension("{}").into_bytes())]);
    contents.insert(file, content);
    let found = shown(&convert_orders(&Files::new(contents), &with_image()), "skill.json");
    let [finding] = found.as_slice() else { panic!("{found:#?}") };
    assert!(finding.starts_with(expected), "{finding}");
}

#[test]
fn a_script_for_another_system_is_named_if_no_other_replaces_it() {
    let files = Files::new([("skill.json", with_extension("{}").as_str()), ("script.ps1", "echo")]);
    let found = shown(&convert_orders(&files, &with_image()), "skill.json");
    let [finding] = found.as_slice() else { panic!("{found:#?}") };
    assert!(finding.starts_with("script.ps1:1:1: warning: is for another operating system"), "{finding}");
}

#[test]
fn the_memory_bank_becomes_notes_and_what_does_not_fit_is_named() {
    let (long, detail) = ("x".repeat(5_000), "Detail\n".to_owned());
    let mut files = BTreeMap::from([
        ("projectbrief.md".to_owned(), "Brief\n".to_owned()),
        ("progress.md".to_owned(), " \n".to_owned()),
        ("techContext.md".to_owned(), long),
        ("other.md".to_owned(), detail.clone()),
        ("details/../x.md".to_owned(), detail.clone()),
    ]);
    files.extend((0..12).map(|nth| (format!("details/n{nth:02}.md"), detail.clone())));
    let (notes, findings) = memory_notes(&Files::new(files));
    assert_eq!(notes.len(), 12);
    assert_eq!(notes.get("projectbrief").map(String::as_str), Some("Brief\n"));
    assert_eq!(notes.get("details/n10"), Some(&detail));
    let named: Vec<&str> = findings.keys().map(String::as_str).collect();
    assert_eq!(named, ["details/../x.md", "details/n11.md", "other.md", "techContext.md"]);
    assert!(findings.values().flatten().all(|finding| finding.severity == Severity::Warning), "{findings:#?}");
}

const PDF: &str = "---
name: pdf
description: Fills forms. Use it for PDF files.
license: Apache-2.0
compatibility: Needs qpdf
metadata: {author: acme}
allowed-tools: Bash(git:*) Read, read_*
model: large
---

# Steps

Fill the form.
";

#[test]
fn an_agent_skill_becomes_a_skill_and_each_lost_field_is_named() {
    let files = Files::new([
        ("SKILL.md", PDF),
        ("references/FORMS.md", "Fields.\n"),
        ("scripts/fill.py", "print(1)\n"),
        ("scripts/lib/a.py", "print(2)\n"),
        ("assets/logo.png", "png"),
        ("LICENSE.txt", "text"),
    ]);
    let converted = convert_agent_skill(&files, &with_image());
    let spec = json!({
        "problem": {"statement": "Fills forms. Use it for PDF files."},
        "goal": "Fills forms. Use it for PDF files.",
        "policy": {"tools": {"allowed": ["Read", "read_*"]}},
        "docs": "# Steps\n\nFill the form.\n\n# FORMS\n\nFields.",
        "scripts": {"image": "tools:1", "files": {"fill.py": "print(1)\n"}},
    });
    assert_eq!(manifest(&converted).get("spec"), Some(&spec));
    assert_eq!(manifest(&converted).pointer("/metadata/name").unwrap(), "pdf");
    assert_eq!(
        shown(&converted, "SKILL.md"),
        [
            "SKILL.md:4:1: warning: license: is not imported: a Skill has no such field",
            "SKILL.md:5:1: warning: compatibility: is not imported: a Skill has no such field",
            "SKILL.md:6:1: warning: metadata: is not imported: a Skill has no such field",
            "SKILL.md:7:16: warning: allowed-tools: \"Bash(git:*)\" is not imported: it is not the name of a tool",
            "SKILL.md:7:16: warning: allowed-tools: becomes policy.tools.allowed: the Skill can call no other tools of its MCP server",
            "SKILL.md:8:1: warning: model: is not imported: it is no field of an Agent Skill",
            "LICENSE.txt:1:1: warning: is not imported: a Skill has no place for it",
            "assets/logo.png:1:1: warning: is not imported: a Skill has no place for it",
            "references/FORMS.md:1:1: warning: becomes the section #FORMS of the documentation",
            "scripts/lib/a.py:1:1: warning: is not imported: a Skill has no place for it",
        ]
    );
}

#[rstest]
#[case::no_frontmatter("# Title\n", "1:1: error: has no frontmatter")]
#[case::no_description("---\nname: pdf\n---\n", "2:1: error: description: is required, and is missing")]
#[case::no_name("---\ndescription: x\n---\n", "2:1: error: name: is required, and is missing")]
#[case::another_name(
    "---\nname: doc\ndescription: x\n---\n",
    "2:7: warning: name: is \"doc\", and the Skill is named after its directory"
)]
#[case::a_number("---\nname: pdf\ndescription: 1\n---\n", "3:14: error: description: must be text")]
#[case::broken("---\nname: pdf\ndescription: [\n---\n", "not valid YAML")]
#[case::long(&format!("---\nname: pdf\ndescription: x\n---\n{}", "x".repeat(100_000)), "1:1: error: the instructions have 100000 characters")]
fn a_fault_of_a_skill_md_is_reported_with_its_line(#[case] text: &str, #[case] expected: &str) {
    let converted = convert_agent_skill(&Files::new([("SKILL.md", text)]), &with_image());
    let found: Vec<String> = converted.checked.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|finding| finding.contains(expected)), "{found:#?}");
}

#[test]
fn references_and_scripts_without_room_are_named() {
    let mut contents = BTreeMap::from([
        ("SKILL.md".to_owned(), "---\nname: pdf\ndescription: x\n---\n".to_owned()),
        ("references/a.md".to_owned(), "a".repeat(10_000)),
        ("references/b.md".to_owned(), "b".repeat(10_000)),
        ("scripts/large.sh".to_owned(), "x".repeat(10_000)),
    ]);
    contents.extend((0..9).map(|nth| (format!("scripts/s{nth}.sh"), "echo".to_owned())));
    let converted = convert_agent_skill(&Files::new(contents), &with_image());
    let lost: Vec<&str> = converted
        .others
        .iter()
        .filter_map(|(file, findings)| {
            findings.iter().any(|finding| finding.message.starts_with("is not imported")).then_some(file.as_str())
        })
        .collect();
    assert_eq!(lost, ["references/b.md", "scripts/large.sh", "scripts/s8.sh"]);
    assert!(converted.checked.skill.is_some());
}

fn skill_of(spec: &Value) -> crate::CheckedDocument {
    let manifest = json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": {"name": "pdf"}, "spec": spec,
    });
    let read = yaml::read(manifest.to_string().as_bytes());
    assert_eq!(read.findings, []);
    check_manifest(&read.documents[0])
}

#[test]
fn each_field_that_an_agent_skill_does_not_keep_is_named() {
    let checked = skill_of(&json!({
        "displayName": "PDF",
        "problem": {"statement": "y", "goals": ["z"]},
        "goal": "x".repeat(1_100),
        "policy": {"tools": {"allowed": ["read", "a b"], "blocked": ["write"]}, "effects": "deny"},
        "scripts": {"image": "tools:1", "files": {"a.sh": "echo"}, "timeout": "30s"},
        "memory": {"notes": {"projectbrief": "x"}},
    }));
    let exported = export(&checked).unwrap();
    let mut found: Vec<String> =
        exported.findings.iter().map(|Finding { path, message, .. }| format!("{path}: {message}")).collect();
    found.sort();
    let lost = |path: &str| format!("{path}: is not exported: an Agent Skill has no such field");
    let expected = [
        lost("spec.displayName"),
        "spec.goal: is cut to 1024 characters, the longest description".to_owned(),
        lost("spec.memory"),
        lost("spec.policy.effects"),
        "spec.policy.tools.allowed: \"a b\" is not exported: it is no single word".to_owned(),
        lost("spec.policy.tools.blocked"),
        lost("spec.problem"),
        lost("spec.scripts.image"),
        lost("spec.scripts.timeout"),
    ];
    assert_eq!(found, expected);
    let description = "x".repeat(1_024);
    let text = format!("---\nname: pdf\ndescription: \"{description}\"\nallowed-tools: \"read\"\n---\n");
    assert_eq!(exported.files.get("SKILL.md"), Some(&text));
}

#[test]
fn a_name_or_a_script_that_cannot_be_a_file_is_an_error() {
    let mut checked = skill_of(&json!({
        "problem": {"statement": "y"}, "scripts": {"image": "tools:1", "files": {"../a.sh": "echo"}},
    }));
    checked.skill.as_mut().unwrap().metadata.name = Some("a--b".to_owned());
    let exported = export(&checked).unwrap();
    let errors = exported.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let paths: Vec<&str> = errors.map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths.len(), 2, "{:#?}", exported.findings);
    assert!(!exported.files.keys().any(|file| file.contains("..")));
}

proptest! {
    /// An Agent Skill keeps the goal, the documentation, the scripts and the allowed tools of a Skill.
    #[test]
    fn an_exported_skill_is_imported_again(
        goal in ".{1,200}",
        docs in "(.|\n){0,300}",
        scripts in proptest::collection::btree_map("[A-Za-z0-9_][-A-Za-z0-9_.]{0,20}", "(.|\n){1,60}", 0..4),
        allowed in proptest::option::of(proptest::collection::btree_set("[a-z_]{1,10}[*]?", 0..4)),
    ) {
        let mut checked = skill_of(&json!({"problem": {"statement": "x"}}));
        let skill = checked.skill.as_mut().unwrap();
        let mut spec = serde_json::to_value(&skill.spec).unwrap();
        spec["goal"] = json!(goal);
        spec["docs"] = json!(docs);
        spec["scripts"] = json!({"image": "tools:1", "files": scripts});
        spec["policy"] = json!({"tools": {"allowed": allowed}});
        skill.spec = serde_json::from_value(spec).unwrap();
        let exported = export(&checked).unwrap();
        let imported = convert_agent_skill(&Files::new(exported.files), &with_image());
        let again = manifest(&imported);
        let spec = again.get("spec").unwrap();
        prop_assert_eq!(spec.get("goal").and_then(Value::as_str), Some(goal.as_str()));
        let kept = docs.trim_matches(['\n', '\r']);
        let kept = Some(kept).filter(|docs| !docs.trim().is_empty());
        prop_assert_eq!(spec.get("docs").and_then(Value::as_str), kept);
        let files = spec.pointer("/scripts/files").cloned().unwrap_or_else(|| json!({}));
        prop_assert_eq!(files, json!(scripts));
        prop_assert_eq!(spec.pointer("/policy/tools/allowed").cloned(), allowed.map(|allowed| json!(allowed)));
    }

    #[test]
    fn no_file_makes_the_conversion_panic(json in "[\\PC\n]{0,100}", markdown in "(---\n)?[\\PC\n]{0,60}(---\n)?[\\PC\n]{0,60}") {
        let _ = convert_orders(&Files::new([("skill.json", &json), ("skill.md", &markdown)]), &with_image());
        let _ = convert_agent_skill(&Files::new([("SKILL.md", &markdown)]), &with_image());
    }
}
