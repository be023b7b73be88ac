//! The scripts of a Skill: which tools they are, their texts, and their faults (`docs/explanation/tools.md`).

use crate::fault::Fault;
use crate::tool_pattern::matches;
use crate::v1alpha1::{Scripts, SkillSpec, whole_seconds};
use std::collections::BTreeMap;

/// The beginning of the name of each tool that is a script.
pub const PREFIX: &str = "script_";

/// The JSON Schema of the arguments of each script. The bridge contains the same file.
pub const INPUT_SCHEMA: &str = include_str!("scripts/input_schema.json");

/// The most files of a Skill.
pub const MAX_FILES: usize = 32;

/// The most bytes of all files of a Skill together.
pub const MAX_BYTES: usize = 256 * 1024;

/// The longest name of a file, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The default time limit of a script, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;

/// The longest time limit of a script, in seconds. The worker waits longer for a call.
const MAX_TIMEOUT_SECONDS: u64 = 180;

/// The characters of a name that a fault shows.
const MAX_SHOWN_CHARS: usize = 64;

/// Returns the scripts among files, by the names of their tools.
///
/// A tool may have a file for each operating system. Containers run Linux, so `.sh` comes first, then `.py`, then programs, then `.ps1`.
pub fn tools<'a>(files: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, &'a str> {
    let mut tools: BTreeMap<String, &str> = BTreeMap::new();
    for file in files {
        let chosen = tools.entry(tool(file)).or_insert(file);
        if (rank(file), file) < (rank(chosen), *chosen) {
            *chosen = file;
        }
    }
    tools
}

/// Returns the tools of a Skill that are scripts, with their files. Those of a ConfigMap that is not read yet are missing.
pub fn tools_of(spec: &SkillSpec) -> BTreeMap<String, &str> {
    tools(spec.scripts.iter().flat_map(|scripts| scripts.files.keys()).map(String::as_str))
}

/// Returns whether a Skill has scripts in a ConfigMap that is not read yet.
pub fn has_unread(spec: &SkillSpec) -> bool {
    spec.scripts.as_ref().is_some_and(|scripts| scripts.config_map.is_some())
}

/// Returns whether a name of a tool, or a pattern, may stand for a script of a Skill. A file of a ConfigMap that is not read yet may have
/// any name.
pub fn may_match(spec: &SkillSpec, pattern: &str) -> bool {
    (has_unread(spec) && pattern.starts_with(PREFIX)) || tools_of(spec).keys().any(|tool| matches(pattern, tool))
}

/// Returns the key of a revision's ConfigMap that contains a script. It is mounted as a file.
pub fn revision_key(file: &str) -> String {
    format!("script.{file}")
}

/// Returns the time limit of a script, in seconds.
pub fn timeout_seconds(scripts: &Scripts) -> u64 {
    let seconds = scripts.timeout.as_ref().map_or(DEFAULT_TIMEOUT_SECONDS, whole_seconds);
    seconds.clamp(1, MAX_TIMEOUT_SECONDS)
}

/// Returns the scripts with the files of their ConfigMap.
///
/// # Errors
/// A clause for the first fault of the files.
pub fn with_data(scripts: &Scripts, data: &BTreeMap<String, String>) -> Result<Scripts, String> {
    let mut all = Scripts { config_map: None, ..scripts.clone() };
    for (name, text) in data {
        if all.files.insert(name.clone(), text.clone()).is_some() {
            return Err(format!("has the file {}, which is also in files: remove one of them", shown(name)));
        }
    }
    if all.files.is_empty() {
        return Err("has no file: add one".to_owned());
    }
    match file_faults(&all).into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(all),
    }
}

/// Returns all faults of the scripts of a Skill.
pub fn faults(spec: &SkillSpec) -> Vec<Fault> {
    let Some(scripts) = &spec.scripts else { return Vec::new() };
    let of_files = file_faults(scripts).into_iter().map(|message| Fault { path: "spec.scripts.files".into(), message });
    let no_image = scripts.image.trim().is_empty().then(|| Fault {
        path: "spec.scripts.image".into(),
        message: "is empty: name an image that has the interpreters of the scripts".into(),
    });
    let no_file = (scripts.files.is_empty() && scripts.config_map.is_none())
        .then(|| Fault { path: "spec.scripts".into(), message: "has no script: add files or configMap".into() });
    no_image.into_iter().chain(no_file).chain(of_files).collect()
}

