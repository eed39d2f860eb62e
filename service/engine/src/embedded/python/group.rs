//! Rows of a partition put into groups.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::{Stream, TryStreamExt};

use crate::{Error, Result};

/// The groups of one relation. Rows of a group are in the order in which they came.
pub struct Grouped {
    batches: Vec<RecordBatch>,
    /// By key: where its rows are, batch and row.
    rows: HashMap<OwnedRow, Vec<(usize, usize)>>,
    /// Counts the rows against the engine's memory.
    _reservation: MemoryReservation,
}

impl Grouped {
    /// Reads a partition to its end. It must fit into memory, as each group must fit into the function's.
    ///
    /// # Errors
    /// Those of the rows, and of memory that runs out.
    pub async fn read(
        mut input: impl Stream<Item = Result<RecordBatch>> + Unpin,
        keys: &Keys,
        positions: &[usize],
        reservation: MemoryReservation,
    ) -> Result<Grouped> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut rows: HashMap<OwnedRow, Vec<(usize, usize)>> = HashMap::new();
        while let Some(batch) = input.try_next().await? {
            reservation.try_grow(batch.get_array_memory_size())?;
            let found = keys.of(&batch, positions)?;
            for (index, key) in found.into_iter().enumerate() {
                rows.entry(key).or_default().push((batches.len(), index));
            }
            batches.push(batch);
        }
        Ok(Grouped { batches, rows, _reservation: reservation })
    }

    pub fn keys(&self) -> impl Iterator<Item = &OwnedRow> {
        self.rows.keys()
    }

    /// The rows of a group in batches of at most `rows_max`; none for a key that the relation lacks.
    pub fn group(&self, key: &OwnedRow, rows_max: usize) -> Result<Vec<RecordBatch>> {
        let Some(rows) = self.rows.get(key) else { return Ok(Vec::new()) };
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        rows.chunks(rows_max).map(|rows| Ok(interleave_record_batch(&batches, rows)?)).collect()
    }
}

/// Makes keys comparable, across relations that are grouped together.
pub struct Keys {
    /// None: there is no key, and all rows are one group.
    converter: Option<RowConverter>,
    empty: RowConverter,
}

impl Keys {
    /// # Errors
    /// Keys of a type that cannot be compared.
    pub fn new(data_types: Vec<DataType>) -> Result<Keys> {
        let fields: Vec<SortField> = data_types.into_iter().map(SortField::new).collect();
        let converter = if fields.is_empty() { None } else { Some(RowConverter::new(fields)?) };
        Ok(Keys { converter, empty: RowConverter::new(vec![SortField::new(DataType::Boolean)])? })
    }

    fn of(&self, batch: &RecordBatch, positions: &[usize]) -> Result<Vec<OwnedRow>> {
        let Some(converter) = &self.converter else {
            let nothing = arrow::array::new_null_array(&DataType::Boolean, batch.num_rows());
            return Ok(self.empty.convert_columns(&[nothing])?.iter().map(|row| row.owned()).collect());
        };
        let columns: Vec<ArrayRef> = positions.iter().map(|position| Arc::clone(batch.column(*position))).collect();
        Ok(converter.convert_columns(&columns)?.iter().map(|row| row.owned()).collect())
    }
}

/// All keys of some relations, in the order of their values, nulls first.
pub fn sorted_keys(relations: &[Grouped]) -> Vec<OwnedRow> {
    let mut keys: Vec<OwnedRow> = relations.iter().flat_map(Grouped::keys).cloned().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// # Errors
/// [`Error::InvalidPlan`] where relations that are grouped together have other keys.
pub fn key_types(relations: &[Vec<DataType>]) -> Result<Vec<DataType>> {
    let Some((first, others)) = relations.split_first() else { return Ok(Vec::new()) };
    if let Some(other) = others.iter().find(|other| *other != first) {
        let detail = format!("relations cannot be grouped together by {first:?} and {other:?}");
        return Err(Error::InvalidPlan { detail });
    }
    Ok(first.clone())
}
