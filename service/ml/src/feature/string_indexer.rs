//! `StringIndexer`: the level of a string column as a number, by frequency or by alphabet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::{RankContext, RankProgram};
use udt::vector::java_double;

use super::columns;
use crate::evaluation::column;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep, Value, ml_attr,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.StringIndexer",
    model_class: Some("org.apache.spark.ml.feature.StringIndexerModel"),
    params,
    kind: Kind::Estimator(&StringIndexer),
};

pub static PROGRAM: RankProgram = RankProgram { name: "string_indexer", run };

fn params() -> Vec<Param> {
    let mut params = columns::params();
    params.push(Param::one_of("handleInvalid", "error", &["error", "skip", "keep"]));
    params.push(Param::one_of(
        "stringOrderType",
        "frequencyDesc",
        &["frequencyDesc", "frequencyAsc", "alphabetDesc", "alphabetAsc"],
    ));
    params
}

/// How often each value of a column occurs.
type Counts = BTreeMap<String, u64>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    /// Levels by column; a level's place is its index.
    labels: Vec<Vec<String>>,
}

/// Counts the values of every column; `spec` is the order of levels.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let mut counts: Vec<Counts> = vec![Counts::new(); ctx.partition.schema.fields().len()];
    for record_batch in &mut *ctx.partition.record_batches {
        let record_batch = record_batch?;
        for (counts, column) in counts.iter_mut().zip(record_batch.columns()) {
            let texts = texts(column)?;
            let mut last: Option<(&str, u64)> = None;
            for text in texts.iter().flatten() {
                match &mut last {
                    Some((value, count)) if *value == text => *count += 1,
                    _ => {
                        if let Some((value, count)) = last.replace((text, 1)) {
                            add(counts, value, count);
                        }
                    }
                }
            }
            if let Some((value, count)) = last {
                add(counts, value, count);
            }
        }
    }
    let mut total: Vec<Counts> = vec![Counts::new(); counts.len()];
    for part in super::gather(PROGRAM.name, ctx, &counts)? {
        for (total, part) in total.iter_mut().zip(part) {
            part.iter().for_each(|(value, count)| add(total, value, *count));
        }
    }
    let order = std::str::from_utf8(spec).unwrap_or_default();
    let labels = total.into_iter().map(|counts| ordered(counts, order)).collect();
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { labels })
}

fn add(counts: &mut Counts, value: &str, count: u64) {
    match counts.get_mut(value) {
        Some(total) => *total += count,
        None => {
            counts.insert(value.to_string(), count);
        }
    }
}

/// Levels in the order asked for; ties of frequency go by alphabet.
fn ordered(counts: Counts, order: &str) -> Vec<String> {
    let mut levels: Vec<(String, u64)> = counts.into_iter().collect();
    match order {
        "frequencyAsc" => levels.sort_by_key(|(_, count)| *count),
        "alphabetDesc" => levels.reverse(),
        "alphabetAsc" => {}
        _ => levels.sort_by_key(|(_, count)| std::cmp::Reverse(*count)),
    }
    levels.into_iter().map(|(level, _)| level).collect()
}

/// A string or number column as Spark's strings.
pub(super) fn texts(column: &ArrayRef) -> std::result::Result<StringArray, arrow::error::ArrowError> {
    let of_doubles = |doubles: &Float64Array| doubles.iter().map(|v| v.map(java_double)).collect();
    match column.data_type() {
        DataType::Float64 => Ok(of_doubles(column.as_primitive::<Float64Type>())),
        // the shortest text of a float is not that of the double it widens to
        DataType::Float32 => {
            let shortest = |v: f32| format!("{v}").parse::<f64>().map_or_else(|_| v.to_string(), java_double);
            Ok(column.as_primitive::<Float32Type>().iter().map(|v| v.map(shortest)).collect())
        }
        _ => Ok(cast(column, &DataType::Utf8)?.as_string::<i32>().clone()),
    }
}

