//! Starts Jobs of Skills, talks to them and shows them, from any program. It is the library below the command line and the gateway.
//!
//! A [`Runtime`] opens a tenant for a caller. A [`Tenant`] starts Jobs, sends them [`Input`], and reads them. The conversation of a Job
//! belongs to its log: a tenant that is dropped or opened again loses nothing.
//!
//! | a host wants to | method |
//! |---|---|
//! | begin | [`Runtime::open`] |
//! | stop | [`Tenant::close`] |
//! | start a Job | [`Tenant::start`] |
//! | send a reply, a message, a decision or a cancellation | [`Tenant::send`] |
//! | list the Jobs | [`Tenant::jobs`] |
//! | read a projection of a Job | [`Tenant::status`], [`Tenant::timeline`], [`Tenant::model_context`], [`Tenant::open_requests`] |
//! | read the Skills again | [`Tenant::skills`] |
//! | list the tools of a Skill, after its policy | [`Tenant::tools`] |
//! | follow a Job | [`Tenant::events`] |
//!
//! Each projection has a method of its own, so that its type says what it holds. The progress of workflows is in the status.
//!
//! [`LocalRuntime`] runs Jobs in this process. [`ClusterRuntime`] uses the Kubernetes API with the credentials of each caller. The public
//! modules are the parts of the local runtime, and the access to a cluster, which the command line uses too.
//!
//! # Dispatch
//!
//! A host chooses its runtime when it is built or started, and uses no other one. So the traits have associated types and `async`
//! methods, and hosts are generic over [`Runtime`]. Calls are static: no future is boxed, the futures are [`Send`] wherever those of the
//! runtime are, and a host of one runtime does not contain the other one. The traits are therefore not `dyn`-compatible. A host that
//! chooses a runtime while it runs has a `match` around its start.
//!
//! # Example
//!
//! ```
//! use bloomery_embed::{Error, NewJob, Runtime, Tenant};
//!
//! /// Starts a Job, and returns its key.
//! async fn ask<R: Runtime>(runtime: &R, caller: R::Caller, goal: &str) -> Result<String, Error> {
//!     let tenant = runtime.open("acme", caller).await?;
//!     tenant.start(NewJob::new(goal)).await
//! }
//! ```

pub mod check;
pub mod choice;
pub mod cluster;
mod cluster_runtime;
mod cursor;
mod error;
mod event;
pub mod findings;
mod input;
mod job;
pub mod local;
mod local_runtime;
mod requests;
pub mod run;
mod runtime;
mod skill;
pub mod source;
pub mod text;

pub use cluster_runtime::{Caller, ClusterRuntime, ClusterTenant};
pub use cursor::{Cursor, InvalidCursor};
pub use error::{Error, ErrorKind, Errors};
pub use event::JobEvent;
pub use input::{Input, Ruling};
pub use job::{ContextTurn, JobStatus, JobSummary, ModelContext, NewJob};
pub use local_runtime::{LocalRuntime, LocalTenant};
pub use requests::{HeldCall, MissingRights, OpenRequests, Question};
pub use runtime::{Runtime, Tenant};
pub use skill::{SkillCondition, SkillFeature, SkillResource, SkillState, SkillTool};
