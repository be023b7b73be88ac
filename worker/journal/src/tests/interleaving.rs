//! Attempts that freeze anywhere between reading and linking, in every order that proptest thinks of.

use super::*;

/// One attempt, which may be let go on at any time.
struct Attempt {
    store: Store<Disk>,
    chain: Chain,
    epoch_begun: bool,
    dead: bool,
    /// Read the log, and has not tried to claim since.
    has_read: bool,
}

impl Attempt {
    fn new(memory: &Path, n: usize) -> Self {
        let store = Store::open(Disk, memory, "k-1", &format!("uid-{n}")).unwrap();
        Self { store, chain: Chain::new(SOURCE), epoch_begun: false, dead: false, has_read: false }
    }

    /// Goes one step on; gives the event that is durable now.
    fn step(&mut self, n: usize) -> Option<Entry> {
        if self.dead {
            return None;
        }
        if !self.epoch_begun && !self.has_read {
            self.store.read(&mut self.chain, |_| ()).unwrap();
            self.has_read = true;
            return None;
        }
        let happened = if self.epoch_begun { event(n) } else { Event::EpochStarted { epoch: 1, attempt: 1 } };
        let mut next = self.chain.clone();
        let (line, entry) = next.append(happened, stamp()).unwrap();
        match self.store.add(entry.seq, format!("{line}\n").as_bytes()) {
            Ok(()) => {
                self.chain = next;
                if !self.epoch_begun {
                    self.store.clear(entry.seq);
                }
                self.epoch_begun = true;
                // What lies there while others go on, which may remove it.
                self.store.tidy(entry.seq + 1);
                Some(entry)
            }
            Err(Error::Superseded { .. }) => {
                self.dead = self.epoch_begun;
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
    fn the_log_never_forks_and_keeps_what_it_acknowledged(steps in prop::collection::vec(0_usize..4, 1..60)) {
        let memory = tempfile::tempdir().unwrap();
        let mut attempts: Vec<Attempt> = (0..4).map(|n| Attempt::new(memory.path(), n)).collect();
        let reader = Store::open(Disk, memory.path(), "k-1", "reader").unwrap();
        let mut acknowledged = Vec::new();
        for (n, which) in steps.into_iter().enumerate() {
            if let Some(entry) = attempts[which].step(n) {
                acknowledged.push(entry);
                // One writer at a time: the others' next segment has a name that is taken.
                prop_assert_eq!(&read_with(&reader).unwrap(), &acknowledged);
            }
        }
        prop_assert_eq!(read_with(&reader).unwrap(), acknowledged);
    }
}
