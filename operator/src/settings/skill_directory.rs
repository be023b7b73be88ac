//! The bounds of a Skill's directory in the memory, which workers keep.

use super::parse;
use bloomery_crds::skill_directory::{FOCUS_CACHE_BYTES, LOG_MAX_AGE_SECONDS, LOG_MAX_BYTES, LOG_MAX_COUNT};
use std::time::Duration;

/// The bounds of a Skill's directory in the memory.
#[derive(Debug, Clone, clap::Args)]
pub struct SkillDirectorySettings {
    /// Size of the large tool results that are kept, such as `256Mi`. The least recently used are removed first.
    #[arg(long, env = "BLOOMERY_FOCUS_CACHE_SIZE", default_value = "256Mi", value_parser = parse::bytes)]
    pub focus_cache_size: u64,
    /// Age from which on the log of an ended run is pruned, such as `720h`, if no Job needs it.
    #[arg(long, env = "BLOOMERY_LOG_MAX_AGE", default_value = "720h", value_parser = parse::duration)]
    pub log_max_age: Duration,
    /// Largest number of logs of ended runs. The oldest are pruned first.
    #[arg(long, env = "BLOOMERY_LOG_MAX_COUNT", default_value_t = LOG_MAX_COUNT)]
    pub log_max_count: u32,
    /// Largest size of all logs of ended runs, such as `1Gi`. The oldest are pruned first.
    #[arg(long, env = "BLOOMERY_LOG_MAX_SIZE", default_value = "1Gi", value_parser = parse::bytes)]
    pub log_max_size: u64,
}

impl SkillDirectorySettings {
    /// Returns the arguments of a worker that keeps the bounds. A default needs no argument, so a worker of an earlier version runs
    /// with the defaults.
    pub fn worker_args(&self) -> Vec<String> {
        let Self { focus_cache_size, log_max_age, log_max_count, log_max_size } = self;
        let bounds = [
            ("--focus-cache-bytes", *focus_cache_size, FOCUS_CACHE_BYTES),
            ("--log-max-age", log_max_age.as_secs(), LOG_MAX_AGE_SECONDS),
            ("--log-max-count", u64::from(*log_max_count), u64::from(LOG_MAX_COUNT)),
            ("--log-max-bytes", *log_max_size, LOG_MAX_BYTES),
        ];
        let others = bounds.into_iter().filter(|(_, value, default)| value != default);
        others.map(|(flag, value, _)| format!("{flag}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        bounds: SkillDirectorySettings,
    }

    fn worker_args(args: &[&str]) -> Vec<String> {
        Wrapper::parse_from([&["operator"], args].concat()).bounds.worker_args()
    }

    #[test]
    fn a_worker_receives_only_bounds_that_are_not_its_defaults() {
        assert_eq!(worker_args(&[]), [""; 0]);
        assert_eq!(worker_args(&["--focus-cache-size=1Gi"]), ["--focus-cache-bytes=1073741824"]);
        let logs = ["--log-max-age=2h", "--log-max-count=0", "--log-max-size=5k"];
        assert_eq!(worker_args(&logs), ["--log-max-age=7200", "--log-max-count=0", "--log-max-bytes=5000"]);
    }
}
