//! The file tools: they read and change the file systems that a Job binds (`docs/explanation/design.md`, section 6). And the
//! memory bank of a skill directory ([`bank`]).
//!
//! No call leaves its binding. Paths are plain names below one open handle, and `cap-std` keeps them below it even if symbolic
//! links lead elsewhere or other processes change them meanwhile. Checks apply to what is open, not to its name. All functions
//! block, for a bounded time; the caller chooses the thread.

mod at;
pub mod bank;
mod call;
mod edit;
mod error;
mod glob;
mod hidden;
mod list;
mod marks;
mod overview;
mod patch;
mod place;
mod read;
mod replace;
mod resolve;
mod root;
mod search;
mod secrets;
mod text;
mod walk;
mod write;

pub use error::Error;
pub use list::DEFAULT_DEPTH;
pub use marks::Marks;
pub use overview::{Overview, OverviewKind, Wanted};
pub use root::Binding;
pub use secrets::{Finder, Secrets, Spot};

use call::{CALL_TIMEOUT, Call, Deadline};
use hidden::Hidden;
use root::Root;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The tools of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Reads a part of a text file.
    Read,
    /// Lists a directory.
    List,
    /// Finds lines in files.
    Search,
    /// Writes a complete file.
    Write,
    /// Replaces one place in a file.
    Edit,
    /// Applies a unified diff.
    Patch,
}

/// The file systems that a Job binds.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    bindings: Vec<Binding>,
    hidden: Option<Arc<Hidden>>,
    secrets: Secrets,
}

impl Workspace {
    /// Creates the workspace of a Job with its bindings, in the order of the Skill. A file system is opened by each call.
    pub fn new(bindings: Vec<Binding>) -> Self {
        Self { bindings, ..Self::default() }
    }

    /// Hides directories, with everything in them. No path, link or other name lists, reads or changes them, even if they are
    /// renamed later.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn hiding(self, dirs: &[&Path]) -> io::Result<Self> {
        Ok(Self { hidden: Some(Arc::new(Hidden::open(dirs)?)), ..self })
    }

    /// Returns the same workspace, which redacts these secrets, and refuses to write their marks in place of the secrets.
    #[must_use]
    pub fn with_secrets(&self, secrets: impl Into<Secrets>) -> Self {
        Self { secrets: secrets.into(), ..self.clone() }
    }

    /// Answers a call. `arguments` are those of the tool, as JSON.
    ///
    /// # Errors
    /// A message for the model: what failed, and what was done nevertheless.
    pub fn call(&self, tool: Tool, arguments: &str) -> Result<String, Error> {
        let deadline = Deadline::start(CALL_TIMEOUT);
        match tool {
            Tool::Read => self.reading(arguments, |root, call| read::read(root, call, &deadline)),
            Tool::List => self.reading(arguments, |root, call| list::list(root, call, &deadline)),
            Tool::Search => self.reading(arguments, |root, call| search::search(root, call, &deadline)),
            Tool::Write => self.writing(arguments, write::write),
            Tool::Edit => self.writing(arguments, edit::edit),
            Tool::Patch => self.writing(arguments, patch::patch),
        }
    }

    fn reading<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, Error>,
    ) -> Result<String, Error> {
        let call: C = parsed(arguments)?;
        let binding = self.binding(call.resource(), |_| true)?;
        answer(&self.open(binding)?, &call)
    }

    fn writing<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, Error>,
    ) -> Result<String, Error> {
        let call: C = parsed(arguments)?;
        let binding = self.binding(call.resource(), |binding| !binding.read_only)?;
        if binding.read_only {
            return Err(format!("The resource `{}` is bound read-only; nothing was done.", binding.name).into());
        }
        answer(&self.open(binding)?, &call)
    }

    fn open(&self, binding: &Binding) -> Result<Root, Error> {
        let mut root = Root::open(binding, self.hidden.as_ref())?;
        root.secrets = self.secrets.clone();
        Ok(root)
    }

    /// Returns the binding that a call names, or the only one that fits if it names none.
    fn binding(&self, name: Option<&str>, serves: impl Fn(&Binding) -> bool) -> Result<&Binding, Error> {
        if let Some(name) = name {
            let named = self.bindings.iter().find(|binding| binding.name == name);
            return named.ok_or_else(|| {
                let shown = place::shown(name);
                format!("The Job binds no file system {shown}, but {}.", self.names()).into()
            });
        }
        let mut serving = self.bindings.iter().filter(|binding| serves(binding));
        match (serving.next(), serving.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(format!("Say which resource is meant: {}.", self.names()).into()),
        }
    }

    fn names(&self) -> String {
        if self.bindings.is_empty() {
            return "none".to_owned();
        }
        let names: Vec<String> = self.bindings.iter().map(|binding| format!("`{}`", binding.name)).collect();
        names.join(", ")
    }
}

fn parsed<C: DeserializeOwned>(arguments: &str) -> Result<C, Error> {
    serde_json::from_str(arguments).map_err(|error| format!("The arguments cannot be used: {error}.").into())
}

#[cfg(test)]
mod tests;
