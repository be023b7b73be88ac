//! Runs the engine: performs the acts that [`bloomery_engine::next`] returns, and appends their events to the log.

pub mod attempt;
pub mod children;
pub mod continued;
pub mod driver;
pub mod ended_run;
pub mod ending;
pub mod epoch;
pub mod focus;
pub mod housekeeping;
pub mod inputs;
pub mod limit_ledger;
pub mod log_reader;
pub mod migration;
pub mod printer;
pub mod probe;
pub mod reclaim;
pub mod record;
pub mod report;
pub mod settings;
pub mod shared_cache;
pub mod skill_file;
pub mod stop;
pub mod tool_list_cache;
pub mod tools;
pub mod trace;
pub mod validation;

#[cfg(test)]
mod fixture;
