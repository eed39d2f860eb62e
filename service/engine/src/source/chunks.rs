//! A text file as pieces that hold whole lines, so that large files are read in parallel and in little memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::error::DataFusionError;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::listing::store_error;
use crate::{Error, Result};

/// How a format's records lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A record a line: a file may be cut between any two.
    Lines,
    /// Records may hold line ends: a file is one piece.
    WholeFile,
}

/// A piece of a file: whole lines, or the whole file.
#[derive(Debug)]
pub(super) struct Chunk {
    pub text: Vec<u8>,
    pub is_file_start: bool,
}

/// A part of a file that one partition reads: the lines that begin in `range`.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// Which of the scan's files.
    pub file: usize,
    pub range: Range<u64>,
}

const BLOCK_BYTES: u64 = 4 << 20;
/// How much is read at a time to find the end of a split's last line.
const TAIL_BYTES: u64 = 64 << 10;
/// Smaller parts are not worth a partition of their own.
const SPLIT_BYTES_MIN: u64 = 4 << 20;

/// The compression that a file's name tells.
pub(super) fn compression_of(name: &str) -> Result<FileCompressionType> {
    match name.rsplit('.').next() {
        Some("gz") => Ok(FileCompressionType::GZIP),
        Some("bz2") => Ok(FileCompressionType::BZIP2),
        Some("zst") => Ok(FileCompressionType::ZSTD),
        Some("xz") => Ok(FileCompressionType::from_str("xz")?),
        Some(extension @ ("lz4" | "snappy" | "deflate")) => {
            Err(Error::Unsupported { feature: format!("text compressed as {extension}") })
        }
        _ => Ok(FileCompressionType::UNCOMPRESSED),
    }
}

/// Deals files out to at most `num_partitions` partitions of about the same size, in order.
pub(super) fn plan_splits(files: &[ObjectMeta], framing: Framing, num_partitions: usize) -> Result<Vec<Vec<Split>>> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    let target = total.div_ceil(num_partitions.max(1) as u64).max(SPLIT_BYTES_MIN);
    let mut partitions: Vec<Vec<Split>> = Vec::new();
    let mut filled = target;
    for (file, meta) in files.iter().enumerate() {
        let is_compressed = compression_of(meta.location.filename().unwrap_or_default())?.is_compressed();
        let can_split = framing == Framing::Lines && !is_compressed;
        let mut start = 0;
        while start < meta.size {
            if filled >= target {
                partitions.push(Vec::new());
                filled = 0;
            }
            let end = if can_split { meta.size.min(start + (target - filled)) } else { meta.size };
            if let Some(last) = partitions.last_mut() {
                last.push(Split { file, range: start..end });
            }
            filled += end - start;
            start = end;
        }
    }
    Ok(partitions)
}

/// Reads a split piece by piece.
pub(super) struct ChunkReader {
    source: Source,
    /// The beginning of a line whose end is not read yet.
    carry: Vec<u8>,
    is_file_start: bool,
    /// The split begins within a line that belongs to the one before.
    skips_line: bool,
    is_done: bool,
}