/// Returns a clause for each fault of the files.
fn file_faults(scripts: &Scripts) -> Vec<String> {
    let files = &scripts.files;
    let mut faults: Vec<String> = files.keys().filter_map(|file| name_fault(file)).collect();
    faults.extend(files.iter().filter(|(_, text)| text.is_empty()).map(|(file, _)| {
        let file = shown(file);
        format!("has the empty file {file}: add its text, or remove it")
    }));
    let chosen = tools(files.keys().map(String::as_str));
    faults.extend(files.keys().filter_map(|file| {
        let tool = tool(file);
        let other = chosen.get(&tool).filter(|other| **other != file && rank(other) == rank(file))?;
        Some(format!("has {} and {}, which are both the tool {tool}: rename one of them", shown(other), shown(file)))
    }));
    if files.len() > MAX_FILES {
        faults.push(format!("has {} files, and the most is {MAX_FILES}: remove some", files.len()));
    }
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > MAX_BYTES {
        faults.push(format!("has {bytes} bytes, and the most is {MAX_BYTES}: put large files into the image"));
    }
    faults
}

/// Returns whether a file can be a script: at most 63 letters of ASCII, digits, `-`, `_` and `.`, beginning with a letter, a digit or `_`.
pub fn is_file_name(file: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    file.len() <= MAX_NAME_BYTES && file.starts_with(is_first) && file.chars().all(is_inner)
}

fn name_fault(file: &str) -> Option<String> {
    (!is_file_name(file)).then(|| {
        format!(
            "has the file {}: a name has at most {MAX_NAME_BYTES} letters of ASCII, digits, `-`, `_` and `.`, and begins with a letter, \
             a digit or `_`",
            shown(file)
        )
    })
}

fn shown(file: &str) -> String {
    format!("{:?}", file.chars().take(MAX_SHOWN_CHARS).collect::<String>())
}

/// Returns the name of the tool that a file is. The bridge computes the same name.
pub fn tool(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    PREFIX.chars().chain(stem.chars().map(plain)).collect()
}

