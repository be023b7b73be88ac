//! A call of a file tool: what its arguments have in common, and its time limit.

use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// The time limit of one call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The arguments of a file tool.
pub(crate) trait Call: DeserializeOwned {
    /// Returns the name of the resource that the call is for, if the call has one.
    fn resource(&self) -> Option<&str>;
}

/// The deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
}

impl Deadline {
    /// Returns the deadline of a call that starts now and may take this long.
    pub(crate) fn start(limit: Duration) -> Self {
        Self { at: Instant::now() + limit }
    }

    /// Returns the point in time.
    pub(crate) fn instant(&self) -> Instant {
        self.at
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() > self.at
    }
}
