//! Starts Jobs of Skills, talks to them and shows them, from any program. It is the library below the command line and the gateway.
//!
//! A [`Runtime`] opens a tenant for a caller. A [`Tenant`] starts Jobs, sends them [`Input`], and reads them. The conversation of a Job
//! belongs to its log: a tenant that is dropped or opened again loses nothing.
//!
//! | a host wants to | method |
//! |---|---|
//! | begin | [`Runtime::open`] |
//! | stop | [`Tenant::close`] |
//! | start a Job | [`Tenant::start`], after [`Tenant::check_following`] if the host follows it |
//! | send a reply, a message, a decision or a cancellation | [`Tenant::send`] |
//! | list the Jobs | [`Tenant::jobs`] |
//! | read a projection of a Job | [`Tenant::status`], [`Tenant::timeline`], [`Tenant::model_context`], [`Tenant::open_requests`] |
//! | read the Skills again | [`Tenant::skills`] |
//! | list the tools of a Skill, after its policy | [`Tenant::tools`] |
//! | follow a Job | [`Tenant::events`] |
//!
//! Each projection has a method and a type of its own. The progress of workflows is in the status.
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
//! A program that starts a Job on this machine, and waits for its answer. `examples/embed.rs` shows its events, and answers its questions.
//!
//! ```no_run
//! use bloomery_embed::run::options::RunOptions;
//! use bloomery_embed::{Cursor, LocalRuntime, NewJob, Runtime, Tenant};
//! use futures::StreamExt;
//! use std::collections::BTreeMap;
//!
//! # async fn example() -> Result<(), bloomery_embed::Error> {
//! let runtime = LocalRuntime::new(BTreeMap::from([("local".to_owned(), RunOptions::new("memory"))]))?;
//! let tenant = runtime.open("local", "ada".to_owned()).await?;
//! // Jobs of an earlier process go on.
//! tenant.resume_jobs().await?;
//! let job = tenant.start(NewJob::new("Explain this program")).await?;
//! let mut events = tenant.events(&job, Cursor::START).await?;
//! while let Some(event) = events.next().await {
//!     println!("{}", event?.kind);
//! }
//! println!("{:?}", tenant.status(&job).await?.status.result);
//! // Parks all Jobs. They go on when their memory is opened again.
//! tenant.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A host that works with each runtime is generic over it:
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
//!
//! # The local runtime
//!
//! [`LocalRuntime`] drives Jobs in this process. Their logs are in the memory of their tenant, a directory. [`LocalRuntime::new`] has named
//! tenants, and [`LocalRuntime::for_directory`] has one for each directory in a directory. Tenants are isolated from each other.
//! [`LocalTenant::resume_jobs`] continues the Jobs that an earlier process has not ended.
//!
//! Input is durable when [`Tenant::send`] returns. All subscribers of a Job share one reader of its log. A subscriber that takes its events
//! too slowly gets an error of the kind [`ErrorKind::Unavailable`], and can subscribe again after its last event.
//!
//! Messages name an option as the field of [`run::options::RunOptions`] or, on a cluster, as the parameter of the request, so that a host can
//! replace it by its own word ([`text::with_option_names`]).

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
