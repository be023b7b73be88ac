//! Attempts that freeze between reading and linking, in random orders.

use super::*;

/// One attempt. It takes one step at a time, so it can be frozen between any two steps.
struct Attempt {
    store: Store<Disk>,
    chain: Chain,
    has_claimed: bool,
    is_superseded: bool,
    /// Whether the attempt has read the log since it last tried to claim an epoch.
    has_read: bool,
}

impl Attempt {
    fn new(memory: &Path, n: usize) -> Self {
        let store = Store::open(Disk, memory, "k-1", &format!("uid-{n}")).unwrap();
        Self { store, chain: Chain::new(SOURCE), has_claimed: false, is_superseded: false, has_read: false }
    }

    /// Takes the next step, and returns the event that it made durable, if any.
    fn step(&mut self, n: usize) -> Option<Entry> {
        if self.is_superseded {
            return None;
        }
        if !self.has_claimed && !self.has_read {
            self.store.read(&mut self.chain, |_| ()).unwrap();
            self.has_read = true;
            return None;
        }
        let new_event = if self.has_claimed {
            event(n)
        } else {
            Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false }
        };
        let mut next = self.chain.clone();
        let (line, entry) = next.append(new_event, stamp()).unwrap();
        match self.store.add(entry.seq, format!("{line}\n").as_bytes()) {
            Ok(()) => {
                self.chain = next;
                if !self.has_claimed {
                    self.store.remove_leftovers_of_others(entry.seq);
                }
                self.has_claimed = true;
                Some(entry)
            }
            Err(Error::Superseded { .. }) => {
                self.is_superseded = self.has_claimed;
                self.has_read = false;
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_log_never_forks_and_keeps_acknowledged_events(steps in prop::collection::vec(0_usize..4, 1..60)) {
        let memory = tempfile::tempdir().unwrap();
        let mut attempts: Vec<Attempt> = (0..4).map(|n| Attempt::new(memory.path(), n)).collect();
        let reader = Store::open(Disk, memory.path(), "k-1", "reader").unwrap();
        let mut acknowledged = Vec::new();
        for (n, which) in steps.into_iter().enumerate() {
            if let Some(entry) = attempts[which].step(n) {
                acknowledged.push(entry);
                // Only one attempt can write. For all others, the name of the next segment already exists.
                prop_assert_eq!(&read_with(&reader).unwrap(), &acknowledged);
            }
        }
        prop_assert_eq!(read_with(&reader).unwrap(), acknowledged);
    }
}
