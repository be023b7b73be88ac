//! The lists of a Skill that come from ConfigMaps in the same file.

use crate::checked::CheckedDocument;
use crate::document::Document;
use crate::finding::{Finding, Severity};
use crate::tree::{Node, Value};
use bloomery_crds::lists::{self, ConfigMaps, Error, Fault};
use bloomery_crds::v1alpha1::SkillSpec;

/// Returns the data of the ConfigMaps among the documents of a file.
pub fn config_maps(documents: &[Document]) -> ConfigMaps {
    let text = |node: Option<&Node>| node.and_then(Node::text).map(str::to_owned);
    let read = |document: &Document| {
        let root = &document.root;
        let is_config_map = text(root.get("kind")).as_deref() == Some("ConfigMap");
        let name = text(root.get("metadata").and_then(|metadata| metadata.get("name"))).filter(|_| is_config_map)?;
        let entries = match root.get("data").map(|data| &data.value) {
            Some(Value::Map(entries)) => entries.as_slice(),
            _ => &[],
        };
        let data = entries.iter().filter_map(|entry| Some((entry.name.clone(), text(Some(&entry.node))?)));
        Some((name, data.collect()))
    };
    documents.iter().filter_map(read).collect()
}

/// Moves the texts of the lists of a Skill from the ConfigMaps of its file into the Skill, to run it without a cluster.
///
/// # Errors
/// All lists that cannot be used, each with its place in the document.
pub fn resolve(spec: &mut SkillSpec, root: &Node, config_maps: &ConfigMaps) -> Result<(), Vec<Finding>> {
    let finding = |fault: &Fault| match &fault.error {
        Error::ConfigMapNotFound(name) => {
            let message = format!("the ConfigMap {name} is not in this file");
            Finding::at_api_path(root, &fault.path, Severity::Error, message).hint(format!(
                "without a cluster, add the ConfigMap to the file as another document, after a line ---: kubectl get configmap \
                 {name} -o yaml"
            ))
        }
        error => Finding::at_api_path(root, &fault.path, Severity::Error, error.to_string()),
    };
    lists::resolve(spec, config_maps).map_err(|faults| faults.iter().map(finding).collect())
}

/// Returns an error for each list of a Skill that the ConfigMap in the same file cannot fill. A ConfigMap that is not in the file may be
/// in the cluster.
pub fn findings(checked: &CheckedDocument, config_maps: &ConfigMaps) -> Vec<Finding> {
    let Some(draft) = &checked.draft else { return Vec::new() };
    let faults = lists::resolve(&mut draft.spec.clone(), config_maps).err().unwrap_or_default();
    let in_file = faults.iter().filter(|fault| !matches!(fault.error, Error::ConfigMapNotFound(_)));
    let finding =
        |fault: &Fault| Finding::at_api_path(&draft.root, &fault.path, Severity::Error, fault.error.to_string());
    in_file.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImportOptions, check, yaml};
    use bloomery_crds::v1alpha1::Skill;

    const SKILL: &str = "\
apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: bank, namespace: acme}
spec:
  problem: {statement: x}
  policy:
    listsFrom:
      payees:
        configMapKeyRef: {name: bank-lists, key: payees}
";

    /// A file with the Skill and a ConfigMap with this data.
    fn with_data(data: &str) -> Vec<Document> {
        let config_map =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bank-lists}}\ndata: {data}\n---\n");
        yaml::read(format!("{config_map}{SKILL}").as_bytes()).documents
    }

    fn check_skill(documents: &[Document]) -> CheckedDocument {
        check(documents.last().unwrap(), &ImportOptions::default())
    }

    fn resolved(documents: &[Document]) -> Result<Skill, Vec<Finding>> {
        let checked = check_skill(documents);
        let mut skill = checked.skill.unwrap();
        resolve(&mut skill.spec, &checked.root, &config_maps(documents)).map(|()| skill)
    }

    #[test]
    fn a_config_map_of_the_file_fills_a_list() {
        let documents = with_data("{payees: \"ada\\nbob\"}");
        let policy = resolved(&documents).unwrap().spec.policy.unwrap();
        assert_eq!(policy.lists["payees"], ["ada", "bob"]);
        assert_eq!(findings(&check_skill(&documents), &config_maps(&documents)), []);
    }

    #[test]
    fn a_config_map_outside_of_the_file_is_an_error_only_without_a_cluster() {
        let documents = yaml::read(SKILL.as_bytes()).documents;
        assert_eq!(findings(&check_skill(&documents), &config_maps(&documents)), []);
        let found = resolved(&documents).unwrap_err();
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            finding.to_string(),
            "9:9: error: spec.policy.listsFrom.payees: the ConfigMap bank-lists is not in this file"
        );
        assert!(finding.hint.as_ref().unwrap().contains("kubectl get configmap bank-lists -o yaml"));
    }

    #[test]
    fn a_missing_key_is_an_error_of_the_file() {
        let documents = with_data("{payee: ada}");
        let message =
            "9:9: error: spec.policy.listsFrom.payees: the ConfigMap bank-lists has no key payees; it has payee";
        let (found, refused) =
            (findings(&check_skill(&documents), &config_maps(&documents)), resolved(&documents).unwrap_err());
        assert_eq!(found, refused);
        assert_eq!(found[0].to_string().split_once(": ").unwrap().1, message.split_once(": ").unwrap().1);
    }

    #[test]
    fn a_list_has_one_place() {
        let text = SKILL.replace("    listsFrom:", "    lists: {payees: [ada]}\n    listsFrom:");
        let found = check_skill(&yaml::read(text.as_bytes()).documents).findings;
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert!(finding.to_string().ends_with("a list is in lists or in listsFrom, not in both"), "{finding}");
    }
}
