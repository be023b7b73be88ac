//! What the tests of this crate share.

pub(crate) mod desk;
#[path = "../journal/src/fixture/failing.rs"]
pub(crate) mod failing;
#[path = "../journal/src/fixture/faulty.rs"]
pub(crate) mod faulty;
pub(crate) mod frozen;
pub(crate) mod model_server;
pub(crate) mod operator;
#[path = "../journal/src/fixture/run.rs"]
mod run;
pub(crate) mod shop;
pub(crate) mod sound;
pub(crate) mod stand;
pub(crate) mod tls;
pub(crate) mod twelve_steps;
pub(crate) mod volatile;

pub(crate) use run::{SOURCE, run, skill};
