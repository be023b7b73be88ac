//! Binds the resources that a Skill declares to paths, URLs and files with secrets on this machine.

use super::credential;
use crate::error::Error;
use crate::local::memory::all_directories;
use crate::run::options::RunOptions;
use crate::{source, text};
use bloomery_crds::resources;
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_crds::text::single_line_fault;
use bloomery_crds::v1alpha1::{Binding, ResourceDeclaration, ResourceType};
use bloomery_http as http;
use bloomery_http::address::AddressPolicy;
use bloomery_redact::MAX_VALUE_BYTES;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The resource that `options.project_path` binds. The option is from the runtime before Bloomery.
const CODEBASE: &str = "codebase";

/// The suffix of a path that is bound read-only.
const READ_ONLY: &str = ":ro";

/// The number of bytes that are read from the file of a secret. A file of this size is refused, even if most of it is white space.
const SECRET_READ_LIMIT: usize = 2 * MAX_VALUE_BYTES;

/// The reason why a value cannot be bound, as one or more sentences.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(pub String);

/// Binds values to the resources that a Skill declares, in the order of the declarations.
///
/// # Errors
/// All errors, at once.
pub fn bind(
    declared: &[ResourceDeclaration],
    given: &[(String, String)],
    project_path: Option<&str>,
) -> Result<Vec<BoundResource>, Error> {
    let mut faults = Vec::new();
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    let codebase = project_path.map(|path| (CODEBASE, path));
    for (name, value) in given.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(codebase) {
        if values.insert(name, value).is_some() {
            faults.push(format!("{name} is bound twice."));
        }
        if !declared.iter().any(|resource| resource.name == name) {
            let option = option_of(name, project_path);
            faults.push(format!("{option}: {}", resources::undeclared_fault(name, declared)));
        }
    }
    let mut bound = Vec::new();
    for resource in declared {
        match values.get(resource.name.as_str()) {
            Some(value) => match parse_source(resource.kind, value) {
                Ok(source) => bound.push(BoundResource { name: resource.name.clone(), kind: resource.kind, source }),
                Err(fault) => faults.push(format!("{}: {fault}", option_of(&resource.name, project_path))),
            },
            None if resource.required == Some(true) => {
                let (name, kind) = (&resource.name, resource.kind);
                faults.push(format!(
                    "{name}: the Skill requires this {kind}: add `options.resources` {name}={}.",
                    placeholder(kind)
                ));
            }
            None => {}
        }
    }
    faults.extend(resources::missing_credentials(declared, |name| values.contains_key(name)));
    if faults.is_empty() { Ok(bound) } else { Err(Error::join(faults.into_iter().map(Error::invalid).collect())) }
}

/// Returns the option that binds a resource, for messages about its value.
fn option_of(name: &str, project_path: Option<&str>) -> String {
    if name == CODEBASE && project_path.is_some() {
        "`options.project_path`".to_owned()
    } else {
        format!("`options.resources.{name}`")
    }
}

/// Checks that all bound files and directories are in the root of the options, and that none of them is in a memory of the options.
///
/// # Errors
/// If one of them is elsewhere, or a directory cannot be read. The errors do not contain the values of secrets.
pub fn check_places(bound: &[BoundResource], options: &RunOptions) -> Result<(), Error> {
    if let Some(root) = &options.root {
        check_within(bound, root)?;
    }
    options.all_memories().try_for_each(|memory| check_outside_memory(bound, memory))
}

/// Checks that no bound file or directory is in the memory: an agent must not change its own log, and the memory may be that of another
/// tenant. A directory that contains the memory may be bound, because the file tools do not reach the memory in it.
///
/// # Errors
/// If one of them is in the memory. The errors do not contain the values of secrets.
fn check_outside_memory(bound: &[BoundResource], memory: &Path) -> Result<(), Error> {
    let canonical = |dir: &PathBuf| match dir.canonicalize() {
        // A directory that does not exist contains no bound path.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        path => Some(path.map_err(|error| Error::invalid(format!("{}: {error}", dir.display())))),
    };
    let memory_directories: Vec<PathBuf> =
        all_directories(memory).iter().filter_map(canonical).collect::<Result<_, _>>()?;
    let within = bound.iter().find_map(|resource| {
        let path = bound_path(&resource.source)?;
        memory_directories.iter().any(|dir| path.starts_with(dir)).then_some((&resource.name, path))
    });
    match within {
        None => Ok(()),
        Some((name, path)) => Err(Error::invalid(format!(
            "{name}: {} is in the memory {}, which no resource can name, because an agent must not reach its own log: bind another \
             path, or name another memory with `options.memory`",
            path.display(),
            text::directory(memory)
        ))),
    }
}

