//! The core tools that call the APIs of a Job. `http_get` needs an endpoint that allows reads, `http_request` one that allows
//! other methods.

use super::definition::{ToolEffect, core_tool, one_of};
use crate::endpoint::{self, Endpoint, summary};
use crate::rules::Objection;
use crate::run::Run;
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::core_tools::HTTP;
pub use bloomery_crds::core_tools::{HTTP_GET, HTTP_REQUEST};
use bloomery_crds::v1alpha1::{CALL_HEADERS, GateReason, Method};
use serde_json::{Map, Value, json};

/// Returns the tools that the bound endpoints allow.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    let endpoints = endpoint::endpoints(&run.skill.resources, &run.resources);
    let endpoints_for = |reads_only: bool| endpoint::endpoints_for(&endpoints, reads_only);
    let (readable, changeable) = (endpoints_for(true), endpoints_for(false));
    let mut tools = Vec::new();
    let any_works = |endpoints: &[&Endpoint]| endpoints.iter().any(|endpoint| endpoint.error().is_none());
    if any_works(&readable) {
        tools.push(http_get(&readable));
    }
    if any_works(&changeable) {
        tools.push(http_request(&changeable));
    }
    tools
}

/// Returns the objection to a call of one of these tools, if its endpoint does not allow the request.
pub(crate) fn objection(tool: &CatalogueTool, arguments: &Value, run: &Run) -> Option<Objection> {
    if tool.source != ToolSource::Core || !HTTP.contains(&tool.name.as_str()) {
        return None;
    }
    let endpoints = endpoint::endpoints(&run.skill.resources, &run.resources);
    let error = endpoint::build_request(&endpoints, arguments, tool.name == HTTP_GET).err()?;
    Some(Objection::deny(GateReason::Endpoint, error.to_string()))
}

pub(super) fn http_get(endpoints: &[&Endpoint]) -> CatalogueTool {
    let description = "Reads from an API with GET, or with HEAD for the headers only. Redirects are not followed.";
    core_tool(HTTP_GET, &describe(description, endpoints), schema(endpoints, true), ToolEffect::None)
}

pub(super) fn http_request(endpoints: &[&Endpoint]) -> CatalogueTool {
    let description = "Calls an API with a method that may change something. Redirects are not followed. The call \
        gets an Idempotency-Key if you pass none.";
    core_tool(HTTP_REQUEST, &describe(description, endpoints), schema(endpoints, false), ToolEffect::Repeated)
}

/// Returns the description with the allowed calls.
fn describe(description: &str, endpoints: &[&Endpoint]) -> String {
    let line = |endpoint: &&Endpoint| {
        let allowed = endpoint.error().map_or_else(|| summary(endpoint.rules()), |error| format!("nothing: {error}"));
        format!("\n{}: {allowed}", endpoint.name)
    };
    format!("{description} Allowed are:{}", endpoints.iter().map(line).collect::<String>())
}

fn schema(endpoints: &[&Endpoint], reads_only: bool) -> Value {
    let names: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
    let mut methods: Vec<Method> = endpoints.iter().flat_map(|endpoint| endpoint.methods()).collect();
    methods.sort_unstable();
    methods.dedup();
    methods.retain(|method| method.is_read() == reads_only);
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut properties = Map::from_iter([
        ("resource".to_owned(), one_of(&names, "The bound API.")),
        (
            "path".to_owned(),
            text("The path below the URL of the resource, as it is sent: /orders/7, /a%20b. Default: the URL itself."),
        ),
        ("method".to_owned(), one_of(&methods, describe_method(&methods, reads_only))),
        (
            "query".to_owned(),
            json!({"type": "object", "description": "The query parameters. Values are escaped for you. A list repeats the name."}),
        ),
        (
            "headers".to_owned(),
            json!({
                "type": "object", "additionalProperties": {"type": "string"},
                "description": format!("Headers to send. Allowed: {}.", CALL_HEADERS.join(", ")),
            }),
        ),
    ]);
    if !reads_only {
        properties.insert("json".to_owned(), json!({"description": "The body, as JSON."}));
        properties.insert("body".to_owned(), text("The body, as text. Use it instead of json."));
    }
    let required_resource: &[&str] = if names.len() > 1 { &["resource"] } else { &[] };
    let required_method: &[&str] = if reads_only { &[] } else { &["method"] };
    let required = [required_resource, required_method].concat();
    json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
}

/// Returns the description of the argument `method`. A call of `http_get` may omit it if GET is allowed.
fn describe_method(methods: &[Method], reads_only: bool) -> &'static str {
    if reads_only && methods.contains(&Method::Get) { "Default: GET." } else { "The method." }
}
