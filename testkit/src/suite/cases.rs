//! The cases of the suite.

mod core_tools;
mod gates;
mod mishaps;
mod models;
mod people;
mod stages;

pub use core_tools::*;
pub use gates::*;
pub use mishaps::*;
pub use models::*;
pub use people::*;
pub use stages::*;

const GOAL: &str = "Refund order A-17, it arrived broken";