/// Returns the file or directory of a bound resource, if it has one. The path has no links.
fn bound_path(source: &ResourceSource) -> Option<&Path> {
    match source {
        ResourceSource::Mount { path, .. } | ResourceSource::Secret(KeyFile { path, .. }) => Some(Path::new(path)),
        ResourceSource::Value(_) | ResourceSource::ForServer { .. } => None,
    }
}

/// Checks that all bound files and directories are in a directory. Bound paths have no links.
///
/// # Errors
/// If one of them is elsewhere, or the directory cannot be read. The errors do not contain the values of secrets.
fn check_within(bound: &[BoundResource], root: &Path) -> Result<(), Error> {
    let unusable = |error| Error::invalid(format!("the root {} cannot be used: {error}", text::directory(root)));
    let canonical = root.canonicalize().map_err(unusable)?;
    let is_outside = |path: &Path| !path.starts_with(&canonical);
    let outside = bound.iter().find(|resource| bound_path(&resource.source).is_some_and(is_outside));
    match outside {
        None => Ok(()),
        Some(BoundResource { name, .. }) => Err(Error::invalid(format!(
            "{name}: the file or directory is not in the root {}: name one that is",
            text::directory(root)
        ))),
    }
}

/// Returns a warning for each bound secret that no bound endpoint uses.
pub fn unused_secret_warnings(declared: &[ResourceDeclaration], bound: &[BoundResource]) -> Vec<String> {
    let is_bound = |name: &str| bound.iter().any(|resource| resource.name == name);
    let is_used = |name: &str| {
        let endpoints = declared.iter().filter(|endpoint| is_bound(&endpoint.name));
        endpoints.filter_map(|endpoint| endpoint.auth.as_ref()).any(|auth| auth.credential == name)
    };
    let secrets = bound.iter().filter(|resource| matches!(resource.source, ResourceSource::Secret(_)));
    let unused = secrets.filter(|resource| !is_used(&resource.name));
    unused.map(|BoundResource { name, kind, .. }| {
        format!(
            "{name}: this {kind} is redacted but not used: no bound endpoint names it in `auth`, and MCP servers do not receive \
             bound secrets. To pass a secret to a program, use `options.mcp.env`"
        )
    })
    .collect()
}

/// Returns the form of a value for a type of resource.
fn placeholder(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Filesystem => "PATH",
        ResourceType::ApiEndpoint => "URL",
        ResourceType::ConnectionString | ResourceType::Credential => "@FILE",
    }
}

/// Parses the value for a type of resource. The errors do not contain the value of a secret.
fn parse_source(kind: ResourceType, value: &str) -> Result<ResourceSource, InvalidValue> {
    match kind {
        ResourceType::Filesystem => parse_filesystem(value),
        ResourceType::ApiEndpoint => {
            let binding = Binding { value: Some(value.to_owned()), ..Binding::default() };
            let faults = resources::binding_faults(kind, &binding);
            if !faults.is_empty() {
                return Err(InvalidValue(faults.join(" ")));
            }
            if let Some(fault) = credential::in_url(value) {
                return Err(InvalidValue(format!(
                    "the URL {fault}, and would be stored in clear text and sent to tools: declare a credential in the Skill, name it \
                     in the `auth` of this resource, and bind it to @FILE."
                )));
            }
            http::check_address(value, &AddressPolicy::for_local_machine())
                .map_err(|error| InvalidValue(format!("{error}.")))?;
            Ok(ResourceSource::Value(value.to_owned()))
        }
        ResourceType::ConnectionString | ResourceType::Credential => parse_secret(kind, value),
    }
}

