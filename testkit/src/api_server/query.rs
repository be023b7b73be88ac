//! The parameters of a list or a watch.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::target::Target;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Parameters {
    pub watch: bool,
    pub resource_version: Option<u64>,
    pub limit: Option<usize>,
    /// The index of the first item of the page.
    #[serde(rename = "continue")]
    pub first: Option<usize>,
    /// `metadata.name=<name>`. Other fields are not supported.
    field_selector: Option<String>,
    /// Requirements with commas between them: `<label>=<value>`, `<label>!=<value>` or `<label>`.
    label_selector: Option<String>,
    pub dry_run: Option<String>,
}

impl Parameters {
    /// Reads the query of a URL.
    ///
    /// # Panics
    /// A parameter has an invalid value.
    pub fn read(uri: &Uri) -> Self {
        match Query::try_from_uri(uri) {
            Ok(Query(parameters)) => parameters,
            Err(error) => panic!("{uri} cannot be read: {error}"),
        }
    }

    /// Returns whether the object at a path is in the collection and matches the selectors.
    pub fn selects(&self, collection: &Target, path: &str, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let name = self.field_selector.as_ref().and_then(|selector| selector.strip_prefix("metadata.name="));
        let has_label = |requirement: &str| match requirement.split_once('=') {
            Some((label, value)) => match label.strip_suffix('!') {
                Some(label) => metadata["labels"][label] != value,
                None => metadata["labels"][label] == value,
            },
            None => !metadata["labels"][requirement].is_null(),
        };
        collection.contains(path)
            && name.is_none_or(|name| metadata["name"] == name)
            && self.label_selector.as_ref().is_none_or(|selector| selector.split(',').all(has_label))
    }
}

/// Returns an object as `PartialObjectMetadata`, which has only the metadata.
pub(super) fn only_metadata(object: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"],
    })
}
