//! What a worker says: rows, an exception, that it is done.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::root_as_message;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::wire::{END_OF_DATA_SECTION, END_OF_STREAM, PYTHON_EXCEPTION_THROWN, START_ARROW_STREAM, TIMING_DATA};
use crate::{Error, Result};

/// Nothing that a worker says in one piece is longer: rows are cut into batches.
const PIECE_BYTES_MAX: usize = 2 << 30;
const CONTINUATION: u32 = u32::MAX;
/// Boot, init, finish and processing times, bytes spilled to memory and disk.
const TIMING_BYTES: usize = 6 * 8;

#[derive(Debug)]
pub enum Said {
    Batch(RecordBatch),
    /// The task is done; the worker takes another one, or has ended.
    Done {
        is_reusable: bool,
    },
}

/// Reads one task's answer.
pub struct Reader<R> {
    source: R,
    /// Of the Arrow stream that is being read.
    arrow: Option<StreamDecoder>,
    /// Batches that are decoded.
    ready: VecDeque<RecordBatch>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(source: R) -> Reader<R> {
        Reader { source, arrow: None, ready: VecDeque::new() }
    }

    /// The next thing the worker says. Not safe to cancel: what was read of it would be lost.
    ///
    /// # Errors
    /// [`Error::Raised`] with Python's traceback, [`Error::Io`] where the worker hung up.
    pub async fn next(&mut self) -> Result<Said> {
        loop {
            if let Some(batch) = self.next_batch().await? {
                return Ok(Said::Batch(batch));
            }
            match self.source.read_i32().await? {
                START_ARROW_STREAM => self.arrow = Some(StreamDecoder::new()),
                PYTHON_EXCEPTION_THROWN => {
                    let traceback = self.piece().await?;
                    return Err(Error::Raised { traceback: String::from_utf8_lossy(&traceback).into_owned() });
                }
                TIMING_DATA => {
                    self.source.read_exact(&mut [0_u8; TIMING_BYTES]).await?;
                }
                END_OF_DATA_SECTION => return self.epilogue().await,
                other => return Err(Error::Protocol { detail: format!("no meaning for {other}") }),
            }
        }
    }

    /// Accumulators, which a Connect client has none of, and whether the worker goes on.
    async fn epilogue(&mut self) -> Result<Said> {
        for _ in 0..self.source.read_i32().await? {
            self.piece().await?;
        }
        let is_reusable = self.source.read_i32().await? == END_OF_STREAM;
        Ok(Said::Done { is_reusable })
    }

    /// The next batch of the Arrow stream, or nothing when it is over or there is none.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some(decoder) = &mut self.arrow else { return Ok(None) };
            let mut header = [0_u8; 8];
            self.source.read_exact(&mut header).await?;
            let [a, b, c, d, e, f, g, h] = header;
            if u32::from_le_bytes([a, b, c, d]) != CONTINUATION {
                return Err(Error::Protocol { detail: "an Arrow message without its continuation mark".to_owned() });
            }
            let metadata_bytes = checked(u32::from_le_bytes([e, f, g, h]).into())?;
            let mut message = MutableBuffer::from_len_zeroed(header.len() + metadata_bytes);
            let (head, metadata) = message.as_slice_mut().split_at_mut(header.len());
            head.copy_from_slice(&header);
            self.source.read_exact(metadata).await?;
            if metadata_bytes == 0 {
                decode(decoder, message.into(), &mut self.ready)?;
                self.arrow = None;
                continue;
            }
            let body_bytes = root_as_message(metadata)
                .map_err(|error| Error::Protocol { detail: format!("an Arrow message that is none: {error}") })?
                .bodyLength();
            decode(decoder, message.into(), &mut self.ready)?;
            let mut body = MutableBuffer::from_len_zeroed(checked(body_bytes)?);
            self.source.read_exact(body.as_slice_mut()).await?;
            decode(decoder, body.into(), &mut self.ready)?;
        }
    }

    async fn piece(&mut self) -> Result<Vec<u8>> {
        let length = checked(self.source.read_i32().await?.into())?;
        let mut bytes = vec![0_u8; length];
        self.source.read_exact(&mut bytes).await?;
        Ok(bytes)
    }
}

/// Decodes all of a piece. A message without a body is complete for the decoder only when it sees the next one.
fn decode(decoder: &mut StreamDecoder, mut piece: Buffer, ready: &mut VecDeque<RecordBatch>) -> Result<()> {
    while !piece.is_empty() {
        ready.extend(decoder.decode(&mut piece)?);
    }
    Ok(())
}

fn checked(length: i64) -> Result<usize> {
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= PIECE_BYTES_MAX)
        .ok_or_else(|| Error::Protocol { detail: format!("a piece of {length} bytes") })
}
