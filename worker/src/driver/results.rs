//! Stores the result of a call. A large result goes to the focus cache, and the model sees an excerpt.

use crate::focus::FocusCache;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_engine::Event;
use bloomery_engine::event::CallId;
use bloomery_engine::offload::{MAX_INLINE_BYTES, Offload, excerpt, short_excerpt};
use bloomery_journal::{Error, files::Files};
use std::io;

/// Outcomes that came together, as they are recorded. A large answer is durable in the focus cache before it is; one
/// that cannot be kept is cut, because the call has happened all the same.
pub(super) fn kept(outcomes: Vec<Event>, focus: &FocusCache, files: &impl Files) -> Vec<Event> {
    let texts: Vec<&str> = outcomes.iter().filter_map(large).collect();
    let mut handles = focus.keep(files, &texts).into_iter();
    let recorded = |outcome: Event| {
        let handle = large(&outcome).and_then(|_| handles.next());
        bounded_outcome(outcome, handle)
    };
    outcomes.into_iter().map(recorded).collect()
}

/// The answer that is too large for the history.
fn large(outcome: &Event) -> Option<&str> {
    match outcome {
        Event::ToolCompleted { text, .. } if text.len() > MAX_INLINE_BYTES => Some(text),
        _ => None,
    }
}

/// An outcome that has room in the history. A large answer comes with its handle, or with why it has none.
fn bounded_outcome(outcome: Event, handle: Option<io::Result<Digest>>) -> Event {
    match (outcome, handle) {
        (Event::ToolCompleted { call, text }, Some(Ok(handle))) => {
            put_aside(call, &text, excerpt(&text, &handle), handle)
        }
        (Event::ToolCompleted { call, text }, Some(Err(error))) => {
            tracing::error!("a result of {} bytes cannot be kept in the focus cache: {error}", text.len());
            let note = format!("\n[cut: of {} bytes, the rest could not be kept]", text.len());
            Event::ToolCompleted { call, text: bounded(&text, MAX_INLINE_BYTES - note.len()) + &note }
        }
        (Event::ToolFailed { call, text }, _) => Event::ToolFailed { call, text: bounded(&text, MAX_INLINE_BYTES) },
        (Event::ToolIndeterminate { call, text }, _) => {
            Event::ToolIndeterminate { call, text: bounded(&text, MAX_INLINE_BYTES) }
        }
        (other, _) => other,
    }
}

/// Keeps earlier results, and says so.
///
/// # Errors
/// If one cannot be kept: the conversation has no room left for it, so it cannot go on here.
pub(super) fn offloaded(results: &[Offload<'_>], focus: &FocusCache, files: &impl Files) -> Result<Vec<Event>, Error> {
    let texts: Vec<&str> = results.iter().map(|result| result.text).collect();
    let recorded = |(result, handle): (&Offload<'_>, io::Result<Digest>)| {
        let handle = handle.map_err(|error| Error::from_io("keep a result in", focus.dir(), error))?;
        Ok(put_aside(result.call.clone(), result.text, short_excerpt(result.text, &handle), handle))
    };
    results.iter().zip(focus.keep(files, &texts)).map(recorded).collect()
}

fn put_aside(call: CallId, whole: &str, excerpt: String, handle: Digest) -> Event {
    let bytes = u64::try_from(whole.len()).unwrap_or(u64::MAX);
    Event::ResultOffloaded { call, handle, bytes, excerpt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focus::BUDGET;
    use bloomery_journal::files::Disk;

    fn id() -> CallId {
        CallId::new(7, 0)
    }

    fn completed(text: &str) -> Event {
        Event::ToolCompleted { call: id(), text: text.to_owned() }
    }

    #[test]
    fn a_large_answer_is_kept_before_it_is_recorded_and_read_by_its_handle() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", BUDGET);
        let text = "row\n".repeat(MAX_INLINE_BYTES);
        let recorded = kept(vec![completed(&text)], &focus, &Disk);
        let [Event::ResultOffloaded { handle, bytes, excerpt, .. }] = recorded.as_slice() else {
            panic!("not put aside")
        };
        assert_eq!(usize::try_from(*bytes).unwrap(), text.len());
        assert!(excerpt.len() < MAX_INLINE_BYTES && excerpt.contains(handle.as_str()), "{excerpt}");
        assert_eq!(focus.get(&Disk, handle), Some(text.into_bytes()));
    }

    #[test]
    fn an_answer_that_fits_stands_as_it_is() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", BUDGET);
        let text = "x".repeat(MAX_INLINE_BYTES);
        assert_eq!(kept(vec![completed(&text)], &focus, &Disk), [completed(&text)]);
        assert!(!focus.dir().exists());
    }

    #[test]
    fn answers_that_came_together_keep_their_places() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", BUDGET);
        let [one, other] = ["a", "b"].map(|text| text.repeat(2 * MAX_INLINE_BYTES));
        let recorded = kept(vec![completed(&one), completed("small"), completed(&other)], &focus, &Disk);
        let aside = |text: &String| {
            let handle = Digest::of_bytes(text.as_bytes());
            put_aside(id(), text, excerpt(text, &handle), handle)
        };
        let expected = [&one, &other].map(aside);
        assert_eq!(recorded, [expected[0].clone(), completed("small"), expected[1].clone()]);
    }

    #[test]
    fn an_answer_that_cannot_be_kept_has_happened_all_the_same() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(&memory.path().join("absent"), "uid-1", BUDGET);
        let recorded = kept(vec![completed(&"x".repeat(2 * MAX_INLINE_BYTES))], &focus, &Disk);
        let [Event::ToolCompleted { text, .. }] = recorded.as_slice() else { panic!("no outcome") };
        assert!(text.len() <= MAX_INLINE_BYTES && text.ends_with("the rest could not be kept]"), "{}", text.len());
        assert!(offloaded(&[Offload { call: &id(), text: "x" }], &focus, &Disk).is_err());
    }

    #[test]
    fn a_long_error_is_cut() {
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", BUDGET);
        let failed = Event::ToolFailed { call: id(), text: "x".repeat(2 * MAX_INLINE_BYTES) };
        let recorded = kept(vec![failed], &focus, &Disk);
        let [Event::ToolFailed { text, .. }] = recorded.as_slice() else { panic!("not failed") };
        assert!(text.len() <= MAX_INLINE_BYTES);
    }
}
