//! The file systems that a Job binds, as core tools read and change them (`docs/explanation/design.md`, section 6), and the memory bank of a
//! slag ([`bank`]).
//!
//! Nothing outside a binding is reached: paths are plain names below one open handle, which `cap-std` keeps them to
//! whatever links say and whoever changes them meanwhile; and what is opened is looked at once it is open. Everything
//! blocks, and nothing takes long: the caller decides on which thread.

mod at;
pub mod bank;
mod edit;
mod fault;
mod glob;
mod hidden;
mod list;
mod marks;
mod overview;
mod patch;
mod place;
mod read;
mod replace;
mod root;
mod search;
mod secrets;
mod text;
mod walk;
mod way;
mod write;

pub use list::DEFAULT_DEPTH;
pub use marks::Marks;
pub use overview::{Overview, OverviewKind, Wanted};
pub use root::Binding;
pub use secrets::{Finder, Secrets, Spot};

use hidden::Hidden;
use root::Root;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tools of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Reads a part of a text file.
    Read,
    /// Lists what is in a directory.
    List,
    /// Finds lines in files.
    Search,
    /// Writes a file whole.
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

/// What a call says of itself, whatever its tool.
trait Call: DeserializeOwned {
    /// The resource that is meant.
    fn resource(&self) -> Option<&str>;
}

impl Workspace {
    /// The file systems that a Job binds, in the order of the Skill. Nothing is opened before a call.
    pub fn new(bindings: Vec<Binding>) -> Self {
        Self { bindings, ..Self::default() }
    }

    /// Keeps directories from all calls, with everything in them: by no path, link or other name are they listed, read
    /// or changed. They are those that are there now, whatever they are called later.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn hiding(self, dirs: &[&Path]) -> io::Result<Self> {
        Ok(Self { hidden: Some(Arc::new(Hidden::open(dirs)?)), ..self })
    }

    /// The same, which shows none of these secrets, and writes none of their marks in the place of one.
    #[must_use]
    pub fn minding(&self, secrets: impl Into<Secrets>) -> Self {
        Self { secrets: secrets.into(), ..self.clone() }
    }

    /// Answers a call. Arguments are those of the tool, as JSON.
    ///
    /// # Errors
    /// A sentence for the model: what could not be done, and what was done of it, if anything.
    pub fn call(&self, tool: Tool, arguments: &str) -> Result<String, String> {
        let clock = Clock::start(PATIENCE);
        match tool {
            Tool::Read => self.reading(arguments, |root, call| read::read(root, call, &clock)),
            Tool::List => self.reading(arguments, |root, call| list::list(root, call, &clock)),
            Tool::Search => self.reading(arguments, |root, call| search::search(root, call, &clock)),
            Tool::Write => self.writing(arguments, write::write),
            Tool::Edit => self.writing(arguments, edit::edit),
            Tool::Patch => self.writing(arguments, patch::patch),
        }
    }

    fn reading<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, String>,
    ) -> Result<String, String> {
        let call: C = parsed(arguments)?;
        let binding = self.binding(call.resource(), |_| true)?;
        answer(&self.open(binding)?, &call)
    }

    fn writing<C: Call>(
        &self,
        arguments: &str,
        answer: impl FnOnce(&Root, &C) -> Result<String, String>,
    ) -> Result<String, String> {
        let call: C = parsed(arguments)?;
        let binding = self.binding(call.resource(), |binding| !binding.read_only)?;
        if binding.read_only {
            return Err(format!("The resource `{}` is bound read-only; nothing was done.", binding.name));
        }
        answer(&self.open(binding)?, &call)
    }

    fn open(&self, binding: &Binding) -> Result<Root, String> {
        let mut root = Root::open(binding, self.hidden.as_ref())?;
        root.secrets = self.secrets.clone();
        Ok(root)
    }

    /// The binding that a call names; where it names none, the only one that serves.
    fn binding(&self, name: Option<&str>, serves: impl Fn(&Binding) -> bool) -> Result<&Binding, String> {
        if let Some(name) = name {
            let named = self.bindings.iter().find(|binding| binding.name == name);
            return named.ok_or_else(|| {
                let shown = place::shown(name);
                format!("The Job binds no file system {shown}, but {}.", self.names())
            });
        }
        let mut serving = self.bindings.iter().filter(|binding| serves(binding));
        match (serving.next(), serving.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(format!("Say which resource is meant: {}.", self.names())),
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

fn parsed<C: DeserializeOwned>(arguments: &str) -> Result<C, String> {
    serde_json::from_str(arguments).map_err(|error| format!("The arguments cannot be used: {error}."))
}

/// Bounds how long a call takes.
#[derive(Debug, Clone, Copy)]
struct Clock {
    deadline: Instant,
}

impl Clock {
    fn start(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience }
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_over(&self) -> bool {
        Instant::now() > self.deadline
    }
}

#[cfg(test)]
mod tests;
