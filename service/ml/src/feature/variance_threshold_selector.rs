//! `VarianceThresholdSelector`: the elements of a vector whose variance is above a threshold.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::{RankContext, RankProgram};
use udt::VectorRow;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::ml_attr::{self, AttributeGroup};
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, Params, Result, TransformStep,
    Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.VarianceThresholdSelector",
    model_class: Some("org.apache.spark.ml.feature.VarianceThresholdSelectorModel"),
    params,
    kind: Kind::Estimator(&VarianceThresholdSelector),
};

pub static PROGRAM: RankProgram = RankProgram { name: "variance_threshold_selector", run };

fn params() -> Vec<Param> {
    vec![
        Param::string("featuresCol", "features"),
        Param::output_col(),
        Param::double("varianceThreshold", 0.0, Check::AtLeast(0.0)),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    /// Indices, ascending.
    selected: Vec<i32>,
}

/// `spec` is the threshold.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let threshold: f64 = serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    let variances = vectors::moments(ctx)?.variance();
    let is_selected = |(_, variance): &(usize, &f64)| **variance > threshold;
    let selected = variances.iter().enumerate().filter(is_selected).map(|(i, _)| i as i32).collect();
    super::on_rank_0(program, ctx, &Fitted { selected })
}

struct VarianceThresholdSelector;

impl Estimator for VarianceThresholdSelector {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("featuresCol")?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        let threshold = params.double("varianceThreshold")?;
        let spec = serde_json::to_vec(&threshold)
            .map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let Fitted { selected } = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(VarianceThresholdSelectorModel { operator, params: params.clone(), selected }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let corrupted =
            || Error::Corrupted { path: "data".into(), detail: "selectedFeatures is no list of rising indices".into() };
        let lists = saved.table("data")?.column_by_name("selectedFeatures").and_then(|column| column.as_list_opt::<i32>());
        let list = lists.filter(|lists| lists.len() == 1).map(|lists| lists.value(0));
        let indices = list.as_ref().and_then(|list| list.as_primitive_opt::<Int32Type>()).ok_or_else(corrupted)?;
        let selected = indices.values().to_vec();
        if selected.first().is_some_and(|first| *first < 0) || selected.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(corrupted());
        }
        Ok(Arc::new(VarianceThresholdSelectorModel { operator, params: params.clone(), selected }))
    }
}

struct VarianceThresholdSelectorModel {
    operator: &'static Operator,
    params: Params,
    selected: Vec<i32>,
}

impl Model for VarianceThresholdSelectorModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("featuresCol")?, params.string("outputCol")?);
        let group = AttributeGroup::of_column(column::vector(schema, input)?);
        check_new(schema, output)?;
        let attribute = |index: &i32| match &group {
            AttributeGroup::Attributes(attributes) => attributes.get(*index as usize).cloned(),
            _ => None,
        };
        let attributes = self.selected.iter().map(|index| attribute(index).unwrap_or_else(ml_attr::Attribute::numeric));
        let group = AttributeGroup::Attributes(attributes.collect());
        let selected = self.selected.clone();
        Ok(vec![TransformStep::Append {
            output: Arc::new(group.mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| select(&columns[0], &selected)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "selectedFeatures" => Ok(Attribute::Value(Value::ints(&self.selected))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let (uid, count) = (&self.params.uid, self.selected.len());
        format!("VarianceThresholdSelectorModel: uid={uid}, numSelectedFeatures={count}")
    }

    fn size_bytes(&self) -> usize {
        256 + 4 * self.selected.len()
    }

    fn save(&self) -> Result<Saved> {
        let element = Arc::new(Field::new("element", DataType::Int32, false));
        let offsets = OffsetBuffer::from_lengths([self.selected.len()]);
        let values = Arc::new(Int32Array::from(self.selected.clone()));
        let list = ListArray::new(Arc::clone(&element), offsets, values, None);
        let schema = Schema::new(vec![Field::new("selectedFeatures", DataType::List(element), true)]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}

/// The elements at rising indices; what a sparse vector stores stays stored, zeros included.
fn select(column: &ArrayRef, selected: &[i32]) -> Result<ArrayRef> {
    vectors::map(column, |row, builder| {
        if let Some(last) = selected.last().filter(|last| **last as usize >= row.size()) {
            return Err(Error::InvalidRow {
                message: format!("element {last} is selected, but a vector has {} elements", row.size()),
            });
        }
        match row {
            VectorRow::Dense(values) => {
                builder.append_dense(&selected.iter().map(|index| values[*index as usize]).collect::<Vec<f64>>());
            }
            VectorRow::Sparse { indices, values, .. } => {
                let place = |(index, value): (&i32, &f64)| Some((selected.binary_search(index).ok()? as i32, *value));
                let (places, values): (Vec<i32>, Vec<f64>) = indices.iter().zip(values).filter_map(place).unzip();
                builder.append_sparse(selected.len(), &places, &values);
            }
        }
        Ok(())
    })
}
