//! The common argument and the time limit of all calls of file tools.

use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// The time limit of one call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The arguments of a file tool.
pub(crate) trait Call: DeserializeOwned {
    /// Returns the name of the resource in the call, if it has one.
    fn resource(&self) -> Option<&str>;
}

/// The deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
}

impl Deadline {
    /// Returns the deadline of a call that starts now.
    pub(crate) fn start(limit: Duration) -> Self {
        Self { at: Instant::now() + limit }
    }

    /// Returns the deadline as an instant.
    pub(crate) fn instant(&self) -> Instant {
        self.at
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() > self.at
    }
}
