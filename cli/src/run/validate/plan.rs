//! The content of a validation: the selected features, and everything that their conversations need.

use crate::args::ValidateArgs;
use crate::local::run_document::McpProgram;
use crate::repository::import;
use crate::source::Source;
use crate::text;
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::run::{BoundResource, Revision};
use bloomery_crds::v1alpha1::{Feature, Limits, PassCriteria};
use bloomery_embed::run::model::{self, Models};
use bloomery_embed::run::options::{McpOptions, ModelOptions};
use bloomery_embed::run::server::{self, Server};
use bloomery_embed::run::skill::{self, LoadedSkill};
use bloomery_embed::run::{limits, prepare, resources};
use bloomery_embed::{Error, Errors};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The content of a validation.
#[derive(Debug)]
pub struct Plan {
    /// The Skills with selected features, in the order of the command line.
    pub skills: Vec<TestedSkill>,
    /// The names of all Skills that were read, also those without selected features.
    pub read: BTreeSet<String>,
    /// The models of all Skills.
    pub models: Models,
    /// The limits of the command line.
    pub limits: Option<Limits>,
}

/// A Skill with selected features.
#[derive(Debug)]
pub struct TestedSkill {
    /// The compiled Skill.
    pub revision: Revision,
    /// The selected features.
    pub features: Vec<Feature>,
    /// The number of their tests, and the share of them that must pass: those of the command line, or else those of the Skill.
    pub criteria: PassCriteria,
    /// The MCP server if it is a program.
    pub program: Option<McpProgram>,
    /// The bound resources.
    pub resources: Vec<BoundResource>,
}

/// Reads the Skills, and finds what the tests of their features need.
///
/// # Errors
/// All errors, at once, except that errors of Skills come first.
pub fn read(args: &ValidateArgs) -> Result<Plan, Error> {
    let all = read_skills(&args.paths)?;
    let read = all.iter().map(|skill| skill.name.clone()).collect();
    let selected = select(all, args)?;
    let mut errors = Errors::default();
    let limits = errors.collect(limits::read(&args.limits));
    let server_of_args = errors.collect(server::from_options(&McpOptions::from(&args.mcp)));
    let names: BTreeSet<&str> = selected.iter().flat_map(|(loaded, _)| loaded.spec.model_names()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let models = errors.collect(model::find(&ModelOptions::from(&args.model), Some(&names), &prepare::env));
    for (name, _) in &args.resources {
        if !selected.iter().any(|(loaded, _)| declares(loaded, name)) {
            errors.add(Error::invalid(format!("--resource {name}: no Skill that is validated declares this resource")));
        }
    }
    let mut skills = Vec::new();
    for (loaded, features) in selected {
        let server_of_skill = || errors.collect(server::from_skill(&loaded));
        let server = server_of_args.clone().and_then(|given| given.or_else(server_of_skill));
        let given: Vec<(String, String)> =
            args.resources.iter().filter(|(name, _)| declares(&loaded, name)).cloned().collect();
        let resources = errors.collect(resources::bind(&loaded.spec.resources, &given, None));
        if let (Some(Server { mcp, program }), Some(resources)) = (server, resources) {
            let criteria = criteria(args, &loaded);
            let revision = Revision::new(loaded.name, loaded.spec, mcp);
            skills.push(TestedSkill { revision, features, criteria, program, resources });
        }
    }
    match (limits, models) {
        (Some(limits), Some(models)) if errors.is_empty() => Ok(Plan { skills, read, models, limits }),
        _ => Err(errors.into_error()),
    }
}

fn criteria(args: &ValidateArgs, skill: &LoadedSkill) -> PassCriteria {
    let PassCriteria { runs, pass_rate } = PassCriteria::new(skill.spec.validation());
    PassCriteria { runs: args.runs.unwrap_or(runs), pass_rate: args.pass_rate.unwrap_or(pass_rate) }
}

fn declares(skill: &LoadedSkill, resource: &str) -> bool {
    skill.spec.resources.iter().any(|declared| declared.name == resource)
}

/// Reads all Skills in files, directories and repositories of skills.
///
/// # Errors
/// All errors of all files, at once.
fn read_skills(paths: &[PathBuf]) -> Result<Vec<LoadedSkill>, Error> {
    let mut errors = Errors::default();
    let mut skills: Vec<LoadedSkill> = Vec::new();
    let all: Vec<_> = paths.iter().filter_map(|path| errors.collect(sources(path))).collect();
    for (file, source) in all.into_iter().flatten() {
        let read = match source {
            Some(source) => skill::load_all(source, &file),
            None => skill::read_all(&file),
        };
        let Some((read, note)) = errors.collect(read) else { continue };
        if let Some(note) = note {
            text::inform(&note);
        }
        for skill in read {
            if skills.iter().any(|known| known.name == skill.name) {
                let (file, name) = (file.display(), &skill.name);
                errors.add(Error::invalid(format!("{file}: there is another Skill of the name {name}")));
            }
            skills.push(skill);
        }
    }
    errors.into_result(skills)
}

/// Returns the files of a path, and the manifests that `bloomery import` would write for those of a repository of skills.
fn sources(path: &Path) -> Result<Vec<(PathBuf, Option<Source>)>, Error> {
    if !path.is_dir() || !import::is_repository(path) {
        return Ok(files(path)?.into_iter().map(|file| (file, None)).collect());
    }
    let imported = import::in_memory(path, &[]).map_err(|error| Error::invalid(error.message))?;
    if imported.tally.errors > 0 {
        let message = format!("{}: {}: nothing was run", path.display(), imported.tally.summary());
        return Err(Error { findings: imported.findings, ..Error::invalid(message) });
    }
    let as_source = |(file, manifest): (PathBuf, String)| {
        let source = Source { name: file.display().to_string(), bytes: manifest.into_bytes() };
        (file, Some(source))
    };
    Ok(imported.manifests.into_iter().map(as_source).collect())
}

/// Returns the manifests in a directory, sorted by name. Any other path is a manifest.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| Error::invalid(format!("{} cannot be read: {error}", path.display()));
    let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(path).and_then(Iterator::collect);
    let entries = entries.map_err(unreadable)?;
    let is_manifest = |file: &PathBuf| {
        file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") && file.is_file()
    };
    let mut files: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_manifest).collect();
    files.sort();
    Ok(files)
}

