//! Finds the Skill of a Job: in a file, in its skill directory, or, on its first use, in a template.

use crate::check::check_document;
use crate::error::Error;
use crate::findings::{self, Tally};
use crate::local::SKILL_FILE;
use crate::local::skill_directory::SkillDirectory;
use crate::run::templates;
use crate::source::{self, Source};
use crate::text;
use bloomery_crds::lists::ConfigMaps;
use bloomery_crds::v1alpha1::{McpServer, SkillSpec};
use bloomery_skills::names::name_fault;
use bloomery_skills::{CheckedDocument, Finding, Form, ImportOptions, lists, yaml};
use std::fs;
use std::path::Path;

/// A valid Skill.
#[derive(Debug)]
pub struct LoadedSkill {
    /// The name of the Skill and of its directory.
    pub name: String,
    /// The spec.
    pub spec: SkillSpec,
    /// The address of the MCP server, if the file has one.
    pub mcp: Option<String>,
    /// The content of the file.
    pub text: String,
}

impl LoadedSkill {
    /// Returns `spec.mcpServer`: a server that only a cluster can run.
    pub fn cluster_server(&self) -> Option<&McpServer> {
        self.spec.mcp_server.as_ref()
    }
}

/// Returns whether the value of `--skill` is a file, and not the name of a Skill.
pub fn is_file(text: &str) -> bool {
    text == "-" || text.contains(['/', '\\']) || name_fault(text).is_some()
}

/// The Skill that the command line selects.
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
    /// A file that the command line names.
    File(String),
}

