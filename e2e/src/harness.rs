//! The harness of the black-box stories. Each story runs on a real cluster, in its own namespace.
//!
//! ```no_run
//! # use bloomery_e2e::harness::{story, refund_of};
//! # async fn a_refund() {
//! story(async |tenant| {
//!     let shop = tenant.shop(&[refund_of("A-17")]).await;
//!     tenant.skill("cs-tier-1").await;
//!     let job = tenant.job("refund").goal("Refund order A-17").await;
//!     job.succeeded().await;
//!     shop.assert_refunded_once("A-17").await;
//! })
//! .await;
//! # }
//! ```
//!
//! The harness fails as tests do, by panicking. The message names the expected state and has the last state of
//! the object. A failed story prints the objects of its namespace and leaves the namespace behind.

pub mod admission;
mod approvals;
pub mod audit;
pub mod clock;
pub mod cluster;
pub mod command;
mod dump;
pub mod fake_nodes;
mod figures;
pub mod gateway;
mod job;
mod ledger;
pub mod machine;
mod model;
mod objects;
pub mod operator;
mod pods;
mod proxy;
pub mod reports;
mod shop;
mod skill;
mod story;
mod tenant;
mod wait;

pub use approvals::Person;
pub use bloomery_testkit::json::typed;
pub use bloomery_testkit::script::{
    Conversation, Turn, call, conversation, fails, price, raw_call, refund_after_question, refund_of, say, script_text,
};
pub use bloomery_testkit::skills::{refunds, supervised, tier_one};
pub use cluster::Cluster;
pub use figures::figure;
pub use job::{JobDraft, JobHandle};
pub use ledger::Ledger;
pub use model::{ModelDraft, ModelServer};
pub use objects::Refusal;
pub use shop::Shop;
pub use skill::{SkillDraft, SkillHandle};
pub use story::{benchmark, story, story_alone};
pub use tenant::Tenant;
pub use wait::{PATIENCE, eventually, gone, is_gone, until};
