//! Resolves the lists and scripts that come from ConfigMaps.

use super::{InvalidSkill, ValidSkill};
use bloomery_crds::conditions::Reason;
use bloomery_crds::core_tools::misspelt;
use bloomery_crds::lists::{self, ConfigMaps, Fault, SCRIPTS_FIELD};

/// Replaces `policy.listsFrom` and `scripts.configMap` of a Skill with the texts in the ConfigMaps of its namespace, so that its revision
/// has them.
pub fn resolve_lists(mut skill: ValidSkill, config_maps: &ConfigMaps) -> Result<ValidSkill, InvalidSkill> {
    if let Err(faults) = lists::resolve(&mut skill.spec, config_maps) {
        return Err(InvalidSkill { reason: reason(&faults), faults: faults.iter().map(with_remedy).collect() });
    }
    // The scripts of a ConfigMap are tools that rules may name.
    let faults: Vec<String> = misspelt(&skill.spec).iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(skill) } else { Err(InvalidSkill { reason: Reason::Invalid, faults }) }
}

fn reason(faults: &[Fault]) -> Reason {
    match faults {
        _ if !faults.iter().all(|fault| fault.error.is_missing()) => Reason::Invalid,
        [fault] if fault.path == SCRIPTS_FIELD => Reason::ScriptsNotFound,
        _ => Reason::ListNotFound,
    }
}

fn with_remedy(fault: &Fault) -> String {
    let remedy = match fault.error {
        lists::Error::ConfigMapNotFound(_) => "create it, and the Skill becomes ready by itself",
        lists::Error::KeyNotFound { .. } => "add the key, and the Skill becomes ready by itself",
        lists::Error::TooManyTexts { .. } | lists::Error::TextTooLong { .. } => "shorten it",
        // It names its remedy.
        lists::Error::Scripts { .. } => return format!("{fault}."),
    };
    format!("{fault}: {remedy}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;
    use crate::skill::validate::validate;
    use serde_json::json;

    fn resolved(config_maps: &ConfigMaps) -> Result<ValidSkill, InvalidSkill> {
        resolve_lists(validate(&fixtures::with_list()).unwrap(), config_maps)
    }

    #[test]
    fn a_misspelt_script_of_a_config_map_is_a_fault_of_a_skill_without_a_server() {
        let mut skill = fixtures::without_server();
        skill.spec.scripts = serde_json::from_value(json!({"image": "bash", "configMap": "checks"})).unwrap();
        skill.spec.policy = serde_json::from_value(json!({"approvals": [{"toolId": "script_chekc"}]})).unwrap();
        let scripts: ConfigMaps = [("checks".to_owned(), [("check.sh".to_owned(), "true".to_owned())].into())].into();
        let invalid = resolve_lists(validate(&skill).unwrap(), &scripts).unwrap_err();
        assert_eq!(invalid.reason, Reason::Invalid);
        let [fault] = invalid.faults.as_slice() else { panic!("{:?}", invalid.faults) };
        assert!(
            fault.starts_with("spec.policy.approvals[0].toolId: ") && fault.contains("\"script_check\""),
            "{fault}"
        );
    }

    fn holding(value: String) -> ConfigMaps {
        [("bank-lists".to_owned(), [("payees".to_owned(), value)].into())].into()
    }

    #[test]
    fn the_texts_of_a_config_map_are_part_of_the_spec() {
        let valid = resolved(&holding("ada\nbob\n".to_owned())).unwrap();
        let policy = valid.spec.policy.unwrap();
        assert_eq!(policy.lists["payees"], ["ada", "bob"]);
        assert!(policy.lists_from.is_empty());
    }

    #[test]
    fn a_missing_config_map_may_appear() {
        let invalid = resolved(&ConfigMaps::new()).unwrap_err();
        let fault = "spec.policy.listsFrom.payees: the ConfigMap bank-lists does not exist: create it, and the Skill becomes \
                     ready by itself.";
        assert_eq!(invalid, InvalidSkill { reason: Reason::ListNotFound, faults: vec![fault.to_owned()] });
    }

    #[test]
    fn scripts_without_their_config_map_wait_for_it() {
        let mut skill = fixtures::with_scripts();
        skill.spec.scripts.as_mut().unwrap().config_map = Some("checks".into());
        let resolved = |config_maps: &ConfigMaps| resolve_lists(validate(&skill).unwrap(), config_maps);
        let invalid = resolved(&ConfigMaps::new()).unwrap_err();
        assert_eq!(invalid.reason, Reason::ScriptsNotFound);
        assert!(
            invalid.faults[0].starts_with("spec.scripts.configMap: the ConfigMap checks does not exist: create it")
        );
        let with = |file: &str| -> ConfigMaps {
            [("checks".to_owned(), [(file.to_owned(), "exit 0".to_owned())].into())].into()
        };
        let invalid = resolved(&with("check.sh")).unwrap_err();
        assert_eq!(invalid.reason, Reason::Invalid);
        assert!(invalid.faults[0].ends_with("which is also in files: remove one of them."), "{:?}", invalid.faults);
        let files = resolved(&with("more.sh")).unwrap().spec.scripts.unwrap().files;
        assert_eq!(files.into_keys().collect::<Vec<_>>(), ["check.py", "check.sh", "more.sh"]);
    }

    #[test]
    fn a_person_has_to_shorten_a_list() {
        let invalid = resolved(&holding("ada\n".repeat(501))).unwrap_err();
        assert_eq!(invalid.reason, Reason::Invalid);
        assert!(invalid.faults[0].ends_with("a list has at most 500: shorten it."), "{:?}", invalid.faults);
    }
}
