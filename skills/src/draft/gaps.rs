//! The gaps of a draft: the places where it differs from its document. A finding that depends on a gap may be wrong.

use crate::finding::{Finding, Severity};
use crate::schema::spec::Schema;
use crate::tree::{Node, Value};
use bloomery_crds::nearest::nearest;
use bloomery_crds::v1alpha1::{ResourceDeclaration, ResourceType, SkillSpec};
use std::collections::BTreeSet;

/// The API path of the tools.
const TOOLS: &str = "spec.tools";

/// The API path of the resources.
const RESOURCES: &str = "spec.resources";

/// The API path of the intents.
const INTENTS: &str = "spec.intents.supported";

/// The fields of a spec that other fields refer to.
const NAMED_FIELDS: [&str; 6] = ["tools", "resources", "intents", "docs", "scripts", "skills"];

/// The ends of the paths at which a feature refers to another field, each with that field.
const FEATURE_REFERENCES: [(&str, &str); 3] =
    [(".ext.skillMdRef", "spec.docs"), (".ext.script", "spec.scripts"), (".ext.subskill", "spec.skills")];

/// The parts of a Skill that differ between the draft and the document.
#[derive(Debug)]
pub(super) struct Gaps {
    /// The API paths at which a value was omitted or replaced. The path of a list that lost items ends in `[]`.
    unknown: BTreeSet<String>,
    /// The document paths with a reported error.
    reported: BTreeSet<String>,
    /// True if the draft may lack inputs of a tool.
    has_unknown_inputs: bool,
    /// True if the draft may lack resources, or if some of its resources may differ from those of the document.
    has_unknown_resources: bool,
}

impl Gaps {
    /// Finds the gaps. `kept` is the readable part of the spec, and `unknown` are the API paths that it lacks. `refused` are the
    /// document paths of unsupported values, and `findings` are those of the schema check.
    pub(super) fn new(
        kept: &Node,
        schema: &Schema,
        mut unknown: BTreeSet<String>,
        refused: &[String],
        findings: &[Finding],
    ) -> Self {
        let misspelt: BTreeSet<&str> =
            findings.iter().filter(|finding| finding.is_unknown_field()).map(|finding| finding.path.as_str()).collect();
        let spec_path = kept.place.to_string();
        let known: Vec<&str> = schema.properties.iter().flatten().map(|(name, _)| name.as_str()).collect();
        for name in misspelt.iter().filter_map(|path| field_of(&spec_path, path)) {
            let near = nearest(name, known.iter().copied());
            // The unknown field may be a misspelt list. A merge (`<<`) may contain any list.
            let meant_lists = NAMED_FIELDS.into_iter().filter(|list| name == "<<" || near == Some(*list));
            unknown.extend(meant_lists.filter(|list| kept.get(list).is_none()).map(|list| format!("spec.{list}")));
        }
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let reported: BTreeSet<String> = errors.map(|finding| &finding.path).chain(refused).cloned().collect();
        let document_path = |list: &str| kept.get(list).map(|node| node.place.to_string());
        let has_unknown_inputs = document_path("tools")
            .is_some_and(|tools| misspelt.iter().any(|path| is_within(path, &tools)))
            || unknown.iter().any(|path| is_within(path, TOOLS) && path.contains(".inputs"));
        let has_unknown_resources = document_path("resources")
            .is_some_and(|list| reported.iter().any(|path| is_within(path, &list)))
            || unknown.iter().any(|path| is_within(path, RESOURCES));
        Self { unknown, reported, has_unknown_inputs, has_unknown_resources }
    }

    /// Returns whether an error is already reported at a document path.
    pub(super) fn has_error_at(&self, path: &str) -> bool {
        self.reported.contains(path)
    }

    /// Returns whether all resources of the draft are those of the document.
    pub(super) fn has_all_resources(&self) -> bool {
        !self.has_unknown_resources
    }

