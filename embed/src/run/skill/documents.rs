//! The Skills in a file.

use crate::check::check_document;
use crate::error::Error;
use crate::findings::{self, Tally};
use crate::source::{self, Source};
use bloomery_crds::lists::ConfigMaps;
use bloomery_crds::v1alpha1::Skill;
use bloomery_engine::tool::ListedTool;
use bloomery_skills::{CheckedDocument, Finding, Form, ImportOptions, lists, yaml};
use std::path::Path;

/// A Skill with its lists, and the address of its MCP server if the file has one.
pub type ResolvedSkill = (Skill, Option<String>);

/// The documents of a file that are Skills or may be, and the findings about the file.
#[derive(Debug)]
pub struct SkillDocuments {
    /// The documents.
    pub skills: Vec<CheckedDocument>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The ConfigMaps in the file, for the lists of the Skills.
    config_maps: ConfigMaps,
}

impl SkillDocuments {
    /// Parses and checks a source, against the `tools` of the MCP server if they are known. `directory` replaces the id of a Skill in the
    /// older dialect.
    pub fn read(source: &Source, file: &Path, directory: Option<&str>, tools: &[ListedTool]) -> Self {
        let parsed = yaml::read(&source.bytes);
        let options = ImportOptions {
            name: directory.map(str::to_owned),
            file: source::stem(file),
            local: true,
            ..ImportOptions::default()
        };
        let bloomery_documents = parsed.documents.iter().filter(|document| document.form() != Form::Foreign);
        let config_maps = lists::config_maps(&parsed.documents);
        let checked = bloomery_documents.map(|document| check_document(document, &options, tools, &config_maps));
        let skills = checked.filter(|checked| checked.kind.as_deref().is_none_or(|kind| kind == "Skill")).collect();
        Self { skills, findings: parsed.findings, config_maps }
    }

    /// Returns the Skill of a document, and adds the findings about it. Returns `None` if it has errors.
    pub fn resolve(&mut self, mut checked: CheckedDocument) -> Option<ResolvedSkill> {
        self.findings.append(&mut checked.findings);
        let mut skill = checked.skill?;
        let resolved = lists::resolve(&mut skill.spec, &checked.root, &self.config_maps);
        self.findings.extend(resolved.err().unwrap_or_default());
        Some((skill, checked.mcp_address))
    }
}

/// Counts the findings about a file.
///
/// # Errors
/// If there are errors. The error has the findings.
pub fn refuse_errors(source: &Source, mut findings: Vec<Finding>) -> Result<Tally, Error> {
    findings.sort_by_key(Finding::position);
    let tally = Tally::count(&findings);
    if tally.errors > 0 {
        let message = format!("{}: {}: nothing was run", source.name, tally.summary());
        return Err(Error { findings: findings::in_file(&source.name, findings), ..Error::invalid(message) });
    }
    Ok(tally)
}
