//! The volume: a directory of segments, of which a power loss keeps what was synced.

use crate::conversation::Line;
use std::collections::BTreeMap;

/// A segment under its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    pub lines: Vec<Line>,
    /// Its content survives a power loss.
    pub content_synced: bool,
    /// Its name survives a power loss.
    pub name_synced: bool,
}

/// The directory of one log. Temporary files are left out: each has a name of its own, and nobody reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Volume {
    pub segments: BTreeMap<usize, Segment>,
}

impl Volume {
    /// Where the segments that follow one another end, from the first line on: the places at which a reader may stop.
    pub fn ends(&self) -> Vec<usize> {
        let mut ends = vec![0];
        let mut end = 0;
        while let Some(segment) = self.segments.get(&(end + 1)) {
            end += segment.lines.len();
            ends.push(end);
        }
        ends
    }

    /// The log as a reader finds it.
    pub fn log(&self) -> Vec<Line> {
        self.fold(|_| true)
    }

    /// The log as it would be after a power loss that keeps nothing but what must be kept.
    pub fn durable_log(&self) -> Vec<Line> {
        self.fold(|segment| segment.content_synced && segment.name_synced)
    }

    fn fold(&self, counts: impl Fn(&Segment) -> bool) -> Vec<Line> {
        let mut log = Vec::new();
        while let Some(segment) = self.segments.get(&(log.len() + 1)).filter(|segment| counts(segment)) {
            log.extend(&segment.lines);
        }
        log
    }

    /// Whether a segment stands where no other ends.
    pub fn has_gap(&self) -> bool {
        let ends = self.ends();
        self.segments.keys().any(|first| !ends.contains(&(first - 1)))
    }

    pub fn sync(&mut self) {
        for segment in self.segments.values_mut() {
            segment.name_synced = true;
        }
    }

    /// The segments of which a power loss may take something.
    pub fn at_risk(&self) -> Vec<usize> {
        let risky = |segment: &Segment| !segment.content_synced || !segment.name_synced;
        self.segments.iter().filter(|(_, segment)| risky(segment)).map(|(first, _)| *first).collect()
    }

    /// The power is lost: of the segments at risk, those in `lost` lose what was not synced. The others had luck.
    pub fn lose(&mut self, lost: &[usize]) {
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
