//! The file behind shared memory. It has a name only while the ranks of a host join: each of them removes it once all
//! have mapped it, or when the join fails. If all are killed within that moment, the next gang removes what is left.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::Segment;
use crate::error::{Error, Result};

const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "phalanx-";
const NAME_BYTES_MAX: usize = 200;

pub(crate) struct SegmentFile(File);

/// A name that no other gang has: the job and the generation are for whoever looks, the rest makes it unique.
pub(crate) fn segment_name(job_id: &str, generation: u64) -> Result<String> {
    let mut unique = [0; 8];
    getrandom::fill(&mut unique)
        .map_err(|error| Error::io("draw random bytes", io::Error::other(error.to_string())))?;
    let job: String = job_id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(100).collect();
    Ok(format!("{PREFIX}{job}-{generation}-{:016x}", u64::from_le_bytes(unique)))
}

/// The file called `name`, which came from a peer: it must not lead out of the folder.
fn path_of(name: &str) -> Result<PathBuf> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !name.starts_with(PREFIX) || !is_plain || name.len() > NAME_BYTES_MAX {
        return Err(Error::io("open shared memory", io::Error::from(io::ErrorKind::InvalidFilename)));
    }
    Ok(Path::new(FOLDER).join(name))
}

/// Takes the name away, if it is still there. The memory lives as long as somebody maps it.
pub(crate) fn remove(name: &str) {
    if let Ok(path) = path_of(name) {
        // Whichever rank comes first removes it; for the others it is gone.
        let _ = fs::remove_file(path);
    }
}

impl SegmentFile {
    /// Creates the file with all of its memory, so that no rank can be killed later for want of it.
    pub fn create(name: &str, bytes: usize) -> Result<SegmentFile> {
        remove_abandoned();
        let error = |source| Error::io("create shared memory in /dev/shm", source);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path_of(name)?);
        let file = file.map_err(error)?;
        // Tells `remove_abandoned` of other gangs that this one is alive.
        let outcome = file.lock_shared().and_then(|()| {
            // SAFETY: the descriptor is open; fallocate only changes the file behind it.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        });
        if let Err(source) = outcome {
            remove(name);
            return Err(error(source));
        }
        Ok(SegmentFile(file))
    }

    pub fn open(name: &str) -> Result<SegmentFile> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path_of(name)?);
        file.map(SegmentFile).map_err(|source| Error::io("open shared memory in /dev/shm", source))
    }

    pub fn map(&self, slot_bytes: usize, ranks: &[usize], local_rank: usize) -> Result<Segment> {
        let bytes = Segment::bytes_needed(ranks.len(), slot_bytes);
        let error = |source| Error::io("map shared memory", source);
        if self.0.metadata().map_err(error)?.len() != bytes as u64 {
            return Err(error(io::Error::new(io::ErrorKind::InvalidData, "the file has another size")));
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping at an address the kernel chooses overlaps nothing; the file is as long as the mapping.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, self.0.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(error(io::Error::last_os_error()));
        }
        Ok(Segment::new(base.cast(), slot_bytes, ranks, local_rank))
    }
}

/// Removes files whose creators were killed in the moment before they could do it.
fn remove_abandoned() {
    const AGE_MIN: std::time::Duration = std::time::Duration::from_secs(60);
    let Ok(entries) = fs::read_dir(FOLDER) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // The age spares a file that is created but not locked yet.
        let is_old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= AGE_MIN));
        let Some(name) = name.to_str().filter(|name| is_old && name.starts_with(PREFIX)) else { continue };
        let Ok(file) = SegmentFile::open(name) else { continue };
        if file.0.try_lock().is_ok() {
            remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_peer_does_not_lead_out_of_the_folder() {
        for name in ["", "../etc/passwd", "phalanx-../x", "phalanx-a/b", "other", "phalanx-\0"] {
            assert!(path_of(name).is_err(), "{name}");
        }
        assert!(path_of(&segment_name("../../job é", 3).unwrap()).is_ok());
    }
}
