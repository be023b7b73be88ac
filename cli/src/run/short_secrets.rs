//! Warnings about secrets that are too short to be redacted, because such short texts occur everywhere.

use super::mcp_environment;
use crate::local::run_document::RunDocument;
use bloomery_crds::run::{ModelEndpoint, ResourceSource};
use bloomery_redact::MIN_VALUE_BYTES;
use std::fs::File;
use std::io::Read;

/// The most that is read of a file, in bytes. Only short values matter.
const LOOKED_AT: u64 = 4096;

/// Returns a warning for each such secret, without its value.
pub fn warnings(document: &RunDocument, models: &[ModelEndpoint]) -> Vec<String> {
    let handed = document.program.iter().flat_map(mcp_environment::values);
    let handed = handed.map(|(name, value)| (format!("--mcp-env {name}"), value.into_bytes()));
    let bound = document.part.resources.iter().filter_map(|resource| match &resource.source {
        ResourceSource::Secret(file) => Some((resource.name.clone(), read(&file.path)?)),
        _ => None,
    });
    let keys = models.iter().filter_map(|model| {
        let key = model.api_key.as_ref()?;
        Some((format!("the key of the model {}", model.name), read(&key.path)?))
    });
    let short = handed.chain(bound).chain(keys).filter(|(_, value)| is_short(value));
    short
        .map(|(name, _)| {
            format!(
                "{name}: its value has fewer than {MIN_VALUE_BYTES} bytes, as ordinary words have: it is not redacted from the log, the \
                 output and the prompts"
            )
        })
        .collect()
}

fn is_short(value: &[u8]) -> bool {
    (1..MIN_VALUE_BYTES).contains(&value.trim_ascii().len())
}

/// Reads a file, unless it is too long.
fn read(path: &str) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    File::open(path).ok()?.take(LOOKED_AT + 1).read_to_end(&mut value).ok()?;
    (value.len() as u64 <= LOOKED_AT).then_some(value)
}
