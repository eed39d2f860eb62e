//! Spark ML's save format: `metadata/` with one line of JSON, `data/` and its kin with Parquet.

use arrow::record_batch::RecordBatch;
use serde_json::{Map, Value as Json};

/// A saved operator's content beside its class, uid and params.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    /// More keys of the metadata's JSON object, such as `numFeatures`.
    pub metadata: Map<String, Json>,
    /// Parquet folders by name (`data`), each with its rows. Schemas carry Spark's user-defined types.
    pub tables: Vec<(String, RecordBatch)>,
}
