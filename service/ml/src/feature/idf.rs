//! `IDF`: weighs terms by how few documents have them.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::{RankContext, RankProgram};
use udt::{Vector, VectorBuilder};

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep, Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.IDF",
    model_class: Some("org.apache.spark.ml.feature.IDFModel"),
    params,
    kind: Kind::Estimator(&IDF),
};

pub static PROGRAM: RankProgram = RankProgram { name: "idf", run };

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::int("minDocFreq", 0, Check::AtLeast(0.0)),
        Param::output_col(),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    idf: Vec<f64>,
    document_frequencies: Vec<i64>,
    num_documents: i64,
}

/// `spec` is the least number of documents.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let least: i64 = serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    // the last count is that of all documents
    let mut counts: Vec<i64> = vec![0];
    let width = vectors::visit(ctx, |width, vectors| {
        counts.resize(width + 1, 0);
        for row in 0..vectors.len() {
            vectors.row(row)?.for_each(|index, value| counts[index] += i64::from(value > 0.0));
        }
        counts[width] += vectors.len() as i64;
        Ok(())
    })?;
    counts.resize(width + 1, 0);
    ctx.group.all_reduce(&mut counts, collective::ReduceOp::Sum)?;
    let num_documents = counts.pop().unwrap_or_default();
    let weigh = |count: &i64| ((num_documents + 1) as f64 / (count + 1) as f64).ln();
    let idf = counts.iter().map(|count| if *count >= least { weigh(count) } else { 0.0 }).collect();
    let document_frequencies = counts.iter().map(|count| if *count >= least { *count } else { 0 }).collect();
    super::on_rank_0(program, ctx, &Fitted { idf, document_frequencies, num_documents })
}

struct IDF;

impl Estimator for IDF {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        let spec = params.int("minDocFreq")?.to_string().into_bytes();
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(IDFModel { operator, params: params.clone(), fitted }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let corrupted = |name: &str| Error::Corrupted { path: "data".into(), detail: format!("column {name} is missing") };
        let table = saved.table("data")?;
        let lists = table.column_by_name("docFreq").and_then(|column| column.as_list_opt::<i32>());
        let list = lists.filter(|lists| lists.len() == 1).map(|lists| lists.value(0));
        let frequencies = list.as_ref().and_then(|list| list.as_primitive_opt::<Int64Type>());
        let document_frequencies = frequencies.ok_or_else(|| corrupted("docFreq"))?.values().to_vec();
        let count = table.column_by_name("numDocs").and_then(|column| column.as_primitive_opt::<Int64Type>());
        let num_documents = count.and_then(|count| count.values().first().copied()).ok_or_else(|| corrupted("numDocs"))?;
        let fitted = Fitted { idf: vectors::load(saved, "idf")?, document_frequencies, num_documents };
        Ok(Arc::new(IDFModel { operator, params: params.clone(), fitted }))
    }
}

struct IDFModel {
    operator: &'static Operator,
    params: Params,
    fitted: Fitted,
}

impl Model for IDFModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let scale = self.fitted.idf.clone();
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| vectors::scaled(&columns[0], None, &scale)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "idf" => Ok(Attribute::Value(Value::Vector(Vector::Dense(self.fitted.idf.clone())))),
            "docFreq" => Ok(Attribute::Value(Value::longs(&self.fitted.document_frequencies))),
            "numDocs" => Ok(Attribute::Value(Value::Long(self.fitted.num_documents))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let (uid, documents, width) = (&self.params.uid, self.fitted.num_documents, self.fitted.idf.len());
        format!("IDFModel: uid={uid}, numDocs={documents}, numFeatures={width}")
    }

    fn size_bytes(&self) -> usize {
        24 * self.fitted.idf.len() + 256
    }

    fn save(&self) -> Result<Saved> {
        let element = Arc::new(Field::new("element", DataType::Int64, false));
        let frequencies = Arc::new(Int64Array::from(self.fitted.document_frequencies.clone()));
        let offsets = OffsetBuffer::from_lengths([frequencies.len()]);
        let list = ListArray::new(Arc::clone(&element), offsets, frequencies, None);
        let schema = Schema::new(vec![
            udt::field::vector_field("idf"),
            Field::new("docFreq", DataType::List(element), true),
            Field::new("numDocs", DataType::Int64, false),
        ]);
        let mut idf = VectorBuilder::default();
        idf.append_dense(&self.fitted.idf);
        let count = Arc::new(Int64Array::from(vec![self.fitted.num_documents]));
        let rows = RecordBatch::try_new(Arc::new(schema), vec![idf.finish(), Arc::new(list), count])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}
