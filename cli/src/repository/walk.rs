//! Finds the skills of a repository.

use super::files::{FileTree, Kind, Listing, join, list};
use crate::error::Error;
use bloomery_skills::Finding;
use bloomery_skills::repository::{Format, FoundSkill, memory_notes};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of all skills.
pub const SKILLS: &str = "skills";

/// The directory of the notes.
const MEMORY_BANK: &str = "memory-bank";

/// The directory of the templates.
pub const TEMPLATES: &str = "templates";

/// Directories at the top of a repository that have no skills of their own.
const WITHOUT_SKILLS: [&str; 3] = [MEMORY_BANK, TEMPLATES, "examples"];

/// The deepest nesting of skills.
const MAX_DEPTH: usize = 16;

/// The findings about files, by their paths.
pub type PathFindings = BTreeMap<PathBuf, Vec<Finding>>;

/// A repository: the skills in it, but not their content.
#[derive(Debug)]
pub struct Repository {
    /// The directory below which the paths of the skills are.
    pub base: PathBuf,
    /// The skills, in the order of their directories.
    pub skills: Vec<FoundSkill>,
    /// The names of the files of each skill.
    files: Vec<Vec<String>>,
    /// The notes of the memory bank.
    pub notes: BTreeMap<String, String>,
    /// The faults of files and directories.
    pub findings: PathFindings,
}

impl Repository {
    /// Finds the skills below a directory: that of a repository, of a single skill, or of several skills.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn read(root: &Path) -> Result<Self, Error> {
        Self::walk(root)
            .map_err(|error| Error::usage(format!("cannot read the repository {}: {error}", root.display())))
    }

    fn walk(root: &Path) -> io::Result<Self> {
        let top = list(root)?;
        let mut repository = Self {
            base: root.to_owned(),
            skills: Vec::new(),
            files: Vec::new(),
            notes: BTreeMap::new(),
            findings: PathFindings::new(),
        };
        if format_of(&top).is_some() {
            // The name of a single skill is that of its directory.
            let whole = root.canonicalize()?;
            let name = whole.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
            repository.base = whole.parent().map(Path::to_path_buf).unwrap_or_default();
            repository.visit(&name, top, 0)?;
            return Ok(repository);
        }
        if top.entries.contains(&(SKILLS.to_owned(), Kind::Directory)) {
            let names = [SKILLS, MEMORY_BANK, TEMPLATES];
            repository.report(root, top.faults.into_iter().filter(|(name, _)| names.contains(&name.as_str())));
            repository.base = root.join(SKILLS);
            let skills = list(&repository.base)?;
            repository.visit("", skills, 0)?;
        } else {
            let entries = top.entries.into_iter().filter(|(name, _)| !WITHOUT_SKILLS.contains(&name.as_str()));
            repository.visit("", Listing { entries: entries.collect(), faults: top.faults }, 0)?;
        }
        repository.read_notes(&root.join(MEMORY_BANK))?;
        Ok(repository)
    }

    /// Adds the skill at a path, if it is one, and those within it. Returns whether there is any.
    fn visit(&mut self, path: &str, listing: Listing, depth: usize) -> io::Result<bool> {
        let dir = self.base.join(path);
        let format = format_of(&listing);
        if format == Some(Format::AgentSkill) {
            let (tree, faults) = FileTree::open(&dir)?;
            self.report(&dir, faults);
            self.add(path, Format::AgentSkill, tree.files);
            return Ok(true);
        }
        self.report(&dir, listing.faults);
        if depth > MAX_DEPTH {
            self.add_finding(dir, Finding::of_file(format!("is nested deeper than {MAX_DEPTH} directories")));
            return Ok(true);
        }
        let (directories, files): (Vec<_>, Vec<_>) =
            listing.entries.into_iter().partition(|(_, kind)| *kind == Kind::Directory);
        if let Some(format) = format {
            self.add(path, format, files.into_iter().map(|(name, _)| name).collect());
        }
        let mut has_skill = format.is_some();
        let mut others = Vec::new();
        for (name, _) in directories {
            let within = join(path, &name);
            let listing = list(&self.base.join(&within))?;
            if self.visit(&within, listing, depth + 1)? {
                has_skill = true;
            } else {
                others.push(within);
            }
        }
        // A directory without skills is reported where there are skills beside it.
        if has_skill {
            for other in others {
                let dir = self.base.join(other);
                let message = "is not imported: there is neither a skill.json nor a SKILL.md in it";
                self.add_finding(dir, Finding::warning_of_file(message));
            }
        }
        Ok(has_skill)
    }

    fn add(&mut self, path: &str, format: Format, files: Vec<String>) {
        self.skills.push(FoundSkill { path: path.to_owned(), format });
        self.files.push(files);
    }

    fn add_finding(&mut self, path: PathBuf, finding: Finding) {
        self.findings.entry(path).or_default().push(finding);
    }

    fn report(&mut self, dir: &Path, faults: impl IntoIterator<Item = (String, String)>) {
        for (name, fault) in faults {
            self.add_finding(dir.join(name), Finding::of_file(fault));
        }
    }

    fn read_notes(&mut self, dir: &Path) -> io::Result<()> {
        let is_directory = dir.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if !is_directory {
            return Ok(());
        }
        let (tree, faults) = FileTree::open(dir)?;
        self.report(dir, faults);
        let (notes, findings) = memory_notes(&tree);
        self.notes = notes;
        for (file, findings) in findings {
            self.findings.entry(dir.join(file)).or_default().extend(findings);
        }
        Ok(())
    }

    /// Returns each skill with its files.
    pub fn skills_with_files(&self) -> impl Iterator<Item = (&FoundSkill, FileTree)> {
        self.skills.iter().zip(&self.files).map(move |(skill, files)| {
            let tree = FileTree { dir: self.base.join(&skill.path), files: files.clone() };
            (skill, tree)
        })
    }
}

/// Returns the format of the skill in a directory, if it is one.
fn format_of(listing: &Listing) -> Option<Format> {
    let has = |format: &Format| listing.entries.contains(&(format.file().to_owned(), Kind::File));
    [Format::SkillJson, Format::AgentSkill].into_iter().find(has)
}
