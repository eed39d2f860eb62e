//! How freed memory goes back to the system.

/// Gives freed memory back. Left to itself, glibc keeps what a fit has freed, in every idle rank.
pub fn trim() {
    // SAFETY: malloc_trim may be called at any time, from any thread.
    unsafe { libc::malloc_trim(0) };
}
