//! Rules of the dialect beyond the schema of the API.

use super::name::to_label;
use crate::finding::Finding;
use crate::names::name_fault;
use crate::tree::{Entry, Node, Value};
use bloomery_crds::persona;

/// A Model that a Skill needs: its name, and the name of the model at its provider.
pub(super) type NeededModel = (String, String);

/// Replaces the model names of providers in `engine.model` and in the stages by names of Models, and returns both. `model`, if
/// given, replaces `engine.model`.
pub(super) fn rename_models(spec: &mut Node, model: Option<&str>, findings: &mut Vec<Finding>) -> Vec<NeededModel> {
    if let Some(model) = model {
        set_text(spec, "engine", "model", model);
    }
    let Some(engine) = spec.get_mut("engine") else { return Vec::new() };
    let mut needed = Vec::new();
    if model.is_none() {
        needed.extend(rename_model(engine, findings));
    }
    for stage in ["intentDetection", "finalizationGate", "replyPolisher"] {
        let renamed = engine.get_mut(stage).and_then(|stage| rename_model(stage, findings));
        needed.extend(renamed.filter(|new| !needed.contains(new)));
    }
    needed
}

fn rename_model(holder: &mut Node, findings: &mut Vec<Finding>) -> Option<NeededModel> {
    let node = holder.get_mut("model")?;
    let Value::Text { text, .. } = &mut node.value else { return None };
    let name = to_label(text);
    // The schema check reports a text that cannot become a name.
    if name_fault(&name).is_some() {
        return None;
    }
    let message = format!("is read as the Model {name:?} of the Skill's namespace");
    let hint = format!("create a Model of that name with spec.model {text:?}, or give another: --model NAME");
    findings.push(Finding::warning(&node.place, message).hint(hint));
    Some((name.clone(), std::mem::replace(text, name)))
}

/// Declares the resources that the persona uses, if the document declares none at all. A name that a document with declarations
/// lacks may be a mistake, which the lint reports.
pub(super) fn declare_resources(spec: &mut Node, findings: &mut Vec<Finding>) {
    let persona = spec.get("role").and_then(|role| role.get("persona")).and_then(Node::text);
    let used = persona.map(persona::used_resources).unwrap_or_default();
    if used.is_empty() || spec.get("resources").is_some() {
        return;
    }
    let place = spec.place.of_field("resources");
    let names: Vec<&str> = used.keys().map(String::as_str).collect();
    let message =
        format!("is missing: the persona uses {}, which become resources of type filesystem", names.join(", "));
    findings.push(
        Finding::warning(&place, message)
            .hint("declare each with its type, its description, and required: true or false"),
    );
    let entry = |name: &str, value| Entry::at(name, &place, value);
    let declared = used.iter().map(|(name, is_needed)| {
        let fields = vec![
            entry("name", Value::text(name)),
            entry("type", Value::text("filesystem")),
            entry("required", Value::Bool(*is_needed)),
        ];
        Node { place: place.clone(), value: Value::Map(fields) }
    });
    let declared = entry("resources", Value::List(declared.collect()));
    if let Value::Map(fields) = &mut spec.value {
        fields.push(declared);
    }
}

/// Sets `spec.<holder>.<name>` to a text, in place of the value of the document.
pub(super) fn set_text(spec: &mut Node, holder: &str, name: &str, text: &str) {
    let place = spec.place.clone();
    if spec.get(holder).is_none_or(|holder| holder.value == Value::Null)
        && let Value::Map(fields) = &mut spec.value
    {
        fields.retain(|field| field.name != holder);
        fields.push(Entry::at(holder, &place, Value::Map(Vec::new())));
    }
    if let Some(Node { value: Value::Map(fields), .. }) = spec.get_mut(holder) {
        fields.retain(|field| field.name != name);
        fields.push(Entry::at(name, &place, Value::text(text)));
    }
}

/// Warns about missing fields that are optional in a `Skill`, but recommended.
pub(super) fn report_missing(source: &Node, findings: &mut Vec<Finding>) {
    let has = |name: &str| source.get(name).is_some_and(|node| node.value != Value::Null);
    if !has("intents") {
        findings.push(
            Finding::warning(
                &source.place.of_field("intents").of_field("supported"),
                "is missing: the Skill accepts every goal",
            )
            .hint("declare the intents that the Skill serves, so that others are refused"),
        );
    }
    // An MCP server lists its own tools.
    if !has("tools") && !has("mcp_server") {
        findings.push(
            Finding::warning(
                &source.place.of_field("tools"),
                "is missing, and so is mcp_server: the agent can only talk",
            )
            .hint("declare mcp_server, and the tools that policies name"),
        );
    }
}
