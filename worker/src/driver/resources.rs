//! Checks that everything that the Job binds is available, before anything else. The worker waits for a missing secret.
//!
//! The check only tests that a secret has a value. The value does not enter a prompt, an event or a log line.

use super::environment::{Environment, Observer};
use super::wait::{self, WaitResult};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_engine::{Event, step};
use bloomery_redact::MAX_VALUE_BYTES;
use std::fs;
use std::future;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Waits until everything that is bound is available. Returns the time that this took, and the event that ends the
/// conversation if a resource stays missing or cannot be used.
pub(super) async fn wait_until_available<M, T>(
    bound: &[BoundResource],
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> (Option<Event>, Duration) {
    if let Some(event) = unusable(bound) {
        return (Some(event), Duration::ZERO);
    }
    let mut absent = Vec::new();
    let check = || {
        absent =
            bound.iter().filter_map(|resource| Some((resource.name.as_str(), missing_secret(resource)?))).collect();
        future::ready(absent.first().map_or(Ok(()), |(_, waiting)| Err(waiting.clone())))
    };
    let (result, time) = wait::retry(check, environment, observer).await;
    let event = match result {
        WaitResult::Done(()) => unusable(bound),
        // The driver's loop handles the stop.
        WaitResult::Stopped => None,
        // The event of the wait names only the first missing secret.
        WaitResult::TimedOut(_) => Some(timed_out(&absent, time)),
    };
    (event, time)
}

/// Returns the event that ends the conversation if a bound resource can never be used.
fn unusable(bound: &[BoundResource]) -> Option<Event> {
    let message = bound.iter().find_map(|resource| unreadable(resource).or_else(|| oversized(resource)))?;
    Some(step::unavailable(OutcomeCode::UserNeeded, message))
}

fn timed_out(absent: &[(&str, ExternalWait)], after: Duration) -> Event {
    let names: Vec<&str> = absent.iter().map(|(name, _)| *name).collect();
    let message = format!(
        "The resources that the Job binds as {} are missing from their Secrets. The worker waited {} s for them. Add the keys to the \
         Secrets, then start the Job again.",
        names.join(", "),
        after.as_secs()
    );
    step::unavailable(OutcomeCode::UserNeeded, message)
}

/// Returns what the run has to wait for, if the resource is a secret whose key is missing or empty.
fn missing_secret(resource: &BoundResource) -> Option<ExternalWait> {
    let ResourceSource::Secret(KeyFile { path, secret, key }) = &resource.source else { return None };
    // Secrets are small files in memory. White space alone counts as empty.
    let has_value = fs::read(path).is_ok_and(|value| value.iter().any(|byte| !byte.is_ascii_whitespace()));
    (!has_value).then(|| ExternalWait::SecretMissing { name: secret.clone(), key: key.clone(), until: None })
}

/// Returns a message for people, if the resource is a secret that is too large to be redacted.
fn oversized(resource: &BoundResource) -> Option<String> {
    let ResourceSource::Secret(KeyFile { path, secret, key }) = &resource.source else { return None };
    let bytes = fs::read(path).ok()?.trim_ascii().len();
    (bytes > MAX_VALUE_BYTES).then(|| {
        format!(
            "The resource `{}` of the Job, the key {key} of the Secret {secret}, has {bytes} bytes. Values of more than \
             {MAX_VALUE_BYTES} bytes cannot be redacted from prompts and logs. Make the value smaller, then start the Job again.",
            resource.name
        )
    })
}

/// Returns a message for people, if the resource is a directory or file that cannot be read. It is mounted before the worker starts, so
/// waiting does not help.
fn unreadable(resource: &BoundResource) -> Option<String> {
    let ResourceSource::Mount { path, .. } = &resource.source else { return None };
    let error = open(Path::new(path)).err()?;
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "Check `subPath` in the Job's `spec.resources`",
        io::ErrorKind::PermissionDenied => {
            "Make it readable for the worker's user or group, which the chart's values set"
        }
        _ => "Check the volume",
    };
    Some(format!(
        "The resource `{}` of the Job cannot be read at {path}: {error}. {remedy}, then start the Job again.",
        resource.name
    ))
}

/// Opens a directory or file, to see whether it can be read.
fn open(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() { fs::read_dir(path).map(drop) } else { fs::File::open(path).map(drop) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::v1alpha1::ResourceType;

    fn bound(kind: ResourceType, source: ResourceSource) -> BoundResource {
        BoundResource { name: "it".into(), kind, source }
    }

    #[test]
    fn a_secret_is_missing_until_it_has_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = KeyFile { path: path.to_str().unwrap().to_owned(), secret: "ci".into(), key: "token".into() };
        let resource = bound(ResourceType::Credential, ResourceSource::Secret(file));
        let waited_for = Some(ExternalWait::SecretMissing { name: "ci".into(), key: "token".into(), until: None });
        assert_eq!(missing_secret(&resource), waited_for);
        fs::write(&path, " \n").unwrap();
        assert_eq!(missing_secret(&resource), waited_for);
        fs::write(&path, b"\xff\xfe").unwrap();
        assert_eq!(missing_secret(&resource), None);
    }

    #[test]
    fn the_message_names_all_missing_secrets() {
        let of = |key: &str| ExternalWait::SecretMissing { name: "ci".into(), key: key.into(), until: None };
        let event = timed_out(&[("token", of("token")), ("login", of("login"))], Duration::from_mins(10));
        let Event::Finished { outcome, .. } = event else { panic!("{event:?}") };
        assert_eq!(outcome.code, OutcomeCode::UserNeeded);
        assert!(
            outcome.message.starts_with("The resources that the Job binds as token, login are missing"),
            "{}",
            outcome.message
        );
    }

    #[test]
    fn the_message_names_the_unreadable_path_and_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let mount = |path: &Path| {
            let path = path.to_str().unwrap().to_owned();
            bound(ResourceType::Filesystem, ResourceSource::Mount { path, read_only: true })
        };
        assert_eq!(unreadable(&mount(dir.path())), None);
        fs::write(dir.path().join("file"), "x").unwrap();
        assert_eq!(unreadable(&mount(&dir.path().join("file"))), None);
        let message = unreadable(&mount(&dir.path().join("absent"))).unwrap();
        assert!(message.contains("`it`") && message.contains("absent") && message.contains("subPath"), "{message}");
    }

    #[test]
    fn a_secret_that_is_too_large_to_be_redacted_ends_the_job() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bundle");
        let file = KeyFile { path: path.to_str().unwrap().to_owned(), secret: "ca".into(), key: "bundle".into() };
        let resource = bound(ResourceType::Credential, ResourceSource::Secret(file));
        assert!(unusable(std::slice::from_ref(&resource)).is_none());
        fs::write(&path, format!("  {}\n", "x".repeat(MAX_VALUE_BYTES))).unwrap();
        assert!(unusable(std::slice::from_ref(&resource)).is_none());
        fs::write(&path, "x".repeat(MAX_VALUE_BYTES + 1)).unwrap();
        let Some(Event::Finished { outcome, .. }) = unusable(&[resource]) else { panic!("the secret is accepted") };
        assert_eq!(outcome.code, OutcomeCode::UserNeeded);
        assert!(outcome.message.contains("the key bundle of the Secret ca, has 16385 bytes"), "{}", outcome.message);
    }
}
