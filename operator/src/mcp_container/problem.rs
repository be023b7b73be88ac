//! Finds why a sidecar of a worker pod does not start: pure.

use super::sidecar::SECRETS_CONTAINER;
use bloomery_crds::conditions::Reason;
use bloomery_crds::pod::{MCP_CONTAINER, SCRIPTS_CONTAINER, worker_status};
use bloomery_crds::text::bounded;
use k8s_openapi::api::core::v1::{Container, ContainerStateWaiting, ContainerStatus, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The time from which on the wait for the files of secrets counts as a problem. They are usually there at once.
const SECRETS_GRACE: SignedDuration = SignedDuration::from_secs(3);

/// The longest message of a container's end that is passed on, in bytes.
const MAX_MESSAGE_BYTES: usize = 256;

/// Why a sidecar of a pod does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The reason for conditions.
    pub reason: Reason,
    /// The problem, the pod and the remedy, for people.
    pub message: String,
}

/// Returns what the container of a sidecar is called in messages, and the field that names its image. `None` for any other container.
fn described(container: &str) -> Option<(&'static str, &'static str)> {
    match container {
        MCP_CONTAINER => Some(("MCP server", "spec.mcpServer.container.image")),
        SCRIPTS_CONTAINER => Some(("container of the scripts", "spec.scripts.image")),
        _ => None,
    }
}

/// Finds the problem that keeps a sidecar of a worker pod, or what is started before it, from starting.
pub fn find(pod: &Pod, now: Timestamp) -> Option<Problem> {
    let statuses = pod.status.as_ref()?.init_container_statuses.as_ref()?;
    statuses.iter().find_map(|status| {
        let container = pod.spec.as_ref()?.init_containers.iter().flatten().find(|one| one.name == status.name)?;
        awaits_secrets(pod, container, status, now)
            .or_else(|| never_started(pod, status))
            .or_else(|| waiting(pod, container, status))
    })
}

/// Describes the last end of a sidecar of a pod, if one was restarted.
pub fn last_exit(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    pod.status.as_ref()?.init_container_statuses.as_ref()?.iter().find_map(|status| exit_of(name, status))
}

fn exit_of(pod: &str, status: &ContainerStatus) -> Option<String> {
    let (what, _) = described(&status.name)?;
    let ended = status.last_state.as_ref()?.terminated.as_ref()?;
    let why = match (ended.reason.as_deref(), ended.message.as_deref()) {
        (None | Some("Error" | "Completed"), _) => String::new(),
        (Some(reason), None) => format!(" ({reason})"),
        (Some(reason), Some(message)) => format!(" ({reason}: {})", bounded(message.trim(), MAX_MESSAGE_BYTES)),
    };
    Some(format!(
        "the {what} exited with code {}{why} and was restarted: see kubectl logs {pod} -c {} --previous",
        ended.exit_code, status.name
    ))
}

