//! Arguments of the commands that use a cluster.

use super::invocation::Invocation;
use super::values::{Error, name, namespace};
use crate::local::DEFAULT_MEMORY;
use bloomery_skills::names::approver_fault;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// The maximum length of the reason for a decision, in characters.
const MAX_REASON_CHARS: usize = 1024;

/// The cluster and the user, with the options of kubectl.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
#[group(skip)]
pub struct ClusterArgs {
    /// The namespace [default: that of the context]
    #[arg(short, long, value_name = "NS", value_parser = namespace)]
    pub namespace: Option<String>,
    /// The context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig [default: those in KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Impersonate this user
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Impersonate this group; can be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub groups: Vec<String>,
}

impl ClusterArgs {
    /// Returns whether any option is given.
    fn is_given(&self) -> bool {
        let Self { namespace, context, kubeconfig, user, groups } = self;
        namespace.is_some() || context.is_some() || kubeconfig.is_some() || user.is_some() || !groups.is_empty()
    }
}

/// The options that select where Jobs are: in a memory on this machine, or on a cluster.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct PlaceArgs {
    /// The directory of the memory on this machine [default: memory]
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["on_cluster", "namespace", "context", "kubeconfig", "user", "groups"])]
    pub memory: Option<PathBuf>,
    /// Use the cluster. The options of a cluster and `kubectl bloomery` imply it
    #[arg(long = "cluster")]
    pub on_cluster: bool,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The place that the command line selects.
#[derive(Debug)]
pub enum Place<'a> {
    /// The memory in a directory.
    Memory(&'a Path),
    /// The cluster.
    Cluster(&'a ClusterArgs),
}

impl PlaceArgs {
    /// Returns the selected place. `needs_cluster` is true if the command line has another option that only a cluster
    /// supports.
    pub fn place(&self, invocation: Invocation, needs_cluster: bool) -> Place<'_> {
        match &self.memory {
            Some(memory) => Place::Memory(memory),
            None if needs_cluster || self.on_cluster || self.cluster.is_given() => Place::Cluster(&self.cluster),
            None => match invocation {
                Invocation::Standalone => Place::Memory(Path::new(DEFAULT_MEMORY)),
                Invocation::KubectlPlugin => Place::Cluster(&self.cluster),
            },
        }
    }
}

/// The arguments of `approve` and `deny`.
#[derive(Debug, Args)]
#[command(
    after_help = "Shows the held call on stderr: the tool, its arguments, the rules that hold it and the events before it. At a terminal\n\
                  you are asked to confirm; otherwise --yes is required. The decision is made in your own name and is final.\n\n\
                  Exit codes: 0 decided, 1 refused or not confirmed, 2 no such Approval, or several, 6 too late: already decided or\n\
                  expired."
)]
pub struct DecideArgs {
    /// The Approval, or a Job with one open Approval
    #[arg(value_name = "NAME|JOB", value_parser = name)]
    pub name: String,
    /// The reason. The model sees why a call is denied
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,
    /// Decide without confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Print the decided Approval in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `can-approve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Checks your RBAC rights only. The admission policy also refuses service accounts and workers.\n\n\
                        Exit codes: 0 yes, 1 no, 2 unknown."
)]
pub struct CanApproveArgs {
    /// The Approval, or a Job with one open Approval
    #[arg(value_name = "NAME|JOB", value_parser = name, required_unless_present = "approver")]
    pub name: Option<String>,
    /// The name of the approver in the Skill
    #[arg(long, value_name = "NAME", conflicts_with = "name", value_parser = approver)]
    pub approver: Option<String>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The output formats of objects, as in kubectl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectOutput {
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Kind and name
    Name,
}

/// Parses the name of an approver. It must not be empty: in an RBAC rule, an empty name means all approvers.
fn approver(text: &str) -> Result<String, Error> {
    approver_fault(text).map_or_else(|| Ok(text.to_owned()), |fault| Err(Error(fault)))
}

/// Parses the reason for a decision.
fn reason(text: &str) -> Result<String, Error> {
    let length = text.chars().count();
    if length > MAX_REASON_CHARS {
        return Err(Error(format!("has {length} characters; the limit is {MAX_REASON_CHARS}")));
    }
    Ok(text.trim().to_owned())
}