fn check_input(schema: &Schema, name: &str) -> Result<()> {
    let field = column::field(schema, name)?;
    let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match is_text || field.data_type().is_numeric() || field.data_type() == &DataType::Null {
        true => Ok(()),
        false => {
            let found = column::spark_class(field);
            let message =
                format!("requirement failed: The input column {name} must be either string type or numeric type, but got {found}.");
            Err(Error::InvalidData { class: String::new(), message })
        }
    }
}

struct StringIndexer;

impl Estimator for StringIndexer {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let pairs = columns::pairs(params)?;
        for (input, output) in &pairs {
            check_input(schema, input)?;
            columns::check_new(schema, output)?;
        }
        let columns = pairs.into_iter().map(|(input, _)| input).collect();
        let spec = params.string("stringOrderType")?.as_bytes().to_vec();
        Ok(FitPlan { columns, program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted: Fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(StringIndexerModel { operator, params: params.clone(), labels: fitted.labels }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let corrupted = |detail: &str| Error::Corrupted { path: "data".into(), detail: detail.into() };
        let column = saved.table("data")?.column_by_name("labelsArray");
        let rows = column.ok_or_else(|| corrupted("column labelsArray is missing"))?;
        let lists = rows.as_list_opt::<i32>().filter(|rows| rows.len() == 1 && rows.is_valid(0)).map(|rows| rows.value(0));
        let lists = lists.ok_or_else(|| corrupted("labelsArray is no list"))?;
        let lists = lists.as_list_opt::<i32>().ok_or_else(|| corrupted("labelsArray is no list of lists"))?;
        let of_list = |list: Option<ArrayRef>| -> Result<Vec<String>> {
            let list = list.ok_or_else(|| corrupted("a list of labels is null"))?;
            let texts = cast(&list, &DataType::Utf8)?;
            Ok(texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_string()).collect())
        };
        let labels = lists.iter().map(of_list).collect::<Result<Vec<Vec<String>>>>()?;
        Ok(Arc::new(StringIndexerModel { operator, params: params.clone(), labels }))
    }
}

/// A model of given levels, without a fit.
///
/// # Errors
/// None today; params of a model without a fit are checked when they are set.
pub fn model_from_labels(uid: &str, labels: Vec<Vec<String>>) -> Result<Arc<dyn Model>> {
    let params = Params::new(&OPERATOR, uid, BTreeMap::new())?;
    Ok(Arc::new(StringIndexerModel { operator: &OPERATOR, params, labels }))
}

struct StringIndexerModel {
    operator: &'static Operator,
    params: Params,
    labels: Vec<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Error,
    Skip,
    Keep,
}

impl Model for StringIndexerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let invalid = match params.string("handleInvalid")? {
            "skip" => Invalid::Skip,
            "keep" => Invalid::Keep,
            _ => Invalid::Error,
        };
        let mut steps = Vec::new();
        for ((input, output), labels) in columns::pairs(params)?.into_iter().zip(&self.labels) {
            // Spark leaves a column out that the dataset has not: the label, when it is to be predicted
            if column::field(schema, &input).is_err() {
                continue;
            }
            check_input(schema, &input)?;
            columns::check_new(schema, &output)?;
            let index: HashMap<String, f64> = labels.iter().enumerate().map(|(i, l)| (l.clone(), i as f64)).collect();
            let index = Arc::new(index);
            if invalid == Invalid::Skip {
                let index = Arc::clone(&index);
                let function = Arc::new(move |columns: &[ArrayRef], _: usize| known(&columns[0], &index));
                steps.push(TransformStep::Filter { inputs: vec![input.clone()], function });
            }
            let mut values = labels.clone();
            if invalid == Invalid::Keep {
                values.push("__unknown".into());
            }
            let attribute = ml_attr::Attribute::nominal_with_values(&values).with_name(&output);
            let field = attribute.mark(Field::new(&output, DataType::Float64, false));
            steps.push(TransformStep::Append {
                output: Arc::new(field),
                inputs: vec![input],
                function: Arc::new(move |columns, _| indexed(&columns[0], &index, invalid)),
            });
        }
        Ok(steps)
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        let array = |labels: &Vec<String>| Value::strings(labels);
        match (name, self.labels.as_slice()) {
            ("labels", [labels]) => Ok(Attribute::Value(array(labels))),
            ("labelsArray", lists) => {
                let values = lists.iter().map(array).collect();
                Ok(Attribute::Value(Value::Array { element: ParamType::StringArray, values }))
            }
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let invalid = self.params.string("handleInvalid").unwrap_or_default();
        format!(
            "StringIndexerModel: uid={}, handleInvalid={invalid}{}",
            self.params.uid,
            columns::describe(&self.params)
        )
    }

