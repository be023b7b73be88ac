//! The Skill of a run: out of a file, out of its slag, or out of a template on first use (seed 000).

use crate::exit::Trouble;
use crate::look::{self, Looked};
use crate::plain;
use crate::report::{self, Tally};
use crate::run::memory::Slag;
use crate::run::templates;
use crate::source;
use bloomery_crds::dialect::{Document, Finding, Form, Options, documents, form, import, name_fault};
use bloomery_crds::v1alpha1::{McpServer, SkillSpec};
use std::path::Path;

/// The name of the operational Skill in its slag.
pub const FILE: &str = "skill.yaml";

/// A Skill that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// Its name, which is its slag's.
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
    pub fn server_of_a_cluster(&self) -> Option<&McpServer> {
        self.spec.mcp_server.as_ref()
    }
}

/// Whether what `--skill` says is a file, and not the name of a Skill.
pub fn is_file(text: &str) -> bool {
    text == "-" || text.contains(['/', '\\']) || name_fault(text).is_some()
}

/// The operational Skill of a slag; on first use it is made of the template of its name.
///
/// # Errors
/// If there is neither, or what stands there cannot be used.
pub fn of_slag(slag: &Slag, bootstrap: bool) -> Result<Loaded, Trouble> {
    let file = slag.dir.join(FILE);
    if !file.try_exists().unwrap_or(true) {
        let text = templates::of(&slag.name, bootstrap).ok_or_else(|| Trouble::usage(unknown(slag)))?;
        std::fs::write(&file, text)
            .map_err(|error| Trouble::failed(format!("{} cannot be written: {error}", file.display())))?;
        plain::say(&format!("{} is the Skill from now on: change it as you like", file.display()));
    }
    let loaded = read(&file, Some(&slag.name))?;
    if loaded.name != slag.name {
        let (file, name, slag) = (file.display(), &loaded.name, &slag.name);
        return Err(Trouble::usage(format!(
            "{file} is the Skill {name}, and stands in the directory of the Skill {slag}: call both the same"
        )));
    }
    Ok(loaded)
}

/// Whether there is a template of a name.
pub fn is_template(name: &str) -> bool {
    templates::names().any(|template| template == name)
}

/// Makes a Skill out of a file the operational one of a slag that has none. Where there is another it stays, and that is
/// said: a Job of the same name would run on it.
///
/// # Errors
/// If it cannot be written.
pub fn adopt(slag: &Slag, loaded: &Loaded, of: &str) -> Result<(), Trouble> {
    let file = slag.dir.join(FILE);
    if file.try_exists().unwrap_or(true) {
        if loaded.text.as_bytes() != std::fs::read(&file).unwrap_or_default() {
            plain::say(&format!("{} is another version of the Skill, and stays as it is: {of} is run", file.display()));
        }
        return Ok(());
    }
    std::fs::write(&file, &loaded.text)
        .map_err(|error| Trouble::failed(format!("{} cannot be written: {error}", file.display())))
}

/// Why a name is no Skill's.
pub fn unknown(slag: &Slag) -> String {
    let near = bloomery_crds::nearest::did_you_mean(&slag.name, templates::names());
    let known: Vec<&str> = templates::names().collect();
    format!(
        "there is no {}, and no template is called {:?}.{near} Templates are {}. --bootstrap makes a minimal Skill of that \
         name; --skill FILE takes one of yours",
        slag.dir.join(FILE).display(),
        slag.name,
        known.join(", ")
    )
}

/// Reads the one Skill that a file holds; documents that are none are passed over. `slag` names one of the older
/// dialect, whatever its id.
///
/// # Errors
/// If there is none, or anything is wrong with it, which is shown.
pub fn read(file: &Path, slag: Option<&str>) -> Result<Loaded, Trouble> {
    let source = source::read(file)
        .map_err(|error| Trouble::usage(format!("the Skill {} cannot be read: {error}", source::name(file))))?;
    let read = documents(&source.bytes);
    let mut findings = read.findings;
    let mut skills: Vec<Looked> = Vec::new();
    for document in &read.documents {
        let looked = looked(document, slag);
        if looked.as_ref().is_some_and(|looked| looked.kind.as_deref().is_none_or(|kind| kind == "Skill")) {
            skills.extend(looked);
        }
    }
    if let [one] = skills.as_mut_slice() {
        findings.append(&mut one.findings);
    }
    findings.sort_by_key(|finding| (finding.line, finding.column));
    let skill = match (skills.len(), skills.pop()) {
        (1, looked) => looked.and_then(|looked| Some((looked.skill?, looked.mcp_address))),
        (0, _) => {
            if findings.is_empty() {
                findings.push(Finding::of_file("there is no Skill in it"));
            }
            None
        }
        _ => {
            findings.push(Finding::of_file("there is more than one Skill in it: a run takes one"));
            None
        }
    };
    let tally = Tally::of(&findings);
    let name = source.name.clone();
    if tally.errors > 0 {
        let shown = report::text(&mut anstream::stderr().lock(), &report::of_file(&source.name, findings));
        shown.map_err(|error| Trouble::failed(error.to_string()))?;
    }
    let refused = || Trouble::usage(format!("{name}: {}: nothing was run", tally.words()));
    let (skill, mcp) = skill.filter(|_| tally.errors == 0).ok_or_else(refused)?;
    if tally.warnings > 0 {
        plain::say(&format!("{name}: {}: `bloomery lint` says which", tally.words()));
    }
    let text = String::from_utf8_lossy(&source.bytes).into_owned();
    Ok(Loaded { name: skill.metadata.name.unwrap_or_default(), spec: skill.spec, mcp, text })
}

fn looked(document: &Document, slag: Option<&str>) -> Option<Looked> {
    match form(document) {
        Form::Foreign => None,
        Form::Manifest => Some(look::look(document)),
        Form::Dialect => {
            let options = Options { name: slag.map(str::to_owned), local: true, ..Options::default() };
            Some(look::imported(import(document, &options)))
        }
    }
}
