//! One task, run: its rows go to a worker while what it makes of them comes back.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::pool::Lease;
use crate::protocol::{END_OF_STREAM, Reader, Said, init_message, put_i32};
use crate::task::Task;
use crate::{Error, Result, Workers};

/// What a worker has made and nobody has taken yet; beyond it the worker waits.
const OUTPUTS_WAITING: usize = 2;

/// What goes to a worker.
#[derive(Debug)]
pub enum Input {
    Batch(RecordBatch),
    /// The rows of a group, of each relation that takes part.
    Group(Vec<Vec<RecordBatch>>),
}

/// How it is laid out.
#[derive(Debug, Clone)]
pub enum InputShape {
    /// One Arrow stream of this schema.
    Stream(SchemaRef),
    /// An Arrow stream for each group and relation, with these schemas.
    Groups(Vec<SchemaRef>),
}

impl Workers {
    /// Runs a task. A worker is sought when the result is first polled; dropping the result kills it.
    pub fn run(
        &self,
        task: Task,
        shape: InputShape,
        input: BoxStream<'static, Result<Input>>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
        let workers = self.clone();
        let start = async move {
            let (sender, receiver) = mpsc::channel(OUTPUTS_WAITING);
            let mut driver = JoinSet::new();
            driver.spawn(async move {
                if let Err(error) = drive(&workers, &task, shape, input, &sender).await {
                    // Whoever reads may be gone, which is why the task ended.
                    let _ = sender.send(Err(error)).await;
                }
            });
            (receiver, driver)
        };
        stream::once(start).flat_map(|(receiver, driver)| {
            stream::unfold((receiver, driver), |(mut receiver, mut driver)| async move {
                if let Some(output) = receiver.recv().await {
                    return Some((output, (receiver, driver)));
                }
                match driver.join_next().await {
                    Some(Err(failed)) => {
                        let error = Error::Input { source: Box::new(failed) };
                        Some((Err(error), (receiver, driver)))
                    }
                    Some(Ok(())) | None => None,
                }
            })
        })
    }
}

/// Takes what a worker makes.
pub(crate) trait Keep: Sync {
    fn keep(&self, batch: RecordBatch) -> impl Future<Output = Result<()>> + Send;
}

impl Keep for Sender {
    async fn keep(&self, batch: RecordBatch) -> Result<()> {
        // Nobody wants it any more: the rest is not worth a worker's time.
        self.send(Ok(batch)).await.map_err(|_| Error::Abandoned)
    }
}

type Sender = mpsc::Sender<Result<RecordBatch>>;

async fn drive(
    workers: &Workers,
    task: &Task,
    shape: InputShape,
    input: BoxStream<'static, Result<Input>>,
    sender: &Sender,
) -> Result<()> {
    workers.check_version(&task.python_version).await?;
    let lease = workers.lease(&task.session).await?;
    match converse(workers, lease, task, shape, input, sender).await {
        Err(Error::Abandoned) => Ok(()),
        outcome => outcome,
    }
}

impl Workers {
    /// # Errors
    /// [`Error::VersionMismatch`] where the worker's Python cannot read what the client's has pickled.
    pub(crate) async fn check_version(&self, client: &str) -> Result<()> {
        let interpreter = self.interpreter().await?;
        if client == interpreter.python {
            return Ok(());
        }
        Err(Error::VersionMismatch { client: client.to_owned(), worker: interpreter.python.clone() })
    }
}

/// Runs a task in a worker; `keep` takes what it makes.
pub(crate) async fn converse(
    workers: &Workers,
    mut lease: Lease,
    task: &Task,
    shape: InputShape,
    input: BoxStream<'static, Result<Input>>,
    keep: &impl Keep,
) -> Result<()> {
    let init = init_message(task, workers.interpreter().await?.protocol);
    let (outcome, is_all_sent) = talk(lease.socket()?, &init, shape, input, keep).await;
    match outcome {
        Ok(true) if is_all_sent => lease.give_back(),
        Ok(_) => {}
        // The worker hung up: how it ended says why.
        Err(Error::Io { source }) => {
            tracing::debug!(error = %source, "a Python worker hung up");
            return Err(lease.post_mortem().await);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Sends and receives at the same time, until the worker has said its last. Gives whether it takes another task, and
/// whether all of the input went to it.
async fn talk(
    socket: &mut UnixStream,
    init: &[u8],
    shape: InputShape,
    input: BoxStream<'static, Result<Input>>,
    keep: &impl Keep,
) -> (Result<bool>, bool) {
    let (source, sink) = socket.split();
    let mut is_sending = true;
    let send = send(sink, init, shape, input);
    let receive = receive(source, keep);
    tokio::pin!(send, receive);
    loop {
        tokio::select! {
            received = &mut receive => return (received, !is_sending),
            sent = &mut send, if is_sending => match sent {
                Ok(()) => is_sending = false,
                // What the worker said before it hung up, such as an exception, is still to be read.
                Err(Error::Io { .. }) => return (receive.await, false),
                Err(error) => return (Err(error), false),
            },
        }
    }
}

async fn receive(source: ReadHalf<'_>, keep: &impl Keep) -> Result<bool> {
    let mut reader = Reader::new(tokio::io::BufReader::with_capacity(1 << 16, source));
    loop {
        match reader.next().await? {
            Said::Batch(batch) => keep.keep(batch).await?,
            Said::Done { is_reusable } => return Ok(is_reusable),
        }
    }
}

async fn send(
    mut sink: WriteHalf<'_>,
    init: &[u8],
    shape: InputShape,
    mut input: BoxStream<'static, Result<Input>>,
) -> Result<()> {
    sink.write_all(init).await?;
    match shape {
        InputShape::Stream(schema) => {
            let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
            while let Some(next) = input.next().await {
                if let Input::Batch(batch) = next? {
                    writer.write(&batch)?;
                    flush(&mut sink, writer.get_mut()).await?;
                }
            }
            writer.finish()?;
            flush(&mut sink, writer.get_mut()).await?;
        }
        InputShape::Groups(schemas) => {
            let mut bytes = Vec::new();
            while let Some(next) = input.next().await {
                if let Input::Group(relations) = next? {
                    put_i32(&mut bytes, relations.len() as i32);
                    for (batches, schema) in relations.iter().zip(&schemas) {
                        let mut writer = StreamWriter::try_new(bytes, schema)?;
                        for batch in batches {
                            writer.write(batch)?;
                        }
                        bytes = writer.into_inner()?;
                    }
                    flush(&mut sink, &mut bytes).await?;
                }
            }
            put_i32(&mut bytes, 0);
            flush(&mut sink, &mut bytes).await?;
        }
    }
    let mut end = Vec::new();
    put_i32(&mut end, END_OF_STREAM);
    flush(&mut sink, &mut end).await?;
    Ok(())
}

async fn flush(sink: &mut (impl AsyncWrite + Unpin), bytes: &mut Vec<u8>) -> Result<()> {
    sink.write_all(bytes).await?;
    bytes.clear();
    Ok(())
}
