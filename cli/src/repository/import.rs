//! `bloomery import DIR`: converts the skills of a repository to manifests. `bloomery validate` and `bloomery lint` convert them in memory.

use super::files::FileTree;
use super::locate::{Source, of_environment};
use super::walk::{PathFindings, Repository, SKILLS};
use crate::args::ImportArgs;
use crate::check::add_engine_findings;
use crate::error::{Error, from_io_result};
use crate::exit::Exit;
use crate::findings::{self, FileFinding, Tally};
use crate::text;
use bloomery_engine::tool::ListedTool;
use bloomery_redact::plain_file;
use bloomery_skills::Finding;
use bloomery_skills::repository::{Catalogue, Format, FoundSkill, Invoker, RepositoryOptions, convert, cycles};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The instructions of a repository for people.
const ABOUT: &str = "about.md";

/// The largest file with such instructions, in bytes.
const MAX_ABOUT_BYTES: u64 = 64 * 1024;

/// The image of scripts in a conversion in memory: nothing pulls it.
const NO_IMAGE: &str = "none";

/// The Skills of a repository, converted in memory.
#[derive(Debug)]
pub struct Imported {
    /// The number of skills.
    pub count: usize,
    /// The manifest of each skill, with the path of its `skill.json` or `SKILL.md`. Empty if there is an error.
    pub manifests: Vec<(PathBuf, String)>,
    /// All findings.
    pub findings: Vec<FileFinding>,
    /// The number of findings.
    pub tally: Tally,
}

/// Returns whether a directory is a repository with a directory of skills, or a single skill. Another directory may have manifests.
pub fn is_repository(dir: &Path) -> bool {
    let is_single = || [Format::SkillJson, Format::AgentSkill].iter().any(|format| dir.join(format.file()).is_file());
    let has_skills = || Repository::read(dir).is_ok_and(|repository| !repository.skills.is_empty());
    (dir.join(SKILLS).is_dir() || is_single()) && has_skills()
}

/// Converts all skills of a repository in memory, and checks them against the `tools` of the MCP server, if they are known. Prints nothing.
///
/// # Errors
/// If the repository cannot be read.
pub fn in_memory(dir: &Path, tools: &[ListedTool]) -> Result<Imported, Error> {
    let options = RepositoryOptions { script_image: Some(NO_IMAGE.to_owned()), ..RepositoryOptions::default() };
    let mut import = Import::new(options, dir, Repository::read(dir)?);
    let mut findings = Vec::new();
    let failed = |error: io::Error| Error::failed(error.to_string());
    let report = import.check(tools, |path, found| {
        let tally = Tally::count(&found);
        findings.extend(findings::in_file(&path.display().to_string(), found));
        Ok(tally)
    });
    let tally = report.map_err(failed)?;
    let manifests = if tally.errors > 0 { Vec::new() } else { import.manifests().map_err(failed)? };
    Ok(Imported { count: import.repository.skills.len(), manifests, findings, tally })
}

/// Returns the directory of the repository to import.
///
/// # Errors
/// If it is not known.
pub fn directory(args: &ImportArgs) -> Result<PathBuf, Error> {
    Source { dir: args.path.as_deref(), name: args.repo.as_deref() }.directory(of_environment)
}

/// Converts all skills of a repository, and prints all findings. Writes nothing if there is an error.
///
/// The skills are converted twice: first to check all of them, and then to write them. So only one skill at a time is in memory.
///
/// # Errors
/// If an argument does not apply, or the repository cannot be read or the manifests cannot be written.
pub fn run(args: &ImportArgs, dir: &Path) -> Result<Exit, Error> {
    if args.name.is_some() || args.problem.is_some() {
        return Err(Error::usage("--name and --problem are for a single file, and not for a directory of skills"));
    }
    let repository = Repository::read(dir)?;
    let options = RepositoryOptions {
        namespace: args.namespace.clone(),
        model: args.model.clone(),
        script_image: args.script_image.clone(),
        os: args.os.into(),
        ..RepositoryOptions::default()
    };
    from_io_result(Import::new(options, dir, repository).run(args.output.as_deref()))
}

struct Import {
    repository: Repository,
    /// The instructions of the repository.
    about: Option<String>,
    catalogue: Catalogue,
    options: RepositoryOptions,
    /// The findings that are known before the first skill is converted.
    findings: PathFindings,
}

impl Import {
    fn new(options: RepositoryOptions, dir: &Path, mut repository: Repository) -> Self {
        let mut findings = std::mem::take(&mut repository.findings);
        let (catalogue, of_names) = Catalogue::new(&repository.skills);
        for (file, of_name) in of_names {
            findings.entry(repository.base.join(file)).or_default().extend(of_name);
        }
        let about = read_about(&dir.join(ABOUT), &mut findings);
        if repository.skills.is_empty() {
            let finding = Finding::of_file("there is no skill in the directory: neither a skill.json nor a SKILL.md");
            findings.entry(dir.to_owned()).or_default().push(finding);
        }
        let options = RepositoryOptions { notes: std::mem::take(&mut repository.notes), ..options };
        Self { repository, about, catalogue, options, findings }
    }

