//! `write_file`: writes a whole file.

use crate::Error;
use crate::replace::{Old, Target, other_names_sentence};
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

/// Answers a call.
///
/// # Errors
/// A message for the model; nothing was written.
pub(crate) fn write(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let place = root.place(arguments.path.as_deref())?;
    let target = Target::find(root, &place, arguments.create_directories)?;
    let content = arguments.content.as_bytes();
    let bytes = content.len();
    let had = target.old.as_ref().map(Old::size);
    if had == Some(bytes as u64) && target.content()?.as_deref() == Some(content) {
        return Ok(format!("{} holds exactly that already: nothing was changed.", place.shown()));
    }
    let others = other_names_sentence(target.old.as_ref());
    target.stage(content)?.commit()?;
    Ok(match had {
        Some(had) => format!("Wrote {}: {bytes} bytes in place of {had}.{others}", place.shown()),
        None => format!("Wrote {}: a new file of {bytes} bytes.", place.shown()),
    })
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
