//! A barrier stage between its tasks, which run together, and its partitions, which are read one by one.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::future::{BoxFuture, FutureExt, Shared};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use python::{StageTask, Workers};

use crate::Error;

type Outcome = Result<(), Arc<Error>>;

/// What the tasks have made, by partition, and the memory it takes.
struct Made {
    outputs: Mutex<Vec<Vec<RecordBatch>>>,
    reservation: Mutex<MemoryReservation>,
}

pub struct Stage {
    /// Runs all tasks, for whichever partition is read first.
    outcome: Shared<BoxFuture<'static, Outcome>>,
    made: Arc<Made>,
    taken: Vec<bool>,
}

impl Stage {
    pub fn new(workers: Workers, name: &str, tasks: Vec<StageTask>, reservation: MemoryReservation) -> Stage {
        let num_tasks = tasks.len();
        let outputs = Mutex::new((0..num_tasks).map(|_| Vec::new()).collect());
        let made = Arc::new(Made { outputs, reservation: Mutex::new(reservation) });
        let (keeper, name) = (Arc::clone(&made), name.to_owned());
        let run = async move {
            let keep = |partition: usize, output: RecordBatch| {
                keeper.keep(partition, output).map_err(|error| python::Error::Input { source: Box::new(error) })
            };
            workers.run_stage(&name, tasks, keep).await.map_err(|error| Arc::new(Error::from(error)))
        };
        Stage { outcome: run.boxed().shared(), made, taken: vec![false; num_tasks] }
    }

    pub fn is_all_taken(&self) -> bool {
        self.taken.iter().all(|taken| *taken)
    }

    pub fn is_taken(&self, partition: usize) -> bool {
        self.taken.get(partition).copied().unwrap_or(true)
    }

    /// The rows of a partition, once. There are none before all tasks are done.
    pub fn take(&mut self, partition: usize) -> Option<BoxStream<'static, python::Result<RecordBatch>>> {
        if self.is_taken(partition) {
            return None;
        }
        self.taken[partition] = true;
        let (outcome, made) = (self.outcome.clone(), Arc::clone(&self.made));
        let rows = async move {
            outcome.await.map_err(|error| {
                // Each partition tells of the same failure.
                let shared = DataFusionError::Shared(Arc::new(DataFusionError::External(Box::new(SharedError(error)))));
                python::Error::Input { source: Box::new(Error::from(shared)) }
            })?;
            let outputs = std::mem::take(&mut made.outputs.lock()[partition]);
            Ok::<_, python::Error>(stream::iter(outputs.into_iter().map(Ok)))
        };
        Some(stream::once(rows).try_flatten().boxed())
    }
}

impl Made {
    fn keep(&self, partition: usize, output: RecordBatch) -> crate::Result<()> {
        self.reservation.lock().try_grow(output.get_array_memory_size())?;
        self.outputs.lock()[partition].push(output);
        Ok(())
    }
}

/// An error that several readers are told of; its cause is what was found.
#[derive(Debug)]
struct SharedError(Arc<Error>);

impl std::fmt::Display for SharedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}
