//! Sharing out rows between training, validation and test, whatever their order and partitions.
//!
//! Rows are ranked by a hash of a seed and what is in them, and cut at the places that the fractions say. Rows that are
//! equal, or share the key, stay together.

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use crate::Result;

/// Where a row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Train,
    Validation,
    Test,
    /// Nowhere: it was dropped.
    Dropped,
}

/// A part for each row, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub parts: Vec<Part>,
}

impl Assignment {
    pub fn count(&self, part: Part) -> usize {
        self.parts.iter().filter(|known| **known == part).count()
    }

    /// Cuts the rows of `rows` at the fractions of each of its groups; other rows are left as they are.
    ///
    /// `fractions` are of training, validation and, if there, test; `group` gives a row's group, by which the cut is
    /// stratified.
    pub fn cut(&mut self, hashes: &RowHashes, fractions: &[f64], group: impl Fn(usize) -> usize) {
        let mut groups: std::collections::BTreeMap<usize, Vec<(u64, usize)>> = std::collections::BTreeMap::new();
        for (row, hash) in hashes.hashes.iter().enumerate() {
            if self.parts[row] != Part::Dropped {
                groups.entry(group(row)).or_default().push((*hash, row));
            }
        }
        for mut rows in groups.into_values() {
            rows.sort_unstable();
            let ends = ends(rows.len(), fractions);
            let limits = ends.map(|end| end.checked_sub(1).and_then(|last| rows.get(last)).map(|(hash, _)| *hash));
            for (hash, row) in rows {
                let is_within = |limit: Option<u64>| limit.is_some_and(|limit| hash <= limit);
                self.parts[row] = if is_within(limits[0]) {
                    Part::Train
                } else if is_within(limits[1]) {
                    Part::Validation
                } else {
                    Part::Test
                };
            }
        }
    }
}

/// How many rows are in the training part, and in it and the validation part together.
fn ends(rows: usize, fractions: &[f64]) -> [usize; 2] {
    let round = |fraction: f64| ((fraction * rows as f64).round() as usize).min(rows);
    let train = fractions.first().copied().unwrap_or(1.0);
    match fractions {
        [_, validation, _] => [round(train), round(train + validation)],
        _ => [round(train), rows],
    }
}

/// A hash for each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowHashes {
    pub hashes: Vec<u64>,
}

impl RowHashes {
    /// Adds the rows of some columns. A column whose type has no order is left out.
    ///
    /// # Errors
    /// What the conversion of a column says.
    pub fn add(&mut self, columns: &[ArrayRef], num_rows: usize, seed: i64) -> Result<()> {
        let mut kept: Vec<ArrayRef> = Vec::new();
        for column in columns {
            // an integer and a decimal of one value may come in different types, from one run of a query to the next
            let column = match column.data_type() {
                DataType::LargeUtf8 | DataType::Utf8View => cast(column, &DataType::Utf8)?,
                _ => std::sync::Arc::clone(column),
            };
            if RowConverter::supports_fields(&[SortField::new(column.data_type().clone())]) {
                kept.push(column);
            }
        }
        if kept.is_empty() {
            self.hashes.extend(std::iter::repeat_n(mix(seed as u64), num_rows));
            return Ok(());
        }
        let fields = kept.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let rows = RowConverter::new(fields)?.convert_columns(&kept)?;
        self.hashes.extend(rows.iter().map(|row| hash(seed, row.as_ref())));
        Ok(())
    }
}

/// A hash that stays the same from version to version: models are reproduced by it.
pub fn hash(seed: i64, bytes: &[u8]) -> u64 {
    let mut state = mix(seed as u64 ^ (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for chunk in bytes.chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    mix(state)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014, with Stafford's constants).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};

    use super::*;

    fn hashes(values: &[f64], seed: i64) -> RowHashes {
        let column: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let mut hashes = RowHashes::default();
        hashes.add(&[column], values.len(), seed).unwrap();
        hashes
    }

    fn cut(hashes: &RowHashes, fractions: &[f64]) -> Assignment {
        let mut assignment = Assignment { parts: vec![Part::Train; hashes.hashes.len()] };
        assignment.cut(hashes, fractions, |_| 0);
        assignment
    }

    #[test]
    fn ten_rows_are_eight_and_two() {
        let assignment = cut(&hashes(&(0..10).map(f64::from).collect::<Vec<_>>(), 42), &[0.8, 0.2]);
        assert_eq!((assignment.count(Part::Train), assignment.count(Part::Validation)), (8, 2));
        let three = cut(&hashes(&(0..100).map(f64::from).collect::<Vec<_>>(), 42), &[0.7, 0.2, 0.1]);
        assert_eq!([Part::Train, Part::Validation, Part::Test].map(|part| three.count(part)), [70, 20, 10]);
    }

    #[test]
    fn the_order_of_rows_does_not_matter() {
        let values: Vec<f64> = (0..500).map(f64::from).collect();
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        let mut backwards = cut(&hashes(&reversed, 7), &[0.8, 0.2]).parts;
        backwards.reverse();
        assert_eq!(cut(&hashes(&values, 7), &[0.8, 0.2]).parts, backwards);
        assert_ne!(cut(&hashes(&values, 8), &[0.8, 0.2]).parts, backwards);
    }

    #[test]
    fn equal_rows_stay_together() {
        let assignment = cut(&hashes(&[1.0; 20], 1), &[0.5, 0.5]);
        assert_eq!(assignment.count(Part::Train), 20);
    }

    #[test]
    fn classes_are_cut_each_for_itself() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let mut assignment = Assignment { parts: vec![Part::Train; 100] };
        assignment.cut(&hashes(&values, 3), &[0.8, 0.2], |row| usize::from(row < 10));
        let rare = assignment.parts[..10].iter().filter(|part| **part == Part::Train).count();
        assert_eq!((rare, assignment.count(Part::Train)), (8, 80));
    }

    #[test]
    fn the_hash_is_what_it_was() {
        assert_eq!(hash(42, b""), hash(42, b""));
        assert_ne!(hash(42, b"a"), hash(42, b"a\0"));
        let mut hashes = RowHashes::default();
        hashes.add(&[Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef], 2, 42).unwrap();
        assert_eq!(hashes.hashes.len(), 2);
        assert_ne!(hashes.hashes[0], hashes.hashes[1]);
    }
}
