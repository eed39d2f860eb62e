//! `ml_predict` and `ml_transform`: a model over a relation's columns, row by row and lazily.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use ml::tabular::{Features, RawType};
use ml::{TransformStep, Value};
use sql::model::Constant;
use udt::VectorArray;

use super::Refusal;
use super::loaded::Loaded;
use super::options::HandleInvalid;
use super::plan::Task;
use super::rows::{find, names};
use super::stage::{HIDDEN, all_steps};
use crate::{Error, Result};

/// Columns of the model's own, which no client has.
const FEATURES: &str = "__phalanx_model_features";
const RAW: &str = "__phalanx_model_raw";
const PROBABILITY: &str = "__phalanx_model_probability";
const PREDICTION: &str = "__phalanx_model_prediction";

/// What a call says beside the model and its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    pub threshold: Option<f64>,
    pub prediction: String,
    pub probability: String,
    pub on_invalid: Option<OnInvalid>,
}

/// What becomes of rows that miss a number, where the model does not keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInvalid {
    Null,
    Error,
    Skip,
}

impl Arguments {
    /// # Errors
    /// Values of a wrong type or out of range.
    pub fn new(arguments: &[(String, Constant)]) -> Result<Arguments> {
        let mut read = Arguments {
            threshold: None,
            prediction: "prediction".into(),
            probability: "probability".into(),
            on_invalid: None,
        };
        for (name, value) in arguments {
            let refused = |expected: &str| {
                let detail = format!("the parameter {name} cannot be {value}, expected {expected}");
                Error::Engine(engine::Error::InvalidPlan { detail })
            };
            match (name.as_str(), value) {
                ("threshold", value) => {
                    let threshold = value.as_double().filter(|threshold| (0.0..=1.0).contains(threshold));
                    read.threshold = Some(threshold.ok_or_else(|| refused("a number from 0 to 1"))?);
                }
                ("prediction_col", Constant::Text(name)) => read.prediction.clone_from(name),
                ("probability_col", Constant::Text(name)) => read.probability.clone_from(name),
                ("on_invalid", Constant::Text(text)) => {
                    read.on_invalid = Some(match text.to_ascii_lowercase().as_str() {
                        "null" => OnInvalid::Null,
                        "error" => OnInvalid::Error,
                        "skip" => OnInvalid::Skip,
                        _ => return Err(refused("'null', 'error' or 'skip'")),
                    });
                }
                _ => return Err(refused("a STRING")),
            }
        }
        Ok(read)
    }
}

/// A column of the input that a model needs.
struct Needed<'a> {
    name: &'a str,
    data_type: String,
    takes: Box<dyn Fn(&Field) -> bool + 'a>,
}

fn needed(loaded: &Loaded) -> Result<Vec<Needed<'_>>> {
    if let Some(transform) = &loaded.document.transform {
        let kept = transform.inputs.iter().map(|input| {
            let expected = input.field()?;
            let raw_type = RawType::of(&expected);
            let data_type = engine::data_type::sql_name(&expected);
            let takes = move |field: &Field| match raw_type {
                Some(raw_type) => raw_type.takes(field),
                None => field.data_type() == expected.data_type(),
            };
            Ok(Needed { name: &input.name, data_type, takes: Box::new(takes) })
        });
        return kept.collect();
    }
    let raw = loaded.document.features.columns.iter().map(|column| Needed {
        name: &column.name,
        data_type: column.data_type.to_uppercase(),
        takes: Box::new(|field| column.raw_type.takes(field)),
    });
    Ok(raw.collect())
}