    fn size_bytes(&self) -> usize {
        256 + self.labels.iter().flatten().map(|label| label.len() + 24).sum::<usize>()
    }

    fn save(&self) -> Result<Saved> {
        let text = Arc::new(Field::new("element", DataType::Utf8, true));
        let texts: StringArray = self.labels.iter().flatten().map(Some).collect();
        let lists = ListArray::new(
            Arc::clone(&text),
            OffsetBuffer::from_lengths(self.labels.iter().map(Vec::len)),
            Arc::new(texts),
            None,
        );
        let list = Arc::new(Field::new("element", DataType::List(text), true));
        let rows = ListArray::new(Arc::clone(&list), OffsetBuffer::from_lengths([lists.len()]), Arc::new(lists), None);
        let schema = Schema::new(vec![Field::new("labelsArray", DataType::List(list), true)]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(rows)])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}

/// True where the value is a level.
fn known(column: &ArrayRef, index: &HashMap<String, f64>) -> Result<ArrayRef> {
    let known = |text: Option<&str>| text.is_some_and(|text| index.contains_key(text));
    let mask: Vec<bool> = texts(column)?.iter().map(known).collect();
    Ok(Arc::new(BooleanArray::from(mask)))
}

fn indexed(column: &ArrayRef, index: &HashMap<String, f64>, invalid: Invalid) -> Result<ArrayRef> {
    let unknown = index.len() as f64;
    let of = |text: Option<&str>| match text.map(|text| (text, index.get(text))) {
        Some((_, Some(index))) => Ok(*index),
        _ if invalid == Invalid::Keep => Ok(unknown),
        Some((text, None)) => Err(Error::InvalidRow {
            message: format!("Unseen label: {text}. To handle unseen labels, set Param handleInvalid to keep."),
        }),
        None => Err(Error::InvalidRow {
            message: "StringIndexer encountered NULL value. To handle or skip NULLS, try setting \
                      StringIndexer.handleInvalid."
                .into(),
        }),
    };
    let indices = texts(column)?.iter().map(of).collect::<Result<Vec<f64>>>()?;
    Ok(Arc::new(Float64Array::from(indices)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_of_frequency_go_by_alphabet() {
        let counts: Counts = [("b", 2), ("a", 2), ("c", 5), ("d", 1)].map(|(l, n)| (l.to_string(), n)).into();
        assert_eq!(ordered(counts.clone(), "frequencyDesc"), ["c", "a", "b", "d"]);
        assert_eq!(ordered(counts.clone(), "frequencyAsc"), ["d", "a", "b", "c"]);
        assert_eq!(ordered(counts, "alphabetDesc"), ["d", "c", "b", "a"]);
    }

    #[test]
    fn numbers_are_indexed_by_the_text_that_spark_casts_them_to() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(1e10)]));
        let texts: Vec<Option<String>> = texts(&column).unwrap().iter().map(|t| t.map(String::from)).collect();
        assert_eq!(texts, [Some("1.0".into()), None, Some("1.0E10".into())]);
    }
}
