//! The fitted model: inference on columns, its attributes, its saved form.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json};
use train::network::{Column, ColumnKind, LossKind, ScriptModule};
use udt::{VectorArray, VectorBuilder};

use super::program::Fitted;
use super::{inputs, outputs, params};
use crate::classification::prediction::{argmax, softmax};
use crate::linear::params::check_outputs;
use crate::ml_attr::{Attribute as MlAttribute, AttributeGroup};
use crate::persist::Saved;
use crate::{Argument, Attribute, ColumnFunction, Error, Model, Operator, Params, Result, TransformStep, Value};

pub struct TorchModel {
    operator: &'static Operator,
    params: Params,
    fitted: Fitted,
    module: Arc<ScriptModule>,
    /// The module as TorchScript.
    bytes: Vec<u8>,
}

/// The key of the metadata under which a saved model keeps what is known of its training.
const TRAINING: &str = "training";

impl TorchModel {
    /// # Errors
    /// The bytes are no TorchScript that can be loaded here.
    pub fn new(operator: &'static Operator, params: Params, fitted: Fitted, bytes: Vec<u8>) -> Result<TorchModel> {
        let mut module = ScriptModule::load(&bytes)?;
        module.set_training(false)?;
        Ok(TorchModel { operator, params, fitted, module: Arc::new(module), bytes })
    }

    /// # Errors
    /// [`Error::Corrupted`]: the module or what is known of its training is missing.
    pub fn load(operator: &'static Operator, params: &Params, saved: &Saved) -> Result<TorchModel> {
        let corrupted = |path: &str, detail: &str| Error::Corrupted { path: path.into(), detail: detail.into() };
        let training =
            saved.metadata.get(TRAINING).cloned().ok_or_else(|| corrupted("metadata", "training is missing"))?;
        let fitted =
            serde_json::from_value(training).map_err(|source| corrupted("metadata", &format!("training: {source}")))?;
        let column = saved.table("data")?.column_by_name("module").filter(|column| column.len() == 1);
        let modules = column.and_then(|column| column.as_binary_opt::<i32>());
        let bytes = modules.ok_or_else(|| corrupted("data", "expected one row of the binary column module"))?.value(0);
        TorchModel::new(operator, params.clone(), fitted, bytes.to_vec())
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class().into(), method: method.into() }
    }

    /// The steps of a classifier: scores, probabilities, the class.
    fn classify(&self, infer: &Inference, params: &Params, loss: LossKind) -> Result<Vec<TransformStep>> {
        let width = self.fitted.output_width.unwrap_or(1);
        let classes = Classes { loss, num_classes: if loss == LossKind::BinaryCrossEntropy { 2 } else { width } };
        if loss == LossKind::BinaryCrossEntropy && width != 1 {
            let feature = format!("the loss bce with a module that gives {width} values a row");
            return Err(Error::Unsupported { feature });
        }
        let vectors =
            |name: &str| Arc::new(AttributeGroup::Size(classes.num_classes).mark(udt::field::vector_field(name)));
        let mut steps = Vec::new();
        let mut source: Option<(String, Stage)> = None;
        for (param, stage) in [("rawPredictionCol", Stage::Raw), ("probabilityCol", Stage::Probability)] {
            let Some(name) = params.column(param) else { continue };
            let (inputs, function) = classes.step(infer, source.clone(), stage);
            steps.push(TransformStep::Append { output: vectors(name), inputs, function });
            source = Some((name.to_string(), stage));
        }
        if let Some(name) = params.column("predictionCol") {
            let (inputs, function) = classes.step(infer, source, Stage::Prediction);
            let field = Field::new(name, DataType::Float64, false);
            let output = Arc::new(MlAttribute::nominal_with_num_values(classes.num_classes).mark(field));
            steps.push(TransformStep::Append { output, inputs, function });
        }
        Ok(steps)
    }

    /// The one step of anything else: a number, or a vector where the module gives more than one a row.
    fn predict(&self, infer: &Inference, params: &Params) -> Vec<TransformStep> {
        let Some(name) = params.column("predictionCol") else { return Vec::new() };
        let width = self.fitted.output_width.unwrap_or(1);
        let output = match width {
            1 => Field::new(name, DataType::Float64, false),
            width => AttributeGroup::Size(width).mark(udt::field::vector_field(name)),
        };
        let run = infer.clone();
        let function: ColumnFunction = Arc::new(move |columns, num_rows| {
            let values = run.infer(columns, num_rows)?;
            Ok(match width {
                1 => Arc::new(Float64Array::from(values)),
                width => VectorBuilder::from_dense_rows(width, values),
            })
        });
        vec![TransformStep::Append { output: Arc::new(output), inputs: infer.names.clone(), function }]
    }
}