/// Parses the path of a file or directory.
fn parse_filesystem(value: &str) -> Result<ResourceSource, InvalidValue> {
    let (path, read_only) = match value.strip_suffix(READ_ONLY) {
        Some(path) => (path, true),
        None => (value, false),
    };
    let canonical = canonical_readable(path)?;
    let canonical = canonical.to_str().ok_or_else(|| InvalidValue(format!("the path {path} is not valid UTF-8.")))?;
    match single_line_fault(canonical, bloomery_crds::persona::MAX_VALUE_BYTES) {
        Some(fault) => Err(InvalidValue(format!("the path {fault}."))),
        None => Ok(ResourceSource::Mount { path: canonical.to_owned(), read_only }),
    }
}

/// Returns the canonical path of a readable file or directory.
fn canonical_readable(path: &str) -> Result<PathBuf, InvalidValue> {
    let is_home = path == "~" || path.starts_with("~/");
    let hint = if is_home { " The shell does not expand `~` within a word: write $HOME." } else { "" };
    let unusable = |error: std::io::Error| InvalidValue(format!("the path {path} cannot be used: {error}.{hint}"));
    let real = Path::new(path).canonicalize().map_err(unusable)?;
    let opened = if real.is_dir() { real.read_dir().map(drop) } else { source::open(&real).map(drop) };
    opened.map_err(unusable)?;
    Ok(real)
}

/// Checks that the bound files of a Job still exist, before it is resumed.
///
/// # Errors
/// All missing files, at once.
pub fn check_available(bound: &[BoundResource]) -> Result<(), Error> {
    let fault = |resource: &BoundResource| match &resource.source {
        ResourceSource::Mount { path, .. } => canonical_readable(path).err(),
        ResourceSource::Secret(file) => secret_file(Path::new(&file.path), "the file").err(),
        ResourceSource::Value(_) | ResourceSource::ForServer { .. } => None,
    };
    let message = |resource: &BoundResource| {
        Some(format!("{}: {} Restore it, then resume the Job.", resource.name, fault(resource)?))
    };
    let faults: Vec<Error> = bound.iter().filter_map(message).map(Error::invalid).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::join(faults)) }
}

/// Parses the value for a secret, which is `@FILE`.
fn parse_secret(kind: ResourceType, value: &str) -> Result<ResourceSource, InvalidValue> {
    let Some(file) = value.strip_prefix('@') else {
        return Err(InvalidValue(if value.trim_start().to_ascii_lowercase().starts_with("vault:") {
            "vault: references are not supported: write the value to a file, and bind @FILE.".to_owned()
        } else {
            format!("a {kind} is a secret, which must not be on a command line: write it to a file, and bind @FILE.")
        }));
    };
    let key_file = secret_file(Path::new(file), "the file")?;
    Ok(ResourceSource::Secret(key_file))
}

