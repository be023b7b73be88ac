//! A quick no: arguments hold hundreds of names, and hardly one of them is of a guardrail.

/// Words of the set: 2,048 bits, so that a thousand names leave more than half of them clear.
const WORDS: usize = 32;

/// A set of names that may take a name for one of its own, but never misses one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names([u64; WORDS]);

impl Names {
    pub(super) fn insert(&mut self, name: &str) {
        let (word, bit) = place(name);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    pub(super) fn may_hold(&self, name: &str) -> bool {
        let (word, bit) = place(name);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// A fixed mixture of a name's beginning, end and length: the same on every machine and at every replay.
fn place(name: &str) -> (usize, u64) {
    let bytes = name.as_bytes();
    let (head, tail) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), 0),
    };
    let mixed = (head ^ tail.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = usize::try_from(mixed >> 59).unwrap_or_default();
    (word, 1 << (mixed >> 53 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_of_the_set_is_missed(names in prop::collection::vec(".{0,20}", 0..50)) {
            let mut set = Names::default();
            for name in &names {
                set.insert(name);
            }
            prop_assert!(names.iter().all(|name| set.may_hold(name)));
        }
    }

    #[test]
    fn most_other_names_are_told_apart() {
        let mut set = Names::default();
        (0..1_000).for_each(|n| set.insert(&format!("field_{n}")));
        let taken = (0..1_000).filter(|n| set.may_hold(&format!("other_{n}"))).count();
        assert!(taken < 500, "{taken} of 1000");
    }
}
