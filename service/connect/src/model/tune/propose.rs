//! Which point a search tries next: of a grid, at random, or where the trials so far were good.

use std::collections::BTreeMap;

use ml::Value;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sql::model::{Constant, Search};

use super::{Axis, Range};

/// Trials at random before the outcome of others says anything.
const RANDOM_FIRST: usize = 8;
/// Points that are drawn where trials were good, of which the most promising is taken.
const CANDIDATES: usize = 24;
/// The share of trials that counts as good.
const GOOD: f64 = 0.15;

/// A trial that was measured; less loss is better.
pub struct Observation {
    pub point: Vec<f64>,
    pub loss: f64,
}

/// A point has a number for each axis: from 0 to 1 of a range, or the place in a list.
pub struct Proposer {
    search: Search,
    sizes: Vec<Option<usize>>,
    random: StdRng,
    proposed: usize,
    trials: usize,
}

impl Proposer {
    pub fn new(search: Search, axes: &[Axis], seed: i64, trials: usize) -> Proposer {
        let size = |axis: &Axis| match &axis.range {
            Range::OneOf(values) => Some(values.len()),
            Range::Between { .. } => None,
        };
        Proposer {
            search,
            sizes: axes.iter().map(size).collect(),
            random: StdRng::seed_from_u64(seed as u64),
            proposed: 0,
            trials,
        }
    }

    pub fn propose(&mut self, observed: &[Observation]) -> Vec<f64> {
        let at = self.proposed;
        self.proposed += 1;
        match self.search {
            Search::Grid => self.grid(at),
            Search::Random => self.random_point(),
            Search::Bayes if observed.len() < RANDOM_FIRST.min(self.trials.div_ceil(2)) => self.random_point(),
            Search::Bayes => self.promising(observed),
        }
    }

    /// The last axis changes fastest.
    fn grid(&self, mut at: usize) -> Vec<f64> {
        let mut point = vec![0.0; self.sizes.len()];
        for (place, size) in point.iter_mut().zip(&self.sizes).rev() {
            let size = size.unwrap_or(1).max(1);
            *place = (at % size) as f64;
            at /= size;
        }
        point
    }

    fn random_point(&mut self) -> Vec<f64> {
        let random = &mut self.random;
        self.sizes
            .iter()
            .map(|size| match size {
                Some(size) => random.random_range(0..*size) as f64,
                None => random.random_range(0.0..=1.0),
            })
            .collect()
    }

    /// The tree-structured Parzen estimator of Bergstra et al. (2011): each axis by itself, the point at which the density
    /// of good trials is greatest against that of the others.
    fn promising(&mut self, observed: &[Observation]) -> Vec<f64> {
        let mut order: Vec<&Observation> = observed.iter().collect();
        order.sort_by(|left, right| left.loss.total_cmp(&right.loss));
        let good = ((observed.len() as f64 * GOOD).ceil() as usize).max(1);
        let (good, others) = order.split_at(good.min(order.len()));
        (0..self.sizes.len())
            .map(|axis| {
                let of = |trials: &[&Observation]| trials.iter().map(|trial| trial.point[axis]).collect::<Vec<f64>>();
                let (good, others) = (of(good), of(others));
                match self.sizes[axis] {
                    Some(size) => self.promising_place(&good, size),
                    None => self.promising_number(&good, &others),
                }
            })
            .collect()
    }

    /// Drawn by how often good trials had it: always taking the likeliest would never see the others again.
    fn promising_place(&mut self, good: &[f64], size: usize) -> f64 {
        let count = |place: usize| good.iter().filter(|known| **known as usize == place).count() as f64 + 1.0;
        let mut left = self.random.random_range(0.0..good.len() as f64 + size as f64);
        let drawn = (0..size).position(|place| {
            left -= count(place);
            left < 0.0
        });
        drawn.unwrap_or(size - 1) as f64
    }

    fn promising_number(&mut self, good: &[f64], others: &[f64]) -> f64 {
        let (near, far) = (Parzen::new(good), Parzen::new(others));
        let mut best = (f64::NEG_INFINITY, 0.5);
        for _ in 0..CANDIDATES {
            let drawn = near.draw(&mut self.random);
            let ratio = near.density(drawn).ln() - far.density(drawn).ln();
            if ratio > best.0 {
                best = (ratio, drawn);
            }
        }
        best.1
    }
}

/// Normal densities around points of the unit interval, beside an even one so that no place is ever ruled out.
struct Parzen<'a> {
    centers: &'a [f64],
    width: f64,
}

