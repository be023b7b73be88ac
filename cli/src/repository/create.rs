//! `bloomery new`: starts a skill of a repository from a template.

use super::locate::{Source, of_environment};
use super::template::{self, Files};
use super::walk::SKILLS;
use crate::args::NewArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::output;
use crate::text;
use bloomery_skills::names::name_fault;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates the directory of a skill, and prints the paths of its files.
///
/// # Errors
/// If the name is not valid, the skill exists, there is no such repository or template, or a file cannot be written.
pub fn run(args: &NewArgs) -> Result<Exit, Error> {
    let root = Source { dir: args.dir.as_deref(), name: args.repo.as_deref() }.directory(of_environment)?;
    if !root.is_dir() {
        let message = format!("there is no directory {}: create it, and call the command again", root.display());
        return Err(Error::usage(message));
    }
    check_name(&args.name)?;
    let files = template::read(&root, args.template.as_deref())?;
    let dir = new_directory(&root, &args.name)?;
    let paths = write(&dir, &files).map_err(|error| {
        Error::failed(format!(
            "cannot write the skill {}: {error}. Remove the directory before you try again",
            dir.display()
        ))
    })?;
    let shown: Vec<String> = paths.iter().map(|path| format!("{}\n", path.display())).collect();
    output::print(&shown.concat())?;
    let root = text::shell_quoted(&root.display().to_string());
    text::report(&format!("edit these files, then check the skill: bloomery import {root}"));
    Ok(Exit::Success)
}

/// Checks the name of a skill, in which `/` is before the name of a nested skill.
fn check_name(name: &str) -> Result<(), Error> {
    let of_part = name.split('/').find_map(name_fault);
    match of_part.or_else(|| name_fault(&name.replace('/', "-"))) {
        None => Ok(()),
        Some(fault) => Err(Error::usage(format!(
            "the name {name:?} is not valid: a part of it, or all parts joined by '-', {fault}"
        ))),
    }
}

/// Creates the directory of a skill, and those around it.
fn new_directory(root: &Path, name: &str) -> Result<PathBuf, Error> {
    let mut dir = root.join(SKILLS);
    let failed = |dir: &Path, error: &io::Error| Error::failed(format!("cannot create {}: {error}", dir.display()));
    for part in name.split('/') {
        match dir.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => {
                return Err(Error::usage(format!("{} is not a directory: a link is not followed", dir.display())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&dir).map_err(|error| failed(&dir, &error))?;
            }
            Err(error) => return Err(failed(&dir, &error)),
        }
        dir.push(part);
    }
    match fs::create_dir(&dir) {
        Ok(()) => Ok(dir),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Error::usage(format!("{} exists already: choose another name, or remove it", dir.display())))
        }
        Err(error) => Err(failed(&dir, &error)),
    }
}

/// Writes files into a new directory. Returns their paths.
pub(super) fn write(dir: &Path, files: &Files) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for (file, content) in files {
        let path = dir.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::check_name;
    use rstest::rstest;

    #[rstest]
    #[case("greet", true)]
    #[case("use-skill/list", true)]
    #[case("../greet", false)]
    #[case("/greet", false)]
    #[case("greet/", false)]
    #[case("Greet", false)]
    #[case("a//b", false)]
    #[case(&format!("{}/{}", "a".repeat(30), "b".repeat(30)), false)]
    fn a_name_consists_of_names_of_skills(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(check_name(name).is_ok(), expected);
    }
}
