//! The limit of open files of the process. Some container runtimes start programs with 1024, which a busy endpoint exceeds.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to the most that the container runtime allows. Returns it, or `None` if there is none.
pub(super) fn raise_limit() -> Option<u64> {
    let allowed = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: allowed.maximum, ..allowed }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_becomes_the_most_that_is_allowed() {
        let limit = raise_limit();
        assert_eq!(limit, getrlimit(Resource::Nofile).maximum);
    }
}
