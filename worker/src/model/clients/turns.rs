//! Whose turn it is, where several Models may answer: in their order, those that gave no answer lately last.

use super::super::REMEDY;
use bloomery_crds::text::bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest that a Model is asked at a stretch while another could be.
const STRETCH: Duration = Duration::from_secs(30);

/// The longest text of all that the Models said, in bytes: it becomes an outcome.
const MAX_TOLD: usize = 896;

/// The turns of one question.
pub(super) struct Turns<'a> {
    models: Vec<&'a str>,
    patience: Duration,
    /// Who had a turn in this round.
    had: BTreeSet<&'a str>,
    /// Whom asking again is of no use.
    out: BTreeSet<&'a str>,
    said: BTreeMap<&'a str, String>,
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn<'a> {
    pub(super) model: &'a str,
    /// How long it is asked again.
    pub(super) patience: Duration,
}

impl<'a> Turns<'a> {
    pub(super) fn new(models: Vec<&'a str>, patience: Duration) -> Self {
        Self { models, patience, had: BTreeSet::new(), out: BTreeSet::new(), said: BTreeMap::new() }
    }

    /// The next turn, so long after the beginning; none once everybody had one and patience is over, or all are out.
    pub(super) fn next(&mut self, elapsed: Duration, resting: &[String]) -> Option<Turn<'a>> {
        let left = self.patience.saturating_sub(elapsed);
        let waiting = |turns: &Self| -> Vec<&'a str> {
            let models = turns.models.iter().filter(|model| !turns.had.contains(*model) && !turns.out.contains(*model));
            models.copied().collect()
        };
        let mut next = waiting(self);
        if next.is_empty() && !self.had.is_empty() && !left.is_zero() {
            self.had.clear();
            next = waiting(self);
        }
        let is_resting = |model: &&&str| resting.iter().any(|name| name == *model);
        let model = next.iter().find(|model| !is_resting(model)).or(next.first()).copied()?;
        self.had.insert(model);
        let others = self.models.len() - self.out.len();
        let patience = if others > 1 { left.min(self.share()) } else { left };
        Some(Turn { model, patience })
    }

    fn share(&self) -> Duration {
        let models = u32::try_from(self.models.len()).unwrap_or(u32::MAX).max(1);
        (self.patience / models).min(STRETCH)
    }

    /// Notes that a Model gave no answer.
    pub(super) fn failed(&mut self, model: &'a str, said: String, is_final: bool) {
        self.said.insert(model, said);
        if is_final {
            self.out.insert(model);
        }
    }

    /// What all of them said, in their order.
    pub(super) fn told(&self, elapsed: Duration) -> String {
        let said: Vec<&String> = self.models.iter().filter_map(|model| self.said.get(model)).collect();
        let each = MAX_TOLD / said.len().max(1);
        let said: Vec<String> = said.into_iter().map(|said| bounded(said, each)).collect();
        format!("No Model has answered in {} s. {} {REMEDY}", elapsed.as_secs(), said.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn turn(model: &str, seconds: u32) -> Turn<'_> {
        Turn { model, patience: SECOND * seconds }
    }

    #[test]
    fn one_model_has_all_the_patience() {
        let mut turns = Turns::new(vec!["a"], SECOND * 180);
        assert_eq!(turns.next(Duration::ZERO, &[]), Some(turn("a", 180)));
        assert_eq!(turns.next(SECOND * 180, &[]), None);
    }

    #[test]
    fn several_are_asked_round_and_round_until_patience_is_over() {
        let mut turns = Turns::new(vec!["a", "b"], SECOND * 40);
        for (elapsed, expected) in [(0, turn("a", 20)), (20, turn("b", 20)), (39, turn("a", 1)), (40, turn("b", 0))] {
            assert_eq!(turns.next(SECOND * elapsed, &[]), Some(expected));
        }
        assert_eq!(turns.next(SECOND * 40, &[]), None);
        let mut turns = Turns::new(vec!["a", "b"], SECOND * 180);
        assert_eq!(turns.next(Duration::ZERO, &[]), Some(turn("a", 30)), "nobody holds the others up for long");
    }

    #[test]
    fn one_that_gave_no_answer_lately_is_asked_after_the_others() {
        let mut turns = Turns::new(vec!["a", "b"], SECOND * 40);
        let resting = ["a".to_owned()];
        assert_eq!(turns.next(Duration::ZERO, &resting), Some(turn("b", 20)));
        assert_eq!(turns.next(SECOND, &resting), Some(turn("a", 20)));
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(Turns::new(vec!["a", "b"], SECOND * 40).next(Duration::ZERO, &all), Some(turn("a", 20)));
    }

    #[test]
    fn one_that_refuses_is_out_and_the_last_has_what_is_left() {
        let mut turns = Turns::new(vec!["a", "b"], SECOND * 40);
        assert_eq!(turns.next(Duration::ZERO, &[]), Some(turn("a", 20)));
        turns.failed("a", "A refuses.".into(), true);
        assert_eq!(turns.next(SECOND, &[]), Some(turn("b", 39)));
        turns.failed("b", "B is down.".into(), true);
        assert_eq!(turns.next(SECOND * 2, &[]), None);
        let told = "No Model has answered in 2 s. A refuses. B is down. Mend that, and make the Job anew.";
        assert_eq!(turns.told(SECOND * 2), told);
    }

    #[test]
    fn everybody_has_a_turn_whatever_patience_there_is() {
        let mut turns = Turns::new(vec!["a", "b"], Duration::ZERO);
        assert_eq!(turns.next(Duration::ZERO, &[]), Some(turn("a", 0)));
        assert_eq!(turns.next(SECOND, &[]), Some(turn("b", 0)));
        assert_eq!(turns.next(SECOND, &[]), None);
    }
}
