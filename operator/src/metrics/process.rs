//! The metrics of the operator's own process, under the names that Prometheus client libraries use.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::fs;

/// Reads `/proc/self` at each scrape. A value that cannot be read is left out.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let stat = Stat::read();
        let stat = stat.as_ref();
        if let Some(seconds) = stat.map(|stat| stat.cpu_seconds) {
            let counter = ConstCounter::new(seconds);
            let help = "CPU time of the process in seconds";
            counter.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, counter.metric_type())?)?;
        }
        let started_at = stat.and_then(|stat| Some(boot_time_seconds()? + stat.start_seconds_after_boot));
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory in bytes", stat.map(|stat| stat.resident_bytes)),
            ("process_start_time_seconds", "Start time in seconds since the Unix epoch", started_at),
            ("process_open_fds", "Open file descriptors", open_files()),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

/// The values of `/proc/self/stat`.
struct Stat {
    cpu_seconds: f64,
    start_seconds_after_boot: f64,
    resident_bytes: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Parses the line. Fields are counted after the command, which is in parentheses and may contain blanks (proc(5)).
    fn parse(line: &str) -> Option<Self> {
        let (_, after_command) = line.rsplit_once(')')?;
        let fields: Vec<&str> = after_command.split_whitespace().collect();
        // The first of these fields is number 3 in proc(5).
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u32>().ok().map(f64::from);
        let large_field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
        #[expect(clippy::cast_precision_loss, reason = "ticks per second and the page size are small numbers")]
        let (ticks, page) = (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / ticks,
            start_seconds_after_boot: large_field(22)? / ticks,
            resident_bytes: field(24)? * page,
        })
    }
}

fn boot_time_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn open_files() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 300 100 0 0 20 0 3 0 5000 10000000 250 184467";
        let stat = Stat::parse(line).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert!((stat.cpu_seconds - 400.0 / ticks).abs() < 1e-9);
        assert!((stat.start_seconds_after_boot - 5000.0 / ticks).abs() < 1e-9);
        assert!(stat.resident_bytes >= 250.0 * 4096.0);
    }

    #[test]
    fn the_own_process_can_be_read() {
        assert!(Stat::read().unwrap().resident_bytes > 0.0);
        assert!(open_files().unwrap() > 0.0 && boot_time_seconds().unwrap() > 0.0);
    }
}
