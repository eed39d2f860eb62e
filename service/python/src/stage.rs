//! A barrier stage: tasks that start together, can talk to each other, and end together.

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use futures::stream::{BoxStream, FuturesUnordered};

use crate::barrier::BarrierStage;
use crate::pool::Lease;
use crate::run::{Input, InputShape, Keep, converse};
use crate::task::Task;
use crate::{Error, Result, Workers};

/// One task of a stage, and its rows. The task's seat is given to it by the stage.
pub struct StageTask {
    pub task: Task,
    pub shape: InputShape,
    pub input: BoxStream<'static, Result<Input>>,
}

/// What the task of one partition makes.
struct KeepOf<'a, F> {
    partition: usize,
    keep: &'a F,
}

impl<F: Fn(usize, RecordBatch) -> Result<()> + Send + Sync> Keep for KeepOf<'_, F> {
    async fn keep(&self, batch: RecordBatch) -> Result<()> {
        (self.keep)(self.partition, batch)
    }
}

impl Workers {
    /// Runs all tasks at the same time, each in a worker of its own. `keep` is given what they make, by partition, as it
    /// comes. Dropping the future kills them all.
    ///
    /// # Errors
    /// [`Error::Slots`] where the tasks cannot run together, and at once where they never could;
    /// [`Error::StageFailed`] with the first failure of a task, upon which the others are killed.
    pub async fn run_stage(
        &self,
        name: &str,
        tasks: Vec<StageTask>,
        keep: impl Fn(usize, RecordBatch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let num_tasks = tasks.len();
        let Some(session) = tasks.first().map(|first| first.task.session.clone()) else { return Ok(()) };
        let version = tasks.first().map(|first| first.task.python_version.clone()).unwrap_or_default();
        self.check_version(&version).await?;
        let held = self.options().slots.hold(name, num_tasks).await;
        let _held = held.map_err(|source| Error::Slots { source })?;
        let leases: Vec<Lease> = self.lease_together(&session, num_tasks).await?;
        let stage = BarrierStage::open(num_tasks).await?;
        let seats = stage.seats();
        let addresses: Vec<String> = seats.iter().map(|seat| format!("127.0.0.1:{}", seat.port())).collect();
        let addresses = addresses.join(",");
        let running: FuturesUnordered<_> = tasks
            .into_iter()
            .zip(leases)
            .zip(seats)
            .enumerate()
            .map(|(partition, ((mut part, lease), seat))| {
                part.task.place.seat = Some(seat.clone());
                part.task.place.local_properties.push(("addresses".to_owned(), addresses.clone()));
                let keep = &keep;
                async move {
                    let keep = KeepOf { partition, keep };
                    let outcome = converse(self, lease, &part.task, part.shape, part.input, &keep).await;
                    outcome.map_err(|source| match source {
                        // The rows are not the task's fault.
                        Error::Input { .. } => source,
                        source => Error::StageFailed { partition, source: Box::new(source) },
                    })
                }
            })
            .collect();
        // The first failure drops the others, and that kills their workers.
        running.try_collect::<()>().await
    }
}