/// Returns the place of a file among those of the same tool.
fn rank(file: &str) -> u8 {
    match file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("sh") => 0,
        Some("py") => 1,
        Some("ps1") => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn spec(scripts: &Value) -> SkillSpec {
        serde_json::from_value(json!({"problem": {"statement": "x"}, "scripts": scripts})).unwrap()
    }

    #[rstest]
    #[case("check.sh", true)]
    #[case("_a-1.py", true)]
    #[case(".env", false)]
    #[case("-x.sh", false)]
    #[case("../x.sh", false)]
    #[case("a b.sh", false)]
    #[case("", false)]
    fn a_script_has_a_plain_name(#[case] file: &str, #[case] expected: bool) {
        assert_eq!(is_file_name(file), expected);
    }

    fn with_files(files: &[&str]) -> SkillSpec {
        let files: BTreeMap<&str, &str> = files.iter().map(|file| (*file, "exit 0")).collect();
        spec(&json!({"image": "busybox", "files": files}))
    }

    #[rstest]
    #[case::one_for_each_system(&["check.ps1", "check.py", "check.sh"], &[("script_check", "check.sh")])]
    #[case::python_before_power_shell(&["check.ps1", "check.py"], &[("script_check", "check.py")])]
    #[case::only_power_shell(&["check.ps1"], &[("script_check", "check.ps1")])]
    #[case::a_program(&["check", "check.ps1"], &[("script_check", "check")])]
    #[case::other_characters(&["a.b.sh", "c-d_1.py"], &[("script_a_b", "a.b.sh"), ("script_c-d_1", "c-d_1.py")])]
    fn each_file_is_a_tool(#[case] files: &[&str], #[case] expected: &[(&str, &str)]) {
        let spec = with_files(files);
        let tools = tools_of(&spec);
        let tools: Vec<(&str, &str)> = tools.iter().map(|(tool, file)| (tool.as_str(), *file)).collect();
        assert_eq!(tools, expected);
        assert_eq!(faults(&spec), []);
    }

    #[rstest]
    #[case::a_path(&["../check.sh"], "has the file \"../check.sh\": a name has at most 63")]
    #[case::hidden(&[".check.sh"], "has the file \".check.sh\": a name has")]
    #[case::a_blank(&["a b.sh"], "has the file \"a b.sh\": a name has")]
    #[case::one_tool(&["a.b.sh", "a_b.sh"], "has \"a.b.sh\" and \"a_b.sh\", which are both the tool script_a_b: rename one of them")]
    #[case::two_programs(&["check.pl", "check.rb"], "has \"check.pl\" and \"check.rb\", which are both the tool script_check")]
    fn each_fault_names_the_file(#[case] files: &[&str], #[case] expected: &str) {
        let faults = faults(&with_files(files));
        assert!(faults.len() == 1 && faults[0].path == "spec.scripts.files", "{faults:?}");
        assert!(faults[0].message.starts_with(expected), "{faults:?}");
    }

    #[rstest]
    #[case::the_name("script_check", json!(null), true)]
    #[case::a_pattern("script_*", json!(null), true)]
    #[case::another("script_test", json!(null), false)]
    #[case::not_read_yet("script_test", json!("checks"), true)]
    #[case::of_a_server("get_order", json!("checks"), false)]
    fn a_name_may_be_that_of_a_script(#[case] name: &str, #[case] config_map: Value, #[case] expected: bool) {
        let scripts = json!({"image": "busybox", "files": {"check.sh": "exit 0"}, "configMap": config_map});
        assert_eq!(may_match(&spec(&scripts), name), expected);
    }

    #[test]
    fn an_image_and_a_file_are_needed() {
        let paths = |scripts: &Value| faults(&spec(scripts)).into_iter().map(|fault| fault.path).collect::<Vec<_>>();
        assert_eq!(paths(&json!({"image": " ", "files": {"check.sh": "exit 0"}})), ["spec.scripts.image"]);
        assert_eq!(paths(&json!({"image": "busybox"})), ["spec.scripts"]);
        assert_eq!(paths(&json!({"image": "busybox", "configMap": "checks"})), [""; 0]);
    }

    #[rstest]
    #[case::default(json!(null), 60)]
    #[case::own(json!("90s"), 90)]
    #[case::too_long(json!("4m"), 180)]
    fn a_script_has_a_time_limit(#[case] timeout: Value, #[case] expected: u64) {
        let spec = spec(&json!({"image": "busybox", "files": {"check.sh": "exit 0"}, "timeout": timeout}));
        assert_eq!(timeout_seconds(spec.scripts.as_ref().unwrap()), expected);
    }

    #[rstest]
    #[case::more_files(&[("more.sh", 1)], Ok(2))]
    #[case::at_the_limit(&[("more.sh", MAX_BYTES - 6)], Ok(2))]
    #[case::too_large(&[("more.sh", MAX_BYTES)], Err("has 262150 bytes, and the most is 262144"))]
    #[case::in_both(&[("check.sh", 1)], Err("has the file \"check.sh\", which is also in files"))]
    #[case::empty(&[("more.sh", 0)], Err("has the empty file \"more.sh\""))]
    fn the_data_of_a_config_map_is_more_files(#[case] data: &[(&str, usize)], #[case] expected: Result<usize, &str>) {
        let scripts = with_files(&["check.sh"]).scripts.unwrap();
        let data = data.iter().map(|(name, bytes)| ((*name).to_owned(), "x".repeat(*bytes))).collect();
        let read = with_data(&Scripts { config_map: Some("more".into()), ..scripts }, &data);
        match expected {
            Ok(files) => assert_eq!(read.map(|read| (read.files.len(), read.config_map)), Ok((files, None))),
            Err(fault) => assert!(read.as_ref().is_err_and(|found| found.starts_with(fault)), "{read:?}"),
        }
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let scripts = with_files(&["check.sh"]).scripts.unwrap();
        let data = (0..MAX_FILES).map(|nth| (format!("{nth}.sh"), "x".to_owned())).collect();
        assert!(with_data(&scripts, &data).unwrap_err().starts_with("has 33 files, and the most is 32"));
    }

    proptest! {
        #[test]
        fn a_valid_file_is_a_tool_that_rules_can_name(file in "[A-Za-z0-9_][-_.A-Za-z0-9]{0,62}") {
            prop_assert_eq!(name_fault(&file), None);
            prop_assert!(crate::tool_pattern::is_pattern(&tool(&file)));
        }
    }
}
