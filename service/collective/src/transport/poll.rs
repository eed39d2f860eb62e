//! Sleeping until one of several sockets can go on.

use std::{
    io,
    net::TcpStream,
    os::fd::{AsRawFd, RawFd},
    time::Duration,
};

#[derive(Default)]
pub(crate) struct Interest(Vec<libc::pollfd>);

impl Interest {
    pub fn readable(&mut self, stream: &TcpStream) {
        self.add(stream.as_raw_fd(), libc::POLLIN);
    }

    pub fn writable(&mut self, stream: &TcpStream) {
        self.add(stream.as_raw_fd(), libc::POLLOUT);
    }

    pub fn acceptable(&mut self, listener: &std::net::TcpListener) {
        self.add(listener.as_raw_fd(), libc::POLLIN);
    }

    fn add(&mut self, fd: RawFd, events: libc::c_short) {
        self.0.push(libc::pollfd { fd, events, revents: 0 });
    }

    /// Whether the last wait ended because of the first `count` sockets alone.
    pub fn only_first_are_ready(&self, count: usize) -> bool {
        let (first, others) = self.0.split_at(count.min(self.0.len()));
        first.iter().any(|socket| socket.revents != 0) && others.iter().all(|socket| socket.revents == 0)
    }

    /// Returns when a socket is ready, or after `timeout`, or on a signal.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout_ms = timeout.as_millis().clamp(1, 1000) as libc::c_int;
        // SAFETY: the pointer and the length describe one live vector of pollfd, which poll only writes within.
        let ready = unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, timeout_ms) };
        if ready >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}