enum Source {
    Ranged { store: Arc<dyn ObjectStore>, meta: ObjectMeta, next: u64, end: u64 },
    Stream(BoxStream<'static, datafusion::error::Result<Bytes>>),
    /// A stream's file in one piece.
    Whole(Option<BoxStream<'static, datafusion::error::Result<Bytes>>>),
}

impl ChunkReader {
    pub async fn open(
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        framing: Framing,
        range: Range<u64>,
    ) -> Result<ChunkReader> {
        let compression = compression_of(meta.location.filename().unwrap_or_default())?;
        let starts_inside = range.start > 0;
        let source = if framing == Framing::WholeFile || compression.is_compressed() {
            let bytes = store.get(&meta.location).await.map_err(store_error)?.into_stream();
            let stream = compression.convert_stream(bytes.map_err(DataFusionError::from).boxed())?;
            match framing {
                Framing::WholeFile => Source::Whole(Some(stream)),
                Framing::Lines => Source::Stream(stream),
            }
        } else {
            // The byte before the split tells whether a line begins with the split.
            let next = range.start.saturating_sub(1);
            Source::Ranged { store: store.clone(), meta: meta.clone(), next, end: range.end }
        };
        Ok(ChunkReader {
            source,
            carry: Vec::new(),
            is_file_start: !starts_inside,
            skips_line: starts_inside,
            is_done: false,
        })
    }

    pub async fn next(&mut self) -> Result<Option<Chunk>> {
        while !self.is_done {
            let block = match &mut self.source {
                Source::Whole(stream) => {
                    self.is_done = true;
                    let Some(mut stream) = stream.take() else { break };
                    while let Some(bytes) = stream.try_next().await? {
                        self.carry.extend_from_slice(&bytes);
                    }
                    let text = std::mem::take(&mut self.carry);
                    return Ok(Some(self.chunk(text)));
                }
                Source::Stream(stream) => gather(stream).await?,
                Source::Ranged { store, meta, next, end } => {
                    let is_tail = *next >= *end;
                    if *next >= meta.size || is_tail && self.carry.is_empty() && !self.skips_line {
                        Vec::new()
                    } else if is_tail && self.skips_line {
                        // No line begins in the split.
                        self.carry.clear();
                        Vec::new()
                    } else {
                        let stop = if is_tail { *next + TAIL_BYTES } else { (*next + BLOCK_BYTES).min(*end) };
                        let range = *next..stop.min(meta.size);
                        *next = range.end;
                        let bytes = store.get_range(&meta.location, range).await.map_err(store_error)?;
                        if !is_tail {
                            bytes.to_vec()
                        } else if let Some(chunk) = self.finish_line(&bytes) {
                            return Ok(Some(chunk));
                        } else {
                            continue;
                        }
                    }
                }
            };
            if block.is_empty() {
                self.is_done = true;
                let text = std::mem::take(&mut self.carry);
                return Ok((!text.is_empty()).then(|| self.chunk(text)));
            }
            if let Some(text) = self.whole_lines(block) {
                return Ok(Some(self.chunk(text)));
            }
        }
        Ok(None)
    }

    /// What has become whole with a new block.
    fn whole_lines(&mut self, mut block: Vec<u8>) -> Option<Vec<u8>> {
        if self.skips_line {
            let end = block.iter().position(|byte| *byte == b'\n')?;
            self.skips_line = false;
            block.drain(..=end);
        }
        let Some(last) = block.iter().rposition(|byte| *byte == b'\n') else {
            self.carry.extend_from_slice(&block);
            return None;
        };
        let rest = block.split_off(last + 1);
        let mut text = std::mem::replace(&mut self.carry, rest);
        text.extend_from_slice(&block);
        Some(text)
    }

    /// Ends the split's last line, which reaches beyond the split, if its end is in `tail`.
    fn finish_line(&mut self, tail: &[u8]) -> Option<Chunk> {
        let end = tail.iter().position(|byte| *byte == b'\n');
        self.carry.extend_from_slice(&tail[..end.map_or(tail.len(), |end| end + 1)]);
        end?;
        self.is_done = true;
        let text = std::mem::take(&mut self.carry);
        Some(self.chunk(text))
    }

    fn chunk(&mut self, mut text: Vec<u8>) -> Chunk {
        let is_file_start = std::mem::take(&mut self.is_file_start);
        if is_file_start && text.starts_with(b"\xEF\xBB\xBF") {
            text.drain(..3);
        }
        Chunk { text, is_file_start }
    }
}

async fn gather(stream: &mut BoxStream<'static, datafusion::error::Result<Bytes>>) -> Result<Vec<u8>> {
    let mut block = Vec::new();
    while (block.len() as u64) < BLOCK_BYTES {
        match stream.try_next().await? {
            Some(bytes) => block.extend_from_slice(&bytes),
            None => break,
        }
    }
    Ok(block)
}

/// The lines of a text, ended by `\n`, `\r\n` or `\r`, or by a separator of one's own.
pub(super) fn lines<'a, 's>(text: &'a [u8], separator: Option<&'s [u8]>) -> impl Iterator<Item = &'a [u8]> + use<'a, 's> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let found = match separator {
            Some(separator) => {
                text.windows(separator.len().max(1)).position(|window| window == separator).map(|at| (at, separator.len()))
            }
            None => text.iter().position(|byte| *byte == b'\n' || *byte == b'\r').map(|at| {
                let is_pair = text[at] == b'\r' && text.get(at + 1) == Some(&b'\n');
                (at, if is_pair { 2 } else { 1 })
            }),
        };
        let (line, after) = match found {
            Some((at, length)) => (&text[..at], &text[at + length..]),
            None => (text, &text[text.len()..]),
        };
        rest = Some(after).filter(|after| !after.is_empty());
        Some(line)
    })
}