/// Describes a sidecar that cannot be started at all, for example because its image has no such command. The worker does not start
/// before it. Later, the worker says that it cannot be reached.
fn never_started(pod: &Pod, status: &ContainerStatus) -> Option<Problem> {
    let worker = worker_status(pod).and_then(|worker| worker.state.as_ref());
    let has_worker_started = worker.is_some_and(|state| state.waiting.is_none());
    if has_worker_started || status.started == Some(true) {
        return None;
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    exit_of(name, status).map(|message| Problem { reason: Reason::PodNotStarting, message })
}

/// Describes the keys that the init container which waits for files waits for.
fn awaits_secrets(pod: &Pod, container: &Container, status: &ContainerStatus, now: Timestamp) -> Option<Problem> {
    let running = status.state.as_ref()?.running.as_ref().filter(|_| status.name == SECRETS_CONTAINER)?;
    if running.started_at.as_ref().is_some_and(|started| now.duration_since(started.0) < SECRETS_GRACE) {
        return None;
    }
    // The first argument is the directory.
    let keys = container.args.iter().flatten().skip(1).filter_map(|path| path.split_once('/'));
    let keys: Vec<(&str, &str)> = keys.collect();
    Some(missing(pod, &keys))
}

/// Describes why the kubelet cannot start a container.
fn waiting(pod: &Pod, container: &Container, status: &ContainerStatus) -> Option<Problem> {
    let ContainerStateWaiting { reason, message } = status.state.as_ref()?.waiting.as_ref()?;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let reason = reason.as_deref().unwrap_or_default();
    let why = message.as_deref().unwrap_or("the kubelet gives no reason");
    let (what, remedy) = match described(&status.name) {
        Some((what, field)) => (what.to_owned(), format!("correct {field} of the Skill, or ")),
        None => (format!("init container {}", status.name), String::new()),
    };
    match reason {
        "" | "ContainerCreating" | "PodInitializing" | "CrashLoopBackOff" => None,
        // The reason and the message of the kubelet change between two tries.
        reason if reason.contains("Image") => Some(Problem {
            reason: Reason::ImageUnavailable,
            message: format!(
                "pod {name} cannot get the image {} of its {what}: {remedy}see kubectl describe pod {name}",
                status.image
            ),
        }),
        _ => {
            let keys = referenced_keys(container, why);
            Some(if keys.is_empty() {
                let message = format!("pod {name} cannot start its {what}: {reason}: {why}");
                Problem { reason: Reason::PodNotStarting, message }
            } else {
                missing(pod, &keys)
            })
        }
    }
}

/// Returns the keys of Secrets in the environment of a container that a message of the kubelet is about.
///
/// It says `secret "db" not found`, or `couldn't find key url in Secret acme/db`.
fn referenced_keys<'a>(container: &'a Container, message: &str) -> Vec<(&'a str, &'a str)> {
    let references = container.env.iter().flatten().filter_map(|variable| {
        let reference = variable.value_from.as_ref()?.secret_key_ref.as_ref()?;
        Some((reference.name.as_str(), reference.key.as_str()))
    });
    let is_missing = |(secret, key): &(&str, &str)| {
        message.contains(&format!("secret \"{secret}\" not found"))
            || (message.contains(&format!("find key {key} in Secret")) && message.ends_with(&format!("/{secret}")))
    };
    let mut keys: Vec<(&str, &str)> = references.filter(is_missing).collect();
    keys.dedup();
    keys
}

/// The problem of keys of which at least one is missing. The pod waits for them until its deadline.
fn missing(pod: &Pod, keys: &[(&str, &str)]) -> Problem {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let until = deadline(pod).map(|deadline| format!(" until {deadline}")).unwrap_or_default();
    let names: Vec<String> = keys.iter().map(|(secret, key)| format!("the key {key} of the Secret {secret}")).collect();
    let (which, them) = if keys.len() == 1 { ("it is", "it") } else { ("at least one is", "what is missing") };
    let message = format!(
        "the MCP server in pod {name} waits{until} for {}: {which} missing or empty. Create {them}, and the Job continues by itself",
        names.join(" and ")
    );
    Problem { reason: Reason::SecretMissing, message }
}

