//! The order in which the Models of one request are asked: as listed, but Models that recently gave no answer come last.

use crate::error::REMEDY;
use bloomery_crds::text::bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest time for retries of one Model before the next Model is asked.
const MAX_SLOT: Duration = Duration::from_secs(30);

/// The longest text of all failures together, in bytes. The text becomes the message of an outcome.
const MAX_SUMMARY_BYTES: usize = 896;

/// The rotation of the Models of one request.
pub(super) struct Rotation<'a> {
    models: Vec<&'a str>,
    retry_time: Duration,
    /// The Models that were asked in this round.
    asked: BTreeSet<&'a str>,
    /// The Models for which a retry would fail again.
    excluded: BTreeSet<&'a str>,
    failures: BTreeMap<&'a str, String>,
}

/// The next Model to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slot<'a> {
    pub(super) model: &'a str,
    /// The time for retries.
    pub(super) retry_time: Duration,
}

impl<'a> Rotation<'a> {
    pub(super) fn new(models: Vec<&'a str>, retry_time: Duration) -> Self {
        Self { models, retry_time, asked: BTreeSet::new(), excluded: BTreeSet::new(), failures: BTreeMap::new() }
    }

    /// Returns the next Model to ask, at the time `elapsed` after the beginning. Models in `deprioritized` come last in each round.
    ///
    /// Returns `None` once every Model was asked and the time is over, or all Models are excluded.
    pub(super) fn next(&mut self, elapsed: Duration, deprioritized: &[String]) -> Option<Slot<'a>> {
        let left = self.retry_time.saturating_sub(elapsed);
        let mut pending = self.pending();
        if pending.is_empty() && !self.asked.is_empty() && !left.is_zero() {
            self.asked.clear();
            pending = self.pending();
        }
        let is_deprioritized = |model: &&&str| deprioritized.iter().any(|name| name == *model);
        let model = pending.iter().find(|model| !is_deprioritized(model)).or(pending.first()).copied()?;
        self.asked.insert(model);
        let available = self.models.len() - self.excluded.len();
        let retry_time = if available > 1 { left.min(self.slot_time()) } else { left };
        Some(Slot { model, retry_time })
    }

    /// Returns the Models that can still be asked in this round.
    fn pending(&self) -> Vec<&'a str> {
        let is_pending = |model: &&&str| !self.asked.contains(**model) && !self.excluded.contains(**model);
        self.models.iter().filter(is_pending).copied().collect()
    }

    /// Returns the retry time for one turn of a Model: an equal part of the whole time, at most [`MAX_SLOT`].
    fn slot_time(&self) -> Duration {
        let models = u32::try_from(self.models.len()).unwrap_or(u32::MAX).max(1);
        (self.retry_time / models).min(MAX_SLOT)
    }

    /// Records that a Model gave no answer. If the failure `is_final`, the Model is not asked again.
    pub(super) fn note_failure(&mut self, model: &'a str, message: String, is_final: bool) {
        self.failures.insert(model, message);
        if is_final {
            self.excluded.insert(model);
        }
    }

    /// Returns the failures of all Models as one text.
    pub(super) fn summary(&self, elapsed: Duration) -> String {
        let failures: Vec<&String> = self.models.iter().filter_map(|model| self.failures.get(model)).collect();
        let max_each = MAX_SUMMARY_BYTES / failures.len().max(1);
        let failures: Vec<String> = failures.into_iter().map(|failure| bounded(failure, max_each)).collect();
        format!("No Model has answered in {} s. {} {REMEDY}", elapsed.as_secs(), failures.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn slot(model: &str, seconds: u32) -> Slot<'_> {
        Slot { model, retry_time: SECOND * seconds }
    }

    #[test]
    fn a_single_model_gets_the_whole_time() {
        let mut rotation = Rotation::new(vec!["a"], SECOND * 180);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 180)));
        assert_eq!(rotation.next(SECOND * 180, &[]), None);
    }

    #[test]
    fn models_are_asked_in_turn_until_the_time_is_over() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        for (elapsed, expected) in [(0, slot("a", 20)), (20, slot("b", 20)), (39, slot("a", 1)), (40, slot("b", 0))] {
            assert_eq!(rotation.next(SECOND * elapsed, &[]), Some(expected));
        }
        assert_eq!(rotation.next(SECOND * 40, &[]), None);
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 180);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 30)), "each turn is limited");
    }

    #[test]
    fn a_model_that_recently_gave_no_answer_is_asked_last() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        let deprioritized = ["a".to_owned()];
        assert_eq!(rotation.next(Duration::ZERO, &deprioritized), Some(slot("b", 20)));
        assert_eq!(rotation.next(SECOND, &deprioritized), Some(slot("a", 20)));
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(Rotation::new(vec!["a", "b"], SECOND * 40).next(Duration::ZERO, &all), Some(slot("a", 20)));
    }

    #[test]
    fn a_model_that_refuses_is_excluded_and_the_last_one_gets_the_remaining_time() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 20)));
        rotation.note_failure("a", "A refuses.".into(), true);
        assert_eq!(rotation.next(SECOND, &[]), Some(slot("b", 39)));
        rotation.note_failure("b", "B is down.".into(), true);
        assert_eq!(rotation.next(SECOND * 2, &[]), None);
        let summary = "No Model has answered in 2 s. A refuses. B is down. Fix the cause, and start the Job again.";
        assert_eq!(rotation.summary(SECOND * 2), summary);
    }

    #[test]
    fn every_model_is_asked_once_even_without_time() {
        let mut rotation = Rotation::new(vec!["a", "b"], Duration::ZERO);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 0)));
        assert_eq!(rotation.next(SECOND, &[]), Some(slot("b", 0)));
        assert_eq!(rotation.next(SECOND, &[]), None);
    }
}
