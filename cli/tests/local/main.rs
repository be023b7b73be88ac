//! Local mode, as people use it: the real binary against the scripted model of the testkit, which refuses the requests that a
//! provider would refuse.
#![cfg(test)]

mod bad_input;
mod children;
mod codebase;
mod docs;
mod events;
mod get;
mod memory_bank;
mod migrate;
mod model_faults;
mod resume;
mod runs;
mod scripts;
mod seeds;
mod serve;
mod setup;
mod suite;
mod templates;
mod terminal;
mod tools;
mod unusable_memory;
mod validate;