/// The input's columns that a model needs: without TRANSFORM one for each feature, in their order.
///
/// # Errors
/// [`Refusal::FeatureNotFound`], [`Refusal::InputType`]
pub fn inputs(loaded: &Loaded, schema: &Schema, is_case_sensitive: bool) -> Result<Vec<usize>> {
    let (model, version) = (loaded.name.to_string(), loaded.version);
    let needed = needed(loaded)?;
    let found: Vec<Option<usize>> = needed.iter().map(|column| find(schema, column.name, is_case_sensitive)).collect();
    let missing: Vec<String> = needed
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|(column, _)| column.name.to_string())
        .collect();
    if !missing.is_empty() {
        let columns = names(schema).into_iter().filter(|name| !name.starts_with(HIDDEN)).collect();
        return Err(Refusal::FeatureNotFound { model, version, missing, columns }.into());
    }
    let found: Vec<usize> = found.into_iter().flatten().collect();
    for (column, at) in needed.iter().zip(&found) {
        let field = schema.field(*at);
        if !(column.takes)(field) {
            return Err(Refusal::InputType {
                model,
                version,
                column: column.name.to_string(),
                found: engine::data_type::sql_name(field),
                expected: column.data_type.clone(),
            }
            .into());
        }
    }
    Ok(found)
}

/// What precedes the features' vector: TRANSFORM's stages, the schema behind them, the column of each feature in it, and
/// the columns that must not be seen.
struct Before {
    steps: Vec<TransformStep>,
    schema: Schema,
    columns: Vec<String>,
    hidden: Vec<String>,
}

fn before(loaded: &Loaded, schema: &Schema, is_case_sensitive: bool) -> Result<Before> {
    let found = inputs(loaded, schema, is_case_sensitive)?;
    let Some(transform) = &loaded.document.transform else {
        let columns = found.iter().map(|at| schema.field(*at).name().clone()).collect();
        return Ok(Before { steps: Vec::new(), schema: schema.clone(), columns, hidden: Vec::new() });
    };
    let (steps, schema) = all_steps(&loaded.stages, schema)?;
    let promised = Error::Bug { invariant: "TRANSFORM gives the columns it promises" };
    let column = |name: &String| find(&schema, name, is_case_sensitive).map(|at| schema.field(at).name().clone());
    let columns = transform.columns.iter().map(column).collect::<Option<Vec<String>>>().ok_or(promised)?;
    let hidden = names(&schema).into_iter().filter(|name| name.starts_with(HIDDEN)).collect();
    Ok(Before { steps, schema, columns, hidden })
}

/// The steps of `ml_predict` over an input of this schema.
///
/// # Errors
/// Columns that the input lacks, has in another type, or has already.
pub fn steps(
    loaded: &Loaded,
    arguments: &Arguments,
    schema: &Schema,
    is_case_sensitive: bool,
) -> Result<Vec<TransformStep>> {
    let Before { steps, schema: behind, columns, hidden } = before(loaded, schema, is_case_sensitive)?;
    let task = Task::named(&loaded.document.task);
    let has_probability = (loaded.model.operator().params)().iter().any(|param| param.name == "probabilityCol");
    for output in [Some(&arguments.prediction), has_probability.then_some(&arguments.probability)].into_iter().flatten()
    {
        if find(schema, output, is_case_sensitive).is_some() {
            return Err(Error::Engine(engine::Error::ColumnAlreadyExists { name: output.clone() }));
        }
    }
    let policy = Policy::of(loaded, arguments);
    let features = Arc::new(loaded.document.features.clone());
    let mut steps = steps;
    if policy == Policy::Skip {
        let features = Arc::clone(&features);
        steps.push(TransformStep::Filter {
            inputs: columns.clone(),
            function: Arc::new(move |columns, num_rows| {
                let missing = features.missing(columns, num_rows)?;
                Ok(Arc::new(arrow::compute::not(&missing)?) as ArrayRef)
            }),
        });
    }
    steps.push(encode_step(&features, columns.clone(), policy == Policy::Error));
    let mut with_features: Vec<Field> = behind.fields().iter().map(|field| field.as_ref().clone()).collect();
    with_features.push(udt::field::vector_field(FEATURES));
    steps.extend(model_steps(loaded, arguments, &Schema::new(with_features))?);
    let mut hidden = hidden;
    hidden.extend([FEATURES.to_string(), PREDICTION.to_string()]);
    let mut inputs = vec![PREDICTION.to_string()];
    let nulls = (policy == Policy::Null).then(|| Arc::clone(&features));
    if nulls.is_some() {
        inputs.extend(columns.clone());
    }
    steps.push(prediction_step(loaded, task, &arguments.prediction, inputs, nulls.clone())?);
    if has_probability {
        hidden.extend([RAW.to_string(), PROBABILITY.to_string()]);
        let mut inputs = vec![PROBABILITY.to_string()];
        if nulls.is_some() {
            inputs.extend(columns);
        }
        steps.push(probability_step(loaded, &arguments.probability, inputs, nulls)?);
    }
    steps.push(TransformStep::Drop { columns: hidden });
    Ok(steps)
}