impl<'a> Parzen<'a> {
    fn new(centers: &'a [f64]) -> Parzen<'a> {
        let width = 1.0 / (1.0 + centers.len() as f64);
        Parzen { centers, width: width.max(0.02) }
    }

    fn draw(&self, random: &mut StdRng) -> f64 {
        let at = random.random_range(0..=self.centers.len());
        let Some(center) = self.centers.get(at) else { return random.random_range(0.0..=1.0) };
        // Box and Muller's normal numbers
        let (u, v): (f64, f64) = (random.random_range(f64::MIN_POSITIVE..1.0), random.random_range(0.0..1.0));
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (center + self.width * normal).clamp(0.0, 1.0)
    }

    fn density(&self, at: f64) -> f64 {
        let normal = |center: &f64| {
            let z = (at - center) / self.width;
            (-0.5 * z * z).exp() / (self.width * std::f64::consts::TAU.sqrt())
        };
        (1.0 + self.centers.iter().map(normal).sum::<f64>()) / (1.0 + self.centers.len() as f64)
    }
}

/// The params of a point, and how they are shown.
pub fn params(axes: &[Axis], point: &[f64]) -> (BTreeMap<String, Value>, BTreeMap<String, String>) {
    let (mut params, mut shown) = (BTreeMap::new(), BTreeMap::new());
    for (axis, place) in axes.iter().zip(point) {
        let (constant, value) = match &axis.range {
            Range::OneOf(values) => values[(*place as usize).min(values.len() - 1)].clone(),
            Range::Between { low, high, is_log, is_integer } => {
                let number = if *is_log {
                    (low.ln() + place * (high.ln() - low.ln())).exp()
                } else {
                    low + place * (high - low)
                };
                let number = number.clamp(*low, *high);
                if *is_integer {
                    let number = number.round() as i64;
                    let value = i32::try_from(number).map_or(Value::Long(number), Value::Int);
                    (Constant::Integer(number), value)
                } else {
                    (Constant::Double(number), Value::Double(number))
                }
            }
        };
        params.insert(axis.param.clone(), value);
        let text = match constant {
            Constant::Text(text) => text,
            other => other.to_string(),
        };
        shown.insert(axis.shown.clone(), text);
    }
    (params, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let value = |n: i64| (Constant::Integer(n), Value::Int(n as i32));
        vec![
            Axis {
                param: "regParam".into(),
                shown: "reg_param".into(),
                range: Range::Between { low: 1e-4, high: 1.0, is_log: true, is_integer: false },
            },
            Axis { param: "k".into(), shown: "k".into(), range: Range::OneOf(vec![value(1), value(2), value(3)]) },
        ]
    }

    #[test]
    fn a_grid_has_every_point_once() {
        let axes = [axes()[1].clone(), axes()[1].clone()];
        let mut proposer = Proposer::new(Search::Grid, &axes, 1, 9);
        let points: std::collections::BTreeSet<String> =
            (0..9).map(|_| format!("{:?}", proposer.propose(&[]))).collect();
        assert_eq!(points.len(), 9);
    }

    #[test]
    fn a_seed_gives_the_same_points() {
        let points = |seed| {
            let mut proposer = Proposer::new(Search::Random, &axes(), seed, 5);
            (0..5).map(|_| proposer.propose(&[])).collect::<Vec<_>>()
        };
        assert_eq!(points(7), points(7));
        assert_ne!(points(7), points(8));
    }

    #[test]
    fn bayes_finds_a_better_minimum_than_chance() {
        let loss = |point: &[f64]| (point[0] - 0.3).powi(2) + if point[1] as usize == 2 { 0.0 } else { 0.1 };
        let best = |search: Search, seed: i64| {
            let mut proposer = Proposer::new(search, &axes(), seed, 40);
            let mut observed: Vec<Observation> = Vec::new();
            for _ in 0..40 {
                let point = proposer.propose(&observed);
                let loss = loss(&point);
                observed.push(Observation { point, loss });
            }
            observed.iter().map(|trial| trial.loss).fold(f64::INFINITY, f64::min)
        };
        let mean = |search: Search| (0..50).map(|seed| best(search, seed)).sum::<f64>() / 50.0;
        assert!(mean(Search::Bayes) < mean(Search::Random) / 2.0, "{} {}", mean(Search::Bayes), mean(Search::Random));
    }

    #[test]
    fn places_become_params_of_the_range() {
        let (values, shown) = params(&axes(), &[0.5, 2.0]);
        assert_eq!(values["k"], Value::Int(3));
        let Value::Double(reg) = values["regParam"] else { panic!("no double") };
        assert!((reg - 0.01).abs() < 1e-12, "{reg}");
        assert_eq!(shown["k"], "3");
    }
}