/// Selects the features that the command line names. Leaves out Skills without one.
///
/// # Errors
/// If there is no such Skill or feature.
fn select(skills: Vec<LoadedSkill>, args: &ValidateArgs) -> Result<Vec<(LoadedSkill, Vec<Feature>)>, Error> {
    let is_selected = |name: &str, wanted: Option<&str>| wanted.is_none_or(|wanted| wanted == name);
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    if let Some(wanted) = args.skill.as_deref().filter(|wanted| !names.contains(wanted)) {
        return Err(unknown("--skill", wanted, "Skill", &names));
    }
    let skills: Vec<LoadedSkill> =
        skills.into_iter().filter(|skill| is_selected(&skill.name, args.skill.as_deref())).collect();
    let features = skills.iter().flat_map(|skill| &skill.spec.features);
    let names: Vec<&str> = features.map(|feature| feature.name.as_str()).collect();
    if names.is_empty() {
        return Err(Error::invalid("there is nothing to validate: no selected Skill has `features`"));
    }
    if let Some(wanted) = args.feature.as_deref().filter(|wanted| !names.contains(wanted)) {
        return Err(unknown("--feature", wanted, "feature", &names));
    }
    let with_features = |skill: LoadedSkill| {
        let features = skill.spec.features.iter().filter(|feature| is_selected(&feature.name, args.feature.as_deref()));
        let features: Vec<Feature> = features.cloned().collect();
        (!features.is_empty()).then_some((skill, features))
    };
    Ok(skills.into_iter().filter_map(with_features).collect())
}

/// Returns the error for an option that names nothing.
fn unknown(option: &str, wanted: &str, kind: &str, known: &[&str]) -> Error {
    let near = did_you_mean(wanted, known.iter().copied());
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Error::invalid(format!("{option} {wanted}: there is no such {kind}. There is {known}.{near}"))
}
