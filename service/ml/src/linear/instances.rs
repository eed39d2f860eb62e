//! A rank's training rows, and what all ranks agree on before the first step.

use collective::Group;
use train::RankContext;
use train::batch::{Batch, Features, Problem, agree, numbers};

/// The columns of a training relation, in the order ranks get them.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    pub features: &'a str,
    pub label: &'a str,
    pub weight: Option<&'a str>,
    /// Whether labels are classes: integers from 0.
    pub is_classification: bool,
}

/// The rows of one rank.
pub struct Instances {
    pub batches: Vec<Batch>,
    /// Of all ranks' rows.
    pub num_features: usize,
    /// Of this rank.
    pub num_rows: u64,
}

type Read<T> = train::Result<std::result::Result<T, Problem>>;

/// Reads a rank's rows. Every rank returns the same problem when any has one.
///
/// # Errors
/// [`train::Error::InvalidData`] for nulls, NaN and infinite values, labels that are no classes, negative weights,
/// vectors of different lengths, and no rows at all.
pub fn read_instances(ctx: &mut RankContext<'_>, columns: &Columns<'_>) -> train::Result<Instances> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut local = Ok(());
    while let Some(record_batch) = ctx.partition.record_batches.next() {
        let record_batch = record_batch?;
        if record_batch.num_rows() == 0 {
            continue;
        }
        match read_batch(record_batch.columns(), columns)? {
            Ok(batch) => match batches.first().map(|first| first.features.width()) {
                Some(expected) if expected != batch.features.width() => {
                    local = Err(unequal(columns.features, expected, batch.features.width()));
                }
                _ => batches.push(batch),
            },
            Err(problem) => local = Err(problem),
        }
        if local.is_err() {
            break;
        }
        ctx.check_cancelled()?;
    }
    agree(ctx.group, local)?;
    let num_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let width = batches.first().map(|batch| batch.features.width());
    let num_features = agree_on_width(ctx.group, columns.features, width)?;
    Ok(Instances { batches, num_features, num_rows })
}

fn read_batch(arrays: &[arrow::array::ArrayRef], columns: &Columns<'_>) -> Read<Batch> {
    let expected = 2 + usize::from(columns.weight.is_some());
    let [features, label, weight @ ..] = arrays else {
        return Err(train::Error::Bug { invariant: format!("a rank gets the {expected} columns that were planned") });
    };
    let features = match Features::from_vectors(columns.features, features)? {
        Ok(features) => features,
        Err(problem) => return Ok(Err(problem)),
    };
    let labels = if columns.is_classification {
        numbers(columns.label, "Labels", label, is_class, class_text)?
    } else {
        numbers(columns.label, "Labels", label, f64::is_finite, |v| {
            format!("Labels MUST NOT be Infinity, but got {}", udt::vector::java_double(v))
        })?
    };
    let labels = match labels {
        Ok(labels) => labels,
        Err(problem) => return Ok(Err(problem)),
    };
    let weights = match (columns.weight, weight) {
        (Some(name), [weight, ..]) => match numbers(name, "Weights", weight, is_weight, weight_text)? {
            Ok(weights) => Some(weights),
            Err(problem) => return Ok(Err(problem)),
        },
        _ => None,
    };
    Ok(Ok(Batch { features, labels, weights }))
}

fn is_class(label: f64) -> bool {
    label >= 0.0 && label < f64::from(i32::MAX) && label.fract() == 0.0
}

fn class_text(label: f64) -> String {
    let shown = udt::vector::java_double(label);
    if label >= 0.0 && label < f64::from(i32::MAX) {
        format!("Labels MUST be Integers, but got {shown}")
    } else {
        format!("Labels MUST be in [0, {}), but got {shown}", i32::MAX)
    }
}

fn is_weight(weight: f64) -> bool {
    weight >= 0.0 && weight.is_finite()
}

fn weight_text(weight: f64) -> String {
    format!("Weights MUST NOT be Negative or Infinity, but got {}", udt::vector::java_double(weight))
}

fn unequal(column: &str, expected: usize, found: usize) -> Problem {
    let text = format!("Dimensions mismatch: expected vectors of {expected} values, found one of {found}");
    Problem::user(column, 1, text)
}

/// The vectors' length, which ranks without rows learn from the others.
fn agree_on_width(group: &Group, column: &str, width: Option<usize>) -> train::Result<usize> {
    let mine = width.map(|width| (width as u64).to_le_bytes().to_vec()).unwrap_or_default();
    let mut agreed: Option<usize> = None;
    for bytes in group.all_gather_bytes(&mine)? {
        let Ok(bytes) = <[u8; 8]>::try_from(bytes.as_slice()) else { continue };
        let found = u64::from_le_bytes(bytes) as usize;
        let expected = *agreed.get_or_insert(found);
        if expected != found {
            return Err(unequal(column, expected, found).into_error());
        }
    }
    agreed.ok_or_else(|| Problem::data("ML algorithm was given empty dataset.".into()).into_error())
}
