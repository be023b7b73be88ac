//! Finds the Skill of a Job: in a file, in its skill directory, or, on its first use, in a template.

mod documents;
pub mod invoked;

use crate::error::{Error, ErrorKind};
use crate::findings::Tally;
use crate::local::skill_directory::SkillDirectory;
use crate::local::{SKILL_FILE, memory};
use crate::run::templates;
use crate::source::{self, Source};
use bloomery_crds::v1alpha1::{McpServer, SkillSpec};
use bloomery_engine::tool::ListedTool;
use bloomery_skills::names::name_fault;
use bloomery_skills::{CheckedDocument, Finding};
use documents::{ResolvedSkill, SkillDocuments, refuse_errors};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A valid Skill.
#[derive(Debug)]
pub struct LoadedSkill {
    /// The name of the Skill and of its directory.
    pub name: String,
    /// The spec.
    pub spec: SkillSpec,
    /// The address of the MCP server, if the file has one.
    pub mcp: Option<String>,
    /// The file.
    pub source: Arc<Source>,
    selector: SkillSelector,
}

impl LoadedSkill {
    fn new((skill, mcp): ResolvedSkill, source: &Arc<Source>, selector: SkillSelector) -> Self {
        let name = skill.metadata.name.unwrap_or_default();
        Self { name, spec: skill.spec, mcp, source: Arc::clone(source), selector }
    }

    /// Returns the file, as the options name it.
    pub fn file(&self) -> &Path {
        &self.selector.file
    }

    /// Returns `spec.mcpServer`: a server that only a cluster can run.
    pub fn cluster_server(&self) -> Option<&McpServer> {
        self.spec.mcp_server.as_ref()
    }

    /// Returns a line about the findings of the lint, if there are any. `tools` are those of the MCP server; they are empty if it is not
    /// known.
    pub fn remark(&self, tools: &[ListedTool]) -> Option<String> {
        let (_, findings) = check_skill(&self.source, &self.selector, tools);
        let command = if tools.is_empty() { "bloomery lint" } else { "bloomery lint --tools" };
        let summary = Tally::count(&findings).summary();
        (!findings.is_empty()).then(|| format!("{}: {summary}: run `{command}` for details", self.source.name))
    }
}

/// Returns whether the value of `options.skill` is a file, and not the name of a Skill.
pub fn is_file(text: &str) -> bool {
    text == "-" || text.contains(['/', '\\']) || name_fault(text).is_some()
}

/// The Skill that the options select.
#[derive(Debug)]
pub struct SelectedSkill {
    /// The directory of the Skill. The directory need not exist.
    pub directory: SkillDirectory,
    /// The Skill.
    pub loaded: LoadedSkill,
    origin: Origin,
}

/// The origin of a Skill.
#[derive(Debug)]
enum Origin {
    /// The file in its skill directory.
    SkillDirectory,
    /// A template.
    Template,
    /// A file that the options name.
    File(String),
}

/// Finds the Skill that the options name, and checks it against the `tools` of the MCP server, if they are known. Writes nothing.
///
/// # Errors
/// If there is no such Skill, or it cannot be used.
pub fn find(memory: &Path, named: &str, bootstrap: bool, tools: &[ListedTool]) -> Result<SelectedSkill, Error> {
    if is_file(named) {
        let (file, name) = split_name(named);
        let selector = SkillSelector { file: file.into(), name: name.map(str::to_owned), directory: None };
        let loaded = read(selector, tools)?;
        return Ok(SelectedSkill {
            directory: SkillDirectory::new(memory, &loaded.name),
            loaded,
            origin: Origin::File(named.to_owned()),
        });
    }
    let directory = SkillDirectory::new(memory, named);
    let file = directory.dir.join(SKILL_FILE);
    let (loaded, origin) = if file.try_exists().unwrap_or(true) {
        (read_from_skill_directory(&directory, file, tools)?, Origin::SkillDirectory)
    } else {
        let text = templates::find(named, bootstrap)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, not_found_message(&directory)))?;
        let source = Source { name: format!("the template {named}"), bytes: text.into_bytes() };
        let selector = SkillSelector { file, name: None, directory: Some(named.to_owned()) };
        (load_skill(source, selector, tools)?, Origin::Template)
    };
    Ok(SelectedSkill { directory, loaded, origin })
}

