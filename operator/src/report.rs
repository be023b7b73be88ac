//! The report endpoint.
