//! The texts of a Skill that come from ConfigMaps: the lists of its policy (`policy.listsFrom`), and its scripts
//! (`scripts.configMap`).

use crate::scripts;
use crate::text::bounded;
use crate::v1alpha1::{ConfigMapKeyRef, Policy, Scripts, SkillSpec};
use std::collections::BTreeMap;

/// The most texts of a list.
pub const MAX_TEXTS: usize = 500;

/// The most characters of a text.
pub const MAX_TEXT_CHARS: usize = 256;

/// The most bytes of keys in a message.
const MAX_KEYS_BYTES: usize = 256;

/// The data of ConfigMaps of one namespace, by name.
pub type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

/// The field of a Skill that names a ConfigMap with scripts.
pub const SCRIPTS_FIELD: &str = "spec.scripts.configMap";

/// The reason why the texts of a ConfigMap cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The ConfigMap does not exist.
    #[error("the ConfigMap {0} does not exist")]
    ConfigMapNotFound(String),
    /// The ConfigMap does not have the key.
    #[error("the ConfigMap {name} has no key {key}; it has {keys}")]
    KeyNotFound {
        /// The name of the ConfigMap.
        name: String,
        /// The key.
        key: String,
        /// The keys that the ConfigMap has.
        keys: String,
    },
    /// The value has too many texts.
    #[error("the key {key} of the ConfigMap {name} has {count} texts, and a list has at most {MAX_TEXTS}")]
    TooManyTexts {
        /// The name of the ConfigMap.
        name: String,
        /// The key.
        key: String,
        /// The number of texts.
        count: usize,
    },
    /// A text is too long.
    #[error("line {line} of the key {key} of the ConfigMap {name} has more than {MAX_TEXT_CHARS} characters")]
    TextTooLong {
        /// The name of the ConfigMap.
        name: String,
        /// The key.
        key: String,
        /// The line, from 1.
        line: usize,
    },
    /// The scripts cannot be used.
    #[error("the ConfigMap {name} {fault}")]
    Scripts {
        /// The name of the ConfigMap.
        name: String,
        /// The fault, as a clause with its remedy.
        fault: String,
    },
}

impl Error {
    /// Returns whether the texts can be used once an object is created or gets a key.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::ConfigMapNotFound(_) | Self::KeyNotFound { .. })
    }
}

/// A field whose texts cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {error}")]
pub struct Fault {
    /// The path of the field.
    pub path: String,
    /// The reason.
    pub error: Error,
}

/// Returns the names of the ConfigMaps that a Skill names for lists and scripts.
pub fn config_maps(spec: &SkillSpec) -> impl Iterator<Item = &str> {
    let sources = spec.policy.iter().flat_map(|policy| policy.lists_from.values());
    let of_lists = sources.map(|source| source.config_map_key_ref.name.as_str());
    of_lists.chain(spec.scripts.iter().filter_map(|scripts| scripts.config_map.as_deref()))
}

/// Moves the texts of all lists from ConfigMaps into `policy.lists`, and the scripts of a ConfigMap into `scripts.files`.
///
/// # Errors
/// All fields that cannot be used. Then the spec stays the same.
pub fn resolve(spec: &mut SkillSpec, config_maps: &ConfigMaps) -> Result<(), Vec<Fault>> {
    let (mut lists, mut faults) = (BTreeMap::new(), Vec::new());
    for (list, source) in spec.policy.iter().flat_map(|policy| &policy.lists_from) {
        match read(&source.config_map_key_ref, config_maps) {
            Ok(texts) => {
                lists.insert(list.clone(), texts);
            }
            Err(error) => faults.push(Fault { path: format!("spec.policy.listsFrom.{list}"), error }),
        }
    }
    let scripts = spec.scripts.as_ref().and_then(|scripts| read_scripts(scripts, config_maps)).transpose();
    let scripts = scripts.unwrap_or_else(|error| {
        faults.push(Fault { path: SCRIPTS_FIELD.to_owned(), error });
        None
    });
    if !faults.is_empty() {
        return Err(faults);
    }
    if let Some(policy) = &mut spec.policy {
        policy.lists.append(&mut lists);
        policy.lists_from.clear();
    }
    if scripts.is_some() {
        spec.scripts = scripts;
    }
    Ok(())
}

/// Returns the names of all lists that conditions can read.
pub fn names(policy: &Policy) -> impl Iterator<Item = &str> {
    policy.lists.keys().chain(policy.lists_from.keys()).map(String::as_str)
}

/// Reads the texts of a key: one in each line that is not empty.
fn read(reference: &ConfigMapKeyRef, config_maps: &ConfigMaps) -> Result<Vec<String>, Error> {
    let ConfigMapKeyRef { name, key } = reference.clone();
    let Some(data) = config_maps.get(&name) else { return Err(Error::ConfigMapNotFound(name)) };
    let Some(value) = data.get(&key) else {
        let present: Vec<&str> = data.keys().map(String::as_str).collect();
        let keys = if present.is_empty() { "none".to_owned() } else { bounded(&present.join(", "), MAX_KEYS_BYTES) };
        return Err(Error::KeyNotFound { name, key, keys });
    };
    let is_too_long = |line: &str| line.trim().chars().count() > MAX_TEXT_CHARS;
    if let Some(at) = value.lines().position(is_too_long) {
        return Err(Error::TextTooLong { name, key, line: at + 1 });
    }
    let texts: Vec<String> = value.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    match texts.len() {
        count if count > MAX_TEXTS => Err(Error::TooManyTexts { name, key, count }),
        _ => Ok(texts),
    }
}

