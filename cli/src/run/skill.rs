//! The Skill of a run: out of a file, out of its skill directory, or out of a template on first use (seed 000).

use crate::check::check_document;
use crate::error::Error;
use crate::findings::{self, Tally};
use crate::local::SKILL_FILE;
use crate::local::skill_directory::SkillDirectory;
use crate::run::templates;
use crate::source::{self, Source};
use crate::text;
use bloomery_crds::v1alpha1::{McpServer, SkillSpec};
use bloomery_skills::names::name_fault;
use bloomery_skills::{Checked, Document, Finding, Form, Options, yaml};
use std::fs;
use std::path::Path;

/// A Skill that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// Its name, which is its skill directory's.
    pub name: String,
    /// What it says.
    pub spec: SkillSpec,
    /// The address of its MCP server, where the file has one.
    pub mcp: Option<String>,
    /// The file as it stands.
    pub text: String,
}

impl Loaded {
    /// Its MCP server, where it is one that only a cluster has.
    pub fn cluster_server(&self) -> Option<&McpServer> {
        self.spec.mcp_server.as_ref()
    }
}

/// Whether what `--skill` says is a file, and not the name of a Skill.
pub fn is_file(text: &str) -> bool {
    text == "-" || text.contains(['/', '\\']) || name_fault(text).is_some()
}

/// A Skill, the skill directory of its Jobs, and how it comes there.
#[derive(Debug)]
pub struct Found {
    /// The skill directory, whether it is there or not.
    pub directory: SkillDirectory,
    /// The Skill.
    pub loaded: Loaded,
    origin: Origin,
}

/// Where a Skill was found.
#[derive(Debug)]
enum Origin {
    /// In its skill directory.
    SkillDirectory,
    /// Among the templates.
    Template,
    /// In a file that the command line names.
    File(String),
}

/// Finds the Skill that the command line names. Nothing is made.
///
/// # Errors
/// If there is none, or it cannot be used.
pub fn find(memory: &Path, named: &str, bootstrap: bool) -> Result<Found, Error> {
    if is_file(named) {
        let (file, skill) = split_name(named);
        let loaded = read(Path::new(file), skill, None)?;
        return Ok(Found {
            directory: SkillDirectory::new(memory, &loaded.name),
            loaded,
            origin: Origin::File(named.to_owned()),
        });
    }
    let directory = SkillDirectory::new(memory, named);
    let file = directory.dir.join(SKILL_FILE);
    let (loaded, origin) = if file.try_exists().unwrap_or(true) {
        (read_operational(&directory, &file)?, Origin::SkillDirectory)
    } else {
        let text = templates::find(named, bootstrap).ok_or_else(|| Error::usage(not_found_message(&directory)))?;
        let source = Source { name: format!("the template {named}"), bytes: text.into_bytes() };
        (loaded(&source, &Wanted { file: &file, name: None, directory: Some(named) })?, Origin::Template)
    };
    Ok(Found { directory, loaded, origin })
}

/// A file that `--skill` says, and which of its Skills: `FILE#NAME`.
fn split_name(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once('#') {
        Some((file, skill)) if !Path::new(named).exists() => (file, Some(skill)),
        _ => (named, None),
    }
}

/// The operational Skill of a skill directory: in a file that holds several, the one of its name.
fn read_operational(directory: &SkillDirectory, file: &Path) -> Result<Loaded, Error> {
    let loaded = read(file, None, Some(&directory.name))?;
    if loaded.name != directory.name {
        let (file, name, directory) = (file.display(), &loaded.name, &directory.name);
        return Err(Error::usage(format!(
            "{file} is the Skill {name}, and stands in the directory of the Skill {directory}: give both the same name"
        )));
    }
    Ok(loaded)
}

impl Found {
    /// Makes a Skill that is not out of its skill directory the operational one, where that has none. Where there is another it
    /// stays, and that is said: a Job of the same name would run on it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self) -> Result<(), Error> {
        let (file, text) = (self.directory.dir.join(SKILL_FILE), self.loaded.text.as_bytes());
        let shown = file.display();
        if matches!(self.origin, Origin::SkillDirectory) {
            return Ok(());
        }
        if file.try_exists().unwrap_or(true) {
            if let Origin::File(of) = &self.origin
                && source::read(&file).map_or(true, |kept| text != kept.bytes)
            {
                text::inform(&format!("{shown} is another version of the Skill, and stays as it is: {of} is run"));
            }
            return Ok(());
        }
        fs::write(&file, text).map_err(|error| Error::failed(format!("{shown} cannot be written: {error}")))?;
        if matches!(self.origin, Origin::Template) {
            text::inform(&format!("{shown} is the Skill from now on: change it as you like"));
        }
        Ok(())
    }
}

