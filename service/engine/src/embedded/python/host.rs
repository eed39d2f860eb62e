//! Where a session's functions run: the workers, and the files that the functions import and open.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use python::Workers;

use crate::{Conf, Error, Result};

/// Keys that workers heed.
const WORKER_KEYS: &[&str] = &[
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.pandas.convertToArrowArraySafely",
    "spark.sql.execution.pyspark.binaryAsBytes",
    "spark.sql.execution.pythonUDF.arrow.concurrency.level",
    "spark.sql.execution.pythonUDF.mapInBatch.legacy.acceptAnyIterable.enabled",
    "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype",
    "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName",
    "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled",
    "spark.sql.legacy.execution.pythonUDTF.pandas.conversion.enabled",
    "spark.sql.session.timeZone",
];
const RECORDS_PER_BATCH: &str = "spark.sql.execution.arrow.maxRecordsPerBatch";
const RECORDS_PER_BATCH_DEFAULT: usize = 10_000;

static STAGES: AtomicI64 = AtomicI64::new(0);
static ATTEMPTS: AtomicI64 = AtomicI64::new(0);

/// A session's way to its workers, with its configuration as it was when a plan was resolved.
#[derive(Clone)]
pub struct Host {
    pub workers: Workers,
    pub files: Arc<SessionFiles>,
    /// What of the configuration goes to workers.
    pub conf: Vec<(String, String)>,
    /// Explicit configuration, which functions see as local properties.
    pub properties: Vec<(String, String)>,
    pub time_zone: Arc<str>,
    /// A batch for a worker has no more rows.
    pub batch_rows_max: usize,
}

impl Host {
    pub fn new(workers: Workers, files: Arc<SessionFiles>, conf: &Conf) -> Host {
        let worker_conf = WORKER_KEYS.iter().filter_map(|key| Some(((*key).to_owned(), conf.get(key)?)));
        let properties = conf.explicit().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let rows: Option<i64> = conf.get(RECORDS_PER_BATCH).and_then(|value| value.parse().ok());
        let batch_rows_max = match rows {
            // Spark takes zero and less for no limit.
            Some(rows) if rows <= 0 => usize::MAX,
            Some(rows) => rows as usize,
            None => RECORDS_PER_BATCH_DEFAULT,
        };
        Host {
            workers,
            files,
            conf: worker_conf.collect(),
            properties: properties.collect(),
            time_zone: conf.get("spark.sql.session.timeZone").map_or_else(|| "UTC".into(), Into::into),
            batch_rows_max,
        }
    }

    pub fn next_stage() -> i64 {
        STAGES.fetch_add(1, Ordering::Relaxed)
    }

    pub fn next_attempt() -> i64 {
        ATTEMPTS.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("session", &self.files.session).finish_non_exhaustive()
    }
}

/// Plans of one session are equal whatever host they run at.
impl PartialEq for Host {
    fn eq(&self, other: &Host) -> bool {
        self.files.session == other.files.session
    }
}

impl Eq for Host {}

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.files.session.hash(state);
    }
}

/// The files of a session: `SparkFiles`, modules and unpacked archives. Removed with the session.
#[derive(Debug)]
pub struct SessionFiles {
    /// Whose they are, and the name by which workers are kept apart.
    pub session: String,
    pub folder: PathBuf,
    workers: Workers,
    includes: Mutex<BTreeSet<String>>,
}

impl SessionFiles {
    pub fn new(workers: Workers) -> SessionFiles {
        let session = uuid::Uuid::new_v4().to_string();
        let folder = workers.options().files_dir.join(&session);
        SessionFiles { session, folder, workers, includes: Mutex::default() }
    }

    /// What of another session's files there is so far, as a session of its own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn copied(&self) -> Result<SessionFiles> {
        let copy = SessionFiles::new(self.workers.clone());
        if self.folder.exists() {
            copy_tree(&self.folder, &copy.folder).map_err(|source| copy.error(source))?;
        }
        copy.includes.lock().clone_from(&self.includes.lock());
        Ok(copy)
    }

    /// Makes sure that the folder is there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn prepare(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder).map_err(|source| self.error(source))
    }

    /// Names in the folder that go on the import path.
    pub fn includes(&self) -> Vec<String> {
        self.includes.lock().iter().cloned().collect()
    }

    /// Keeps a file that functions may open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put(&self, name: &str, data: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let write = || {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            // A worker may have the old one open.
            let partial = path.with_extension("partial");
            std::fs::write(&partial, data)?;
            std::fs::rename(&partial, &path)
        };
        write().map_err(|source| self.error(source))
    }

    /// Keeps a module, or an archive of modules.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put_module(&self, name: &str, data: &[u8]) -> Result<()> {
        self.put(name, data)?;
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("zip" | "egg" | "jar" | "whl")) {
            self.includes.lock().insert(name.to_owned());
        }
        Ok(())
    }

    /// Unpacks an archive into a folder.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Python`] for what is no archive.
    pub async fn put_archive(&self, name: &str, folder: &str, data: &[u8]) -> Result<()> {
        let packed = format!(".packed-{}", name.replace('/', "-"));
        self.put(&packed, data)?;
        let packed = self.folder.join(packed);
        let unpacked = self.workers.unpack(&packed, name, &self.folder.join(folder)).await;
        std::fs::remove_file(&packed).map_err(|source| self.error(source))?;
        Ok(unpacked?)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Io { path: self.folder.display().to_string(), source }
    }
}

impl Drop for SessionFiles {
    fn drop(&mut self) {
        self.workers.end_session(&self.session);
        if let Err(error) = std::fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.folder.display(), "the files of a session could not be removed");
        }
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
