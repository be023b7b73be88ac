//! Models the volume: a directory of segments. A power loss may lose everything that was not synced.

use crate::conversation::Line;
use std::collections::BTreeMap;

/// A segment under its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    pub lines: Vec<Line>,
    /// Whether its content survives a power loss.
    pub content_synced: bool,
    /// Whether its name survives a power loss.
    pub name_synced: bool,
}

/// The directory of one log. Temporary files are not modelled, because their names are unique and they are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Volume {
    pub segments: BTreeMap<usize, Segment>,
}

impl Volume {
    /// Returns the ends of the consecutive segments, as numbers of lines. A reader may stop at each of them.
    pub fn ends(&self) -> Vec<usize> {
        let mut ends = vec![0];
        let mut end = 0;
        while let Some(segment) = self.segments.get(&(end + 1)) {
            end += segment.lines.len();
            ends.push(end);
        }
        ends
    }

    /// Returns the log as a reader finds it.
    pub fn log(&self) -> Vec<Line> {
        self.fold(|_| true)
    }

    /// Returns the log after a power loss that loses everything unsynced.
    pub fn durable_log(&self) -> Vec<Line> {
        self.fold(|segment| segment.content_synced && segment.name_synced)
    }

    fn fold(&self, is_readable: impl Fn(&Segment) -> bool) -> Vec<Line> {
        let mut log = Vec::new();
        while let Some(segment) = self.segments.get(&(log.len() + 1)).filter(|segment| is_readable(segment)) {
            log.extend(&segment.lines);
        }
        log
    }

    /// Returns whether the log has a segment after a gap.
    pub fn has_gap(&self) -> bool {
        let ends = self.ends();
        self.segments.keys().any(|first| !ends.contains(&(first - 1)))
    }

    /// Syncs the directory, which makes all names durable.
    pub fn sync(&mut self) {
        for segment in self.segments.values_mut() {
            segment.name_synced = true;
        }
    }

    /// Returns the segments that a power loss may damage.
    pub fn at_risk(&self) -> Vec<usize> {
        let risky = |segment: &Segment| !segment.content_synced || !segment.name_synced;
        self.segments.iter().filter(|(_, segment)| risky(segment)).map(|(first, _)| *first).collect()
    }

    /// Simulates a power loss. The segments in `lost` lose everything that was not synced. The others keep it.
    pub fn lose_power(&mut self, lost: &[usize]) {
        for first in lost {
            if let Some(segment) = self.segments.get_mut(first) {
                segment.lines.fill(Line::Lost);
                if !segment.name_synced {
                    self.segments.remove(first);
                }
            }
        }
        for segment in self.segments.values_mut() {
            (segment.content_synced, segment.name_synced) = (true, true);
        }
    }
}
