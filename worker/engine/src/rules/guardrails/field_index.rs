//! An index of fields by a hash of their name, for arguments with hundreds of fields of which few have a guardrail.

/// The number of 64-bit words in the filter. A thousand names set fewer than half of the 2,048 bits.
const FILTER_WORDS: usize = 32;

/// The thresholds of each field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FieldIndex {
    /// A Bloom filter of the names. It has false positives, but no false negatives.
    filter: [u64; FILTER_WORDS],
    /// Sorted by hash and name.
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    hash: u64,
    name: String,
    /// Indexes of thresholds, in ascending order.
    thresholds: Vec<usize>,
}

impl FieldIndex {
    /// Adds a threshold to those of a field.
    pub(super) fn add(&mut self, name: &str, threshold: usize) {
        let hash = hash(name);
        let (word, bit) = place(hash);
        if let Some(word) = self.filter.get_mut(word) {
            *word |= bit;
        }
        let at = self.fields.partition_point(|field| (field.hash, field.name.as_str()) < (hash, name));
        match self.fields.get_mut(at).filter(|field| field.name == name) {
            Some(field) => field.thresholds.push(threshold),
            None => self.fields.insert(at, Field { hash, name: name.to_owned(), thresholds: vec![threshold] }),
        }
    }

    /// Returns the thresholds of a field.
    pub(super) fn get(&self, name: &str) -> &[usize] {
        let hash = hash(name);
        if !self.may_contain(hash) {
            return &[];
        }
        let first = self.fields.partition_point(|field| field.hash < hash);
        let mut same = self.fields.iter().skip(first).take_while(|field| field.hash == hash);
        same.find(|field| field.name == name).map_or(&[], |field| field.thresholds.as_slice())
    }

    fn may_contain(&self, hash: u64) -> bool {
        let (word, bit) = place(hash);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// Returns a hash of the name's length and its first and last eight bytes, or of all bytes of a shorter name. It is equal on every
/// machine.
fn hash(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (head, tail) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), 0),
    };
    (head ^ tail.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the index of the word and the bit of a hash in the filter.
fn place(hash: u64) -> (usize, u64) {
    // The upper five bits select one of the 32 words, the next six one of its 64 bits.
    let word = usize::try_from(hash >> 59).unwrap_or_default();
    (word, 1 << (hash >> 53 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_thresholds_of_every_name_are_found(names in prop::collection::vec("[ab]{0,2}|.{0,20}", 0..50), other in ".{0,3}") {
            let (mut index, mut expected) = (FieldIndex::default(), BTreeMap::<&str, Vec<usize>>::new());
            for (threshold, name) in names.iter().enumerate() {
                index.add(name, threshold);
                expected.entry(name).or_default().push(threshold);
            }
            for name in names.iter().chain([&other]) {
                prop_assert_eq!(index.get(name), expected.get(name.as_str()).map_or(&[][..], Vec::as_slice));
            }
        }
    }

    #[test]
    fn names_with_the_same_hash_are_different() {
        let names = ["12345678abcd12345678", "12345678efgh12345678"];
        assert_eq!(hash(names[0]), hash(names[1]));
        let mut index = FieldIndex::default();
        names.iter().enumerate().for_each(|(threshold, name)| index.add(name, threshold));
        assert_eq!(names.map(|name| index.get(name).to_vec()), [[0], [1]]);
        assert!(index.get("12345678ijkl12345678").is_empty());
    }

    #[test]
    fn most_names_outside_the_index_are_recognized() {
        let mut index = FieldIndex::default();
        (0..1_000).for_each(|n| index.add(&format!("field_{n}"), n));
        let false_positives = (0..1_000).filter(|n| index.may_contain(hash(&format!("other_{n}")))).count();
        assert!(false_positives < 500, "{false_positives} of 1000");
    }
}
