//! Warnings about secrets that are too short to be redacted. To redact them would damage ordinary words that
//! contain them.

use super::mcp_environment;
use crate::local::run_document::RunDocument;
use bloomery_crds::run::{ModelEndpoint, ResourceSource};
use bloomery_redact::MIN_VALUE_BYTES;
use std::fs::File;
use std::io::Read;

/// The maximum size of a file that is checked, in bytes. A larger file cannot hold a short secret.
const MAX_READ_BYTES: u64 = 4096;

/// Returns a warning for each short secret. The warning does not contain the value.
pub fn warnings(document: &RunDocument, models: &[ModelEndpoint]) -> Vec<String> {
    let variables = document.program.iter().flat_map(mcp_environment::values);
    let variables = variables.map(|(name, value)| (format!("`options.mcp.env` {name}"), value.into_bytes()));
    let bound = document.part.resources.iter().filter_map(|resource| match &resource.source {
        ResourceSource::Secret(file) => Some((resource.name.clone(), read(&file.path)?)),
        _ => None,
    });
    let keys = models.iter().filter_map(|model| {
        let key = model.api_key.as_ref()?;
        Some((format!("the key of the model {}", model.name), read(&key.path)?))
    });
    let short = variables.chain(bound).chain(keys).filter(|(_, value)| is_short(value));
    short
        .map(|(name, _)| {
            format!(
                "{name}: the secret has fewer than {MIN_VALUE_BYTES} bytes. It is too short to be redacted from the log, the output and \
                 the prompts"
            )
        })
        .collect()
}

/// Returns whether a value is too short to be redacted.
fn is_short(value: &[u8]) -> bool {
    (1..MIN_VALUE_BYTES).contains(&value.trim_ascii().len())
}

/// Reads a file. Returns `None` if it cannot be read or is too large.
fn read(path: &str) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    File::open(path).ok()?.take(MAX_READ_BYTES + 1).read_to_end(&mut value).ok()?;
    (value.len() as u64 <= MAX_READ_BYTES).then_some(value)
}
