//! The least and greatest value of each element of a vector column, over all ranks.

use collective::ReduceOp;
use train::RankContext;

use super::vectors;

/// By element. NaN counts as no value.
pub struct Extremes {
    pub min: Vec<f64>,
    pub max: Vec<f64>,
}

/// # Errors
/// As [`vectors::visit`].
pub fn over_all_ranks(ctx: &mut RankContext<'_>) -> train::Result<Extremes> {
    let (mut min, mut max) = (Vec::new(), Vec::new());
    let mut num_rows = 0_u64;
    let mut num_stored: Vec<u64> = Vec::new();
    let width = vectors::visit(ctx, |width, vectors| {
        min.resize(width, f64::INFINITY);
        max.resize(width, f64::NEG_INFINITY);
        num_stored.resize(width, 0);
        num_rows += vectors.len() as u64;
        for row in 0..vectors.len() {
            vectors.row(row)?.for_each(|index, value| {
                num_stored[index] += 1;
                min[index] = f64::min(min[index], value);
                max[index] = f64::max(max[index], value);
            });
        }
        Ok(())
    })?;
    min.resize(width, f64::INFINITY);
    max.resize(width, f64::NEG_INFINITY);
    // what sparse rows leave out is zero
    for (index, _) in num_stored.iter().enumerate().filter(|(_, num_stored)| **num_stored < num_rows) {
        min[index] = min[index].min(0.0);
        max[index] = max[index].max(0.0);
    }
    ctx.group.all_reduce(&mut min, ReduceOp::Min)?;
    ctx.group.all_reduce(&mut max, ReduceOp::Max)?;
    Ok(Extremes { min, max })
}
