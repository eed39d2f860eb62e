//! What the configured Python is: asked once, by running it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use crate::{Error, Result};

const PROBE: &str = "import json, sys, pyspark
try:
    import pyarrow, pandas
    missing = ''
except ImportError as error:
    missing = str(error)
print(json.dumps({'python': '%d.%d' % sys.version_info[:2], 'pyspark': pyspark.__version__, 'missing': missing}))";
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// The Python that workers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Major and minor, such as `3.11`.
    pub python: String,
    pub pyspark: String,
    pub protocol: Protocol,
}

/// How the first message to a worker is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// pyspark 4.2: its parts follow each other.
    Plain,
    /// pyspark 4.3: the same parts, with their length before them.
    Framed,
}

#[derive(Deserialize)]
struct Found {
    python: String,
    pyspark: String,
    missing: String,
}

impl Interpreter {
    /// # Errors
    /// [`Error::Interpreter`] where it does not run, lacks a package, or has a `pyspark` whose protocol is not known.
    pub async fn probe(path: &Path) -> Result<Interpreter> {
        let refused = |detail: String| Error::Interpreter { interpreter: path.display().to_string(), detail };
        let mut command = Command::new(path);
        command.arg("-c").arg(PROBE).stdin(Stdio::null()).current_dir("/").kill_on_drop(true);
        let output = tokio::time::timeout(PROBE_TIMEOUT, command.output())
            .await
            .map_err(|_| refused(format!("it said nothing for {} s", PROBE_TIMEOUT.as_secs())))?
            .map_err(|error| refused(error.to_string()))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(refused(stderr.lines().last().unwrap_or("it failed without a word").to_owned()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Found = text
            .lines()
            .last()
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| refused(format!("expected its versions, found {text:?}")))?;
        if !found.missing.is_empty() {
            return Err(refused(found.missing));
        }
        let protocol = Protocol::of(&found.pyspark)
            .ok_or_else(|| refused(format!("it has pyspark {}, expected 4.2 or later", found.pyspark)))?;
        Ok(Interpreter { python: found.python, pyspark: found.pyspark, protocol })
    }
}

impl Protocol {
    fn of(pyspark: &str) -> Option<Protocol> {
        let mut parts = pyspark.split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten()?, parts.next().flatten()?) {
            (4, 2) => Some(Protocol::Plain),
            (4, 3..) => Some(Protocol::Framed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_follows_the_version_of_pyspark() {
        assert_eq!(Protocol::of("4.2.0"), Some(Protocol::Plain));
        assert_eq!(Protocol::of("4.3.1.dev0"), Some(Protocol::Framed));
        for unknown in ["3.5.4", "4.1.0", "5.0.0", "4", "x"] {
            assert_eq!(Protocol::of(unknown), None, "{unknown}");
        }
    }

    #[tokio::test]
    async fn a_program_that_is_no_python_is_refused_by_name() {
        for program in ["/bin/false", "/bin/echo", "/no/such/python"] {
            let error = Interpreter::probe(Path::new(program)).await.unwrap_err();
            assert!(error.to_string().contains(program), "{error}");
        }
    }
}
