//! What the tests of this crate share. The tests of bloomery-worker include these modules too.

pub(crate) mod failing;
#[allow(dead_code, reason = "the tests of bloomery-worker use the rest")]
pub(crate) mod faulty;
mod run;

pub(crate) use run::{SOURCE, run};
