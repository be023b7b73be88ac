//! The traits of a runtime.

use crate::cursor::Cursor;
use crate::error::Error;
use crate::event::JobEvent;
use crate::input::Input;
use crate::job::{JobStatus, JobSummary, ModelContext, NewJob};
use crate::requests::OpenRequests;
use crate::skill::{SkillState, SkillTool};
use futures::Stream;
use std::future::ready;
use std::sync::Arc;

/// A runtime for Jobs: this machine, or a cluster.
///
/// A runtime has no rights of its own: each tenant is opened with the identity of a caller, and acts as this caller only.
pub trait Runtime: Send + Sync + 'static {
    /// The identity of a person or a program: its name on this machine, or its credentials for a cluster.
    type Caller: Send + 'static;
    /// The tenants.
    type Tenant: Tenant;

    /// Opens a tenant for a caller: a memory on this machine, or a namespace. Tenants do not see each other's Jobs.
    ///
    /// # Errors
    /// If there is no such tenant, or the caller may not use it.
    fn open(&self, tenant: &str, caller: Self::Caller) -> impl Future<Output = Result<Self::Tenant, Error>> + Send;
}

/// An open tenant of one caller. Clones share it.
pub trait Tenant: Clone + Send + Sync + 'static {
    /// The events of a Job, in order and without gaps. Subscribers share them.
    type Events: Stream<Item = Result<Arc<JobEvent>, Error>> + Send + 'static;

    /// Checks that the caller may start Jobs and follow their events. A host that follows the Job that it starts calls this first, so that a
    /// refusal has no effect. By default, every caller may.
    ///
    /// # Errors
    /// If a right is missing, or cannot be checked.
    fn check_following(&self) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// Starts a Job, and returns its key. The Job goes on without this tenant where the runtime can run it so.
    ///
    /// # Errors
    /// If the Job cannot be started, or its key belongs to a Job with other parameters. A Skill that does not exist is an error with its name,
    /// unless the runtime can create it from a template, or the caller may not read it. Nothing was started.
    fn start(&self, job: NewJob) -> impl Future<Output = Result<String, Error>> + Send;

    /// Sends input to a Job. Returns once the input is durable: it is not lost if the process ends. A cancellation is durable when the Job
    /// has ended. If no process drives the Job, one begins.
    ///
    /// # Errors
    /// If the input changes nothing: the Job has ended, the question is not open, or the call is not held with these arguments. If two
    /// people decide or answer at the same moment, the second one gets this error, with the name of the first if it is known.
    ///
    /// Also if the input is not durable in time, because a step of the Job goes on. The message says whether the Job still records it.
    fn send(&self, job: &str, input: Input) -> impl Future<Output = Result<(), Error>> + Send;

    /// Lists the Jobs of the tenant, sorted by Skill and key.
    ///
    /// # Errors
    /// If they cannot be read.
    fn jobs(&self) -> impl Future<Output = Result<Vec<JobSummary>, Error>> + Send;

    /// Returns the state of a Job.
    ///
    /// # Errors
    /// If there is no such Job, or its log cannot be read.
    fn status(&self, job: &str) -> impl Future<Output = Result<JobStatus, Error>> + Send;

    /// Returns the events of a Job so far.
    ///
    /// # Errors
    /// If there is no such Job, or its log cannot be read.
    fn timeline(&self, job: &str) -> impl Future<Output = Result<Vec<JobEvent>, Error>> + Send;

    /// Returns the conversation as the model reads it. It contains drafts: it is for the diagnosis of a Job, and no answer to its client.
    ///
    /// # Errors
    /// If there is no such Job, or its log cannot be read.
    fn model_context(&self, job: &str) -> impl Future<Output = Result<ModelContext, Error>> + Send;

    /// Returns the requests of a Job that wait for people. On a cluster, they are those of the status, which follows the log after a moment:
    /// before [`JobStatus::status`] counts an event, the requests do not include it.
    ///
    /// # Errors
    /// If there is no such Job, or its log cannot be read.
    fn open_requests(&self, job: &str) -> impl Future<Output = Result<OpenRequests, Error>> + Send;

    /// Reads the Skills of the tenant again, and returns them, sorted by name. No runtime keeps Skills between two Jobs, so the next Job
    /// uses what this call reads.
    ///
    /// # Errors
    /// If the Skills cannot be listed. A Skill that cannot be used is in the list, with its fault.
    fn skills(&self) -> impl Future<Output = Result<Vec<SkillState>, Error>> + Send;

    /// Lists the tools of a Skill that its policy, and the tool policy of the tenant, allow: the tools of its MCP server, its scripts, and the
    /// core tools of a Job that binds all its resources.
    ///
    /// # Errors
    /// If there is no such Skill, or its tools cannot be listed.
    fn tools(&self, skill: &str) -> impl Future<Output = Result<Vec<SkillTool>, Error>> + Send;

    /// Subscribes to the events of a Job after a cursor. The stream begins with the events so far, goes on with each new event as soon as it
    /// is durable, and ends with the Job. Dropping the stream ends the subscription.
    ///
    /// # Errors
    /// If there is no such Job, or its log cannot be read.
    fn events(&self, job: &str, after: Cursor) -> impl Future<Output = Result<Self::Events, Error>> + Send;

    /// Closes the tenant for all clones. Jobs that only this process drives are parked after their current step. They go on when they receive
    /// input, or the runtime continues them after a restart.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
