//! Random numbers, and what depends on the partition a row is in.

mod xor_shift;

use std::sync::Arc;

use arrow::array::{Float64Array, Int32Array, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::partition::{self, Kind};
use super::{Call, Function, function};
use crate::Result;
use crate::embedded::expression::Typed;

pub use xor_shift::XorShift;

pub const FUNCTIONS: &[Function] = &[
    function("rand", 0, 1, |call| random(call, false)),
    function("random", 0, 1, |call| random(call, false)),
    function("randn", 0, 1, |call| random(call, true)),
    function("monotonically_increasing_id", 0, 0, |_| Ok(partition::call(Kind::IncreasingId, DataType::Int64))),
    function("spark_partition_id", 0, 0, |_| Ok(partition::call(Kind::PartitionId, DataType::Int32))),
];

/// `rand(seed)`: the numbers Spark gives for the seed and the row's place in its partition.
fn random(call: Call<'_>, is_normal: bool) -> Result<Typed> {
    let seed = match call.arguments.first() {
        Some(seed) if seed.value().is_some_and(ScalarValue::is_null) => 0,
        Some(seed) => call.constant_integer(seed)?,
        None => rand_seed(),
    };
    let kind = if is_normal { Kind::Normal { seed } } else { Kind::Uniform { seed } };
    Ok(partition::call(kind, DataType::Float64))
}

/// A seed nobody chose.
fn rand_seed() -> i64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    (high ^ low) as i64
}

/// The next rows' values of a kind, in a partition.
pub fn values(
    kind: Kind,
    partition: usize,
    first_row: u64,
    source: &mut Option<XorShift>,
    num_rows: usize,
) -> arrow::array::ArrayRef {
    match kind {
        Kind::PartitionId => Arc::new(Int32Array::from(vec![partition as i32; num_rows])),
        Kind::IncreasingId => {
            // The upper 31 bits are the partition, the lower 33 the row in it.
            let start = ((partition as i64) << 33) + first_row as i64;
            Arc::new(Int64Array::from_iter_values(start..start + num_rows as i64))
        }
        Kind::Uniform { seed } => {
            let source = source.get_or_insert_with(|| XorShift::new(seed.wrapping_add(partition as i64)));
            Arc::new(Float64Array::from_iter_values((0..num_rows).map(|_| source.next_double())))
        }
        Kind::Normal { seed } => {
            let source = source.get_or_insert_with(|| XorShift::new(seed.wrapping_add(partition as i64)));
            Arc::new(Float64Array::from_iter_values((0..num_rows).map(|_| source.next_gaussian())))
        }
    }
}
