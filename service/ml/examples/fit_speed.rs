//! How long a logistic regression takes on made-up rows, on ranks that are threads.
//!
//! `cargo run --release -p ml --example fit_speed [rows] [features] [ranks]`

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::Float64Array;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use collective::{Group, Listener, Membership, Options};
use ml::{Attribute, Estimator, Kind, Params, SummaryAttribute, Value};
use train::checkpoint::Never;
use train::progress::Silent;
use train::{Partition, RankContext};
use udt::VectorBuilder;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let num_rows = arguments.next().unwrap_or(1_000_000);
    let width = arguments.next().unwrap_or(28);
    let world_size = arguments.next().unwrap_or(2);
    let operator = &ml::classification::logistic_regression::OPERATOR;
    let Kind::Estimator(estimator) = operator.kind else { return Err("no estimator".into()) };
    let supplied =
        BTreeMap::from([("regParam".to_string(), Value::Double(0.001)), ("maxIter".to_string(), Value::Int(50))]);
    let params = Params::new(operator, "uid", supplied)?;
    let schema = Arc::new(Schema::new(vec![
        udt::field::vector_field("features"),
        Field::new("label", DataType::Float64, false),
    ]));
    let parts =
        (0..world_size).map(|rank| part(rank, num_rows / world_size, width, &schema)).collect::<Outcome<Vec<_>>>()?;
    let start = Instant::now();
    let fitted = fit(estimator, &params, &schema, parts)?;
    let elapsed = start.elapsed();
    let model = estimator.model(operator, &params, &schema, &fitted)?;
    let summary = model.summary().ok_or("no summary")?;
    if let SummaryAttribute::Ready(Attribute::Value(iterations)) = summary.attribute("totalIterations", &[])? {
        println!("{num_rows} x {width}, {world_size} ranks: {elapsed:.2?}, {iterations} iterations");
    }
    Ok(())
}

/// Rows whose labels follow a hidden plane, with noise.
fn part(rank: usize, num_rows: usize, width: usize, schema: &Arc<Schema>) -> Outcome<Vec<RecordBatch>> {
    const BATCH_ROWS: usize = 65_536;
    let mut state = rank as u64 + 1;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let mut batches = Vec::new();
    for start in (0..num_rows).step_by(BATCH_ROWS) {
        let rows = BATCH_ROWS.min(num_rows - start);
        let values: Vec<f64> = (0..rows * width).map(|i| random() * (1 + i % width) as f64).collect();
        let label = |row: &[f64]| {
            let plane: f64 = row.iter().enumerate().map(|(i, x)| x / (1 + i) as f64 * ((i % 5) as f64 - 2.0)).sum();
            f64::from(u8::from(plane + 2.0 * random() > 0.0))
        };
        let labels: Vec<f64> = values.chunks_exact(width).map(label).collect();
        let columns = vec![VectorBuilder::from_dense_rows(width, values), Arc::new(Float64Array::from(labels)) as _];
        batches.push(RecordBatch::try_new(schema.clone(), columns)?);
    }
    Ok(batches)
}

fn fit(
    estimator: &dyn Estimator,
    params: &Params,
    schema: &Arc<Schema>,
    parts: Vec<Vec<RecordBatch>>,
) -> Outcome<Vec<u8>> {
    let plan = &estimator.plan_fit(params, schema)?;
    let program = ml::catalog::program(plan.program).ok_or("no program")?;
    let listeners = parts
        .iter()
        .map(|_| Listener::bind(IpAddr::V4(Ipv4Addr::LOCALHOST)))
        .collect::<Result<Vec<Listener>, collective::Error>>()?;
    let addresses = &listeners.iter().map(|listener| listener.address().clone()).collect::<Vec<_>>();
    let world_size = parts.len();
    std::thread::scope(|scope| {
        let ranks: Vec<_> = listeners
            .into_iter()
            .zip(parts)
            .enumerate()
            .map(|(rank, (listener, batches))| {
                scope.spawn(move || -> Outcome<Vec<u8>> {
                    let membership = Membership {
                        job_id: "speed".into(),
                        generation: 1,
                        rank,
                        world_size,
                        secret: [1; 32],
                        addresses: addresses.clone(),
                    };
                    let group: Group = listener.join(&Options::default(), membership)?;
                    let mut batches = batches.into_iter().map(train::Result::Ok);
                    let partition = Partition { schema: schema.clone(), record_batches: &mut batches };
                    let mut ctx = RankContext { group: &group, partition, progress: &Silent, checkpoints: &Never };
                    Ok((program.run)(&plan.spec, &mut ctx)?)
                })
            })
            .collect();
        let mut fitted = Vec::new();
        for rank in ranks {
            let bytes = rank.join().map_err(|_| "a rank panicked")??;
            fitted = if bytes.is_empty() { fitted } else { bytes };
        }
        Ok(fitted)
    })
}
