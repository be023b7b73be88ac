//! The parts of an object that belong to the operator alone: what a Service selects and serves, and what each container of the operator
//! runs.
//!
//! Server-side apply keeps what other writers add to maps and to lists of named items. In these parts, an addition changes
//! where calls go or what the server does. So the operator removes it, with a patch that names nothing else.

use super::subset;
use bloomery_crds::pod::MCP_CONTAINER;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The lists of containers in the spec of a pod.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// The exclusive fields of a container.
const OF_CONTAINER: [&str; 7] = ["image", "command", "args", "env", "envFrom", "securityContext", "volumeMounts"];

/// What other writers added to the exclusive parts of an object.
#[derive(Debug, PartialEq)]
pub struct Additions {
    /// The strategic merge patch that removes them.
    pub patch: Value,
    /// The paths of the added fields, for people.
    pub paths: Vec<String>,
}

/// The object whose fields are exclusive, within an object of a kind.
struct Part<'a> {
    fields: &'static [&'static str],
    wanted: &'a Value,
    live: &'a Value,
    /// Its path, for people.
    path: String,
    /// The list and the name of the container, if it is one.
    container: Option<(&'static str, &'a str)>,
}

/// Returns what other writers added to the exclusive parts; none if they added nothing.
pub fn additions(kind: &str, wanted: &Value, live: &Value) -> Option<Additions> {
    let (mut paths, mut spec) = (Vec::new(), Value::Null);
    let mut containers: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for part in Part::all(kind, wanted, live) {
        let Some(patch) = part.removal(&mut paths) else { continue };
        match part.container {
            Some((list, _)) => containers.entry(list).or_default().push(patch),
            None => spec = patch,
        }
    }
    if !containers.is_empty() {
        spec = json!({ "template": { "spec": containers } });
    }
    (!paths.is_empty()).then(|| Additions { patch: json!({ "spec": spec }), paths })
}

/// Returns the paths of the exclusive parts that differ from the wanted state: additions, and fields with other values.
pub fn differences(kind: &str, wanted: &Value, live: &Value) -> Vec<String> {
    let parts = Part::all(kind, wanted, live);
    let mut paths: Vec<String> = parts.iter().flat_map(Part::changed).collect();
    paths.extend(additions(kind, wanted, live).into_iter().flat_map(|additions| additions.paths));
    paths
}