    /// Returns whether a finding at an API path may be wrong because of a gap.
    pub(super) fn affects(&self, path: &str) -> bool {
        let is_unknown = self.unknown.iter().any(|unknown| is_within(path, unknown));
        let names_a_tool = path.starts_with("spec.policy.tools.")
            || path.starts_with("spec.policy.workflows[") && path.contains(".steps[")
            || path.starts_with("spec.policy.approvals[") && path.ends_with(".toolId");
        let names_an_intent = path.starts_with("spec.policy.workflows[") && path.contains(".intents[");
        let is_guardrail = path.starts_with("spec.policy.guardrails");
        let refers_to_unknown = path.starts_with("spec.features[")
            && FEATURE_REFERENCES.iter().any(|(end, field)| path.ends_with(end) && self.is_unknown_within(field));
        is_unknown
            || refers_to_unknown
            || (names_a_tool || is_guardrail) && self.lacks_names(TOOLS, "name")
            || is_guardrail && self.has_unknown_inputs
            || names_an_intent && self.lacks_names(INTENTS, "id")
    }

    /// Returns whether a part of a field is unknown.
    fn is_unknown_within(&self, field: &str) -> bool {
        self.unknown.iter().any(|unknown| is_within(unknown, field))
    }

    /// Changes the draft so that its gaps cause no findings. Removes all inputs of a tool if its name or one of its
    /// inputs is unknown. Makes a resource with an error required. Declares the resources that the persona uses if a
    /// declaration may be missing.
    pub(super) fn fill(&self, spec: &mut SkillSpec, kept: &Node) {
        for (at, tool) in spec.tools.iter_mut().enumerate() {
            let has_no_name = self.unknown.contains(&format!("{TOOLS}[{at}].name"));
            // The types of known inputs would cause findings about conditions.
            let inputs = format!("{TOOLS}[{at}].inputs");
            if has_no_name || self.unknown.iter().any(|path| is_within(path, &inputs)) {
                tool.inputs.clear();
            }
        }
        if let Some(Node { value: Value::List(nodes), .. }) = kept.get("resources") {
            for (resource, node) in spec.resources.iter_mut().zip(nodes) {
                let resource_path = node.place.to_string();
                if self.reported.iter().any(|path| is_within(path, &resource_path)) {
                    // The field that could not be read may be `required`.
                    resource.required = Some(true);
                }
            }
        }
        let persona = spec.role.as_ref().and_then(|role| role.persona.as_deref());
        if self.lacks_names(RESOURCES, "name") {
            let missing: BTreeSet<&str> = used_resources(persona.unwrap_or_default())
                .filter(|name| !spec.resources.iter().any(|resource| resource.name == *name))
                .collect();
            let declared: Vec<ResourceDeclaration> = missing.into_iter().map(resource_for_any_tag).collect();
            spec.resources.extend(declared);
        }
    }

    /// Returns whether the document may have an item in a list whose name (the field `key`) the draft lacks.
    fn lacks_names(&self, list: &str, key: &str) -> bool {
        self.unknown.iter().any(|path| {
            let below_item = || path.strip_prefix(list)?.strip_prefix('[')?.split_once(']');
            is_within(list, path)
                || below_item().is_some_and(|(_, rest)| rest.is_empty() || rest.strip_prefix('.') == Some(key))
        })
    }
}

/// Returns the name of the field if `path` is a direct field of the object at `parent`.
fn field_of<'p>(parent: &str, path: &'p str) -> Option<&'p str> {
    let field = if parent.is_empty() { path } else { path.strip_prefix(parent)?.strip_prefix('.')? };
    // A path contains the key of a merge in quotes.
    (field == "\"<<\"").then_some("<<").or((!field.contains(['.', '['])).then_some(field))
}

/// Returns whether a path is `outer` or below it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the names after each `resources.` in a template.
fn used_resources(template: &str) -> impl Iterator<Item = &str> {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    template.split("resources.").skip(1).map(move |rest| {
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    })
}

/// Returns the declaration of a resource that causes no finding about the persona, whatever template tags use the resource.
fn resource_for_any_tag(name: &str) -> ResourceDeclaration {
    ResourceDeclaration {
        name: name.to_owned(),
        kind: ResourceType::Filesystem,
        required: Some(true),
        description: None,
        auth: None,
        rules: None,
    }
}
