//! `bloomery export`: writes Skills as Agent Skills.

use super::create::write;
use super::files::{Kind, list};
use super::template::Files;
use crate::args::{ExportArgs, ExportFormat};
use crate::check::check_document;
use crate::error::{Error, from_io_result};
use crate::exit::Exit;
use crate::findings::{self, Tally};
use crate::output;
use crate::source;
use bloomery_crds::lists::ConfigMaps;
use bloomery_skills::repository::{ExportedSkill, export};
use bloomery_skills::{Finding, Form, ImportOptions, yaml};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The extensions of the files that are read in a directory.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Writes the directory of each Skill, and prints all findings and the paths of the files. Writes nothing if there is an error.
///
/// # Errors
/// If a file cannot be read, the directory of a Skill exists, or cannot be written.
pub fn run(args: &ExportArgs) -> Result<Exit, Error> {
    match args.format {
        ExportFormat::AgentSkill => from_io_result(write_all(args)),
    }
}

fn write_all(args: &ExportArgs) -> io::Result<Exit> {
    let (mut exported, mut tally) = (Vec::new(), Tally::default());
    for path in &args.paths {
        for file in manifests(path)? {
            let (skills, mut findings) = read(&file)?;
            exported.extend(skills);
            findings.sort_by_key(Finding::position);
            tally = tally.plus(Tally::count(&findings));
            let shown = findings::in_file(&source::name(&file), findings);
            findings::print_text(&mut anstream::stderr().lock(), &shown)?;
        }
    }
    if tally.errors > 0 || exported.is_empty() {
        let why = if tally.errors > 0 { tally.summary() } else { "there is no Skill".to_owned() };
        anstream::eprintln!("{why}: nothing was written");
        return Ok(Exit::Error);
    }
    let mut dirs: Vec<PathBuf> = exported.iter().map(|skill| args.output.join(&skill.name)).collect();
    if let Some(taken) = dirs.iter().find(|dir| dir.symlink_metadata().is_ok()) {
        let message = format!("{} exists already: remove it, or choose another directory with -o", taken.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    dirs.sort();
    if let Some([twice, _]) = dirs.windows(2).find(|pair| matches!(pair, [one, other] if one == other)) {
        return Err(io::Error::other(format!("two Skills have the directory {}", twice.display())));
    }
    for skill in exported {
        let dir = args.output.join(&skill.name);
        let files: Files = skill.files.into_iter().map(|(file, text)| (file, text.into_bytes())).collect();
        let paths = fs::create_dir_all(&dir)
            .and_then(|()| write(&dir, &files))
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", dir.display())))?;
        let shown: Vec<String> = paths.iter().map(|path| format!("{}\n", path.display())).collect();
        output::print(&shown.concat()).map_err(|error| io::Error::other(error.message))?;
    }
    Ok(Exit::Success)
}

/// Returns a file, or the manifests in a directory.
fn manifests(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_manifest =
        |file: &PathBuf| file.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known));
    let files = list(path)?.entries.into_iter().filter(|(_, kind)| *kind == Kind::File);
    Ok(files.map(|(name, _)| path.join(name)).filter(is_manifest).collect())
}

/// Reads the Skills of a file. Objects of other kinds are left out.
fn read(file: &Path) -> io::Result<(Vec<ExportedSkill>, Vec<Finding>)> {
    let name = source::name(file);
    let source =
        source::read(file).map_err(|error| io::Error::new(error.kind(), format!("cannot read {name}: {error}")))?;
    let read = yaml::read(&source.bytes);
    let (mut skills, mut findings) = (Vec::new(), read.findings);
    let options = ImportOptions { file: source::stem(file), ..ImportOptions::default() };
    for document in read.documents.iter().filter(|document| document.form() != Form::Foreign) {
        let mut checked = check_document(document, &options, &[], &ConfigMaps::new());
        if checked.kind.as_deref().is_some_and(|kind| kind != "Skill") {
            continue;
        }
        if let Some(skill) = export(&checked) {
            findings.extend(skill.findings.iter().cloned());
            skills.push(skill);
        }
        findings.append(&mut checked.findings);
    }
    Ok((skills, findings))
}
