//! Vector columns: read by rank programs, made anew by models, and a model's own vectors when it is saved.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use serde_json::Map;
use train::RankContext;
use train::batch::{Batch, Features, Problem, agree};
use train::moments::Moments;
use udt::{Vector, VectorArray, VectorBuilder, VectorRow};

use crate::persist::Saved;
use crate::{Error, Result, Value};

fn malformed(source: udt::Error) -> train::Error {
    train::Error::Partition { source: Box::new(source) }
}

/// Visits the first column's vectors, batch after batch, with their size; returns the size that all ranks agree on.
///
/// # Errors
/// [`train::Error::InvalidData`], on every rank, for a null, for vectors of different sizes, and when there are no rows.
pub fn visit(
    ctx: &mut RankContext<'_>,
    mut visit: impl FnMut(usize, &VectorArray) -> udt::Result<()>,
) -> train::Result<usize> {
    let column = ctx.partition.schema.fields().first().map(|field| field.name().clone()).unwrap_or_default();
    let mut width: Option<usize> = None;
    let mut local = Ok(());
    while let Some(record_batch) = ctx.partition.record_batches.next() {
        let record_batch = record_batch?;
        let vectors = VectorArray::try_new(record_batch.column(0).as_ref()).map_err(malformed)?;
        if vectors.is_empty() {
            continue;
        }
        local = check(&column, &vectors, &mut width).map_err(malformed)?;
        if local.is_err() {
            break;
        }
        visit(width.unwrap_or_default(), &vectors).map_err(malformed)?;
        ctx.check_cancelled()?;
    }
    agree(ctx.group, local)?;
    let widths = ctx.group.all_gather(&[width.map_or(-1.0, |width| width as f64)])?;
    let mut seen = widths.into_iter().filter(|width| *width >= 0.0).map(|width| width as usize);
    let Some(agreed) = seen.next() else {
        return Err(Problem::data("ML algorithm was given empty dataset.".into()).into_error());
    };
    match seen.find(|width| *width != agreed) {
        Some(other) => Err(unequal(&column, agreed, other).into_error()),
        None => Ok(agreed),
    }
}

fn check(
    column: &str,
    vectors: &VectorArray,
    width: &mut Option<usize>,
) -> udt::Result<std::result::Result<(), Problem>> {
    if vectors.null_count() > 0 {
        return Ok(Err(Problem::user(column, vectors.null_count() as u64, "Vectors MUST NOT be Null".into())));
    }
    let sizes = match vectors.as_dense_rows() {
        Some((size, _)) => vec![size],
        None => (0..vectors.len()).map(|row| Ok(vectors.row(row)?.size())).collect::<udt::Result<Vec<usize>>>()?,
    };
    for size in sizes {
        let expected = *width.get_or_insert(size);
        if size != expected {
            return Ok(Err(unequal(column, expected, size)));
        }
    }
    Ok(Ok(()))
}

fn unequal(column: &str, expected: usize, found: usize) -> Problem {
    let text = format!("Dimensions mismatch: expected vectors of {expected} values, found one of {found}");
    Problem::user(column, 1, text)
}

/// The moments of the first column's vectors, over all ranks. Unlike a training relation's, values may be NaN.
///
/// # Errors
/// As [`visit`].
pub fn moments(ctx: &mut RankContext<'_>) -> train::Result<Moments> {
    let mut total: Option<Moments> = None;
    let width = visit(ctx, |width, vectors| {
        let (features, labels) = (features(width, vectors)?, ScalarBuffer::from(Vec::new()));
        let part = Moments::of_features(&[Batch { features, labels, weights: None }], width);
        total.get_or_insert_with(|| Moments::new(width)).merge(&part);
        Ok(())
    })?;
    total.unwrap_or_else(|| Moments::new(width)).over_ranks(ctx.group)
}

fn features(width: usize, vectors: &VectorArray) -> udt::Result<Features> {
    if let Some((_, values)) = vectors.as_dense_rows() {
        return Ok(Features::Dense { width, num_rows: vectors.len(), values: ScalarBuffer::from(values.to_vec()) });
    }
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..vectors.len() {
        vectors.row(row)?.for_each(|index, value| {
            indices.push(index as i32);
            values.push(value);
        });
        offsets.push(values.len());
    }
    Ok(Features::Sparse { width, offsets, indices: ScalarBuffer::from(indices), values: ScalarBuffer::from(values) })
}

