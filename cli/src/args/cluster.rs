//! What the commands take that speak with a cluster.

use super::invocation::Invocation;
use super::values::{Error, name, namespace};
use crate::local::DEFAULT_MEMORY;
use bloomery_skills::names::approver_fault;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// The longest reason that an Approval holds, in characters.
const MAX_REASON: usize = 1024;

/// Which cluster, and who asks: as kubectl has it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
#[group(skip)]
pub struct ClusterArgs {
    /// The namespace, instead of the context's
    #[arg(short, long, value_name = "NS", value_parser = namespace)]
    pub namespace: Option<String>,
    /// The context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig, instead of those that KUBECONFIG names, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Ask as this user, if you may impersonate them
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// ... and as one of this group; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub groups: Vec<String>,
}

impl ClusterArgs {
    /// Whether a cluster, or somebody who asks it, is named.
    fn names_one(&self) -> bool {
        let Self { namespace, context, kubeconfig, user, groups } = self;
        namespace.is_some() || context.is_some() || kubeconfig.is_some() || user.is_some() || !groups.is_empty()
    }
}

/// Where a Job is looked for: in a memory of this machine, or on a cluster.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct PlaceArgs {
    /// The memory of this machine [default: memory]
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["on_cluster", "namespace", "context", "kubeconfig", "user", "groups"])]
    pub memory: Option<PathBuf>,
    /// Ask the cluster; so do the options of one, and the name kubectl-bloomery
    #[arg(long = "cluster")]
    pub on_cluster: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// A memory, or a cluster.
#[derive(Debug)]
pub enum Place<'a> {
    /// The memory in a directory.
    Memory(&'a Path),
    /// The cluster.
    Cluster(&'a ClusterArgs),
}

impl PlaceArgs {
    /// Which of both is meant. `asks` says whether something else is given that only a cluster has.
    pub fn place(&self, invocation: Invocation, asks: bool) -> Place<'_> {
        match &self.memory {
            Some(memory) => Place::Memory(memory),
            None if asks || self.on_cluster || self.cluster.names_one() => Place::Cluster(&self.cluster),
            None => match invocation {
                Invocation::Standalone => Place::Memory(Path::new(DEFAULT_MEMORY)),
                Invocation::KubectlPlugin => Place::Cluster(&self.cluster),
            },
        }
    }
}

/// What `approve` and `deny` take.
#[derive(Debug, Args)]
#[command(
    after_help = "What is to be decided is shown on stderr: the tool, its arguments, what holds it and what led to it. At a terminal you are\n\
                  asked; elsewhere --yes is needed. The decision is yours, in your own name, and is never changed.\n\n\
                  Exit codes: 0 decided, 1 refused, or not decided, 2 no such Approval, or not clear which, 6 too late: it is decided, or\n\
                  has expired."
)]
pub struct DecideArgs {
    /// The Approval, or a Job that has one open Approval
    #[arg(value_name = "NAME|JOB", value_parser = name)]
    pub name: String,
    /// Why; the model is told why a call is denied
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,
    /// Decide without being asked
    #[arg(short, long)]
    pub yes: bool,
    /// Print the decided Approval for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What `can-approve` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "It asks whether you have the rights. The admission policy refuses some who have: service accounts and workers.\n\n\
                        Exit codes: 0 yes, 1 no, 2 it cannot be known."
)]
pub struct CanApproveArgs {
    /// The Approval, or a Job that has one open Approval
    #[arg(value_name = "NAME|JOB", value_parser = name, required_unless_present = "approver")]
    pub name: Option<String>,
    /// The approver, as Skills name it
    #[arg(long, value_name = "NAME", conflicts_with = "name", value_parser = approver)]
    pub approver: Option<String>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// A form of an object for programs, as kubectl has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectOutput {
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// The kind and the name
    Name,
}

/// A name as Skills have it. RBAC would take a rule without one as a rule for all.
fn approver(text: &str) -> Result<String, Error> {
    approver_fault(text).map_or_else(|| Ok(text.to_owned()), |fault| Err(Error(fault)))
}

fn reason(text: &str) -> Result<String, Error> {
    let length = text.chars().count();
    if length > MAX_REASON {
        return Err(Error(format!("has {length} characters; the limit is {MAX_REASON}")));
    }
    Ok(text.trim().to_owned())
}
