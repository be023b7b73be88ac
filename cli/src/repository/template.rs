//! The templates of new skills.

use super::files::{FileTree, Kind, list};
use super::walk::TEMPLATES;
use crate::error::Error;
use bloomery_crds::nearest::{nearest, suggestion};
use bloomery_skills::repository::{Format, SkillDirectory};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The largest file of a template, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The files of a skill without a template: one feature that its documentation explains.
const SKILL_JSON: &str = r##"{
  "goal": "Describe what the skill achieves, in a sentence",
  "acceptance_criteria": [
    "Describe how to recognize a good result"
  ],
  "features": [
    {
      "name": "first",
      "test_scenario": "Given a situation, when the skill is asked for something, then it does something",
      "expected_result": "Describe the result",
      "ext": {
        "skill_md_ref": "#first"
      }
    }
  ]
}
"##;

const SKILL_MD: &str = "# first\n\nDescribe how the agent does it, in 2 to 5 lines.\n";

/// The files of a template, by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Reads a template of a repository. Without a name, takes the only template, or a minimal one if the repository has none.
///
/// # Errors
/// If there is no such template, several without a name, or a file that cannot be used.
pub fn read(root: &Path, name: Option<&str>) -> Result<Files, Error> {
    let dir = root.join(TEMPLATES);
    let names = names(&dir).map_err(|error| Error::usage(format!("cannot read {}: {error}", dir.display())))?;
    let name = match (name, names.as_slice()) {
        (Some(name), _) if names.iter().any(|known| known == name) => name,
        (Some(name), _) => {
            let near = suggestion(nearest(name, names.iter().map(String::as_str)));
            let message = format!("there is no template {name:?} in {}{near}", dir.display());
            return Err(Error::usage(message));
        }
        (None, []) => return Ok(minimal()),
        (None, [only]) => only.as_str(),
        (None, several) => {
            let message =
                format!("{} has several templates: choose one with --template: {}", dir.display(), several.join(", "));
            return Err(Error::usage(message));
        }
    };
    let dir = dir.join(name);
    files(&dir).map_err(|error| Error::usage(format!("cannot use the template {}: {error}", dir.display())))
}

/// Returns the names of the templates: of the directories with a file that makes them a skill.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    match dir.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(io::Error::other("it is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    }
    let mut names = Vec::new();
    for (name, kind) in list(dir)?.entries {
        let is_skill = |file: &str| dir.join(&name).join(file).is_file();
        if kind == Kind::Directory
            && [Format::SkillJson, Format::AgentSkill].iter().any(|format| is_skill(format.file()))
        {
            names.push(name);
        }
    }
    Ok(names)
}

fn files(dir: &Path) -> io::Result<Files> {
    let (tree, faults) = FileTree::open(dir)?;
    if let Some((file, fault)) = faults.first() {
        return Err(io::Error::other(format!("{file} {fault}")));
    }
    let mut files = Files::new();
    for file in tree.files() {
        let content = tree.read(file, MAX_FILE_BYTES).map_err(|_| {
            io::Error::other(format!("{file} cannot be read, or is larger than {MAX_FILE_BYTES} bytes"))
        })?;
        files.insert(file.clone(), content);
    }
    Ok(files)
}

fn minimal() -> Files {
    let files = [("skill.json", SKILL_JSON), ("skill.md", SKILL_MD)];
    files.into_iter().map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).collect()
}
