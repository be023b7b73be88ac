//! The file tools, which read and change the file systems that a Job binds (`docs/explanation/design.md`, section 6), and the
//! memory bank of a skill directory ([`bank`]).
//!
//! No call reaches a file outside of its binding. Each binding is one open directory handle, and `cap-std` keeps all paths
//! below the handle, even if symbolic links lead elsewhere or other processes change directories during the call. Each check is
//! made on the open file, because another process may replace the file of that name at any time. All functions block for a
//! bounded time; the caller chooses the thread.

pub mod bank;
mod cached;
mod call;
mod edit;
mod error;
mod glob;
mod hidden_dirs;
mod list;
mod marks;
mod overview;
mod patch;
mod read;
mod replace;
mod resolve;
mod resolved_path;
mod resource_path;
mod root;
mod search;
mod secrets;
mod text;
mod walk;
mod write;

pub use error::Error;
pub use list::DEFAULT_DEPTH;
pub use marks::Marks;
pub use overview::{Overview, OverviewKind, OverviewSelection};
pub use root::Binding;
pub use secrets::{SecretFinder, SecretMatch, Secrets};

use cached::OpensAtOnce;
use call::{CALL_TIMEOUT, Call, Deadline};
use hidden_dirs::HiddenDirs;
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
    /// Replaces a text in a file.
    Edit,
    /// Applies a unified diff.
    Patch,
}

/// A binding, and what calls have noted about it.
#[derive(Debug, Clone)]
struct Bound {
    binding: Binding,
    opens_at_once: Arc<OpensAtOnce>,
}

/// The file systems that a Job binds.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    bindings: Vec<Bound>,
    hidden: Option<Arc<HiddenDirs>>,
    secrets: Secrets,
}

impl Workspace {
    /// Creates the workspace of a Job from its bindings, in the order of the Skill. Each call opens its file system.
    pub fn new(bindings: Vec<Binding>) -> Self {
        Self {
            bindings: bindings.into_iter().map(|binding| Bound { binding, opens_at_once: Arc::default() }).collect(),
            ..Self::default()
        }
    }

    /// Returns the same workspace with hidden directories. No call lists, reads or changes a hidden directory or anything in
    /// it, by any path or link, even if the directory is renamed later.
    ///
    /// # Errors
    /// If one of the directories cannot be opened.
    pub fn with_hidden_dirs(self, dirs: &[&Path]) -> io::Result<Self> {
        Ok(Self { hidden: Some(Arc::new(HiddenDirs::open(dirs)?)), ..self })
    }

    /// Returns the same workspace with secrets. The tools replace each secret by a mark in their answers, and refuse a content
    /// that would overwrite a secret with its mark.
    #[must_use]
    pub fn with_secrets(&self, secrets: impl Into<Secrets>) -> Self {
        Self { secrets: secrets.into(), ..self.clone() }
    }

    /// Answers a call of a tool. `arguments` is the JSON that the model sent.
    ///
    /// # Errors
    /// A message for the model: the failure, and any change that was made before it.
    pub fn call(&self, tool: Tool, arguments: &str) -> Result<String, Error> {
        let deadline = Deadline::start(CALL_TIMEOUT);
        match tool {
            Tool::Read => self.call_reading(arguments, |root, call| read::read(root, call, &deadline)),
            Tool::List => self.call_reading(arguments, |root, call| list::list(root, call, &deadline)),
            Tool::Search => self.call_reading(arguments, |root, call| search::search(root, call, &deadline)),
            Tool::Write => self.call_writing(arguments, write::write),
            Tool::Edit => self.call_writing(arguments, edit::edit),
            Tool::Patch => self.call_writing(arguments, patch::patch),
        }
    }

    /// Answers a call of [`Tool::Read`] without waiting: of a small file that the kernel has in memory, in a binding that an earlier call has
    /// opened. Returns `None` for any other call, also for one that fails: [`Workspace::call`] answers it, on a thread that may wait.
    pub fn read_at_once(&self, arguments: &str) -> Option<String> {
        let call: read::Arguments = parse_arguments(arguments).ok()?;
        let Bound { binding, opens_at_once } = self.binding(call.resource(), |_| true).ok()?;
        // Hidden directories are only found by opening one directory after the other.
        (opens_at_once.is_known() && self.hidden.is_none()).then(|| cached::read(binding, &call, &self.secrets))?
    }

    /// Answers a call of a tool that only reads.
    fn call_reading<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, Error>,
    ) -> Result<String, Error> {
        let call: C = parse_arguments(arguments)?;
        answer(&self.open(self.binding(call.resource(), |_| true)?)?, &call)
    }

    /// Answers a call of a tool that writes.
    fn call_writing<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, Error>,
    ) -> Result<String, Error> {
        let call: C = parse_arguments(arguments)?;
        let bound = self.binding(call.resource(), |binding| !binding.read_only)?;
        if bound.binding.read_only {
            return Err(
                format!("The resource `{}` is bound read-only. Nothing was changed.", bound.binding.name).into()
            );
        }
        answer(&self.open(bound)?, &call)
    }

    fn open(&self, Bound { binding, opens_at_once }: &Bound) -> Result<Root, Error> {
        let mut root = Root::open(binding, self.hidden.as_ref())?;
        root.secrets = self.secrets.clone();
        opens_at_once.note(&root.dir);
        Ok(root)
    }

    /// Returns the binding that a call names. Without a name, returns the only suitable binding.
    fn binding(&self, name: Option<&str>, is_suitable: impl Fn(&Binding) -> bool) -> Result<&Bound, Error> {
        if let Some(name) = name {
            let named = self.bindings.iter().find(|bound| bound.binding.name == name);
            return named.ok_or_else(|| {
                let name = resource_path::quote(name);
                format!("The Job binds no file system {name}. The bound file systems are: {}.", self.names()).into()
            });
        }
        let mut suitable = self.bindings.iter().filter(|bound| is_suitable(&bound.binding));
        match (suitable.next(), suitable.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(format!("The argument resource is missing. Set it to one of: {}.", self.names()).into()),
        }
    }

    fn names(&self) -> String {
        if self.bindings.is_empty() {
            return "none".to_owned();
        }
        let names: Vec<String> = self.bindings.iter().map(|bound| format!("`{}`", bound.binding.name)).collect();
        names.join(", ")
    }
}

fn parse_arguments<C: DeserializeOwned>(arguments: &str) -> Result<C, Error> {
    serde_json::from_str(arguments).map_err(|error| format!("The arguments are invalid: {error}.").into())
}

#[cfg(test)]
mod tests;