/// Reads every piece of files once and folds it, files in parallel: how a schema is inferred.
pub(super) async fn fold<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    framing: Framing,
    num_tasks: usize,
    visit: impl Fn(&Chunk) -> Result<T> + Clone + Send + Sync + 'static,
    mut merge: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let partitions = plan_splits(&files, framing, num_tasks)?;
    let files = Arc::new(files);
    let mut running: VecDeque<tokio::task::JoinHandle<Result<Vec<T>>>> = VecDeque::new();
    for splits in partitions {
        let (store, files, visit) = (store.clone(), files.clone(), visit.clone());
        running.push_back(tokio::spawn(async move {
            let mut seen = Vec::new();
            for split in splits {
                let mut reader = ChunkReader::open(&store, &files[split.file], framing, split.range).await?;
                while let Some(chunk) = reader.next().await? {
                    seen.push(visit(&chunk)?);
                }
            }
            Ok(seen)
        }));
    }
    while let Some(task) = running.pop_front() {
        let seen = task.await.map_err(|_| Error::Cancelled)??;
        seen.into_iter().try_for_each(&mut merge)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;

    async fn read(text: &str, cuts: &[u64]) -> Vec<String> {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("x");
        store.put(&path, text.as_bytes().to_vec().into()).await.unwrap();
        let meta = store.head(&path).await.unwrap();
        let mut found = Vec::new();
        for bounds in cuts.windows(2) {
            let mut reader = ChunkReader::open(&store, &meta, Framing::Lines, bounds[0]..bounds[1]).await.unwrap();
            while let Some(chunk) = reader.next().await.unwrap() {
                assert_eq!(chunk.is_file_start, bounds[0] == 0 && found.is_empty());
                found.extend(lines(&chunk.text, None).map(|line| String::from_utf8(line.to_vec()).unwrap()));
            }
        }
        found
    }

    #[tokio::test]
    async fn every_line_belongs_to_exactly_one_split() {
        let text = "a\nbb\n\nccc\r\nd";
        let expected = ["a", "bb", "", "ccc", "d"];
        let size = text.len() as u64;
        for first in 1..size {
            for second in first..size {
                assert_eq!(read(text, &[0, first, second, size]).await, expected, "{first} {second}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_longer_than_what_is_read_at_a_time_stays_whole() {
        let long = "x".repeat((TAIL_BYTES * 3) as usize);
        let text = format!("a\n{long}\nb\n");
        assert_eq!(read(&text, &[0, 5, 9, text.len() as u64]).await, ["a", long.as_str(), "b"]);
    }

    #[test]
    fn files_are_dealt_out_by_size() {
        let meta = |name: &str, size: u64| ObjectMeta {
            location: Path::from(name),
            last_modified: Default::default(),
            size,
            e_tag: None,
            version: None,
        };
        let mib = 1 << 20;
        let files = [meta("a", 10 * mib), meta("b.gz", 10 * mib), meta("c", 0), meta("d", 1)];
        let plan = plan_splits(&files, Framing::Lines, 2).unwrap();
        let sizes: Vec<u64> =
            plan.iter().map(|splits| splits.iter().map(|split| split.range.end - split.range.start).sum()).collect();
        assert_eq!(sizes, [20 * mib, 1]);
        assert_eq!(plan_splits(&files[..1], Framing::Lines, 2).unwrap().len(), 2);
        assert_eq!(plan_splits(&files[..1], Framing::WholeFile, 2).unwrap().len(), 1);
        assert!(plan_splits(&[meta("x.snappy", 1)], Framing::Lines, 1).is_err());
    }
}