/// What happens to rows that miss a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Keep,
    Null,
    Error,
    Skip,
}

impl Policy {
    fn of(loaded: &Loaded, arguments: &Arguments) -> Policy {
        let keeps = HandleInvalid::named(&loaded.document.handle_invalid) == HandleInvalid::Keep;
        match arguments.on_invalid {
            Some(OnInvalid::Error) => Policy::Error,
            // a model that keeps such rows has an answer for each
            _ if keeps => Policy::Keep,
            Some(OnInvalid::Skip) => Policy::Skip,
            Some(OnInvalid::Null) | None => Policy::Null,
        }
    }
}

fn encode_step(features: &Arc<Features>, inputs: Vec<String>, is_strict: bool) -> TransformStep {
    let features = Arc::clone(features);
    TransformStep::Append {
        output: Arc::new(udt::field::vector_field(FEATURES)),
        inputs,
        function: Arc::new(move |columns, num_rows| {
            if is_strict {
                features.check(columns)?;
            }
            features.encode(columns, num_rows)
        }),
    }
}

fn model_steps(loaded: &Loaded, arguments: &Arguments, schema: &Schema) -> Result<Vec<TransformStep>> {
    let operator = loaded.model.operator();
    let has = |name: &str| (operator.params)().iter().any(|param| param.name == name);
    let mut changes = std::collections::BTreeMap::new();
    for (param, column) in [
        ("featuresCol", FEATURES),
        ("rawPredictionCol", RAW),
        ("probabilityCol", PROBABILITY),
        ("predictionCol", PREDICTION),
    ] {
        if has(param) {
            changes.insert(param.to_string(), Value::String(column.into()));
        }
    }
    if let Some(threshold) = arguments.threshold {
        if !has("threshold") || loaded.num_classes() != 2 {
            let what = format!("threshold of `{}` with {} classes", loaded.document.estimator, loaded.num_classes());
            return Err(Refusal::UnsupportedOperation { what }.into());
        }
        changes.insert("threshold".into(), Value::Double(threshold));
    }
    let params = loaded.model.params().with(operator, changes)?;
    Ok(loaded.model.transform(&params, schema)?)
}

/// Values without those of rows that miss a number.
fn without_missing(
    values: ArrayRef,
    features: Option<&Arc<Features>>,
    columns: &[ArrayRef],
    num_rows: usize,
) -> ml::Result<ArrayRef> {
    match features {
        None => Ok(values),
        Some(features) => {
            let missing: BooleanArray = features.missing(columns, num_rows)?;
            Ok(nullif(&values, &missing)?)
        }
    }
}

fn prediction_step(
    loaded: &Loaded,
    task: Task,
    name: &str,
    inputs: Vec<String>,
    nulls: Option<Arc<Features>>,
) -> Result<TransformStep> {
    let label_type = loaded.label_type.clone();
    let (output, classes) = match (task, &loaded.document.classes) {
        (Task::Classification, Some(classes)) => {
            (loaded.document.label.field()?.with_name(name), Some(classes.clone()))
        }
        _ => (Field::new(name, DataType::Float64, true), None),
    };
    Ok(TransformStep::Append {
        output: Arc::new(output.with_nullable(true)),
        inputs,
        function: Arc::new(move |columns, num_rows| {
            let values = match &classes {
                Some(classes) => classes.decode(&columns[0], &label_type)?,
                None => cast(&columns[0], &DataType::Float64)?,
            };
            without_missing(values, nulls.as_ref(), &columns[1..], num_rows)
        }),
    })
}

