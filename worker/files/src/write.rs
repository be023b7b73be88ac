//! `write_file`: writes a whole file.

use crate::Error;
use crate::replace::{ExistingFile, Target, hard_links_sentence};
use crate::root::Root;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    content: String,
    #[serde(default)]
    create_directories: bool,
}

/// Answers a call of `write_file`.
///
/// # Errors
/// A message for the model. Nothing was written.
pub(crate) fn write(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let path = root.resource_path(arguments.path.as_deref())?;
    let target = Target::find(root, &path, arguments.create_directories)?;
    let content = arguments.content.as_bytes();
    let bytes = content.len();
    let old_bytes = target.existing.as_ref().map(ExistingFile::size);
    if old_bytes == Some(bytes as u64) && target.content()?.as_deref() == Some(content) {
        return Ok(format!("{} already has this content. Nothing was changed.", path.describe()));
    }
    let hard_links = hard_links_sentence(target.existing.as_ref());
    target.stage(content)?.commit()?;
    Ok(match old_bytes {
        Some(old_bytes) => format!("Wrote {}: {bytes} bytes in place of {old_bytes}.{hard_links}", path.describe()),
        None => format!("Wrote {}: a new file of {bytes} bytes.", path.describe()),
    })
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
