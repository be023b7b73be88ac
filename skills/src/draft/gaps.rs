//! Where a draft says less than its document, or something else: what is found there may not be true.

use crate::finding::{Finding, Severity};
use crate::tree::{Node, Value};
use bloomery_crds::nearest::nearest;
use bloomery_crds::v1alpha1::{ResourceDeclaration, ResourceType, SkillSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use std::collections::BTreeSet;

const TOOLS: &str = "spec.tools";
const RESOURCES: &str = "spec.resources";
const INTENTS: &str = "spec.intents.supported";

/// What is not known of a Skill.
#[derive(Debug)]
pub(super) struct Gaps {
    /// Paths of the API at which a value was left out or filled in; one that ends in `[]` is a list's that lost items.
    unknown: BTreeSet<String>,
    /// Paths of the document at which an error was found.
    told: BTreeSet<String>,
    /// Whether a tool may have an input that the draft has not.
    inputs: bool,
    /// Whether a resource may be otherwise than the draft has it.
    resources: bool,
}

impl Gaps {
    pub(super) fn new(
        kept: &Node,
        schema: &JSONSchemaProps,
        mut unknown: BTreeSet<String>,
        refused: &[String],
        findings: &[Finding],
    ) -> Self {
        let misspelt: BTreeSet<&str> =
            findings.iter().filter(|finding| finding.is_unknown_field()).map(|finding| finding.path.as_str()).collect();
        let own = kept.place.to_string();
        let known: Vec<&str> = schema.properties.iter().flatten().map(|(name, _)| name.as_str()).collect();
        for name in misspelt.iter().filter_map(|path| field_of(&own, path)) {
            let near = nearest(name, known.iter().copied());
            // A merge may bring any field.
            let meant =
                ["tools", "resources", "intents"].into_iter().filter(|list| name == "<<" || near == Some(*list));
            unknown.extend(meant.filter(|list| kept.get(list).is_none()).map(|list| format!("spec.{list}")));
        }
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let told: BTreeSet<String> = errors.map(|finding| &finding.path).chain(refused).cloned().collect();
        let written = |list: &str| kept.get(list).map(|node| node.place.to_string());
        let inputs = written("tools").is_some_and(|tools| misspelt.iter().any(|path| is_within(path, &tools)))
            || unknown.iter().any(|path| is_within(path, TOOLS) && path.contains(".inputs"));
        let resources = written("resources").is_some_and(|list| told.iter().any(|path| is_within(path, &list)))
            || unknown.iter().any(|path| is_within(path, RESOURCES));
        Self { unknown, told, inputs, resources }
    }

    /// Whether an error was told at a path of the document.
    pub(super) fn are_told(&self, written: &str) -> bool {
        self.told.contains(written)
    }

    /// Whether the resources are as the document has them.
    pub(super) fn spare_resources(&self) -> bool {
        !self.resources
    }

    /// Whether what is found at a path of the API may come from what is not known.
    pub(super) fn concern(&self, path: &str) -> bool {
        let is_filled = self.unknown.iter().any(|unknown| is_within(path, unknown));
        let names_a_tool = path.starts_with("spec.policy.tools.")
            || path.starts_with("spec.policy.workflows[") && path.contains(".steps[")
            || path.starts_with("spec.policy.approvals[") && path.ends_with(".toolId");
        let names_an_intent = path.starts_with("spec.policy.workflows[") && path.contains(".intents[");
        let is_guardrail = path.starts_with("spec.policy.guardrails");
        is_filled
            || (names_a_tool || is_guardrail) && self.lack_names(TOOLS, "name")
            || is_guardrail && self.inputs
            || names_an_intent && self.lack_names(INTENTS, "id")
    }

    /// Puts into the draft what keeps the silence where nothing is known: of a tool whose inputs are not known none is,
    /// and a resource that may be declared is.
    pub(super) fn close(&self, spec: &mut SkillSpec, kept: &Node) {
        for (at, tool) in spec.tools.iter_mut().enumerate() {
            let nameless = self.unknown.contains(&format!("{TOOLS}[{at}].name"));
            // Conditions are held against the types of inputs too.
            let inputs = format!("{TOOLS}[{at}].inputs");
            if nameless || self.unknown.iter().any(|path| is_within(path, &inputs)) {
                tool.inputs.clear();
            }
        }
        if let Some(Node { value: Value::List(nodes), .. }) = kept.get("resources") {
            for (resource, node) in spec.resources.iter_mut().zip(nodes) {
                let own = node.place.to_string();
                if self.told.iter().any(|path| is_within(path, &own)) {
                    // That it must be bound may be what could not be read.
                    resource.required = Some(true);
                }
            }
        }
        let persona = spec.role.as_ref().and_then(|role| role.persona.as_deref());
        if self.lack_names(RESOURCES, "name") {
            let missing: BTreeSet<&str> = mentioned(persona.unwrap_or_default())
                .filter(|name| !spec.resources.iter().any(|resource| resource.name == *name))
                .collect();
            let declared: Vec<ResourceDeclaration> = missing.into_iter().map(bindable).collect();
            spec.resources.extend(declared);
        }
    }

    /// Whether a list may hold more names than the draft knows.
    fn lack_names(&self, list: &str, key: &str) -> bool {
        self.unknown.iter().any(|path| {
            let of_item = || path.strip_prefix(list)?.strip_prefix('[')?.split_once(']');
            is_within(list, path)
                || of_item().is_some_and(|(_, rest)| rest.is_empty() || rest.strip_prefix('.') == Some(key))
        })
    }
}

/// The field of the object at `own` that a path of the document is.
fn field_of<'p>(own: &str, path: &'p str) -> Option<&'p str> {
    let field = if own.is_empty() { path } else { path.strip_prefix(own)?.strip_prefix('.')? };
    (field == "\"<<\"").then_some("<<").or((!field.contains(['.', '['])).then_some(field))
}

/// Whether a path is another one, or leads on from it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The names of resources that a template may speak of.
fn mentioned(template: &str) -> impl Iterator<Item = &str> {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || c == '_';
    template.split("resources.").skip(1).map(move |rest| {
        let end = rest.find(|c| !is_sign(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    })
}

/// A resource of which a persona may say everything.
fn bindable(name: &str) -> ResourceDeclaration {
    ResourceDeclaration {
        name: name.to_owned(),
        kind: ResourceType::Filesystem,
        required: Some(true),
        description: None,
        auth: None,
        rules: None,
    }
}
