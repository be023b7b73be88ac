//! Local mode, as people use it: the real binary against the scripted model of e2e, which refuses what a provider would.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod codebase;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod migrating;
#[cfg(test)]
mod model_faults;
#[cfg(test)]
mod people;
#[cfg(test)]
mod places;
#[cfg(test)]
mod remembering;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod stand;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tools;