/// A column of the vectors that `append` makes, row by row; nulls stay nulls.
///
/// # Errors
/// What `append` refuses.
pub fn map(
    column: &ArrayRef,
    mut append: impl FnMut(VectorRow<'_>, &mut VectorBuilder) -> Result<()>,
) -> Result<ArrayRef> {
    let vectors = VectorArray::try_new(column.as_ref())?;
    let mut builder = VectorBuilder::default();
    for row in 0..vectors.len() {
        if vectors.is_null(row) {
            builder.append_null();
        } else {
            append(vectors.row(row)?, &mut builder)?;
        }
    }
    Ok(builder.finish())
}

/// `(x - shift) * scale`; without a shift, sparse vectors stay sparse.
///
/// # Errors
/// A vector of another size than `scale`.
pub fn scaled(column: &ArrayRef, shift: Option<&[f64]>, scale: &[f64]) -> Result<ArrayRef> {
    let vectors = VectorArray::try_new(column.as_ref())?;
    let shift_at = |i: usize| shift.map_or(0.0, |shift| shift[i]);
    if let Some((width, values)) = vectors.as_dense_rows()
        && width > 0
    {
        check_size(width, scale.len())?;
        let mut out = Vec::with_capacity(values.len());
        for row in values.chunks_exact(width) {
            match shift {
                Some(shift) => out.extend(row.iter().zip(shift).zip(scale).map(|((v, shift), scale)| (v - shift) * scale)),
                None => out.extend(row.iter().zip(scale).map(|(v, scale)| v * scale)),
            }
        }
        return Ok(VectorBuilder::from_dense_rows(width, out));
    }
    map(column, |vector, builder| {
        check_size(vector.size(), scale.len())?;
        match vector {
            VectorRow::Sparse { size, indices, values } if shift.is_none() => {
                let values: Vec<f64> = indices.iter().zip(values).map(|(i, v)| v * scale[*i as usize]).collect();
                builder.append_sparse(size, indices, &values);
            }
            vector => {
                let dense = vector.to_vector().to_dense();
                let values: Vec<f64> = dense.iter().enumerate().map(|(i, v)| (v - shift_at(i)) * scale[i]).collect();
                builder.append_dense(&values);
            }
        }
        Ok(())
    })
}

/// # Errors
/// The sizes differ.
pub fn check_size(found: usize, expected: usize) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::InvalidRow {
            message: format!("requirement failed: vector sizes do not match: Expected {expected} but found {found}"),
        }),
    }
}

/// A fetched vector in the storage that takes less.
pub fn compressed(values: &[f64]) -> Value {
    Value::Vector(Vector::Dense(values.to_vec()).compressed())
}

/// A model's vectors as the one row of its table.
///
/// # Errors
/// None but Arrow's own.
pub fn save(vectors: &[(&str, &[f64])]) -> Result<Saved> {
    let fields: Vec<Field> = vectors.iter().map(|(name, _)| udt::field::vector_field(name)).collect();
    let column = |(_, values): &(&str, &[f64])| {
        let mut builder = VectorBuilder::default();
        builder.append_vector(&Vector::Dense(values.to_vec()).compressed());
        builder.finish()
    };
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), vectors.iter().map(column).collect())?;
    Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
}

/// One of a saved model's vectors.
///
/// # Errors
/// [`Error::Corrupted`]
pub fn load(saved: &Saved, name: &str) -> Result<Vec<f64>> {
    let corrupted = |detail: String| Error::Corrupted { path: "data".into(), detail };
    let column = saved.table("data")?.column_by_name(name);
    let column = column.ok_or_else(|| corrupted(format!("column {name} is missing")))?;
    let vectors = VectorArray::try_new(column.as_ref())?;
    if vectors.len() != 1 || vectors.is_null(0) {
        return Err(corrupted(format!("column {name} has no single vector")));
    }
    Ok(vectors.row(0)?.to_vector().to_dense())
}
