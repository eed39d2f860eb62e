//! Rows per second of a network on one or two ranks of one thread each, as processes of this machine.
//!
//!     cargo run --release -p phalanx -p train --example network_speed -- RANKS BATCH_ROWS_OF_A_RANK
//!
//! The network is an MLP of 28-256-256-2 with SGD and momentum, the one of the project's comparison with PyTorch.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use collective::{Address, Group, Listener, Membership, Options as GroupOptions};
use tch::{Device, Kind, Tensor};
use train::checkpoint::{Identity, Never};
use train::network::{
    Column, ColumnKind, Columns, Loss, LossKind, Optimizer, Options, Precision, Schedule, ScriptModule, Sharding, Wire,
    train,
};
use train::progress::Silent;
use train::{Partition, RankContext};

const FEATURES: usize = 28;
const STEPS: usize = 1500;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [ranks, rows] => launch(ranks.parse()?, rows),
        [rank, ranks, rows] => run(rank.parse()?, ranks.parse()?, rows.parse()?),
        _ => Err("expected the number of ranks, and the rows of a rank's batch".into()),
    }
}

/// Starts a process for every rank, and tells each the addresses of all.
fn launch(ranks: usize, rows: &str) -> Result<(), Failure> {
    let mut children = Vec::new();
    let mut addresses = Vec::new();
    for rank in 0..ranks {
        let arguments = [rank.to_string(), ranks.to_string(), rows.to_string()];
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut address = String::new();
        output.read_line(&mut address)?;
        addresses.push(address.trim().to_string());
        children.push((child, output));
    }
    for (child, _) in &mut children {
        let input = child.stdin.as_mut().ok_or("no input")?;
        writeln!(input, "{}", addresses.join(" "))?;
    }
    for (mut child, output) in children {
        output.lines().try_for_each(|line| line.map(|line| println!("{line}")))?;
        child.wait()?;
    }
    Ok(())
}

fn join(rank: usize, ranks: usize) -> Result<Group, Failure> {
    let listener = Listener::bind(IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    println!("{}", listener.address());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let addresses = line.split_whitespace().map(Address::from_str).collect::<Result<Vec<_>, _>>()?;
    let job_id = String::from("speed");
    let membership = Membership { job_id, generation: 0, rank, world_size: ranks, secret: [3; 32], addresses };
    Ok(listener.join(&GroupOptions::default(), membership)?)
}

fn network() -> Result<ScriptModule, Failure> {
    let source = "
def forward(self, x):
    h = torch.relu(torch.linear(x, self.w1, self.b1))
    h = torch.relu(torch.linear(h, self.w2, self.b2))
    return torch.linear(h, self.w3, self.b3)
";
    tch::manual_seed(1);
    let weight = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.1;
    let parameters = [
        ("w1", weight(&[256, FEATURES as i64])),
        ("b1", weight(&[256])),
        ("w2", weight(&[256, 256])),
        ("b2", weight(&[256])),
        ("w3", weight(&[2, 256])),
        ("b3", weight(&[2])),
    ];
    Ok(ScriptModule::define(source, &parameters)?)
}

fn run(rank: usize, ranks: usize, rows: usize) -> Result<(), Failure> {
    tch::set_num_threads(1);
    let group = join(rank, ranks)?;
    // some passes over data that fits in the caches of no core
    let num_rows = (rows * STEPS / 3).min(200_000);
    let epochs = (rows * STEPS).div_ceil(num_rows);
    let mut state = 7 + rank as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let features: Vec<f32> = (0..num_rows * FEATURES).map(|_| next()).collect();
    let labels: Vec<i64> = features.chunks(FEATURES).map(|row| i64::from(row[0] * row[1] > 0.0)).collect();
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let lists = FixedSizeListArray::new(item, FEATURES as i32, Arc::new(Float32Array::from(features)), None);
    let arrays: [ArrayRef; 2] = [Arc::new(lists), Arc::new(Int64Array::from(labels))];
    let mut columns =
        Columns { inputs: vec![Column::new("x", ColumnKind::Numbers)], label: Column::new("y", ColumnKind::Class) };
    columns.extend(&arrays)?.map_err(|problem| problem.to_string())?;
    let options = Options {
        loss: LossKind::CrossEntropy,
        optimizer: Optimizer::Sgd { momentum: 0.9, is_nesterov: false, weight_decay: 0.0 },
        learning_rate: 0.01,
        schedule: Schedule::Constant,
        batch_rows: rows * ranks,
        epochs,
        accumulation: 1,
        gradient_norm_max: None,
        bucket_bytes: 1 << 20,
        wire: Wire::F32,
        precision: Precision::F32,
        sharding: Sharding::None,
        seed: 1,
        early_stopping: None,
    };
    let mut none = std::iter::empty();
    let partition = Partition { schema: Arc::new(Schema::empty()), record_batches: &mut none };
    let ctx = RankContext { group: &group, partition, progress: &Silent, checkpoints: &Never };
    let identity = |num_rows| Identity::new("speed", b"", num_rows, FEATURES);
    let loss = Loss::new(options.loss, None)?;
    let started = Instant::now();
    let trained = train(&ctx, network()?, &loss, &columns, identity, &options)?;
    let elapsed = started.elapsed().as_secs_f64();
    if rank == 0 {
        let used = (num_rows * ranks * epochs) as f64;
        let (steps, last) = (trained.num_steps, trained.losses.last().copied().unwrap_or(f64::NAN));
        println!("{ranks} ranks, {rows} rows each: {:.0} rows/s, {steps} steps, loss {last:.4}", used / elapsed);
    }
    Ok(())
}
