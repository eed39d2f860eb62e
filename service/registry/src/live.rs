//! Whether a server still runs: on this machine its process tells, elsewhere the time of its last sign.

use std::time::Duration;

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use crate::{Error, Registry, Result};

/// A server of another machine that gave no sign for this long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// One run of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerIdentity {
    pub id: String,
    /// The machine since its last start, and the processes that can see each other on it.
    host: String,
    pid: u32,
    /// When the process started, in ticks since the machine did: process ids are used again.
    started_ticks: u64,
}

impl ServerIdentity {
    /// Of this process.
    pub fn of_this_process() -> ServerIdentity {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let pid = std::process::id();
        ServerIdentity {
            id: uuid::Uuid::new_v4().to_string(),
            host: format!("{} {}", boot.trim(), namespace.display()),
            pid,
            started_ticks: started_ticks(pid).unwrap_or_default(),
        }
    }
}

/// The 22nd field of a process's `stat`; the second, the name, may hold blanks and brackets.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // a process that has ended and was not waited for does nothing any more
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Registry {
    /// # Errors
    /// What the store says of a server of another machine.
    pub(crate) async fn is_alive(&self, server: &ServerIdentity) -> Result<bool> {
        if server.id == self.server.id {
            return Ok(true);
        }
        if server.host == self.server.host {
            return Ok(started_ticks(server.pid) == Some(server.started_ticks));
        }
        let path = self.root.clone().join("servers").join(format!("{}.json", server.id));
        match self.store.head(&path).await {
            Ok(sign) => {
                let silence = chrono::Utc::now() - sign.last_modified;
                Ok(silence.to_std().is_ok_and(|silence| silence <= SILENCE_MAX) || silence < chrono::Duration::zero())
            }
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(Error::Read { path: path.to_string(), source }),
        }
    }

    /// Gives a sign of life; to be called well within a minute, again and again.
    ///
    /// # Errors
    /// What the store refuses.
    pub async fn beat(&self) -> Result<()> {
        let path = self.root.clone().join("servers").join(format!("{}.json", self.server.id));
        let content = serde_json::to_vec(&self.server).map_err(|source| Error::Encode { source })?;
        let written = self.put(&path, Bytes::from(content), PutMode::Overwrite).await;
        written.map_err(|source| Error::Write { path: path.to_string(), source })
    }

    /// Takes the sign of life away, at the end of a server.
    pub async fn end_beats(&self) {
        let path = self.root.clone().join("servers").join(format!("{}.json", self.server.id));
        if let Err(error) = self.store.delete(&path).await {
            tracing::debug!(%path, %error, "a sign of life could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_time_of_its_start() {
        let identity = ServerIdentity::of_this_process();
        assert!(identity.started_ticks > 0);
        assert_eq!(started_ticks(identity.pid), Some(identity.started_ticks));
        assert_eq!(started_ticks(u32::MAX), None);
    }
}
