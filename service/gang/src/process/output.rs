//! What a rank prints: read line by line, handed to its job's log, the tail of standard error kept.
//!
//! Reading never waits for whoever reads the log, so a rank never blocks on a full pipe.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::launcher::LogSink;
use crate::wire::LINE_BYTES_MAX;

const TAIL_LINES: usize = 40;
const READ_BYTES: usize = 16 << 10;
/// How long the rest of a dead process's output is awaited. Its group is dead too, so its pipes are closed, unless a
/// child of it moved to another session and holds them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

pub struct Output {
    tail: Tail,
    open_pipes: watch::Receiver<usize>,
    readers: Vec<JoinHandle<()>>,
}

type Tail = Arc<Mutex<VecDeque<String>>>;

impl Output {
    pub fn capture(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>, log: LogSink) -> io::Result<Output> {
        let tail = Tail::default();
        let stdout = stdout.map(|pipe| receiver(pipe.into())).transpose()?;
        let stderr = stderr.map(|pipe| receiver(pipe.into())).transpose()?;
        let (closed, open_pipes) = watch::channel(usize::from(stdout.is_some()) + usize::from(stderr.is_some()));
        let closed = Arc::new(closed);
        let mut readers = Vec::new();
        if let Some(pipe) = stdout {
            readers.push(tokio::spawn(read_lines(pipe, log.clone(), None, Arc::clone(&closed))));
        }
        if let Some(pipe) = stderr {
            readers.push(tokio::spawn(read_lines(pipe, log, Some(Arc::clone(&tail)), closed)));
        }
        Ok(Output { tail, open_pipes, readers })
    }

    pub async fn stderr_tail(&self) -> Vec<String> {
        let mut open_pipes = self.open_pipes.clone();
        // past the deadline, or with a reader that was stopped, the tail is what was read so far
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, open_pipes.wait_for(|open| *open == 0)).await;
        self.tail.lock().iter().cloned().collect()
    }

    pub fn clear_stderr_tail(&self) {
        self.tail.lock().clear();
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
    }
}

fn receiver(fd: OwnedFd) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(fd)
}

async fn read_lines(mut pipe: pipe::Receiver, log: LogSink, tail: Option<Tail>, closed: Arc<watch::Sender<usize>>) {
    let mut lines = Lines::default();
    let mut buffer = vec![0u8; READ_BYTES];
    let take = |line: String| {
        if let Some(tail) = &tail {
            let mut tail = tail.lock();
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line.clone());
        }
        log.line(line);
    };
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) => break,
            Ok(count) => lines.feed(&buffer[..count], &take),
            Err(error) => {
                tracing::warn!(%error, "the output of a rank could not be read");
                break;
            }
        }
    }
    lines.finish(&take);
    closed.send_modify(|open| *open -= 1);
}

/// Cuts bytes into lines of at most [`LINE_BYTES_MAX`].
#[derive(Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8], take: &impl Fn(String)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.extend(end, take);
                    self.emit(take);
                }
                None => self.extend(piece, take),
            }
        }
    }

    fn extend(&mut self, mut bytes: &[u8], take: &impl Fn(String)) {
        while self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            let (head, rest) = bytes.split_at(LINE_BYTES_MAX - self.partial.len());
            self.partial.extend_from_slice(head);
            self.emit(take);
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn emit(&mut self, take: &impl Fn(String)) {
        let line = String::from_utf8_lossy(&self.partial);
        take(line.trim_end_matches('\r').to_string());
        self.partial.clear();
    }

    fn finish(&mut self, take: &impl Fn(String)) {
        if !self.partial.is_empty() {
            self.emit(take);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let taken = RefCell::new(Vec::new());
        let take = |line: String| taken.borrow_mut().push(line);
        let mut lines = Lines::default();
        for piece in pieces {
            lines.feed(piece, &take);
        }
        lines.finish(&take);
        taken.into_inner()
    }

    #[test]
    fn lines_are_put_together_across_reads() {
        assert_eq!(lines_of(&[b"on", b"e\ntwo\r\n", b"\nlast"]), ["one", "two", "", "last"]);
        assert_eq!(lines_of(&[b"\xff\n"]), ["\u{fffd}"]);
        assert!(lines_of(&[]).is_empty());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = vec![b'x'; LINE_BYTES_MAX * 2 + 5];
        let lengths: Vec<usize> = lines_of(&[&long]).iter().map(String::len).collect();
        assert_eq!(lengths, [LINE_BYTES_MAX, LINE_BYTES_MAX, 5]);
    }
}