/// Splits `FILE#NAME` into the file and the name of the Skill in it. Text without `#`, or the name of an existing file, is a
/// file.
fn split_name(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once('#') {
        Some((file, skill)) if !Path::new(named).exists() => (file, Some(skill)),
        _ => (named, None),
    }
}

/// Reads the Skill in a skill directory. If the file has several Skills, the one with the name of the directory is used.
fn read_from_skill_directory(
    directory: &SkillDirectory,
    file: PathBuf,
    tools: &[ListedTool],
) -> Result<LoadedSkill, Error> {
    let loaded = read(SkillSelector { file, name: None, directory: Some(directory.name.clone()) }, tools)?;
    if loaded.name != directory.name {
        let (file, name, directory) = (loaded.selector.file.display(), &loaded.name, &directory.name);
        return Err(Error::invalid(format!(
            "{file} is the Skill {name}, but is in the directory of the Skill {directory}: give both the same name"
        )));
    }
    Ok(loaded)
}

impl SelectedSkill {
    /// Writes a Skill from a template or a file to its skill directory. An existing `skill.yaml` is kept. Returns a note if it
    /// differs from the file that the options name, or was created from a template.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self) -> Result<Option<String>, Error> {
        let (file, text) = (self.directory.dir.join(SKILL_FILE), &self.loaded.source.bytes);
        let shown = file.display();
        if matches!(self.origin, Origin::SkillDirectory) {
            return Ok(None);
        }
        if file.try_exists().unwrap_or(true) {
            if let Origin::File(named) = &self.origin
                && source::read(&file).map_or(true, |existing| *text != existing.bytes)
            {
                return Ok(Some(format!("{shown} differs from {named} and is not overwritten. This run uses {named}")));
            }
            return Ok(None);
        }
        fs::write(&file, text).map_err(|error| Error::failed(format!("{shown} cannot be written: {error}")))?;
        let is_template = matches!(self.origin, Origin::Template);
        Ok(is_template
            .then(|| format!("{shown} was created from the template. Later runs use it, and you can edit it")))
    }
}

/// Returns the names of the Skills in a memory, and of the templates.
pub fn known_names(memory: &Path) -> BTreeSet<String> {
    memory::skill_names(memory).into_iter().chain(templates::names().map(str::to_owned)).collect()
}

/// Returns whether the memory or the templates have a Skill of this name. A file that cannot be examined counts, because reading it returns
/// the reason.
pub fn exists(memory: &Path, name: &str) -> bool {
    let file = SkillDirectory::new(memory, name).dir.join(SKILL_FILE);
    file.try_exists().unwrap_or(true) || templates::names().any(|known| known == name)
}

/// Returns the message for a name that is neither a Skill in the memory nor a template.
fn not_found_message(directory: &SkillDirectory) -> String {
    let near = bloomery_crds::nearest::did_you_mean(&directory.name, templates::names());
    let known: Vec<&str> = templates::names().collect();
    format!(
        "there is no {}, and no template is called {:?}.{near} The templates are {}. `options.bootstrap` creates a minimal Skill of that \
         name. `options.skill` FILE uses a Skill in a file",
        directory.dir.join(SKILL_FILE).display(),
        directory.name,
        known.join(", ")
    )
}

/// Reads the Skill in a file, and skips documents of other kinds.
///
/// # Errors
/// If there is no such Skill, or it has errors.
fn read(selector: SkillSelector, tools: &[ListedTool]) -> Result<LoadedSkill, Error> {
    let file = selector.file.as_path();
    let origin = if selector.directory.is_none() { "`options.skill`: " } else { "" };
    let source = source::read(file)
        .map_err(|error| Error::invalid(format!("{origin}the Skill {} cannot be read: {error}", source::name(file))))?;
    load_skill(source, selector, tools)
}

/// The parameters that select a Skill in a file. `name` selects one of several Skills. Without a `name`, `directory` does. It also
/// replaces the id of a Skill in the older dialect (`domain.yaml`).
#[derive(Debug)]
struct SkillSelector {
    /// The file, as messages name it.
    file: PathBuf,
    /// The name of the Skill in the options.
    name: Option<String>,
    /// The skill directory that the file is in.
    directory: Option<String>,
}

