//! The shell round the engine: it performs what [`bloomery_engine::next`] asks for, and keeps the log.

pub mod attempt;
pub mod backoff;
pub mod continued;
pub mod driver;
pub mod ending;
pub mod epoch;
pub mod focus;
pub mod http;
pub mod inputs;
pub mod mcp;
pub mod model;
pub mod printer;
pub mod progress;
pub mod reach;
pub mod recent;
pub mod record;
pub mod report;
pub mod sentence;
pub mod settings;
pub mod skill_file;
pub mod stop;
pub mod telling;
pub mod tools;
pub mod trace;
pub mod waits;

#[cfg(test)]
mod fixture;
