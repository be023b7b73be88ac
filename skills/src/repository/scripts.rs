//! The scripts of a skill.

use super::options::Os;
use crate::finding::Finding;
use crate::tree::Place;
use bloomery_crds::scripts::is_file_name;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a script without its extension that needs no feature to name it.
const DEFAULT_STEM: &str = "script";

/// Returns the error about a script without an image, at the place that names the script, or of the file.
pub(super) fn without_image(place: Option<&Place>) -> Finding {
    const FAULT: &str = "a script needs an image with its interpreter";
    let finding = place.map_or_else(|| Finding::of_file(FAULT), |place| Finding::error(place, FAULT));
    finding.hint("name the image: --script-image IMAGE")
}

/// The scripts of a skill that fit an operating system.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// The files.
    pub(super) files: BTreeSet<String>,
    /// The files that another one replaces, with that file.
    pub(super) replaced: BTreeMap<String, String>,
    /// The files for another operating system that no other replaces.
    pub(super) foreign: BTreeSet<String>,
}

impl Selection {
    /// Returns the file that a feature uses if it names `script`.
    pub(super) fn used<'a>(&'a self, script: &'a str) -> &'a str {
        self.replaced.get(script).map_or(script, String::as_str)
    }
}

/// Selects the scripts of a skill: those that features name, and `script.*`. If a script is for another operating system, the one of
/// the same name for `os` replaces it. `files` are all files of the directory.
pub(super) fn select(files: &[String], named: &BTreeSet<String>, os: Os) -> Selection {
    let known: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let is_default =
        |file: &&str| file.split_once('.').is_some_and(|(stem, _)| stem == DEFAULT_STEM) && is_file_name(file);
    let defaults = known.iter().copied().filter(is_default);
    let named = named.iter().map(String::as_str).filter(|file| known.contains(file));
    let mut selection = Selection::default();
    for file in defaults.chain(named) {
        let (foreign, own) = match os {
            Os::Linux => (".ps1", ".sh"),
            Os::Windows => (".sh", ".ps1"),
        };
        let replacement = file.strip_suffix(foreign).map(|stem| {
            [own, ".py"]
                .into_iter()
                .map(|extension| format!("{stem}{extension}"))
                .find(|file| known.contains(file.as_str()))
        });
        match replacement {
            Some(Some(other)) => {
                selection.replaced.insert(file.to_owned(), other.clone());
                selection.files.insert(other);
            }
            Some(None) => {
                selection.foreign.insert(file.to_owned());
                selection.files.insert(file.to_owned());
            }
            None => _ = selection.files.insert(file.to_owned()),
        }
    }
    selection
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[rstest]
    #[case::of_linux("script.ps1 script.sh", "script.ps1", Os::Linux, "script.sh", "script.sh")]
    #[case::of_windows("script.ps1 script.sh", "script.sh", Os::Windows, "script.ps1", "script.ps1")]
    #[case::python_fits_both("script.ps1 script.py", "script.ps1", Os::Linux, "script.py", "script.py")]
    #[case::of_any_name("check.ps1 check.sh skill.md", "check.ps1", Os::Linux, "check.sh", "check.sh")]
    #[case::unnamed_ones("script.py script.sh other.sh", "script.sh", Os::Linux, "script.py script.sh", "script.sh")]
    #[case::only_a_foreign_one("script.ps1", "script.ps1", Os::Linux, "script.ps1", "script.ps1")]
    #[case::missing("skill.md", "script.sh", Os::Linux, "", "script.sh")]
    fn the_script_that_fits_the_image_is_selected(
        #[case] files: &str,
        #[case] named: &str,
        #[case] os: Os,
        #[case] expected: &str,
        #[case] used: &str,
    ) {
        let selection = select(&words(files), &words(named).into_iter().collect(), os);
        assert_eq!(selection.files, words(expected).into_iter().collect::<BTreeSet<_>>());
        assert_eq!(selection.used(named), used);
        assert_eq!(selection.foreign.contains("script.ps1"), expected == "script.ps1" && os == Os::Linux);
    }
}
