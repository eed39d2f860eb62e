//! Sleeping until a word of shared memory changes.

use std::{io, sync::atomic::AtomicU32, time::Duration};

/// Returns when woken, when `word` is not `expected`, after `timeout`, or on a signal.
pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) -> io::Result<()> {
    let timeout =
        libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos() as libc::c_long };
    // SAFETY: `word` is a live, aligned u32 in memory of this process and `timeout` outlives the call. Not the private
    // kind of futex: the waker is another process.
    let woken =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const timeout) };
    if woken == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ETIMEDOUT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

pub(super) fn wake_all(word: &AtomicU32) {
    // SAFETY: `word` is a live, aligned u32; waking reads nothing else. It can only fail for a bad address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