/// Why a name is no Skill's.
pub fn not_found_message(directory: &SkillDirectory) -> String {
    let near = bloomery_crds::nearest::did_you_mean(&directory.name, templates::names());
    let known: Vec<&str> = templates::names().collect();
    format!(
        "there is no {}, and no template is called {:?}.{near} Templates are {}. --bootstrap makes a minimal Skill of that \
         name; --skill FILE takes one of yours",
        directory.dir.join(SKILL_FILE).display(),
        directory.name,
        known.join(", ")
    )
}

/// Reads the Skill that a file holds; documents that are none are passed over. Of several, `wanted` names one. `skill directory`
/// names one of the older dialect, whatever its id, and the one that counts of several.
///
/// # Errors
/// If there is none, or anything is wrong with it, which is shown.
fn read(file: &Path, wanted: Option<&str>, directory: Option<&str>) -> Result<Loaded, Error> {
    let source = source::read(file)
        .map_err(|error| Error::usage(format!("the Skill {} cannot be read: {error}", source::name(file))))?;
    loaded(&source, &Wanted { file, name: wanted, directory })
}

/// Which Skill of a file is wanted.
struct Wanted<'a> {
    /// The file, as the command line names it.
    file: &'a Path,
    /// The Skill that is named there.
    name: Option<&'a str>,
    /// The skill directory that the file stands in.
    directory: Option<&'a str>,
}

impl Wanted<'_> {
    /// The one of several.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn select(&self, mut skills: Vec<Checked>) -> Result<Checked, Finding> {
        let name_of = |checked: &Checked| checked.object.pointer("/metadata/name")?.as_str().map(str::to_owned);
        let names: Vec<String> = skills.iter().filter_map(name_of).collect();
        if skills.len() > 1 || (self.name.is_some() && !skills.is_empty()) {
            let Some(wanted) = self.name.or(self.directory) else {
                let (file, first) = (self.file.display(), names.first().map_or("NAME", String::as_str));
                return Err(Finding::of_file(format!(
                    "there are several Skills in it: name the one to run, such as --skill {file}#{first}; there are {}",
                    names.join(", ")
                )));
            };
            skills.retain(|looked| name_of(looked).as_deref() == Some(wanted));
            if skills.len() > 1 {
                return Err(Finding::of_file(format!("there is more than one Skill {wanted:?} in it")));
            }
            let near = bloomery_crds::nearest::did_you_mean(wanted, names.iter().map(String::as_str));
            let there = names.join(", ");
            return skills
                .pop()
                .ok_or_else(|| Finding::of_file(format!("there is no Skill {wanted:?} in it, but {there}.{near}")));
        }
        skills.pop().ok_or_else(|| Finding::of_file("there is no Skill in it"))
    }
}

fn loaded(source: &Source, wanted: &Wanted<'_>) -> Result<Loaded, Error> {
    let read = yaml::read(&source.bytes);
    let mut findings = read.findings;
    let looked = read.documents.iter().filter_map(|document| check_skill(document, wanted.directory));
    let skills: Vec<Checked> =
        looked.filter(|looked| looked.kind.as_deref().is_none_or(|kind| kind == "Skill")).collect();
    // Where there is none, what is broken may have been the one.
    let skill = if skills.is_empty() && !findings.is_empty() {
        None
    } else {
        match wanted.select(skills) {
            Ok(mut one) => {
                findings.append(&mut one.findings);
                one.skill.map(|skill| (skill, one.mcp_address))
            }
            Err(finding) => {
                findings.push(finding);
                None
            }
        }
    };
    findings.sort_by_key(Finding::position);
    let tally = Tally::count(&findings);
    let name = source.name.clone();
    if tally.errors > 0 {
        let shown = findings::text(&mut anstream::stderr().lock(), &findings::located(&source.name, findings));
        shown.map_err(|error| Error::failed(error.to_string()))?;
    }
    let refused = || Error::usage(format!("{name}: {}: nothing was run", tally.summary()));
    let (skill, mcp) = skill.filter(|_| tally.errors == 0).ok_or_else(refused)?;
    if tally.warnings > 0 {
        text::inform(&format!("{name}: {}: `bloomery lint` says which", tally.summary()));
    }
    let text = String::from_utf8_lossy(&source.bytes).into_owned();
    Ok(Loaded { name: skill.metadata.name.unwrap_or_default(), spec: skill.spec, mcp, text })
}

fn check_skill(document: &Document, directory: Option<&str>) -> Option<Checked> {
    let options = Options { name: directory.map(str::to_owned), local: true, ..Options::default() };
    (document.form() != Form::Foreign).then(|| check_document(document, &options))
}