/// The probability of each class, in the order of the labels.
fn probability_step(
    loaded: &Loaded,
    name: &str,
    inputs: Vec<String>,
    nulls: Option<Arc<Features>>,
) -> Result<TransformStep> {
    let Some(classes) = &loaded.document.classes else {
        return Err(Error::Bug { invariant: "what has probabilities has classes" });
    };
    let order = classes.sorted(&loaded.label_type)?;
    let places = arrow::array::Int32Array::from(order.iter().map(|at| *at as i32).collect::<Vec<_>>());
    let labels = take(&classes.column(&loaded.label_type)?, &places, None)?;
    let fields: Fields =
        vec![Field::new("label", loaded.label_type.clone(), true), Field::new("prob", DataType::Float64, true)].into();
    let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), true));
    let output = Field::new(name, DataType::List(Arc::clone(&element)), true);
    Ok(TransformStep::Append {
        output: Arc::new(output),
        inputs,
        function: Arc::new(move |columns, num_rows| {
            let vectors = VectorArray::try_new(columns[0].as_ref())?;
            let mut values = Vec::with_capacity(num_rows * order.len());
            for row in 0..num_rows {
                let dense = vectors.row(row)?.to_vector().to_dense();
                values.extend(order.iter().map(|class| dense.get(*class).copied().unwrap_or(0.0)));
            }
            let all = (0..num_rows).flat_map(|_| 0..order.len() as i32);
            let labels = take(&labels, &arrow::array::Int32Array::from_iter_values(all), None)?;
            let probabilities = Arc::new(Float64Array::from(values));
            let structs = StructArray::new(fields.clone(), vec![labels, probabilities], None);
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(order.len(), num_rows));
            let lists = ListArray::new(Arc::clone(&element), offsets, Arc::new(structs), None);
            without_missing(Arc::new(lists), nulls.as_ref(), &columns[1..], num_rows)
        }),
    })
}

/// The steps of `ml_transform`: the columns that are not consumed, then what TRANSFORM gives, or else the vector that the
/// estimator sees.
///
/// # Errors
/// As [`steps`].
pub fn transform_steps(loaded: &Loaded, schema: &Schema, is_case_sensitive: bool) -> Result<Vec<TransformStep>> {
    let consumed: Vec<String> = inputs(loaded, schema, is_case_sensitive)?
        .into_iter()
        .map(|at| schema.field(at).name().clone())
        .collect();
    let Before { mut steps, schema: behind, columns, mut hidden } = before(loaded, schema, is_case_sensitive)?;
    let features = Arc::new(loaded.document.features.clone());
    // under a hidden name first, since an output may have the name of a column that is consumed
    let mut outputs: Vec<(String, Field)> = Vec::new();
    if loaded.document.transform.is_some() {
        for (at, (column, feature)) in columns.iter().zip(&features.columns).enumerate() {
            let field = behind.field_with_name(column)?.clone();
            let name = format!("{HIDDEN}output_{at}");
            steps.push(same(column, field.clone().with_name(&name)));
            outputs.push((name, field.with_name(&feature.name)));
        }
    } else {
        steps.push(encode_step(&features, columns, false));
        outputs.push((FEATURES.into(), udt::field::vector_field("features")));
    }
    for (_, field) in &outputs {
        let taken = find(schema, field.name(), is_case_sensitive);
        if taken.is_some_and(|at| !consumed.contains(schema.field(at).name())) {
            return Err(Error::Engine(engine::Error::ColumnAlreadyExists { name: field.name().clone() }));
        }
    }
    steps.push(TransformStep::Drop { columns: consumed });
    for (column, field) in outputs {
        steps.push(same(&column, field));
        hidden.push(column);
    }
    steps.push(TransformStep::Drop { columns: hidden });
    Ok(steps)
}

/// A column under another name.
fn same(column: &str, output: Field) -> TransformStep {
    TransformStep::Append {
        output: Arc::new(output.with_nullable(true)),
        inputs: vec![column.to_string()],
        function: Arc::new(|columns, _| Ok(Arc::clone(&columns[0]))),
    }
}