/// Returns the time at which the kubelet ends a pod; none for a pod that the kubelet has not seen.
fn deadline(pod: &Pod) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    let started = pod.status.as_ref()?.start_time.as_ref()?;
    started.0.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pod(status: &Value) -> Pod {
        let reference = |secret: &str, key: &str| json!({"secretKeyRef": {"name": secret, "key": key}});
        serde_json::from_value(json!({
            "metadata": {"name": "refund-1-01234"},
            "spec": {"activeDeadlineSeconds": 600, "containers": [], "initContainers": [
                {"name": "secrets", "args": ["/bloomery/secrets", "db/url", "ci/token"]},
                {"name": "mcp", "env": [
                    {"name": "A", "value": "b"}, {"name": "DB", "valueFrom": reference("db", "url")},
                    {"name": "KEY", "valueFrom": reference("ci", "token")},
                ]},
            ]},
            "status": {"startTime": "1970-01-01T00:00:05Z", "initContainerStatuses": [status]},
        }))
        .unwrap()
    }

    fn status(name: &str, state: &Value) -> Value {
        json!({"name": name, "image": "db-mcp:1", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    fn found(name: &str, state: &Value, second: i64) -> Option<(Reason, String)> {
        let problem = find(&pod(&status(name, state)), Timestamp::from_second(second).unwrap())?;
        Some((problem.reason, problem.message))
    }

    #[rstest]
    #[case::no_image(
        "ErrImagePull",
        "not found",
        Some(Reason::ImageUnavailable),
        "the image db-mcp:1 of its MCP server"
    )]
    #[case::no_secret(
        "CreateContainerConfigError",
        r#"secret "db" not found"#,
        Some(Reason::SecretMissing),
        "the key url of the Secret db: it is missing"
    )]
    #[case::no_key(
        "CreateContainerConfigError",
        "couldn't find key token in Secret acme/ci",
        Some(Reason::SecretMissing),
        "the key token of the Secret ci"
    )]
    #[case::root(
        "CreateContainerConfigError",
        "container has runAsNonRoot",
        Some(Reason::PodNotStarting),
        "runAsNonRoot"
    )]
    #[case::starting("PodInitializing", "", None, "")]
    #[case::restarted("CrashLoopBackOff", "back-off", None, "")]
    fn a_server_that_does_not_start_is_named(
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: Option<Reason>,
        #[case] part: &str,
    ) {
        let found = found("mcp", &json!({"waiting": {"reason": reason, "message": message}}), 0);
        assert_eq!(found.as_ref().map(|found| found.0), expected, "{found:?}");
        if let Some((_, message)) = found {
            assert!(message.contains(part) && message.contains("refund-1-01234"), "{message}");
        }
    }

    #[test]
    fn the_wait_for_files_names_their_keys_after_a_moment() {
        let running = json!({"running": {"startedAt": "1970-01-01T00:00:10Z"}});
        assert_eq!(found("secrets", &running, 12), None);
        let (reason, message) = found("secrets", &running, 13).unwrap();
        assert_eq!(reason, Reason::SecretMissing);
        assert!(
            message.contains("the key url of the Secret db and the key token of the Secret ci: at least one"),
            "{message}"
        );
        assert!(message.contains("waits until 1970-01-01T00:10:05Z for"), "{message}");
        assert_eq!(found("mcp", &running, 60), None);
    }

    #[test]
    fn the_last_exit_of_a_restarted_server_is_described() {
        let mut server = status("mcp", &json!({"running": {}}));
        assert_eq!(last_exit(&pod(&server)), None);
        server["lastState"] = json!({"terminated": {"exitCode": 3}});
        let exit = last_exit(&pod(&server)).unwrap();
        assert!(exit.contains("exited with code 3") && exit.contains("kubectl logs refund-1-01234 -c mcp"), "{exit}");
    }

    #[test]
    fn the_image_of_the_scripts_is_named() {
        let mut pod = pod(&status("scripts", &json!({"waiting": {"reason": "ErrImagePull"}})));
        let container = serde_json::from_value(json!({"name": "scripts"})).unwrap();
        pod.spec.as_mut().unwrap().init_containers.as_mut().unwrap().push(container);
        let problem = find(&pod, Timestamp::MAX).unwrap();
        assert_eq!(problem.reason, Reason::ImageUnavailable);
        assert!(
            problem.message.contains("of its container of the scripts: correct spec.scripts.image"),
            "{}",
            problem.message
        );
    }

    #[test]
    fn a_server_that_cannot_be_started_is_named_until_the_worker_runs() {
        let mut server = status("mcp", &json!({"waiting": {"reason": "CrashLoopBackOff"}}));
        server["lastState"] =
            json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: /no/such: not found"}});
        let mut pod = pod(&server);
        let found = find(&pod, Timestamp::MAX).unwrap();
        assert_eq!(found.reason, Reason::PodNotStarting);
        assert!(found.message.contains("code 128 (StartError: exec: /no/such: not found)"), "{}", found.message);
        let worker = serde_json::from_value(status("worker", &json!({"running": {}}))).unwrap();
        pod.status.as_mut().unwrap().container_statuses = Some(vec![worker]);
        assert_eq!(find(&pod, Timestamp::MAX), None);
    }
}
