//! Quantiles of a column over all ranks.
//!
//! Exact for columns of up to [`POINTS_MAX`] values a rank; beyond, off by less than Spark's default `relativeError`.

use serde::{Deserialize, Serialize};

/// Weighted points that stand for one rank's values of a column.
const POINTS_MAX: usize = 20_000;

/// Values by their bits (JSON lacks infinities), ascending, with how many values each stands for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sketch {
    points: Vec<(u64, u64)>,
}

impl Sketch {
    /// Of values that are not NaN. Neighbours are joined until few enough are left, each group standing at its middle.
    pub fn of(mut values: Vec<f64>) -> Sketch {
        values.sort_unstable_by(f64::total_cmp);
        let group = values.len().div_ceil(POINTS_MAX).max(1);
        let middle = |chunk: &[f64]| (chunk[(chunk.len() - 1) / 2].to_bits(), chunk.len() as u64);
        Sketch { points: values.chunks(group).map(middle).collect() }
    }

    pub fn merged<'a>(parts: impl Iterator<Item = &'a Sketch>) -> Sketch {
        let mut points: Vec<(u64, u64)> = parts.flat_map(|part| part.points.iter().copied()).collect();
        points.sort_by(|a, b| f64::from_bits(a.0).total_cmp(&f64::from_bits(b.0)));
        Sketch { points }
    }

    /// The value that a share of all values does not exceed; `None` when there are no values.
    pub fn quantile(&self, probability: f64) -> Option<f64> {
        let count: u64 = self.points.iter().map(|(_, count)| count).sum();
        let rank = ((probability * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.points.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.or(self.points.last()).map(|(bits, _)| f64::from_bits(*bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_all_ranks() {
        let parts = [Sketch::of(vec![4.0, 1.0]), Sketch::default(), Sketch::of(vec![3.0, 2.0, f64::NEG_INFINITY])];
        let sketch = Sketch::merged(parts.iter());
        assert_eq!([0.0, 0.2, 0.5, 1.0].map(|p| sketch.quantile(p).unwrap()), [f64::NEG_INFINITY, f64::NEG_INFINITY, 2.0, 4.0]);
        assert_eq!(Sketch::default().quantile(0.5), None);
    }

    #[test]
    fn many_values_keep_their_quantiles_nearly() {
        let sketch = Sketch::of((0..100_000).map(f64::from).collect());
        assert!((sketch.quantile(0.25).unwrap() - 25_000.0).abs() < 100.0);
    }
}
