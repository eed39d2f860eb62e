//! Trainings of small networks on gangs of threads.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Float32Array};
use arrow::datatypes::Schema;
use collective::{Group, Listener, Membership};
use tch::Tensor;

use super::optimizer::Moments;
use super::*;
use crate::checkpoint::{Checkpointer, Identity, Never, Saved};
use crate::progress::Silent;
use crate::{Error, Partition, RankContext, Result};

/// Runs a function on every rank of a gang of threads.
pub fn gang<T: Send>(world_size: usize, run: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listeners: Vec<Listener> = (0..world_size).map(|_| Listener::bind(localhost).unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(|listener| listener.address().clone()).collect();
    let run = &run;
    std::thread::scope(|scope| {
        let join = |(rank, listener): (usize, Listener)| {
            let (job_id, addresses) = ("network".into(), addresses.clone());
            let membership = Membership { job_id, generation: 1, rank, world_size, secret: [7; 32], addresses };
            scope.spawn(move || run(&listener.join(&collective::Options::default(), membership).unwrap()))
        };
        let ranks: Vec<_> = listeners.into_iter().enumerate().map(join).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

const ROWS: usize = 101;
const FEATURES: usize = 3;

fn value(index: usize) -> f32 {
    ((sampler::mix(index as u64) >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
}

/// Three layers, of parameters that depend on their place only.
fn network() -> ScriptModule {
    let tensor = |start: usize, shape: &[i64]| {
        let values: Vec<f32> = (0..shape.iter().product::<i64>() as usize).map(|i| value(start + i) / 2.0).collect();
        Tensor::from_slice(&values).view(shape)
    };
    let source = "
def forward(self, x):
    h = torch.tanh(torch.matmul(x, self.w1) + self.b1)
    h = torch.tanh(torch.matmul(h, self.w2) + self.b2)
    return torch.matmul(h, self.w3) + self.b3
";
    let parameters = [
        ("w1", tensor(1000, &[FEATURES as i64, 8])),
        ("b1", tensor(2000, &[8])),
        ("w2", tensor(3000, &[8, 8])),
        ("b2", tensor(4000, &[8])),
        ("w3", tensor(5000, &[8, 1])),
        ("b3", tensor(6000, &[1])),
    ];
    ScriptModule::define(source, &parameters).unwrap()
}

/// Some of the rows, in their own order.
fn columns(rows: std::ops::Range<usize>) -> Columns {
    let mut columns =
        Columns { inputs: vec![Column::new("x", ColumnKind::Numbers)], label: Column::new("y", ColumnKind::Number) };
    columns.inputs[0].set_width(FEATURES);
    if !rows.is_empty() {
        let features: Vec<f32> =
            rows.clone().flat_map(|row| (0..FEATURES).map(move |f| value(row * FEATURES + f))).collect();
        let labels: Vec<f32> =
            rows.clone().map(|row| value(row * FEATURES) * value(row * FEATURES + 1) + 0.3).collect();
        let lists = arrow::array::FixedSizeListArray::new(
            Arc::new(arrow::datatypes::Field::new("item", arrow::datatypes::DataType::Float32, true)),
            FEATURES as i32,
            Arc::new(Float32Array::from(features)),
            None,
        );
        let arrays: [ArrayRef; 2] = [Arc::new(lists), Arc::new(Float32Array::from(labels))];
        columns.extend(&arrays).unwrap().unwrap();
    }
    columns
}

fn options() -> Options {
    Options {
        loss: LossKind::MeanSquared,
        optimizer: Optimizer::Sgd { momentum: 0.9, is_nesterov: false, weight_decay: 1e-3 },
        learning_rate: 0.1,
        schedule: Schedule::Cosine { warm_up: 0.1 },
        batch_rows: 16,
        epochs: 5,
        accumulation: 1,
        gradient_norm_max: Some(0.5),
        bucket_bytes: 100,
        wire: Wire::F32,
        precision: Precision::F32,
        sharding: Sharding::None,
        seed: 42,
        early_stopping: None,
    }
}

fn train_on(group: &Group, columns: &Columns, options: &Options, checkpoints: &dyn Checkpointer) -> Result<Trained> {
    let mut none = std::iter::empty();
    let partition = Partition { schema: Arc::new(Schema::empty()), record_batches: &mut none };
    let ctx = RankContext { group, partition, progress: &Silent, checkpoints };
    let identity = |num_rows| Identity::new("network", b"", num_rows, FEATURES);
    train(&ctx, network(), &Loss::new(options.loss, None)?, columns, identity, options)
}

/// Trains on a gang whose ranks hold the rows up to each of `ends`, from that of the rank before.
fn train_split(ends: &[usize], options: &Options) -> Trained {
    let results = gang(ends.len(), |group| {
        let start = group.rank().checked_sub(1).map_or(0, |before| ends[before]);
        train_on(group, &columns(start..ends[group.rank()]), options, &Never).unwrap()
    });
    results.into_iter().next().unwrap()
}

fn weights(trained: &Trained) -> Vec<f32> {
    let module = ScriptModule::load(&trained.module).unwrap();
    module
        .parameters()
        .iter()
        .flat_map(|(_, parameter)| Vec::<f32>::try_from(parameter.flatten(0, -1)).unwrap())
        .collect()
}

fn largest_difference(a: &Trained, b: &Trained) -> f32 {
    weights(a).iter().zip(weights(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn ranks_with_uneven_parts_train_as_one() {
    let alone = train_split(&[ROWS], &options());
    assert!(alone.losses[4] < alone.losses[0] * 0.7, "{:?}", alone.losses);
    assert_eq!((alone.num_steps, alone.output_width), (35, Some(1)));
    for ends in [&[50, ROWS][..], &[100, ROWS], &[0, ROWS], &[2, 2, ROWS]] {
        let together = train_split(ends, &options());
        let difference = largest_difference(&alone, &together);
        assert!(difference < 1e-5, "{ends:?}: {difference}");
        assert!((alone.losses[4] - together.losses[4]).abs() < 1e-6);
    }
}

#[test]
fn equal_seeds_give_equal_bits_and_others_do_not() {
    let first = train_split(&[40, ROWS], &options());
    assert_eq!(weights(&first), weights(&train_split(&[40, ROWS], &options())));
    let other = train_split(&[40, ROWS], &Options { seed: 43, ..options() });
    assert!(largest_difference(&first, &other) > 1e-4);
}

#[test]
fn accumulation_buckets_and_shards_change_no_result() {
    let whole = train_split(&[60, ROWS], &options());
    for other in [
        Options { accumulation: 3, ..options() },
        Options { bucket_bytes: 1 << 20, ..options() },
        Options { bucket_bytes: 1, ..options() },
        Options { sharding: Sharding::OptimizerState, ..options() },
    ] {
        let difference = largest_difference(&whole, &train_split(&[60, ROWS], &other));
        assert!(difference < 1e-5, "{difference}");
    }
    let moments = Moments { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };
    let adam = Options { optimizer: Optimizer::AdamW(moments), learning_rate: 0.01, ..options() };
    let sharded = Options { sharding: Sharding::OptimizerState, ..adam.clone() };
    let difference = largest_difference(&train_split(&[ROWS], &adam), &train_split(&[30, 60, ROWS], &sharded));
    assert!(difference < 1e-4, "{difference}");
}

#[test]
fn gradients_in_half_precision_come_close() {
    let whole = train_split(&[60, ROWS], &options());
    for wire in [Wire::Bf16, Wire::F16] {
        let difference = largest_difference(&whole, &train_split(&[60, ROWS], &Options { wire, ..options() }));
        assert!(difference > 0.0 && difference < 2e-2, "{wire:?} {difference}");
    }
    let autocast = train_split(&[60, ROWS], &Options { precision: Precision::Bf16, ..options() });
    let difference = largest_difference(&whole, &autocast);
    assert!(difference > 0.0 && difference < 0.1, "{difference}");
}

#[test]
fn training_ends_when_validation_gets_no_better() {
    let early = EarlyStopping { validation_fraction: 0.2, patience: 2, min_delta: 0.0 };
    let options = Options { early_stopping: Some(early), epochs: 200, learning_rate: 0.3, ..options() };
    let alone = train_split(&[ROWS], &options);
    let best = alone.best_epoch.unwrap();
    assert!(alone.losses.len() < 200 && alone.validation_losses.len() == alone.losses.len());
    assert_eq!(alone.losses.len(), best + 3);
    let together = train_split(&[70, ROWS], &options);
    assert!((alone.validation_losses[0] - together.validation_losses[0]).abs() < 1e-6);
}

/// Keeps all states, and starts from one.
#[derive(Default)]
struct Kept {
    saved: Mutex<Vec<Saved>>,
    start: Option<Saved>,
}

impl Checkpointer for Kept {
    fn interval(&self) -> Option<u64> {
        Some(3)
    }

    fn save(&self, _: &Identity, step: u64, state: Vec<u8>) {
        self.saved.lock().unwrap().push(Saved { step, state });
    }

    fn load(&self, _: &Identity) -> Result<Option<Saved>> {
        Ok(self.start.clone())
    }
}

#[test]
fn a_training_that_goes_on_ends_where_it_would_have() {
    let early = EarlyStopping { validation_fraction: 0.1, patience: 9, min_delta: 0.0 };
    let options = Options { early_stopping: Some(early), ..options() };
    let train_from = |start: Option<Saved>, ends: &[usize]| {
        let kept = Kept { start, ..Kept::default() };
        let trained = gang(ends.len(), |group| {
            let first = group.rank().checked_sub(1).map_or(0, |before| ends[before]);
            let checkpoints: &dyn Checkpointer = if group.rank() == 0 { &kept } else { &Never };
            train_on(group, &columns(first..ends[group.rank()]), &options, checkpoints).unwrap()
        });
        (trained.into_iter().next().unwrap(), kept.saved.into_inner().unwrap())
    };
    let (whole, saved) = train_from(None, &[30, ROWS]);
    // in the middle of an epoch, and at the end of one
    assert_eq!((saved[0].step, saved[1].step), (3, 6));
    for start in &saved[..2] {
        let (resumed, _) = train_from(Some(start.clone()), &[30, ROWS]);
        assert_eq!(weights(&resumed), weights(&whole));
        assert_eq!((&resumed.losses, &resumed.validation_losses), (&whole.losses, &whole.validation_losses));
        // with another number of ranks each row still counts once an epoch
        let (fewer, _) = train_from(Some(start.clone()), &[ROWS]);
        assert!(largest_difference(&fewer, &whole) < 1e-5);
    }
}

#[test]
fn a_loss_that_is_no_number_names_step_and_rank() {
    let errors = gang(2, |group| {
        let mut columns = columns(if group.rank() == 0 { 0..50 } else { 50..ROWS });
        if group.rank() == 1 {
            let far: ArrayRef = Arc::new(Float32Array::from(vec![f32::MAX]));
            let lists = arrow::array::FixedSizeListArray::new(
                Arc::new(arrow::datatypes::Field::new("item", arrow::datatypes::DataType::Float32, true)),
                FEATURES as i32,
                Arc::new(Float32Array::from(vec![0.0; FEATURES])),
                None,
            );
            columns.extend(&[Arc::new(lists), far]).unwrap().unwrap();
        }
        train_on(group, &columns, &options(), &Never).unwrap_err()
    });
    for error in errors {
        assert!(matches!(&error, Error::LossNotFinite { step, ranks, .. } if *step < 7 && ranks == &[1]), "{error}");
    }
}

#[test]
fn a_module_that_fails_ends_the_gang_with_its_own_words() {
    let source = "
def forward(self, x):
    return torch.matmul(x, self.w)
";
    let fail = |rows: std::ops::Range<usize>| {
        let weight = Tensor::zeros([9, 1], (tch::Kind::Float, tch::Device::Cpu));
        let module = ScriptModule::define(source, &[("w", weight)]).unwrap();
        let mut none = std::iter::empty();
        let partition = Partition { schema: Arc::new(Schema::empty()), record_batches: &mut none };
        let group = Group::single();
        let ctx = RankContext { group: &group, partition, progress: &Silent, checkpoints: &Never };
        let identity = |num_rows| Identity::new("network", b"", num_rows, FEATURES);
        let loss = Loss::new(LossKind::MeanSquared, None).unwrap();
        train(&ctx, module, &loss, &columns(rows), identity, &options()).unwrap_err()
    };
    let error = fail(0..ROWS);
    assert!(matches!(&error, Error::ModuleFailed { .. }) && error.to_string().contains("9x1"), "{error}");
    let error = fail(0..0);
    assert!(error.to_string().contains("empty dataset"), "{error}");
    assert!(ScriptModule::load(b"no module").is_err());
}

#[test]
fn parameters_that_a_step_does_not_use_hold_nobody_up() {
    let source = "
def forward(self, x):
    y = torch.matmul(x, self.w)
    if bool(x[0, 0] > 0.0):
        y = y + self.sometimes
    return y
";
    let tensor = |shape: &[i64]| Tensor::zeros(shape, (tch::Kind::Float, tch::Device::Cpu));
    let trained = gang(2, |group| {
        let module = ScriptModule::define(
            source,
            &[("w", tensor(&[3, 1])), ("sometimes", tensor(&[1])), ("never", tensor(&[4]))],
        );
        let mut none = std::iter::empty();
        let partition = Partition { schema: Arc::new(Schema::empty()), record_batches: &mut none };
        let ctx = RankContext { group, partition, progress: &Silent, checkpoints: &Never };
        let identity = |num_rows| Identity::new("network", b"", num_rows, FEATURES);
        let columns = columns(if group.rank() == 0 { 0..50 } else { 50..ROWS });
        let loss = Loss::new(LossKind::MeanSquared, None).unwrap();
        train(&ctx, module.unwrap(), &loss, &columns, identity, &Options { bucket_bytes: 4, ..options() }).unwrap()
    });
    let module = ScriptModule::load(&trained[0].module).unwrap();
    let never = module.parameters().into_iter().find(|(name, _)| name == "never").unwrap().1;
    assert_eq!(Vec::<f32>::try_from(never).unwrap(), [0.0; 4]);
}