impl Model for TorchModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let loss = params::loss(params)?;
        check_outputs(params, schema, outputs(loss))?;
        let infer = Inference {
            names: params.strings("inputCols")?,
            kinds: inputs(params, schema)?,
            module: Arc::clone(&self.module),
            width: self.fitted.output_width.unwrap_or(1),
            rows_at_once: params.int("inferenceBatchSize")? as usize,
        };
        match outputs(loss) {
            [_] => Ok(self.predict(&infer, params)),
            _ => self.classify(&infer, params, loss),
        }
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        let count = |count: u64| Value::Long(i64::try_from(count).unwrap_or(i64::MAX));
        let value = match name {
            "toString" => Value::String(self.describe()),
            "module" => Value::String(BASE64_STANDARD.encode(&self.bytes)),
            "lossHistory" => Value::doubles(&self.fitted.losses),
            "validationLossHistory" => Value::doubles(&self.fitted.validation_losses),
            "bestEpoch" => self.fitted.best_epoch.map_or(Value::Null, |epoch| count(epoch as u64)),
            "numSteps" => count(self.fitted.num_steps),
            "numRows" => count(self.fitted.num_rows),
            _ => return Err(self.not_allowed(name)),
        };
        Ok(Attribute::Value(value))
    }

    fn describe(&self) -> String {
        let (uid, num_bytes) = (&self.params.uid, self.bytes.len());
        format!("TorchModel: uid={uid}, numEpochs={}, moduleBytes={num_bytes}", self.fitted.losses.len())
    }

    fn size_bytes(&self) -> usize {
        // the module, and its bytes
        size_of::<TorchModel>() + 2 * self.bytes.len()
    }

    fn save(&self) -> Result<Saved> {
        let field = Field::new("module", DataType::Binary, false);
        let module = BinaryArray::from_iter_values([&self.bytes]);
        let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(module)])?;
        let training: Json = serde_json::to_value(&self.fitted)
            .map_err(|source| train::Error::Spec { program: super::PROGRAM.name, source })?;
        let metadata = Map::from_iter([(TRAINING.to_string(), training)]);
        Ok(Saved { metadata, tables: vec![("data".into(), rows)] })
    }
}

/// A module over some columns, some rows at once.
#[derive(Clone)]
struct Inference {
    names: Vec<String>,
    kinds: Vec<ColumnKind>,
    module: Arc<ScriptModule>,
    /// Values of an output row.
    width: usize,
    rows_at_once: usize,
}

impl Inference {
    /// What the module gives for all rows, row-major.
    fn infer(&self, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<f64>> {
        let _no_gradients = tch::no_grad_guard();
        let mut values = Vec::with_capacity(num_rows * self.width);
        for start in (0..num_rows).step_by(self.rows_at_once) {
            let length = self.rows_at_once.min(num_rows - start);
            let mut inputs = Vec::with_capacity(columns.len());
            for ((name, kind), array) in self.names.iter().zip(&self.kinds).zip(columns) {
                let mut column = Column::new(name, *kind);
                if let Err(problem) = column.extend(&array.slice(start, length))? {
                    return Err(Error::InvalidRow { message: problem.to_string() });
                }
                inputs.push(column.all());
            }
            let inputs: Vec<&tch::Tensor> = inputs.iter().collect();
            let output = self.module.forward(&inputs)?.to_kind(tch::Kind::Double).contiguous();
            if output.numel() != length * self.width {
                let (found, expected) = (output.size(), self.width);
                let message = format!("the module gave a tensor of shape {found:?}, expected {expected} values a row");
                return Err(Error::InvalidRow { message });
            }
            let from = values.len();
            values.resize(from + output.numel(), 0.0);
            output.copy_data(&mut values[from..], output.numel());
        }
        Ok(values)
    }
}

/// How far a column is on the way from the module's output to the class.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Raw,
    Probability,
    Prediction,
}

/// A module's output seen as scores of classes.
#[derive(Debug, Clone, Copy)]
struct Classes {
    loss: LossKind,
    num_classes: usize,
}

impl Classes {
    /// The step to a stage, from the nearest column before it, else from the module's inputs.
    fn step(self, infer: &Inference, source: Option<(String, Stage)>, to: Stage) -> (Vec<String>, ColumnFunction) {
        let (names, from) = match source {
            Some((name, stage)) => (vec![name], Some(stage)),
            None => (infer.names.clone(), None),
        };
        let infer = infer.clone();
        let function: ColumnFunction = Arc::new(move |columns, num_rows| {
            let mut values = match from {
                None => self.raw(infer.infer(columns, num_rows)?),
                Some(_) => read_vectors(&columns[0], self.num_classes)?,
            };
            if to == Stage::Probability && from != Some(Stage::Probability) {
                values.chunks_exact_mut(self.num_classes).for_each(|row| self.normalize(row));
            }
            // neither probabilities nor what makes them changes which class is first
            Ok(match to {
                Stage::Prediction => {
                    Arc::new(Float64Array::from_iter_values(values.chunks_exact(self.num_classes).map(argmax)))
                        as ArrayRef
                }
                _ => VectorBuilder::from_dense_rows(self.num_classes, values),
            })
        });
        (names, function)
    }

    /// A logit becomes the margins of both classes, as in Spark's binary classifiers.
    fn raw(self, output: Vec<f64>) -> Vec<f64> {
        match self.loss {
            LossKind::BinaryCrossEntropy => output.into_iter().flat_map(|logit| [-logit, logit]).collect(),
            _ => output,
        }
    }

    fn normalize(self, row: &mut [f64]) {
        match (self.loss, &mut *row) {
            (LossKind::BinaryCrossEntropy, [negative, positive]) => {
                *positive = 1.0 / (1.0 + (-*positive).exp());
                *negative = 1.0 - *positive;
            }
            _ => softmax(row),
        }
    }
}

fn read_vectors(array: &ArrayRef, width: usize) -> Result<Vec<f64>> {
    let vectors = VectorArray::try_new(array.as_ref())?;
    match vectors.as_dense_rows() {
        Some((found, rows)) if found == width || rows.is_empty() => Ok(rows.to_vec()),
        _ => Err(Error::Bug { invariant: "the columns of a model's own steps are dense vectors".into() }),
    }
}
