//! What a worker prints: read so that it never blocks, and its last lines kept for the error that it may end with.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinSet;

const LINES_MAX: usize = 40;
const LINE_BYTES_MAX: usize = 2048;
const READ_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    readers: JoinSet<()>,
}

impl LastWords {
    pub fn capture(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> LastWords {
        let lines = Arc::default();
        let mut readers = JoinSet::new();
        if let Some(pipe) = stdout {
            readers.spawn(read(pipe, Arc::clone(&lines)));
        }
        if let Some(pipe) = stderr {
            readers.spawn(read(pipe, Arc::clone(&lines)));
        }
        LastWords { lines, readers }
    }

    /// The last lines, once the pipes are closed or the time is over.
    pub async fn tail(&mut self, timeout: Duration) -> Vec<String> {
        let drained = async { while self.readers.join_next().await.is_some() {} };
        // past the deadline, what was read so far is the tail
        let _ = tokio::time::timeout(timeout, drained).await;
        self.lines.lock().iter().cloned().collect()
    }

    pub fn clear(&self) {
        self.lines.lock().clear();
    }
}

async fn read(mut pipe: impl AsyncRead + Unpin, lines: Arc<Mutex<VecDeque<String>>>) {
    let mut buffer = vec![0_u8; READ_BYTES];
    let mut partial: Vec<u8> = Vec::new();
    let emit = |partial: &mut Vec<u8>| {
        let mut lines = lines.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(partial).trim_end_matches('\r').to_owned());
        partial.clear();
    };
    while let Ok(count) = pipe.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX - partial.len().min(LINE_BYTES_MAX);
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            partial.extend_from_slice(&text[..text.len().min(room)]);
            if piece.ends_with(b"\n") {
                emit(&mut partial);
            }
        }
    }
    if !partial.is_empty() {
        emit(&mut partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn last_lines(text: &[u8]) -> Vec<String> {
        let lines = Arc::default();
        read(text, Arc::clone(&lines)).await;
        lines.lock().iter().cloned().collect()
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_long_ones_are_cut() {
        assert_eq!(last_lines(b"one\ntwo\r\n\nlast").await, ["one", "two", "", "last"]);
        let many: String = (0..100).map(|number| format!("{number}\n")).collect();
        let kept = last_lines(many.as_bytes()).await;
        assert_eq!((kept.len(), kept[0].as_str()), (LINES_MAX, "60"));
        assert_eq!(last_lines(&[b'x'; 10_000]).await[0].len(), LINE_BYTES_MAX);
    }
}
