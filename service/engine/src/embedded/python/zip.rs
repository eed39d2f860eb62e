//! Rows that wait for their results, which may come in other batches than they went.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use crate::{Error, Result};

#[derive(Debug, Default)]
pub struct Waiting {
    batches: VecDeque<RecordBatch>,
}

impl Waiting {
    pub fn push(&mut self, batch: RecordBatch) {
        self.batches.push_back(batch);
    }

    /// The next `num_rows` rows.
    ///
    /// # Errors
    /// [`Error::Python`] where there are fewer: the function made rows up.
    pub fn take(&mut self, num_rows: usize) -> Result<RecordBatch> {
        let mut taken = Vec::new();
        let mut missing = num_rows;
        while let Some(batch) = self.batches.pop_front() {
            if batch.num_rows() > missing {
                taken.push(batch.slice(0, missing));
                self.batches.push_front(batch.slice(missing, batch.num_rows() - missing));
                missing = 0;
            } else {
                missing -= batch.num_rows();
                taken.push(batch);
            }
            if missing == 0 {
                break;
            }
        }
        match taken.as_slice() {
            _ if missing > 0 => Err(mismatch(format!("{missing} results more than rows"))),
            [only] => Ok(only.clone()),
            [first, ..] => Ok(concat_batches(&first.schema(), &taken)?),
            [] => Err(mismatch("a result for no row".to_owned())),
        }
    }

    /// # Errors
    /// [`Error::Python`] where rows are left without a result.
    pub fn finish(&self) -> Result<()> {
        match self.batches.iter().map(RecordBatch::num_rows).sum::<usize>() {
            0 => Ok(()),
            left => Err(mismatch(format!("no results for {left} rows"))),
        }
    }
}

fn mismatch(detail: String) -> Error {
    Error::Python { source: python::Error::Protocol { detail } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array};

    use super::*;

    fn batch(values: &[i32]) -> RecordBatch {
        RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(values.to_vec())) as ArrayRef)]).unwrap()
    }

    #[test]
    fn rows_are_taken_in_order_whatever_the_batches() {
        let mut waiting = Waiting::default();
        for values in [[1, 2].as_slice(), &[3], &[4, 5, 6]] {
            waiting.push(batch(values));
        }
        assert_eq!(waiting.take(1).unwrap(), batch(&[1]));
        assert_eq!(waiting.take(3).unwrap(), batch(&[2, 3, 4]));
        assert!(waiting.finish().is_err());
        assert_eq!(waiting.take(2).unwrap(), batch(&[5, 6]));
        assert!(waiting.finish().is_ok());
        assert!(waiting.take(1).is_err());
    }
}