/// Finds the Skill that the command line names. Writes nothing.
///
/// # Errors
/// If there is no such Skill, or it cannot be used.
pub fn find(memory: &Path, named: &str, bootstrap: bool) -> Result<SelectedSkill, Error> {
    if is_file(named) {
        let (file, skill) = split_name(named);
        let loaded = read(Path::new(file), skill, None)?;
        return Ok(SelectedSkill {
            directory: SkillDirectory::new(memory, &loaded.name),
            loaded,
            origin: Origin::File(named.to_owned()),
        });
    }
    let directory = SkillDirectory::new(memory, named);
    let file = directory.dir.join(SKILL_FILE);
    let (loaded, origin) = if file.try_exists().unwrap_or(true) {
        (read_from_skill_directory(&directory, &file)?, Origin::SkillDirectory)
    } else {
        let text = templates::find(named, bootstrap).ok_or_else(|| Error::usage(not_found_message(&directory)))?;
        let source = Source { name: format!("the template {named}"), bytes: text.into_bytes() };
        (load_skill(&source, &SkillSelector { file: &file, name: None, directory: Some(named) })?, Origin::Template)
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
fn read_from_skill_directory(directory: &SkillDirectory, file: &Path) -> Result<LoadedSkill, Error> {
    let loaded = read(file, None, Some(&directory.name))?;
    if loaded.name != directory.name {
        let (file, name, directory) = (file.display(), &loaded.name, &directory.name);
        return Err(Error::usage(format!(
            "{file} is the Skill {name}, but is in the directory of the Skill {directory}: give both the same name"
        )));
    }
    Ok(loaded)
}

impl SelectedSkill {
    /// Writes a Skill from a template or a file to its skill directory. An existing `skill.yaml` is kept. Returns a note if it
    /// differs from the file that the command line names, or was created from a template.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self) -> Result<Option<String>, Error> {
        let (file, text) = (self.directory.dir.join(SKILL_FILE), self.loaded.text.as_bytes());
        let shown = file.display();
        if matches!(self.origin, Origin::SkillDirectory) {
            return Ok(None);
        }
        if file.try_exists().unwrap_or(true) {
            if let Origin::File(named) = &self.origin
                && source::read(&file).map_or(true, |existing| text != existing.bytes)
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

/// Returns the message for a name that is neither a Skill in the memory nor a template.
pub fn not_found_message(directory: &SkillDirectory) -> String {
    let near = bloomery_crds::nearest::did_you_mean(&directory.name, templates::names());
    let known: Vec<&str> = templates::names().collect();
    format!(
        "there is no {}, and no template is called {:?}.{near} The templates are {}. --bootstrap creates a minimal Skill of that \
         name. --skill FILE uses a Skill in a file",
        directory.dir.join(SKILL_FILE).display(),
        directory.name,
        known.join(", ")
    )
}

/// Reads the Skill in a file, and skips documents of other kinds. `name` selects one of several Skills. Without a `name`,
/// `directory`, the name of the skill directory, does. It also replaces the id of a Skill in the older dialect (`domain.yaml`).
///
/// # Errors
/// If there is no such Skill, or it has errors. These are printed.
fn read(file: &Path, name: Option<&str>, directory: Option<&str>) -> Result<LoadedSkill, Error> {
    let source = source::read(file)
        .map_err(|error| Error::usage(format!("the Skill {} cannot be read: {error}", source::name(file))))?;
    load_skill(&source, &SkillSelector { file, name, directory })
}

/// The parameters that select a Skill in a file.
struct SkillSelector<'a> {
    /// The file, as messages name it.
    file: &'a Path,
    /// The name of the Skill on the command line.
    name: Option<&'a str>,
    /// The skill directory that the file is in.
    directory: Option<&'a str>,
}

impl SkillSelector<'_> {
    /// Selects one Skill.
    ///
    /// # Errors
    /// If no Skill matches, or several do.
    fn select(&self, mut skills: Vec<CheckedDocument>) -> Result<CheckedDocument, Finding> {
        let name_of = |checked: &CheckedDocument| checked.object.pointer("/metadata/name")?.as_str().map(str::to_owned);
        let names: Vec<String> = skills.iter().filter_map(name_of).collect();
        if skills.len() > 1 || (self.name.is_some() && !skills.is_empty()) {
            let Some(wanted) = self.name.or(self.directory) else {
                let (file, first) = (self.file.display(), names.first().map_or("NAME", String::as_str));
                return Err(Finding::of_file(format!(
                    "the file has several Skills: select one, such as --skill {file}#{first}. It has {}",
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

/// The documents of a file that are Skills or may be, and what was found in the file before them.
struct SkillDocuments {
    skills: Vec<CheckedDocument>,
    findings: Vec<Finding>,
    /// The ConfigMaps in the file, for the lists of the Skills.
    config_maps: ConfigMaps,
}

impl SkillDocuments {
    /// Parses and checks a source. `directory` replaces the id of a Skill in the older dialect.
    fn read(source: &Source, file: &Path, directory: Option<&str>) -> Self {
        let parsed = yaml::read(&source.bytes);
        let options = ImportOptions {
            name: directory.map(str::to_owned),
            file: source::stem(file),
            local: true,
            ..ImportOptions::default()
        };
        let bloomery_documents = parsed.documents.iter().filter(|document| document.form() != Form::Foreign);
        let config_maps = lists::config_maps(&parsed.documents);
        let checked = bloomery_documents.map(|document| check_document(document, &options, &[], &config_maps));
        let skills = checked.filter(|checked| checked.kind.as_deref().is_none_or(|kind| kind == "Skill")).collect();
        Self { skills, findings: parsed.findings, config_maps }
    }

    /// Returns the Skill of a document with its lists, and adds the findings about it. Returns `None` if it has errors.
    fn load(&mut self, mut checked: CheckedDocument, source: &Source) -> Option<LoadedSkill> {
        self.findings.append(&mut checked.findings);
        let mut skill = checked.skill?;
        let resolved = lists::resolve(&mut skill.spec, &checked.root, &self.config_maps);
        self.findings.extend(resolved.err().unwrap_or_default());
        let text = String::from_utf8_lossy(&source.bytes).into_owned();
        Some(LoadedSkill {
            name: skill.metadata.name.unwrap_or_default(),
            spec: skill.spec,
            mcp: checked.mcp_address,
            text,
        })
    }

    /// Prints the errors, and mentions warnings.
    ///
    /// # Errors
    /// If there are errors.
    fn report(mut self, name: &str) -> Result<(), Error> {
        self.findings.sort_by_key(Finding::position);
        let tally = Tally::count(&self.findings);
        if tally.errors > 0 {
            findings::print_text(&mut anstream::stderr().lock(), &findings::in_file(name, self.findings))
                .map_err(|error| Error::failed(error.to_string()))?;
            return Err(Error::usage(format!("{name}: {}: nothing was run", tally.summary())));
        }
        if tally.warnings > 0 {
            text::inform(&format!("{name}: {}: run `bloomery lint` for details", tally.summary()));
        }
        Ok(())
    }
}

/// Reads all Skills in a file, and skips documents of other kinds. Prints their errors.
///
/// # Errors
/// If the file cannot be read, or one of them has errors.
pub fn read_all(file: &Path) -> Result<Vec<LoadedSkill>, Error> {
    let source =
        source::read(file).map_err(|error| Error::usage(format!("{} cannot be read: {error}", source::name(file))))?;
    let mut documents = SkillDocuments::read(&source, file, None);
    let checked = std::mem::take(&mut documents.skills);
    let skills = checked.into_iter().filter_map(|checked| documents.load(checked, &source)).collect();
    documents.report(&source.name).map(|()| skills)
}

/// Parses and checks the Skill that `selector` selects. Prints its errors.
fn load_skill(source: &Source, selector: &SkillSelector<'_>) -> Result<LoadedSkill, Error> {
    let mut documents = SkillDocuments::read(source, selector.file, selector.directory);
    let skills = std::mem::take(&mut documents.skills);
    // If no Skill was read and a document is broken, that document may be the Skill: only its errors are reported.
    let loaded = if skills.is_empty() && !documents.findings.is_empty() {
        None
    } else {
        match selector.select(skills) {
            Ok(checked) => documents.load(checked, source),
            Err(finding) => {
                documents.findings.push(finding);
                None
            }
        }
    };
    documents.report(&source.name)?;
    loaded.ok_or_else(|| Error::usage(format!("{}: the Skill cannot be read: nothing was run", source.name)))
}
