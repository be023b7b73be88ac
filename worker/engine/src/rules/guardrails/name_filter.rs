//! A Bloom filter of names, for arguments with hundreds of fields of which few have a guardrail.

/// The number of 64-bit words in the filter. A thousand names set fewer than half of the 2,048 bits.
const FILTER_WORDS: usize = 32;

/// A set of names with false positives, but no false negatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NameFilter([u64; FILTER_WORDS]);

impl NameFilter {
    pub(super) fn insert(&mut self, name: &str) {
        let (word, bit) = locate(name);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    pub(super) fn may_contain(&self, name: &str) -> bool {
        let (word, bit) = locate(name);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// Returns the index of the word and the bit of a name. They depend on a hash of the name's length and its first and last eight
/// bytes, or of all bytes of a shorter name. The hash is equal on every machine.
fn locate(name: &str) -> (usize, u64) {
    let bytes = name.as_bytes();
    let (head, tail) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), 0),
    };
    let mixed = (head ^ tail.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // The upper five bits select one of the 32 words, the next six one of its 64 bits.
    let word = usize::try_from(mixed >> 59).unwrap_or_default();
    (word, 1 << (mixed >> 53 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_in_the_set_is_found(names in prop::collection::vec(".{0,20}", 0..50)) {
            let mut set = NameFilter::default();
            for name in &names {
                set.insert(name);
            }
            prop_assert!(names.iter().all(|name| set.may_contain(name)));
        }
    }

    #[test]
    fn most_names_outside_the_set_are_recognized() {
        let mut set = NameFilter::default();
        (0..1_000).for_each(|n| set.insert(&format!("field_{n}")));
        let false_positives = (0..1_000).filter(|n| set.may_contain(&format!("other_{n}"))).count();
        assert!(false_positives < 500, "{false_positives} of 1000");
    }
}