impl<'a> Part<'a> {
    /// The parts of an object. The operator's containers are all parts: the server, a bridge before it, and the init container that copies
    /// the bridge.
    fn all(kind: &str, wanted: &'a Value, live: &'a Value) -> Vec<Self> {
        match kind {
            "Service" => Self::of_service(wanted, live).into_iter().collect(),
            "Deployment" => {
                let of_list = |list| {
                    let wanted = containers(wanted, list);
                    wanted.filter_map(move |wanted| Self::of_container(list, wanted, containers(live, list)))
                };
                LISTS.into_iter().flat_map(of_list).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_service(wanted: &'a Value, live: &'a Value) -> Option<Self> {
        Some(Self {
            fields: &["selector", "ports"],
            wanted: wanted.get("spec")?,
            live: live.get("spec")?,
            path: "spec".to_owned(),
            container: None,
        })
    }

    /// Others may mount more into the container of the server. In every other container, a mount could replace the operator's program.
    fn of_container(list: &'static str, wanted: &'a Value, mut live: impl Iterator<Item = &'a Value>) -> Option<Self> {
        let name = wanted.get("name")?.as_str()?;
        let [fields @ .., _mounts] = &OF_CONTAINER;
        Some(Self {
            fields: if name == MCP_CONTAINER { fields } else { &OF_CONTAINER },
            wanted,
            live: live.find(|live| live.get("name") == wanted.get("name"))?,
            path: format!("{list}[{name}]"),
            container: Some((list, name)),
        })
    }

    /// Returns the patch of the part that removes what others added to it, and adds the paths of the added fields; none if others added
    /// nothing.
    fn removal(&self, paths: &mut Vec<String>) -> Option<Value> {
        let mut fields = Map::new();
        for field in self.fields {
            let path = format!("{}.{field}", self.path);
            if let Some(patch) = removal(self.wanted.get(*field), self.live_field(field), &path, paths) {
                fields.insert((*field).to_owned(), patch);
            }
        }
        if fields.is_empty() {
            return None;
        }
        fields.extend(self.container.map(|(_, name)| ("name".to_owned(), json!(name))));
        Some(Value::Object(fields))
    }

    /// Returns the paths of the fields that have other values than the wanted ones.
    fn changed(&self) -> Vec<String> {
        let changed = self.fields.iter().filter(|field| {
            self.wanted.get(**field).is_some_and(|wanted| !subset::contains(wanted, self.live_field(field)))
        });
        changed.map(|field| format!("{}.{field}", self.path)).collect()
    }

    fn live_field(&self, field: &str) -> &'a Value {
        self.live.get(field).unwrap_or(&Value::Null)
    }
}

/// Returns the containers in a list of a Deployment.
fn containers<'a>(deployment: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let spec = deployment.pointer("/spec/template/spec");
    spec.and_then(|spec| spec.get(list)?.as_array()).into_iter().flatten()
}

/// Returns the strategic merge patch that removes what `live` has and `wanted` does not; none if that is nothing.
fn removal(wanted: Option<&Value>, live: &Value, path: &str, paths: &mut Vec<String>) -> Option<Value> {
    match (wanted, live) {
        (_, live) if subset::contains(live, &Value::Null) => None,
        (None | Some(Value::Null), _) => {
            paths.push(path.to_owned());
            Some(Value::Null)
        }
        (Some(Value::Object(wanted)), Value::Object(live)) => {
            let removals = live
                .iter()
                .filter_map(|(key, live)| {
                    Some((key.clone(), removal(wanted.get(key), live, &format!("{path}.{key}"), paths)?))
                })
                .collect::<Map<_, _>>();
            (!removals.is_empty()).then_some(Value::Object(removals))
        }
        (Some(Value::Array(wanted)), Value::Array(live)) => items_removal(wanted, live, path, paths),
        // The apply sets every other value.
        _ => None,
    }
}

/// Returns the patch for a list of items with a merge key; none for any other list, which the apply replaces.
fn items_removal(wanted: &[Value], live: &[Value], path: &str, paths: &mut Vec<String>) -> Option<Value> {
    let key = match path.rsplit('.').next() {
        Some("env") => "name",
        Some("ports") => "port",
        Some("volumeMounts") => "mountPath",
        _ => return None,
    };
    let is_live = |wanted: &Value| live.iter().any(|live| live.get(key) == wanted.get(key));
    // A Service needs a port, so another writer's number of a port goes with the apply of the wanted one.
    if key == "port" && !wanted.iter().any(is_live) {
        return None;
    }
    let mut removals = Vec::new();
    for item in live {
        let Some(id) = item.get(key) else { continue };
        match wanted.iter().find(|wanted| wanted.get(key) == Some(id)) {
            None => {
                paths.push(format!("{path}[{}]", id.as_str().map_or_else(|| id.to_string(), str::to_owned)));
                removals.push(json!({ key: id, "$patch": "delete" }));
            }
            // A variable with both a value and another source would be invalid. Ports and sources have defaults of the API server.
            Some(wanted) if key == "name" && item.get("valueFrom").is_some() && wanted.get("valueFrom").is_none() => {
                paths.push(format!("{path}[{}].valueFrom", id.as_str().unwrap_or_default()));
                removals.push(json!({ key: id, "valueFrom": null }));
            }
            Some(_) => {}
        }
    }
    (!removals.is_empty()).then_some(Value::Array(removals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn service(selector: &Value, ports: &Value) -> Value {
        json!({ "spec": { "selector": selector, "ports": ports } })
    }

    fn deployment(container: &Value) -> Value {
        let mut whole = json!({ "name": "mcp", "image": "orders:3" });
        whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        json!({ "spec": { "replicas": 1, "template": { "spec": { "containers": [{ "name": "mesh" }, whole] } } } })
    }

    fn wanted_deployment(container: &Value) -> Value {
        let mut wanted = deployment(container);
        let containers = wanted.pointer_mut("/spec/template/spec/containers").unwrap();
        containers.as_array_mut().unwrap().remove(0);
        wanted
    }

    #[test]
    fn the_patch_for_a_service_removes_selector_keys_and_ports_that_others_added() {
        let wanted = service(&json!({ "skill": "orders" }), &json!([{ "name": "mcp", "port": 8070 }]));
        let ports = json!([{ "name": "mcp", "port": 8070, "nodePort": 30001 }, { "name": "x", "port": 9 }]);
        let found =
            additions("Service", &wanted, &service(&json!({ "skill": "orders", "team": "a" }), &ports)).unwrap();
        assert_eq!(found.paths, ["spec.selector.team", "spec.ports[9]"]);
        let patch = json!({ "spec": { "selector": { "team": null }, "ports": [{ "port": 9, "$patch": "delete" }] } });
        assert_eq!(found.patch, patch);
        assert_eq!(additions("Service", &wanted, &wanted), None);
    }

    #[test]
    fn the_only_port_of_a_service_is_not_removed() {
        let of_port = |port: u16| service(&json!({ "skill": "orders" }), &json!([{ "name": "mcp", "port": port }]));
        assert_eq!(additions("Service", &of_port(8070), &of_port(9)), None);
    }

    #[rstest]
    #[case::env_added(json!({"env": [{"name": "A", "value": "1"}]}), json!({"env": [{"name": "A", "value": "1"}, {"name": "B"}]}), &["containers[mcp].env[B]"], json!({"env": [{"name": "B", "$patch": "delete"}]}))]
    #[case::only_env(json!({}), json!({"env": [{"name": "B"}]}), &["containers[mcp].env"], json!({"env": null}))]
    #[case::other_source(json!({"env": [{"name": "A", "value": "1"}]}), json!({"env": [{"name": "A", "valueFrom": {"x": 1}}]}), &["containers[mcp].env[A].valueFrom"], json!({"env": [{"name": "A", "valueFrom": null}]}))]
    #[case::env_from(json!({}), json!({"envFrom": [{"secretRef": {"name": "s"}}]}), &["containers[mcp].envFrom"], json!({"envFrom": null}))]
    #[case::command(json!({}), json!({"command": ["sh"]}), &["containers[mcp].command"], json!({"command": null}))]
    #[case::capability(json!({"securityContext": {"capabilities": {"drop": ["ALL"]}}}), json!({"securityContext": {"privileged": true, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}}), &["containers[mcp].securityContext.capabilities.add", "containers[mcp].securityContext.privileged"], json!({"securityContext": {"capabilities": {"add": null}, "privileged": null}}))]
    fn the_patch_for_a_deployment_removes_what_others_added_to_the_container(
        #[case] wanted: Value,
        #[case] live: Value,
        #[case] paths: &[&str],
        #[case] mut patch: Value,
    ) {
        let found = additions("Deployment", &wanted_deployment(&wanted), &deployment(&live)).unwrap();
        assert_eq!(found.paths, paths);
        patch["name"] = json!("mcp");
        assert_eq!(found.patch, json!({ "spec": { "template": { "spec": { "containers": [patch] } } } }));
    }

    #[test]
    fn the_bridge_before_a_server_is_a_part_too() {
        let mut wanted = wanted_deployment(&json!({}));
        let mut live = deployment(&json!({ "envFrom": [{ "secretRef": { "name": "s" } }] }));
        let path = "/spec/template/spec/containers";
        let bridge = json!({ "name": "bridge", "image": "worker:1", "command": ["bloomery-bridge", "guard"] });
        let mut opened = bridge.clone();
        opened["args"] = json!(["--open"]);
        for (object, bridge) in [(&mut wanted, bridge), (&mut live, opened)] {
            object.pointer_mut(path).unwrap().as_array_mut().unwrap().push(bridge);
        }
        let found = additions("Deployment", &wanted, &live).unwrap();
        assert_eq!(found.paths, ["containers[mcp].envFrom", "containers[bridge].args"]);
        let patches = json!([{ "name": "mcp", "envFrom": null }, { "name": "bridge", "args": null }]);
        assert_eq!(found.patch.pointer(path), Some(&patches));
        live.pointer_mut(path).unwrap()[2]["image"] = json!("evil:1");
        assert!(differences("Deployment", &wanted, &live).contains(&"containers[bridge].image".to_owned()));
    }

    #[test]
    fn the_init_container_that_copies_the_bridge_is_a_part_too() {
        let path = "/spec/template/spec";
        let copies = json!({
            "name": "bridge", "image": "worker:1", "command": ["bloomery-bridge", "install"],
            "volumeMounts": [{ "name": "bridge", "mountPath": "/bloomery" }],
        });
        let mut changed = copies.clone();
        changed["args"] = json!(["--from=/data"]);
        let over_the_program = json!({ "name": "data", "mountPath": "/usr/local/bin" });
        changed["volumeMounts"].as_array_mut().unwrap().push(over_the_program.clone());
        let (mut wanted, mut live) = (wanted_deployment(&json!({})), deployment(&json!({})));
        wanted.pointer_mut(path).unwrap()["initContainers"] = json!([copies]);
        live.pointer_mut(path).unwrap()["initContainers"] = json!([{ "name": "mesh-init" }, changed]);
        let found = additions("Deployment", &wanted, &live).unwrap();
        assert_eq!(found.paths, ["initContainers[bridge].args", "initContainers[bridge].volumeMounts[/usr/local/bin]"]);
        let removed = json!({ "mountPath": "/usr/local/bin", "$patch": "delete" });
        let patches = json!([{ "name": "bridge", "args": null, "volumeMounts": [removed] }]);
        assert_eq!(found.patch.pointer(path), Some(&json!({ "initContainers": patches })));
        live.pointer_mut(path).unwrap()["initContainers"][1] = copies;
        assert_eq!(additions("Deployment", &wanted, &live), None);
        live.pointer_mut(path).unwrap()["initContainers"][1]["image"] = json!("evil:1");
        assert_eq!(differences("Deployment", &wanted, &live), ["initContainers[bridge].image"]);
        // Others may mount more into the container of the server.
        let mut mounted = deployment(&json!({ "volumeMounts": [over_the_program] }));
        mounted.pointer_mut(path).unwrap()["initContainers"] = wanted.pointer(path).unwrap()["initContainers"].clone();
        assert_eq!(additions("Deployment", &wanted, &mounted), None);
    }

    #[rstest]
    #[case::probe(json!({}), json!({"livenessProbe": {"periodSeconds": 3}}))]
    #[case::default_of_a_source(json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}), json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x", "apiVersion": "v1"}}}]}))]
    #[case::empty_value(json!({"env": [{"name": "A", "value": ""}]}), json!({"env": [{"name": "A"}]}))]
    fn other_fields_and_defaults_are_left(#[case] wanted: Value, #[case] live: Value) {
        let (wanted, live) = (wanted_deployment(&wanted), deployment(&live));
        assert_eq!(additions("Deployment", &wanted, &live), None);
        assert_eq!(differences("Deployment", &wanted, &live), [""; 0]);
    }

    #[test]
    fn values_that_others_set_are_differences() {
        let mut live = deployment(&json!({ "command": ["sh"] }));
        live["spec"]["template"]["spec"]["containers"][1]["image"] = json!("mirror/orders:3");
        let found = differences("Deployment", &wanted_deployment(&json!({})), &live);
        assert_eq!(found, ["containers[mcp].image", "containers[mcp].command"]);
    }
}
