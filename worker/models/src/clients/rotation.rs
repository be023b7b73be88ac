//! The order in which the Models of one request are asked: as listed, those that recently gave no answer last.

use crate::error::REMEDY;
use bloomery_crds::text::bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest that one Model is asked in a row while another could be.
const MAX_SLOT: Duration = Duration::from_secs(30);

/// The longest text of all Models' failures together, in bytes. It becomes the message of an outcome.
const MAX_SUMMARY_BYTES: usize = 896;

/// The rotation of the Models of one request.
pub(super) struct Rotation<'a> {
    models: Vec<&'a str>,
    patience: Duration,
    /// The Models that were asked in this round.
    asked: BTreeSet<&'a str>,
    /// The Models that would fail again.
    excluded: BTreeSet<&'a str>,
    failures: BTreeMap<&'a str, String>,
}

/// The next Model to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slot<'a> {
    pub(super) model: &'a str,
    /// For how long to retry.
    pub(super) patience: Duration,
}

impl<'a> Rotation<'a> {
    pub(super) fn new(models: Vec<&'a str>, patience: Duration) -> Self {
        Self { models, patience, asked: BTreeSet::new(), excluded: BTreeSet::new(), failures: BTreeMap::new() }
    }

    /// Returns the next Model to ask, `elapsed` after the beginning. Returns `None` once each was asked and the patience is over, or
    /// all are excluded. Models in `deprioritized` come last in each round.
    pub(super) fn next(&mut self, elapsed: Duration, deprioritized: &[String]) -> Option<Slot<'a>> {
        let left = self.patience.saturating_sub(elapsed);
        let mut pending = self.pending();
        if pending.is_empty() && !self.asked.is_empty() && !left.is_zero() {
            self.asked.clear();
            pending = self.pending();
        }
        let is_deprioritized = |model: &&&str| deprioritized.iter().any(|name| name == *model);
        let model = pending.iter().find(|model| !is_deprioritized(model)).or(pending.first()).copied()?;
        self.asked.insert(model);
        let available = self.models.len() - self.excluded.len();
        let patience = if available > 1 { left.min(self.share()) } else { left };
        Some(Slot { model, patience })
    }

    /// The Models that can still be asked in this round.
    fn pending(&self) -> Vec<&'a str> {
        let is_pending = |model: &&&str| !self.asked.contains(**model) && !self.excluded.contains(**model);
        self.models.iter().filter(is_pending).copied().collect()
    }

    fn share(&self) -> Duration {
        let models = u32::try_from(self.models.len()).unwrap_or(u32::MAX).max(1);
        (self.patience / models).min(MAX_SLOT)
    }

    /// Notes that a Model gave no answer. If that `is_final`, it is not asked again.
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
        Slot { model, patience: SECOND * seconds }
    }

    #[test]
    fn one_model_has_all_the_patience() {
        let mut rotation = Rotation::new(vec!["a"], SECOND * 180);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 180)));
        assert_eq!(rotation.next(SECOND * 180, &[]), None);
    }

    #[test]
    fn several_are_asked_round_and_round_until_patience_is_over() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        for (elapsed, expected) in [(0, slot("a", 20)), (20, slot("b", 20)), (39, slot("a", 1)), (40, slot("b", 0))] {
            assert_eq!(rotation.next(SECOND * elapsed, &[]), Some(expected));
        }
        assert_eq!(rotation.next(SECOND * 40, &[]), None);
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 180);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 30)), "nobody holds the others up for long");
    }

    #[test]
    fn one_that_gave_no_answer_lately_is_asked_after_the_others() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        let resting = ["a".to_owned()];
        assert_eq!(rotation.next(Duration::ZERO, &resting), Some(slot("b", 20)));
        assert_eq!(rotation.next(SECOND, &resting), Some(slot("a", 20)));
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(Rotation::new(vec!["a", "b"], SECOND * 40).next(Duration::ZERO, &all), Some(slot("a", 20)));
    }

    #[test]
    fn one_that_refuses_is_out_and_the_last_has_what_is_left() {
        let mut rotation = Rotation::new(vec!["a", "b"], SECOND * 40);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 20)));
        rotation.note_failure("a", "A refuses.".into(), true);
        assert_eq!(rotation.next(SECOND, &[]), Some(slot("b", 39)));
        rotation.note_failure("b", "B is down.".into(), true);
        assert_eq!(rotation.next(SECOND * 2, &[]), None);
        let told = "No Model has answered in 2 s. A refuses. B is down. Mend that, and make the Job anew.";
        assert_eq!(rotation.summary(SECOND * 2), told);
    }

    #[test]
    fn everybody_has_a_turn_whatever_patience_there_is() {
        let mut rotation = Rotation::new(vec!["a", "b"], Duration::ZERO);
        assert_eq!(rotation.next(Duration::ZERO, &[]), Some(slot("a", 0)));
        assert_eq!(rotation.next(SECOND, &[]), Some(slot("b", 0)));
        assert_eq!(rotation.next(SECOND, &[]), None);
    }
}
