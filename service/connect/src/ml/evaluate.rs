//! `Evaluate`, and `CreateSummary`.

use std::sync::Arc;

use ml::{Kind, Value};
use spark_connect_proto::Relation;
use spark_connect_proto::ml_command::{CreateSummary, Evaluate};
use spark_connect_proto::ml_command_result::ResultType;

use super::cache::CachedSummary;
use super::{fold, literal, missing};
use crate::operation::Operation;
use crate::session::Session;
use crate::{Error, Result};

/// Computes an evaluator's metric over a dataset.
///
/// # Errors
/// What the evaluator says of params, columns and rows.
pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, evaluate: &Evaluate) -> Result<ResultType> {
    let named = evaluate.evaluator.as_ref().ok_or_else(|| missing("evaluator of Evaluate"))?;
    let operator = ml::catalog::operator(&named.name)?;
    let Kind::Evaluator(evaluator) = operator.kind else {
        return Err(ml::Error::OperatorNotSupported { class: named.name.clone() }.into());
    };
    let params = ml::Params::new(operator, &named.uid, literal::params(evaluate.params.as_ref())?)?;
    let dataset = evaluate.dataset.as_ref().ok_or_else(|| missing("dataset of Evaluate"))?;
    let metric = async {
        let frame = session.engine.resolve(dataset, session.as_ref()).await?;
        let columns = evaluator.columns(&params, &frame.schema())?;
        let folded = fold::fold(session, &frame, &columns, || evaluator.accumulator(&params)).await?;
        Ok::<f64, Error>(evaluator.evaluate(&params, folded)?)
    };
    tokio::select! {
        metric = metric => Ok(ResultType::Param(literal::from_value(&Value::Double(metric?)))),
        () = operation.cancelled() => Err(Error::Cancelled),
    }
}

/// Makes a model's training summary again after it was evicted.
pub async fn restore_summary(session: &Session, create: &CreateSummary) -> Result<()> {
    let id = &create.model_ref.as_ref().ok_or_else(|| missing("model_ref of CreateSummary"))?.id;
    restore(session, id, create.dataset.as_ref()).await
}

/// Makes the training summary of model `id` over the dataset it was trained on.
pub async fn restore(session: &Session, id: &str, dataset: Option<&Relation>) -> Result<()> {
    let cached = session.models.model(id)?;
    let dataset = dataset.ok_or_else(|| missing("dataset of the summary"))?;
    let dataset = session.engine.resolve(dataset, session).await?;
    let summary = cached.model.summary().ok_or_else(|| Error::SummaryLost { id: id.into() })?;
    let model = Arc::clone(&cached.model);
    cached.set_training_summary(CachedSummary { summary, model, dataset, folding: Default::default() });
    Ok(())
}
