//! What one worker is told to do.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::barrier::BarrierSeat;

/// One partition's worth of work.
#[derive(Debug, Clone)]
pub struct Task {
    /// Whose code it is: a worker that has run code of one session runs none of another.
    pub session: String,
    /// The Python that pickled the functions, such as `3.11`.
    pub python_version: String,
    /// Where `SparkFiles` looks; on the import path too.
    pub files_dir: PathBuf,
    /// Names in `files_dir` that go on the import path: archives of modules.
    pub includes: Vec<String>,
    /// `pyspark.util.PythonEvalType`: how functions are called, and the shape of what goes in and out.
    pub eval_type: i32,
    /// Spark's configuration keys that workers heed.
    pub conf: Vec<(String, String)>,
    /// Facts about the input that some shapes need.
    pub eval_conf: Vec<(String, String)>,
    pub work: Arc<Work>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Work {
    Functions(Vec<Function>),
    Table(TableFunction),
}

/// A pickled function and where its arguments are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Innermost first: each is applied to the result of the one before.
    pub commands: Vec<Bytes>,
    pub arguments: Vec<Argument>,
}

/// The position of an argument among the input's columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Argument {
    pub offset: i32,
    /// Of a keyword argument.
    pub name: Option<String>,
}

impl Argument {
    pub fn at(offset: usize) -> Argument {
        Argument { offset: offset as i32, name: None }
    }
}

/// A pickled class that makes rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableFunction {
    pub command: Bytes,
    pub arguments: Vec<Argument>,
    /// Of a table argument: which of its columns it is partitioned by.
    pub partition_columns: Vec<i32>,
    /// What the class's `analyze` returned, pickled.
    pub analyze_result: Option<Bytes>,
    /// JSON of the struct type of a row.
    pub return_type: String,
    pub name: String,
}

/// Which task of how many it is, as `TaskContext` shows it.
#[derive(Debug, Clone)]
pub struct Place {
    pub stage_id: i64,
    pub partition: usize,
    /// Unique in the server.
    pub attempt_id: i64,
    pub local_properties: Vec<(String, String)>,
    /// Of a task in a barrier stage.
    pub seat: Option<BarrierSeat>,
}
