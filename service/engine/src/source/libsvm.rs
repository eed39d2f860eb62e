//! Format `libsvm`: `label index:value …` a line, indices from one.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use object_store::ObjectMeta;
use udt::VectorBuilder;
use udt::field::{is_vector, vector_field, with_column_metadata};

use super::chunks::{Chunk, Framing, fold, lines};
use super::listing::Files;
use super::options::{Options, invalid};
use super::record_scan::{RecordFormat, batch_of, plan};
use crate::{Conf, Error, Result};

#[derive(Debug)]
struct Libsvm {
    schema: SchemaRef,
    num_features: usize,
    is_dense: bool,
}

/// A line's label, and its indices (from zero) and values.
struct Record {
    label: f64,
    indices: Vec<i32>,
    values: Vec<f64>,
}

pub(super) async fn read(
    state: &SessionState,
    _conf: &Conf,
    files: Files,
    wanted: Option<&Schema>,
    options: &Options,
) -> Result<(LogicalPlan, SchemaRef)> {
    let is_dense = match options.get("vectorType").unwrap_or("sparse").to_lowercase().as_str() {
        "dense" => true,
        "sparse" => false,
        other => return Err(invalid("libsvm", "vectorType", other, "expected dense or sparse")),
    };
    let declared: Option<usize> = options.number("libsvm", "numFeatures")?;
    let num_features = match declared {
        Some(num_features) if num_features > 0 => num_features,
        _ => count_features(state, &files).await?,
    };
    let metadata = format!(r#"{{"numFeatures":{num_features},"ml_attr":{{"num_attrs":{num_features}}}}}"#);
    let mut names = ["label".to_string(), "features".to_string()];
    if let Some(wanted) = wanted {
        let is_right = wanted.fields().len() == 2
            && wanted.field(0).data_type() == &DataType::Float64
            && is_vector(wanted.field(1));
        if !is_right {
            return Err(Error::InvalidPlan { detail: "libsvm files have a label of doubles and a vector".into() });
        }
        names = [wanted.field(0).name().clone(), wanted.field(1).name().clone()];
    }
    let schema = Arc::new(Schema::new(vec![
        Field::new(&names[0], DataType::Float64, true),
        with_column_metadata(vector_field(&names[1]), &metadata),
    ]));
    plan(Arc::new(Libsvm { schema, num_features, is_dense }), files)
}

/// The largest index of any line.
async fn count_features(state: &SessionState, files: &Files) -> Result<usize> {
    let metas: Vec<ObjectMeta> = files.with_content().map(|file| file.meta.clone()).collect();
    if metas.is_empty() {
        return Err(Error::UnableToInferSchema { format: "libsvm".into() });
    }
    let largest = |chunk: &Chunk| -> Result<usize> {
        let mut largest = 0;
        for line in lines(&chunk.text, None) {
            if let Some(record) = parse_line(line)? {
                largest = largest.max(record.indices.last().map_or(0, |index| *index as usize + 1));
            }
        }
        Ok(largest)
    };
    let mut num_features = 0;
    let num_tasks = state.config().target_partitions();
    fold(files.store(), metas, Framing::Lines, num_tasks, largest, |largest| {
        num_features = num_features.max(largest);
        Ok(())
    })
    .await?;
    Ok(num_features)
}

impl RecordFormat for Libsvm {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn decode(&self, chunk: &Chunk, _file: &ObjectMeta, projection: &[usize]) -> Result<RecordBatch> {
        let mut labels = Float64Builder::new();
        let mut features = VectorBuilder::default();
        let mut dense = vec![0.0; if self.is_dense { self.num_features } else { 0 }];
        let mut num_rows = 0;
        for line in lines(&chunk.text, None) {
            let Some(record) = parse_line(line)? else { continue };
            if record.indices.last().is_some_and(|last| *last as usize >= self.num_features) {
                let needed = record.indices.last().map_or(0, |last| *last as usize + 1);
                return Err(malformed(line, &format!("feature {needed} is beyond numFeatures {}", self.num_features)));
            }
            num_rows += 1;
            labels.append_value(record.label);
            if self.is_dense {
                dense.fill(0.0);
                record.indices.iter().zip(&record.values).for_each(|(i, value)| dense[*i as usize] = *value);
                features.append_dense(&dense);
            } else {
                features.append_sparse(self.num_features, &record.indices, &record.values);
            }
        }
        let columns: [ArrayRef; 2] = [Arc::new(labels.finish()), features.finish()];
        batch_of(&self.schema, projection, projection.iter().map(|i| columns[*i].clone()).collect(), num_rows)
    }
}

/// Parses a line; blank lines and those that begin with `#` hold no record.
fn parse_line(line: &[u8]) -> Result<Option<Record>> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(malformed(line, "it is not UTF-8"));
    };
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let mut parts = text.split(' ').filter(|part| !part.is_empty());
    let number = |part: &str| {
        part.trim().parse::<f64>().map_err(|_| malformed(line, &format!("'{part}' is no number")))
    };
    let label = number(parts.next().unwrap_or_default())?;
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut previous = 0i64;
    for part in parts {
        let Some((index, value)) = part.split_once(':') else {
            return Err(malformed(line, &format!("'{part}' is no index:value")));
        };
        let index: i64 =
            index.parse::<i32>().map_err(|_| malformed(line, &format!("'{index}' is no index")))?.into();
        if index <= previous {
            return Err(malformed(line, "indices should be one-based and in ascending order"));
        }
        previous = index;
        indices.push((index - 1) as i32);
        values.push(number(value)?);
    }
    Ok(Some(Record { label, indices, values }))
}

fn malformed(line: &[u8], reason: &str) -> Error {
    const SHOWN_MAX: usize = 200;
    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN_MAX).collect();
    Error::Row {
        class: "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
        message: format!("libsvm: {reason}; line=\"{shown}\""),
        parameters: vec![("badRecord", shown), ("failFastMode", "FAILFAST".into())],
    }
}
