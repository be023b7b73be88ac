//! The latest events of a Job, merged from all sources by their number. Everything in this module is a pure function of values.

use std::collections::BTreeMap;

/// The latest events of a Job, by number. Several sources add them: the logs of the pods, and readers of the whole log. They may add an
/// event more than once, and in any order.
#[derive(Debug)]
pub(super) struct Window<E> {
    /// The events, with their sizes in bytes.
    events: BTreeMap<u64, (E, usize)>,
    bytes: usize,
    max_bytes: usize,
    /// The number of events that no pod delivers any more.
    expected: u64,
    has_ended: bool,
}

/// The next action of a subscriber.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<E> {
    /// It takes the next events.
    Events(Vec<E>),
    /// It reads the past of the log: its next event is not in the window, and no pod delivers it.
    Past,
    /// It waits for a change of the window.
    Wait,
    /// It has all events of the Job.
    End,
}

impl<E: Clone> Window<E> {
    /// Creates a window that keeps at most this many bytes of events, but at least one event.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { events: BTreeMap::new(), bytes: 0, max_bytes, expected: 0, has_ended: false }
    }

    /// Adds an event. If the window is full, the oldest events are removed.
    pub(super) fn add(&mut self, seq: u64, event: E, bytes: usize) {
        if self.events.contains_key(&seq) {
            return;
        }
        self.events.insert(seq, (event, bytes));
        self.bytes += bytes;
        while self.bytes > self.max_bytes && self.events.len() > 1 {
            let Some((_, (_, removed))) = self.events.pop_first() else { return };
            self.bytes -= removed;
        }
    }

    /// Records that the log has this many events, which no pod delivers any more, and whether the Job has ended. Returns whether this
    /// is new.
    pub(super) fn expect(&mut self, events: u64, has_ended: bool) -> bool {
        let is_new = events > self.expected || (has_ended && !self.has_ended);
        self.expected = self.expected.max(events);
        self.has_ended |= has_ended;
        is_new
    }

    /// Returns the next action of a subscriber whose last event is `seq`. It takes at most `max` events at once.
    pub(super) fn after(&self, seq: u64, max: usize) -> Next<E> {
        let numbered = self.events.range(seq.saturating_add(1)..).zip(seq.saturating_add(1)..).take(max);
        let next: Vec<E> =
            numbered.take_while(|((at, _), wanted)| *at == wanted).map(|((_, (event, _)), _)| event.clone()).collect();
        if !next.is_empty() {
            return Next::Events(next);
        }
        let last = self.events.last_key_value().map_or(0, |(last, _)| *last);
        if last.max(self.expected) > seq {
            return Next::Past;
        }
        if self.has_ended { Next::End } else { Next::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(events: &[u64], max_bytes: usize) -> Window<u64> {
        let mut window = Window::new(max_bytes);
        for seq in events {
            window.add(*seq, *seq, 1);
        }
        window
    }

    #[test]
    fn a_gap_is_read_from_the_past() {
        let window = window(&[1, 2, 5], 9);
        assert_eq!(window.after(0, 9), Next::Events(vec![1, 2]));
        assert_eq!(window.after(0, 1), Next::Events(vec![1]));
        assert_eq!(window.after(2, 9), Next::Past);
        assert_eq!(window.after(4, 9), Next::Events(vec![5]));
        assert_eq!(window.after(5, 9), Next::Wait);
        assert_eq!(window.after(u64::MAX, 9), Next::Wait);
    }

    #[test]
    fn a_job_ends_after_its_last_event() {
        let mut window = window(&[1], 9);
        assert!(window.expect(3, true));
        assert!(!window.expect(2, true), "it is known");
        assert_eq!(window.after(1, 9), Next::Past);
        window.add(2, 2, 1);
        window.add(3, 3, 1);
        assert_eq!(window.after(1, 9), Next::Events(vec![2, 3]));
        assert_eq!(window.after(3, 9), Next::End);
    }

    #[test]
    fn a_full_window_keeps_the_latest_events() {
        let full = window(&[1, 2, 3, 4], 2);
        assert_eq!((full.after(1, 9), full.after(2, 9)), (Next::Past, Next::Events(vec![3, 4])));
        assert_eq!(window(&[1], 0).after(0, 9), Next::Events(vec![1]));
    }

    /// A source, as the numbers of the events that it adds: the log of a pod from some event on, which may lack lines and repeat others.
    fn sources(events: u64) -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(1..=events, 0..60)
    }

    proptest! {
        /// A subscriber receives each event once and in order, from any cursor, whatever the sources add and the window forgets. The past
        /// is a function of the log.
        #[test]
        fn a_subscriber_has_no_gap_and_no_duplicate(
            (events, added, cursor) in (1_u64..30).prop_flat_map(|events| (Just(events), sources(events), 0..=events)),
            max_bytes in 0_usize..12,
            batch in 1_usize..5,
            pulls in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut window = Window::new(max_bytes);
            let (mut seq, mut received) = (cursor, Vec::new());
            let mut added = added.into_iter();
            let mut pulls = pulls.into_iter();
            loop {
                if pulls.next() == Some(false) {
                    if let Some(event) = added.next() {
                        window.add(event, event, 1);
                    }
                    continue;
                }
                match window.after(seq, batch) {
                    Next::Events(next) => received.extend(next),
                    Next::Past => received.extend(seq + 1..=events),
                    Next::Wait => match added.next() {
                        Some(event) => window.add(event, event, 1),
                        None => {
                            window.expect(events, true);
                        }
                    },
                    Next::End => break,
                }
                seq = received.last().copied().unwrap_or(cursor);
            }
            prop_assert_eq!(received, (cursor + 1..=events).collect::<Vec<_>>());
        }
    }
}
