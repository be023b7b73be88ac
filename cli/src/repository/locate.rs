//! Finds the directory of a repository.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The variable with the path of the repository.
const REPOSITORY: &str = "MY_SKILLS_REPO";

/// The variable with the path of a directory of repositories.
const GROUP: &str = "SKILLS_GROUP_DIR";

/// The repository that the command line names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// The directory.
    pub dir: Option<&'a Path>,
    /// The name of a repository in a directory of repositories.
    pub name: Option<&'a str>,
}

impl Source<'_> {
    /// Returns the directory: the given one, that of `MY_SKILLS_REPO`, or the one of the given name in `SKILLS_GROUP_DIR`.
    ///
    /// # Errors
    /// If none of them is known, or the name is no name of a directory.
    pub fn directory(self, environment: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Error> {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        if let Some(dir) = self.dir {
            return Ok(dir.to_owned());
        }
        if let Some(dir) = variable(REPOSITORY) {
            return Ok(PathBuf::from(dir));
        }
        match (variable(GROUP), self.name) {
            (Some(_), Some(name)) if name.starts_with('.') || name.is_empty() || name.contains(['/', '\\']) => {
                Err(Error::usage(format!("--repo must be the name of a directory in {GROUP}, and is {name:?}")))
            }
            (Some(group), Some(name)) => Ok(Path::new(&group).join(name)),
            (Some(group), None) => Err(Error::usage(format!(
                "the repository of skills is not known: {GROUP} is {group:?}, and no repository in it is named: give --repo NAME, or \
                 set {REPOSITORY}"
            ))),
            (None, _) => Err(Error::usage(format!(
                "the repository of skills is not known: name its directory, or set {REPOSITORY} to its path, or {GROUP} to the \
                 directory that contains it and give --repo NAME"
            ))),
        }
    }
}

/// Returns a variable of the environment.
pub fn of_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn find(dir: Option<&str>, name: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
        let environment =
            |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned());
        let found = Source { dir: dir.map(Path::new), name }.directory(environment);
        found.map(|dir| dir.display().to_string()).map_err(|error| error.message)
    }

    static BOTH: [(&str, &str); 2] = [(REPOSITORY, "/own"), (GROUP, "/group")];

    #[rstest]
    #[case::the_argument(Some("/given"), None, &BOTH, "/given")]
    #[case::the_repository_first(None, Some("shop"), &BOTH, "/own")]
    #[case::then_the_group(None, Some("shop"), &BOTH[1..], "/group/shop")]
    #[case::empty_is_unset(None, Some("shop"), &[(REPOSITORY, ""), (GROUP, "/group")], "/group/shop")]
    fn the_first_known_directory_is_used(
        #[case] dir: Option<&str>,
        #[case] name: Option<&str>,
        #[case] variables: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        assert_eq!(find(dir, name, variables).as_deref(), Ok(expected));
    }

    #[test]
    fn without_any_the_error_names_both_variables() {
        for (name, variables) in [(None, &[][..]), (Some("shop"), &[][..]), (None, &BOTH[1..])] {
            let message = find(None, name, variables).unwrap_err();
            assert!([REPOSITORY, GROUP, "--repo NAME"].iter().all(|word| message.contains(word)), "{message}");
        }
    }

    #[rstest]
    #[case("..")]
    #[case("a/b")]
    #[case("")]
    #[case("/etc")]
    fn a_name_leads_to_no_other_directory(#[case] name: &str) {
        let message = find(None, Some(name), &BOTH[1..]).unwrap_err();
        assert!(message.contains("--repo must be the name of a directory"), "{message}");
    }
}
