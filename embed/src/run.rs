//! Jobs on this machine, without a cluster. On a cluster, the operator prepares a Job; here, [`prepare`] does. [`execute`] drives it with the
//! engine, the driver and the log of worker pods.

mod api_keys;
mod checked_tools;
mod credential;
pub mod epoch;
pub mod execute;
mod goal;
pub mod limits;
pub mod mcp_environment;
pub mod model;
mod model_file;
pub mod options;
pub mod prepare;
mod ram_key;
pub mod resources;
pub mod scripts;
pub mod server;
mod short_secrets;
pub mod skill;
mod templates;
mod vendor;
pub mod view;