    fn run(mut self, output: Option<&Path>) -> io::Result<Exit> {
        let tally = self.check(&[], print)?;
        if tally.errors > 0 {
            anstream::eprintln!("{}: nothing was written", tally.summary());
            return Ok(Exit::Error);
        }
        match output {
            Some(file) => {
                let failed = |error: io::Error| {
                    io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display()))
                };
                self.write(&mut BufWriter::new(File::create(file).map_err(failed)?)).map_err(failed)?;
            }
            None => self.write(&mut BufWriter::new(io::stdout().lock()))?,
        }
        let skills = match self.repository.skills.len() {
            1 => "1 Skill".to_owned(),
            count => format!("{count} Skills"),
        };
        anstream::eprintln!("{skills}: {}", tally.summary());
        Ok(Exit::Success)
    }

    /// Converts all skills, checks them against the `tools` of the MCP server, and calls `report` for the findings of each file. Keeps only
    /// the names of the Skills and their subskills.
    fn check(
        &mut self,
        tools: &[ListedTool],
        mut report: impl FnMut(&Path, Vec<Finding>) -> io::Result<Tally>,
    ) -> io::Result<Tally> {
        let mut tally = Tally::default();
        for (path, findings) in std::mem::take(&mut self.findings) {
            tally = tally.plus(report(&path, findings)?);
        }
        let mut invokers = BTreeMap::new();
        for (skill, tree) in self.repository.skills_with_files() {
            let mut converted = convert(skill, &tree, &self.catalogue, &self.options);
            add_engine_findings(&mut converted.checked, tools);
            let file = tree.dir.join(skill.format.file());
            tally = tally.plus(report(&file, converted.checked.findings)?);
            for (other, findings) in converted.others {
                tally = tally.plus(report(&tree.dir.join(other), findings)?);
            }
            if let Some(name) = self.catalogue.name(&skill.path) {
                let file = file.display().to_string();
                let invoker = Invoker { file, object: None, subskills: converted.subskills };
                invokers.insert(name.to_owned(), invoker);
            }
        }
        for (file, finding) in cycles(&invokers) {
            tally = tally.plus(report(Path::new(&file), vec![finding])?);
        }
        Ok(tally)
    }

    /// Writes the manifests as one stream of YAML.
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for line in self.about.iter().flat_map(|about| about.lines()) {
            let line = text::sanitized_line(line);
            writeln!(out, "{}", format!("# {line}").trim_end())?;
        }
        for (nth, (skill, tree)) in self.repository.skills_with_files().enumerate() {
            if nth > 0 {
                writeln!(out, "---")?;
            }
            out.write_all(self.manifest(skill, &tree)?.as_bytes())?;
        }
        out.flush()
    }

    /// Returns the manifest of each skill, with the path of its file.
    fn manifests(&self) -> io::Result<Vec<(PathBuf, String)>> {
        let manifest = |(skill, tree): (&FoundSkill, FileTree)| {
            self.manifest(skill, &tree).map(|manifest| (tree.dir.join(skill.format.file()), manifest))
        };
        self.repository.skills_with_files().map(manifest).collect()
    }

    fn manifest(&self, skill: &FoundSkill, tree: &FileTree) -> io::Result<String> {
        let converted = convert(skill, tree, &self.catalogue, &self.options);
        let changed = || {
            let file = tree.dir.join(skill.format.file());
            io::Error::other(format!("{} changed while the repository was read: try again", file.display()))
        };
        let skill = converted.checked.skill.ok_or_else(changed)?;
        serde_yaml::to_string(&skill).map_err(io::Error::other)
    }
}

/// Reads the instructions of a repository, which become comments.
fn read_about(file: &Path, findings: &mut PathFindings) -> Option<String> {
    let is_file = file.symlink_metadata().ok()?.is_file();
    let read = || {
        if !is_file {
            return Err("is not a regular file".to_owned());
        }
        let opened = crate::source::open(file).map_err(|error| error.to_string())?;
        let bytes = plain_file::read_bounded(opened, MAX_ABOUT_BYTES).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
    };
    match read() {
        Ok(about) => Some(about),
        Err(fault) => {
            let finding = Finding::of_file(format!("cannot be read: {fault}"));
            findings.entry(file.to_owned()).or_default().push(finding);
            None
        }
    }
}

/// Prints the findings of a file, and counts them.
fn print(path: &Path, findings: Vec<Finding>) -> io::Result<Tally> {
    let tally = Tally::count(&findings);
    findings::print_text(&mut anstream::stderr().lock(), &findings::in_file(&path.display().to_string(), findings))?;
    Ok(tally)
}
