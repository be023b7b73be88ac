//! The contract of Bloomery.