/// Checks that a file holds a secret. `label` names the secret in later messages.
///
/// # Errors
/// If the file cannot be read, is empty or is too large.
pub fn secret_file(file: &Path, label: &str) -> Result<KeyFile, InvalidValue> {
    let shown = file.display();
    let unreadable = |error: std::io::Error| InvalidValue(format!("the file {shown} cannot be read: {error}."));
    let real = file.canonicalize().map_err(|error| {
        if source::is_file_descriptor(file) && error.kind() == ErrorKind::NotFound {
            InvalidValue(format!(
                "{shown} is a pipe, which can be read only once. A secret is read again for each request: write it to a file."
            ))
        } else {
            unreadable(error)
        }
    })?;
    let mut value = Vec::new();
    source::open(&real)
        .and_then(|file| file.take(SECRET_READ_LIMIT as u64).read_to_end(&mut value))
        .map_err(unreadable)?;
    match value.trim_ascii().len() {
        0 => return Err(InvalidValue(format!("the file {shown} is empty."))),
        bytes if bytes > MAX_VALUE_BYTES || value.len() >= SECRET_READ_LIMIT => {
            return Err(InvalidValue(format!(
                "the file {shown} has more than {MAX_VALUE_BYTES} bytes, and a secret of that size cannot be redacted."
            )));
        }
        _ => {}
    }
    let path = real.to_str().ok_or_else(|| InvalidValue(format!("the path {shown} is not valid UTF-8.")))?.to_owned();
    Ok(KeyFile { path, secret: label.to_owned(), key: shown.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::fs;

    /// Returns the declaration of the resource `codebase`.
    fn declared(kind: ResourceType, required: bool) -> Vec<ResourceDeclaration> {
        let (name, required) = ("codebase".to_owned(), Some(required));
        vec![ResourceDeclaration {
            name,
            kind,
            required,
            ..serde_json::from_str(r#"{"name":"x","type":"filesystem"}"#).unwrap()
        }]
    }

    fn given(value: &str) -> Vec<(String, String)> {
        vec![("codebase".to_owned(), value.to_owned())]
    }

    #[rstest]
    #[case::absent(
        ResourceType::Filesystem,
        None,
        "codebase: the Skill requires this filesystem: add `options.resources` codebase=PATH."
    )]
    #[case::secret(ResourceType::Credential, None, "`options.resources` codebase=@FILE.")]
    #[case::no_path(
        ResourceType::Filesystem,
        Some("/no/such/path"),
        "the path /no/such/path cannot be used: No such file"
    )]
    #[case::unexpanded(ResourceType::Filesystem, Some("~/proj:ro"), "write $HOME.")]
    #[case::no_url(ResourceType::ApiEndpoint, Some("ftp://x"), "is not an http or https URL")]
    #[case::typed(ResourceType::ConnectionString, Some("postgres://u:sk-1@h/d"), "must not be on a command line")]
    #[case::vault(ResourceType::Credential, Some("vault:aws/creds/dev"), "vault: references are not supported")]
    #[case::no_file(ResourceType::Credential, Some("@/no/such"), "the file /no/such cannot be read")]
    fn the_error_contains_the_reason_and_no_secret(
        #[case] kind: ResourceType,
        #[case] value: Option<&str>,
        #[case] says: &str,
    ) {
        let given = value.map(given).unwrap_or_default();
        let error = bind(&declared(kind, true), &given, None).unwrap_err();
        assert!(error.message.contains(says) && !error.message.contains("sk-1"), "{error}");
    }

    #[test]
    fn all_errors_are_returned_together() {
        let given = [given("/no/such"), given("/none"), vec![("codbase".to_owned(), ".".to_owned())]].concat();
        let error = bind(&declared(ResourceType::Filesystem, true), &given, None).unwrap_err();
        let lines: Vec<&str> = error.message.lines().collect();
        assert_eq!(lines.len(), 3, "{error}");
        assert!(lines[1].contains("Did you mean \"codebase\"?"), "{error}");
    }

    #[test]
    fn the_canonical_path_is_bound_and_project_path_is_the_codebase() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let real = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let declared = declared(ResourceType::Filesystem, true);
        let mount = |read_only| ResourceSource::Mount { path: real.clone(), read_only };
        let path = link.to_str().unwrap();
        assert_eq!(bind(&declared, &given(&format!("{path}:ro")), None).unwrap()[0].source, mount(true));
        assert_eq!(bind(&declared, &[], Some(path)).unwrap()[0].source, mount(false));
        let refused = bind(&declared, &[], Some("/no/such")).unwrap_err();
        assert!(refused.message.starts_with("`options.project_path`: the path /no/such cannot be used"), "{refused}");
        assert!(bind(&declared, &given(path), Some(path)).unwrap_err().message.contains("bound twice"));
    }

    #[test]
    fn a_path_in_the_memory_cannot_be_bound() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["memory/skill", "project"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("../memory/skill", dir.path().join("project/link")).unwrap();
        let bound = |path: &Path| {
            let given = given(path.to_str().unwrap());
            bind(&declared(ResourceType::Filesystem, true), &given, None).unwrap()
        };
        let memory = dir.path().join("memory");
        for beside in [dir.path(), &dir.path().join("project")] {
            assert_eq!(check_outside_memory(&bound(beside), &memory), Ok(()));
        }
        // Skill directories, and directories in them, may be symbolic links.
        for (link, to) in [("memory/other", "linked/other"), ("memory/skill/jobs", "jobs")] {
            fs::create_dir_all(dir.path().join(to).join("within")).unwrap();
            std::os::unix::fs::symlink(dir.path().join(to), dir.path().join(link)).unwrap();
        }
        let linked = ["linked/other", "linked/other/within", "jobs"];
        assert_eq!(check_outside_memory(&bound(&dir.path().join("linked")), &memory), Ok(()));
        for within in ["memory", "memory/skill", "project/link", "project/../memory"].into_iter().chain(linked) {
            let error = check_outside_memory(&bound(&dir.path().join(within)), &memory).unwrap_err();
            assert!(error.message.contains("must not reach its own log"), "{within}: {error}");
        }
    }

    #[test]
    fn a_file_in_a_memory_cannot_be_bound_as_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("memories/globex/skill")).unwrap();
        for file in ["memories/globex/skill/skill.yaml", "token"] {
            fs::write(dir.path().join(file), "sk-1").unwrap();
        }
        std::os::unix::fs::symlink("memories/globex/skill/skill.yaml", dir.path().join("link")).unwrap();
        let mut options = RunOptions::new(dir.path().join("memories/acme"));
        options.other_memories.push(dir.path().join("memories"));
        let check = |file: &str| {
            let value = format!("@{}", dir.path().join(file).display());
            check_places(&bind(&declared(ResourceType::Credential, true), &given(&value), None).unwrap(), &options)
        };
        assert_eq!(check("token"), Ok(()));
        for within in ["memories/globex/skill/skill.yaml", "link"] {
            let error = check(within).unwrap_err();
            assert!(error.message.contains("is in the memory") && !error.message.contains("sk-1"), "{within}: {error}");
        }
    }

    #[test]
    fn with_a_root_no_file_outside_of_it_can_be_bound() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("project")).unwrap();
        fs::write(dir.path().join("token"), "sk-1").unwrap();
        fs::write(root.join("token"), "sk-1").unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("link")).unwrap();
        let check = |kind: ResourceType, value: String| {
            check_within(&bind(&declared(kind, true), &given(&value), None).unwrap(), &root)
        };
        for (name, is_within) in [("project", true), (".", true), ("..", false), ("link", false)] {
            let value = root.join(name).display().to_string();
            assert_eq!(check(ResourceType::Filesystem, value).is_ok(), is_within, "{name}");
        }
        for (name, is_within) in [("token", true), ("../token", false), ("link/token", false)] {
            let value = format!("@{}", root.join(name).display());
            assert_eq!(check(ResourceType::Credential, value).is_ok(), is_within, "{name}");
        }
        assert_eq!(check(ResourceType::ApiEndpoint, "https://shop.example".into()), Ok(()));
    }

    #[test]
    fn the_file_of_a_secret_must_be_regular_and_not_empty_or_too_large() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let declared = declared(ResourceType::Credential, false);
        fs::write(&file, " \n").unwrap();
        let value = format!("@{}", file.display());
        assert!(bind(&declared, &given(&value), None).unwrap_err().message.contains("is empty"));
        assert!(bind(&declared, &given("@/dev/zero"), None).unwrap_err().message.contains("is not a regular file"));
        let (ours, _theirs) = std::io::pipe().unwrap();
        let pipe = format!("@/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&ours));
        assert!(
            bind(&declared, &given(&pipe), None)
                .unwrap_err()
                .message
                .contains("is a pipe, which can be read only once")
        );
        for large in ["x".repeat(MAX_VALUE_BYTES + 1), format!("x{}", " ".repeat(2 * MAX_VALUE_BYTES))] {
            fs::write(&file, large).unwrap();
            let refused = bind(&declared, &given(&value), None).unwrap_err();
            assert_eq!(refused.kind, crate::error::ErrorKind::Invalid);
            assert!(refused.message.contains("`options.resources.codebase`: the file"), "{refused}");
            assert!(refused.message.contains("token has more than"), "{refused}");
        }
        fs::write(&file, "sk-1").unwrap();
        let source = &bind(&declared, &given(&value), None).unwrap()[0].source;
        assert!(matches!(source, ResourceSource::Secret(file) if file.path.ends_with("token")), "{source:?}");
    }
}
