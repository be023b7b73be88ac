//! Stores large results of calls in the focus cache. The model sees an excerpt of them.

use crate::focus::FocusCache;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_engine::Event;
use bloomery_engine::offload::{MAX_INLINE_BYTES, Offload, excerpt, offloaded, short_excerpt};
use bloomery_journal::{Error, files::Files};
use std::io;

/// Returns the outcomes of calls in the form in which they are recorded. A large answer is stored in the focus cache, and its outcome
/// becomes an excerpt. A large answer that cannot be stored is cut.
pub(super) fn store_large(outcomes: Vec<Event>, focus: &FocusCache, files: &impl Files) -> Vec<Event> {
    let texts: Vec<&str> = outcomes.iter().filter_map(large_answer).collect();
    let mut handles = focus.keep(files, &texts).into_iter();
    let recorded = |outcome: Event| {
        let handle = large_answer(&outcome).and_then(|_| handles.next());
        bounded_outcome(outcome, handle)
    };
    outcomes.into_iter().map(recorded).collect()
}

/// Returns the answer of a call, if it is too large for the history.
fn large_answer(outcome: &Event) -> Option<&str> {
    match outcome {
        Event::ToolCompleted { text, .. } if text.len() > MAX_INLINE_BYTES => Some(text),
        _ => None,
    }
}

/// Returns an outcome that fits into the history. `handle` is the handle of a large answer, or the error of storing it.
fn bounded_outcome(outcome: Event, handle: Option<io::Result<Digest>>) -> Event {
    match (outcome, handle) {
        (Event::ToolCompleted { call, text }, Some(Ok(handle))) => {
            offloaded(call, &text, excerpt(&text, &handle), handle)
        }
        (Event::ToolCompleted { call, text }, Some(Err(error))) => {
            tracing::error!("a result of {} bytes cannot be stored in the focus cache: {error}", text.len());
            let note = format!("\n[cut: the rest of {} bytes could not be stored]", text.len());
            Event::ToolCompleted { call, text: bounded(&text, MAX_INLINE_BYTES - note.len()) + &note }
        }
        (Event::ToolFailed { call, text }, _) => Event::ToolFailed { call, text: bounded(&text, MAX_INLINE_BYTES) },
        (Event::ToolIndeterminate { call, text }, _) => {
            Event::ToolIndeterminate { call, text: bounded(&text, MAX_INLINE_BYTES) }
        }
        (other, _) => other,
    }
}

/// Moves results of earlier calls to the focus cache. Returns the events that record this.
///
/// # Errors
/// If a result cannot be stored. The conversation cannot continue then, because its history is too large for the model.
pub(super) fn offload(results: &[Offload<'_>], focus: &FocusCache, files: &impl Files) -> Result<Vec<Event>, Error> {
    let texts: Vec<&str> = results.iter().map(|result| result.text).collect();
    let recorded = |(result, handle): (&Offload<'_>, io::Result<Digest>)| {
        let handle = handle.map_err(|error| Error::from_io("store a result in", focus.dir(), error))?;
        Ok(offloaded(result.call.clone(), result.text, short_excerpt(result.text, &handle), handle))
    };
    results.iter().zip(focus.keep(files, &texts)).map(recorded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focus::DEFAULT_BUDGET_BYTES;
    use bloomery_engine::event::CallId;
    use bloomery_journal::files::Disk;

    fn id() -> CallId {
        CallId::new(7, 0)
    }

    fn completed(text: &str) -> Event {
        Event::ToolCompleted { call: id(), text: text.to_owned() }
    }

    #[test]
    fn a_large_answer_is_stored_and_read_by_its_handle() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
        let text = "row\n".repeat(MAX_INLINE_BYTES);
        let recorded = store_large(vec![completed(&text)], &focus, &Disk);
        let [Event::ResultOffloaded { handle, bytes, excerpt, .. }] = recorded.as_slice() else {
            panic!("not offloaded")
        };
        assert_eq!(usize::try_from(*bytes).unwrap(), text.len());
        assert!(excerpt.len() < MAX_INLINE_BYTES && excerpt.contains(handle.as_str()), "{excerpt}");
        assert_eq!(focus.get(&Disk, handle), Some(text.into_bytes()));
    }

    #[test]
    fn a_small_answer_is_not_changed() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
        let text = "x".repeat(MAX_INLINE_BYTES);
        assert_eq!(store_large(vec![completed(&text)], &focus, &Disk), [completed(&text)]);
        assert!(!focus.dir().exists());
    }

    #[test]
    fn the_outcomes_of_several_calls_keep_their_order() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
        let [one, other] = ["a", "b"].map(|text| text.repeat(2 * MAX_INLINE_BYTES));
        let recorded = store_large(vec![completed(&one), completed("small"), completed(&other)], &focus, &Disk);
        let expected_event = |text: &String| {
            let handle = Digest::of_bytes(text.as_bytes());
            offloaded(id(), text, excerpt(text, &handle), handle)
        };
        let expected = [&one, &other].map(expected_event);
        assert_eq!(recorded, [expected[0].clone(), completed("small"), expected[1].clone()]);
    }

    #[test]
    fn a_large_answer_that_cannot_be_stored_is_cut() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(&memory.path().join("absent"), "uid-1", DEFAULT_BUDGET_BYTES);
        let recorded = store_large(vec![completed(&"x".repeat(2 * MAX_INLINE_BYTES))], &focus, &Disk);
        let [Event::ToolCompleted { text, .. }] = recorded.as_slice() else { panic!("no outcome") };
        assert!(text.len() <= MAX_INLINE_BYTES && text.ends_with("bytes could not be stored]"), "{}", text.len());
        assert!(offload(&[Offload { call: &id(), text: "x" }], &focus, &Disk).is_err());
    }

    #[test]
    fn a_long_error_is_cut() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
        let failed = Event::ToolFailed { call: id(), text: "x".repeat(2 * MAX_INLINE_BYTES) };
        let recorded = store_large(vec![failed], &focus, &Disk);
        let [Event::ToolFailed { text, .. }] = recorded.as_slice() else { panic!("not failed") };
        assert!(text.len() <= MAX_INLINE_BYTES);
    }
}