/// Returns the scripts with the files of their ConfigMap. `None` if they name none.
fn read_scripts(scripts: &Scripts, config_maps: &ConfigMaps) -> Option<Result<Scripts, Error>> {
    let name = scripts.config_map.clone()?;
    let Some(data) = config_maps.get(&name) else { return Some(Err(Error::ConfigMapNotFound(name))) };
    Some(scripts::with_data(scripts, data).map_err(|fault| Error::Scripts { name, fault }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn spec() -> SkillSpec {
        let source = json!({"configMapKeyRef": {"name": "bank-lists", "key": "payees"}});
        let policy = json!({"lists": {"own": ["own.com"]}, "listsFrom": {"payees": source}});
        serde_json::from_value(json!({"problem": {"statement": "x"}, "policy": policy})).unwrap()
    }

    fn with(key: &str, value: &str) -> ConfigMaps {
        [("bank-lists".to_owned(), [(key.to_owned(), value.to_owned())].into())].into()
    }

    #[rstest]
    #[case::one_in_each_line("ada\nbob", &["ada", "bob"])]
    #[case::spaces_and_empty_lines("  ada\r\n\n\tbob lee \n", &["ada", "bob lee"])]
    #[case::a_channel("#general", &["#general"])]
    #[case::an_empty_value(" \n", &[])]
    fn the_lines_of_a_key_become_a_list(#[case] value: &str, #[case] expected: &[&str]) {
        let mut spec = spec();
        resolve(&mut spec, &with("payees", value)).unwrap();
        let policy = spec.policy.unwrap();
        assert_eq!(policy.lists["payees"], expected);
        assert_eq!((policy.lists["own"].as_slice(), policy.lists_from.len()), (&["own.com".to_owned()][..], 0));
    }

    #[rstest]
    #[case::no_config_map(ConfigMaps::new(), "the ConfigMap bank-lists does not exist", true)]
    #[case::no_key(with("payee", "ada"), "the ConfigMap bank-lists has no key payees; it has payee", true)]
    #[case::many(with("payees", &"x\n".repeat(501)), "the key payees of the ConfigMap bank-lists has 501 texts, and a list has at most 500", false)]
    #[case::long(
        with("payees", &format!("ada\n{}", "x".repeat(257))),
        "line 2 of the key payees of the ConfigMap bank-lists has more than 256 characters",
        false
    )]
    fn a_list_that_cannot_be_used_is_refused(
        #[case] config_maps: ConfigMaps,
        #[case] message: &str,
        #[case] is_missing: bool,
    ) {
        let mut changed = spec();
        let faults = resolve(&mut changed, &config_maps).unwrap_err();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].to_string(), format!("spec.policy.listsFrom.payees: {message}"));
        assert_eq!(faults[0].error.is_missing(), is_missing);
        assert_eq!(changed, spec());
    }

    #[test]
    fn a_list_at_its_limits_is_used() {
        let value = format!("{}\n", "é".repeat(MAX_TEXT_CHARS)).repeat(MAX_TEXTS);
        let mut spec = spec();
        resolve(&mut spec, &with("payees", &value)).unwrap();
        assert_eq!(spec.policy.unwrap().lists["payees"].len(), MAX_TEXTS);
    }

    #[test]
    fn the_scripts_of_a_config_map_are_files_and_a_fault_leaves_the_lists_unread() {
        let mut spec = spec();
        let scripts = serde_json::json!({"image": "busybox", "files": {"a.sh": "exit 0"}, "configMap": "checks"});
        spec.scripts = serde_json::from_value(scripts).unwrap();
        assert_eq!(config_maps(&spec).collect::<Vec<_>>(), ["bank-lists", "checks"]);
        let mut maps = with("payees", "ada");
        let before = spec.clone();
        let faults = resolve(&mut spec, &maps).unwrap_err();
        assert_eq!(faults[0].to_string(), "spec.scripts.configMap: the ConfigMap checks does not exist");
        assert!(faults[0].error.is_missing() && spec == before);
        maps.insert("checks".into(), [("a.sh".to_owned(), "exit 1".to_owned())].into());
        let faults = resolve(&mut spec, &maps).unwrap_err();
        assert!(
            faults[0].to_string().contains("the ConfigMap checks has the file \"a.sh\", which is also"),
            "{faults:?}"
        );
        maps.insert("checks".into(), [("b.sh".to_owned(), "exit 1".to_owned())].into());
        resolve(&mut spec, &maps).unwrap();
        let scripts = spec.scripts.unwrap();
        assert_eq!((scripts.files["b.sh"].as_str(), scripts.config_map), ("exit 1", None));
        assert_eq!(spec.policy.unwrap().lists["payees"], ["ada"]);
    }
}
