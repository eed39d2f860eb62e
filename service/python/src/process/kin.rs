//! The processes that a worker started.

use std::fs;

/// Rounds of looking for marked processes: one may fork while it is being killed.
const ROUNDS_MAX: usize = 16;

/// Kills the group that a process leads. The leader must not have been reaped.
pub fn kill_group(leader: u32) {
    // SAFETY: a plain system call. A group without members is an error that changes nothing.
    unsafe {
        libc::kill(-(leader as i32), libc::SIGKILL);
    }
}

/// Kills every process whose environment has the mark: what left the group of its worker.
pub fn kill_marked(variable: &str, mark: &str) {
    if mark.is_empty() {
        return;
    }
    let entry = format!("{variable}={mark}");
    for _ in 0..ROUNDS_MAX {
        let marked = marked(entry.as_bytes());
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            // SAFETY: a plain system call; the process had the mark a moment ago.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
            }
        }
    }
}

fn marked(entry: &[u8]) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            // Other users' processes cannot be read; a zombie's environment is empty.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry)
        })
        .collect()
}

/// Whether a process has ended, be it reaped or not.
pub fn is_zombie_or_gone(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name, in parentheses, may hold anything; the state follows it.
    stat.rsplit_once(')').is_none_or(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}
