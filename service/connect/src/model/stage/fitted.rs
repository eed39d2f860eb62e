//! Stages fitted on training rows, applied to any, and read from their files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use bytes::Bytes;
use engine::embedded::extension::PlanTransform;
use ml::persist::{self, Saved};
use ml::{Kind, Model, Operator, Params, TransformStep, Transformer, Value};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use super::plan::StagePlan;
use crate::ml::fit::{FitJob, FittedModel, fit_model};
use crate::ml::transform::steps;
use crate::model::rows::{Rows, transformed};
use crate::model::train::all_files;
use crate::{Error, Operation, Result, Session};

const ASSEMBLER: &str = "org.apache.spark.ml.feature.VectorAssembler";

/// A stage that can be applied.
#[derive(Clone)]
pub enum FittedStage {
    Model(Arc<dyn Model>),
    Transformer { operator: &'static Operator, transformer: &'static dyn Transformer, params: Params },
}

impl FittedStage {
    fn transform(&self, schema: &Schema) -> ml::Result<Vec<TransformStep>> {
        match self {
            FittedStage::Model(model) => model.transform(model.params(), schema),
            FittedStage::Transformer { transformer, params, .. } => transformer.transform(params, schema),
        }
    }
}

/// The stages of a model, in order.
pub type Stages = Vec<FittedStage>;

/// The steps of all stages over a schema, and the schema behind them.
pub fn all_steps(stages: &Stages, schema: &Schema) -> ml::Result<(Vec<TransformStep>, Schema)> {
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    let mut all = Vec::new();
    for stage in stages {
        for step in stage.transform(&Schema::new(fields.clone()))? {
            if let TransformStep::Append { output, .. } = &step {
                fields.push(Arc::clone(output));
            }
            all.push(step);
        }
    }
    Ok((all, Schema::new(fields)))
}

/// Applies stages to rows.
pub async fn apply(session: &Session, stages: &Stages, rows: &Rows) -> Result<Rows> {
    if stages.is_empty() {
        return Ok(rows.clone());
    }
    let frame = rows.frame(session).await?;
    let stages = stages.clone();
    let plan_transform: PlanTransform =
        Box::new(move |schema| steps(schema, |schema| Ok(all_steps(&stages, schema)?.0)));
    let frame = transformed(session, frame, plan_transform).await?;
    Rows::collect(session, &frame).await
}

/// Fits the stages one after the other, each on what the ones before give; the rows behind the last one come back.
///
/// # Errors
/// What a stage says of its input; what its gang says.
pub async fn fit(
    session: &Arc<Session>,
    operation: &Operation,
    plans: &[StagePlan],
    rows: &Rows,
    job_id: &str,
    workers: usize,
) -> Result<(Stages, Rows)> {
    let mut stages = Stages::new();
    let mut rows = rows.clone();
    for (at, plan) in plans.iter().enumerate() {
        let mut plan = plan.clone();
        let mut new = Stages::new();
        let input = plan.inputs.first().and_then(|name| rows.schema.field_with_name(name).ok());
        if plan.takes_vectors && input.is_some_and(|field| field.data_type().is_numeric()) {
            let vector = format!("{}_vector", plan.output);
            new.push(assembler(&plan.inputs, &vector)?);
            rows = apply(session, &new, &rows).await?;
            plan.inputs = vec![vector];
        }
        let params = stage_params(&plan)?;
        let fitted = match plan.operator.kind {
            Kind::Transformer(transformer) => {
                FittedStage::Transformer { operator: plan.operator, transformer, params }
            }
            Kind::Estimator(estimator) => {
                let frame = rows.frame(session).await?;
                let job_id = format!("{job_id}-stage-{at}");
                let job = FitJob { job_id, operator: plan.operator, estimator, params: &params, num_ranks: workers };
                let FittedModel { model, .. } = Box::pin(fit_model(session, operation, job, &frame)).await?;
                FittedStage::Model(model)
            }
            Kind::Evaluator(_) => return Err(Error::Bug { invariant: "no evaluator is a stage" }),
        };
        rows = apply(session, &vec![fitted.clone()], &rows).await?;
        new.push(fitted);
        stages.extend(new);
    }
    Ok((stages, rows))
}

fn uid(operator: &Operator) -> String {
    format!("{}_{}", operator.short_name(), &uuid::Uuid::new_v4().simple().to_string()[..12])
}

fn assembler(inputs: &[String], output: &str) -> Result<FittedStage> {
    let operator = ml::catalog::operator(ASSEMBLER)?;
    let Kind::Transformer(transformer) = operator.kind else {
        return Err(Error::Bug { invariant: "the assembler is a transformer" });
    };
    let values = BTreeMap::from([
        ("inputCols".to_string(), Value::strings(inputs)),
        ("outputCol".to_string(), Value::String(output.into())),
        ("handleInvalid".to_string(), Value::String("keep".into())),
    ]);
    let params = Params::new(operator, &uid(operator), values)?;
    Ok(FittedStage::Transformer { operator, transformer, params })
}

fn stage_params(plan: &StagePlan) -> Result<Params> {
    let mut values = plan.params.clone();
    match plan.is_of_many {
        true => values.insert("inputCols".into(), Value::strings(&plan.inputs)),
        false => values.insert("inputCol".into(), Value::String(plan.inputs.first().cloned().unwrap_or_default())),
    };
    values.insert("outputCol".into(), Value::String(plan.output.clone()));
    Ok(Params::new(plan.operator, &uid(plan.operator), values)?)
}

/// The folder of a stage's files.
fn folder(at: usize) -> String {
    format!("stages/{at:03}")
}

/// The files of stages, each in Spark ML's own layout.
pub async fn files(stages: &Stages) -> Result<registry::Files> {
    let store = InMemory::new();
    for (at, stage) in stages.iter().enumerate() {
        let prefix = Path::from(folder(at));
        match stage {
            FittedStage::Model(model) => {
                persist::write_operator(&store, &prefix, model.class(), model.params(), &model.save()?, false).await?;
            }
            FittedStage::Transformer { operator, params, .. } => {
                persist::write_operator(&store, &prefix, operator.class, params, &Saved::default(), false).await?;
            }
        }
    }
    all_files(&store).await
}

/// Reads the stages of a version.
///
/// # Errors
/// Files that are missing or damaged.
pub async fn read(files: &[(String, Bytes)], num_stages: usize) -> Result<Stages> {
    let failed = |source: object_store::Error| Error::Ml(source.into());
    let store = InMemory::new();
    for (path, content) in files.iter().filter(|(path, _)| path.starts_with("stages/")) {
        store.put(&Path::from(path.as_str()), PutPayload::from(content.clone())).await.map_err(failed)?;
    }
    let mut stages = Stages::with_capacity(num_stages);
    for at in 0..num_stages {
        let loaded = persist::read_operator(&store, &Path::from(folder(at))).await?;
        let operator = ml::catalog::operator(&loaded.class)?;
        let params = Params::from_json(operator, &loaded.uid, &loaded.explicit)?;
        stages.push(match operator.kind {
            Kind::Estimator(estimator) => FittedStage::Model(estimator.load(operator, &params, &loaded.saved)?),
            Kind::Transformer(transformer) => FittedStage::Transformer { operator, transformer, params },
            Kind::Evaluator(_) => return Err(Error::Bug { invariant: "no evaluator is a stage" }),
        });
    }
    Ok(stages)
}
