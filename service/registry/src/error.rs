//! Why the registry refused or failed, a variant a cause; `connect` maps them to Spark's classes.

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("model {name} cannot be found")]
    ModelNotFound { name: String },
    #[error("model {name} already exists")]
    ModelExists { name: String },
    /// The first training of the name runs, or another plain one.
    #[error("model {name} is being trained by {training_id}")]
    TrainingInProgress { name: String, training_id: String },
    #[error("version {version} of model {name} cannot be found")]
    VersionNotFound { name: String, version: String, versions: Vec<u32>, aliases: Vec<String> },
    /// The default version cannot be dropped alone.
    #[error("version {version} is the default of model {name}")]
    VersionInUse { name: String, version: u32 },
    #[error("{alias:?} is no valid alias")]
    InvalidAlias { alias: String },
    #[error("alias {alias} of model {name} cannot be found")]
    AliasNotFound { name: String, alias: String },
    #[error("tag {tag} of model {name} cannot be found")]
    TagNotFound { name: String, tag: String },
    #[error("{name:?} is no valid name of a model: {detail}")]
    InvalidName { name: String, detail: &'static str },
    #[error("training {id} cannot be found")]
    TrainingNotFound { id: String },
    /// A file of the registry that cannot be read: which, and why.
    #[error("{path}: {detail}")]
    Corrupted { path: String, detail: String },
    /// Written by a later version of this software.
    #[error("{path} has the format {found}, this server reads up to {supported}")]
    UnknownFormat { path: String, found: u64, supported: u32 },
    /// Other writers were faster each time.
    #[error("model {name} was changed by others too often to change it")]
    Contended { name: String },
    #[error("{location} is no place for models: {detail}")]
    InvalidLocation { location: String, detail: String },
    #[error("write {path}")]
    Write {
        path: String,
        #[source]
        source: object_store::Error,
    },
    #[error("read {path}")]
    Read {
        path: String,
        #[source]
        source: object_store::Error,
    },
    #[error("encode: {source}")]
    Encode { source: serde_json::Error },
}
