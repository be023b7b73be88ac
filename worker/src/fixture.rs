//! Fixtures for the tests of this crate.

pub(crate) mod desk;
pub(crate) mod frozen;
pub(crate) mod shop;
pub(crate) mod stand;
pub(crate) mod volatile;