impl SkillSelector {
    /// Selects one Skill.
    ///
    /// # Errors
    /// If no Skill matches, or several do.
    fn select(&self, mut skills: Vec<CheckedDocument>) -> Result<CheckedDocument, Finding> {
        let name_of = |checked: &CheckedDocument| checked.object.pointer("/metadata/name")?.as_str().map(str::to_owned);
        let names: Vec<String> = skills.iter().filter_map(name_of).collect();
        if skills.len() > 1 || (self.name.is_some() && !skills.is_empty()) {
            let Some(wanted) = self.name.as_deref().or(self.directory.as_deref()) else {
                let (file, first) = (self.file.display(), names.first().map_or("NAME", String::as_str));
                return Err(Finding::of_file(format!(
                    "the file has several Skills: select one, such as `options.skill` {file}#{first}. It has {}",
                    names.join(", ")
                )));
            };
            skills.retain(|checked| name_of(checked).as_deref() == Some(wanted));
            if skills.len() > 1 {
                return Err(Finding::of_file(format!("the file has more than one Skill {wanted:?}")));
            }
            let near = bloomery_crds::nearest::did_you_mean(wanted, names.iter().map(String::as_str));
            let present = names.join(", ");
            return skills
                .pop()
                .ok_or_else(|| Finding::of_file(format!("the file has no Skill {wanted:?}. It has {present}.{near}")));
        }
        skills.pop().ok_or_else(|| Finding::of_file("the file has no Skill"))
    }
}

/// Reads all Skills in a file, and skips documents of other kinds. Returns a note if there are warnings about them.
///
/// # Errors
/// If the file cannot be read, or one of them has errors.
pub fn read_all(file: &Path) -> Result<(Vec<LoadedSkill>, Option<String>), Error> {
    let source = source::read(file)
        .map_err(|error| Error::invalid(format!("{} cannot be read: {error}", source::name(file))))?;
    load_all(source, file)
}

/// Returns all Skills in the content of a file, and skips documents of other kinds. Returns a note if there are warnings about them.
///
/// # Errors
/// If one of them has errors.
pub fn load_all(source: Source, file: &Path) -> Result<(Vec<LoadedSkill>, Option<String>), Error> {
    let source = Arc::new(source);
    let mut documents = SkillDocuments::read(&source, file, None, &[]);
    let checked = std::mem::take(&mut documents.skills);
    let skills: Vec<ResolvedSkill> = checked.into_iter().filter_map(|checked| documents.resolve(checked)).collect();
    let tally = refuse_errors(&source, documents.findings)?;
    let note =
        (tally.warnings > 0).then(|| format!("{}: {}: run `bloomery lint` for details", source.name, tally.summary()));
    let loaded = skills.into_iter().map(|skill| {
        let selector = SkillSelector { file: file.to_owned(), name: skill.0.metadata.name.clone(), directory: None };
        LoadedSkill::new(skill, &source, selector)
    });
    Ok((loaded.collect(), note))
}

/// Parses and checks the Skill that `selector` selects.
fn load_skill(source: Source, selector: SkillSelector, tools: &[ListedTool]) -> Result<LoadedSkill, Error> {
    let (skill, findings) = check_skill(&source, &selector, tools);
    refuse_errors(&source, findings)?;
    let unreadable = || Error::invalid(format!("{}: the Skill cannot be read: nothing was run", source.name));
    let skill = skill.ok_or_else(unreadable)?;
    Ok(LoadedSkill::new(skill, &Arc::new(source), selector))
}

/// Checks the Skill that `selector` selects. Returns it with the findings about the file.
fn check_skill(
    source: &Source,
    selector: &SkillSelector,
    tools: &[ListedTool],
) -> (Option<ResolvedSkill>, Vec<Finding>) {
    let mut documents = SkillDocuments::read(source, &selector.file, selector.directory.as_deref(), tools);
    let skills = std::mem::take(&mut documents.skills);
    // If no Skill was read and a document is broken, that document may be the Skill: only its errors are reported.
    let skill = if skills.is_empty() && !documents.findings.is_empty() {
        None
    } else {
        match selector.select(skills) {
            Ok(checked) => documents.resolve(checked),
            Err(finding) => {
                documents.findings.push(finding);
                None
            }
        }
    };
    (skill, documents.findings)
}
