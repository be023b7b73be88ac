//! The settings of a conversion.

use std::collections::BTreeMap;

/// The operating system of the image that runs the scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Os {
    /// Linux.
    #[default]
    Linux,
    /// Windows.
    Windows,
}

/// The settings that apply to all skills of a repository.
#[derive(Debug, Clone, Default)]
pub struct RepositoryOptions {
    /// The namespace to write into the manifests.
    pub namespace: Option<String>,
    /// The name of the Model of all Skills.
    pub model: Option<String>,
    /// The image that runs the scripts.
    pub script_image: Option<String>,
    /// The operating system of that image.
    pub os: Os,
    /// The first content of the memory bank of each Skill, by the names of the notes.
    pub notes: BTreeMap<String, String>,
}
