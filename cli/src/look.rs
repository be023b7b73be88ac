//! A document of ours, and what is wrong with it by itself.

use crate::check;
use bloomery_crds::v1alpha1::Skill;
use bloomery_skills::{Checked, Document, Draft, Finding, Form, Imported, Node, Options, form, import, manifest};
use serde_json::Value;

/// A document that was looked at.
#[derive(Debug)]
pub struct Looked {
    /// Its kind, as far as it is one of ours.
    pub kind: Option<String>,
    /// The Skill, where it is one that its schema takes.
    pub skill: Option<Skill>,
    /// The address of its MCP server, where that stands beside it.
    pub mcp_address: Option<String>,
    /// The object, without what was refused.
    pub object: Value,
    /// The tree in which a path of the API is to be looked up.
    pub root: Node,
    /// What can be read of a Skill.
    pub draft: Option<Draft>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Looks at a document: a manifest, or the older dialect.
pub fn look(document: &Document) -> Looked {
    if form(document) == Form::Dialect {
        return imported(import(document, &Options { nameless: true, ..Options::default() }));
    }
    let Checked { kind, root, object, skill, draft, findings } = manifest(document);
    further(Looked { kind, skill, mcp_address: None, object, root, draft, findings })
}

/// Looks at what came of an import.
pub fn imported(imported: Imported) -> Looked {
    let Imported { skill, draft, mcp_address, root, object, findings } = imported;
    further(Looked { kind: Some("Skill".to_owned()), skill, mcp_address, object, root, draft, findings })
}

fn further(mut looked: Looked) -> Looked {
    if let Some(kind) = &looked.kind {
        let found = check::by_rules(kind, &looked.object, &looked.root, &looked.findings);
        looked.findings.extend(found);
    }
    looked.findings.extend(looked.draft.iter().flat_map(check::by_engine));
    looked
}
