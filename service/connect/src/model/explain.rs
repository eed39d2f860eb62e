//! `EXPLAIN TRAIN MODEL`: everything that training would check, and what it would do, in words.

use std::sync::Arc;

use spark_connect_proto::Relation;
use sql::model::Train;

use super::answer::Answer;
use super::name;
use super::plan::plan;
use super::train::split_in_words;
use crate::{Result, Session};

/// # Errors
/// Those of the training, as far as they show without reading a row.
pub async fn explain(
    session: &Arc<Session>,
    train: Train,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<Relation> {
    let if_not_exists = train.if_not_exists;
    let plan = plan(session, train, around).await?;
    let exists = match session.services.models.registry.model(&plan.name).await {
        Ok(_) => true,
        Err(registry::Error::ModelNotFound { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if exists && !plan.replace && !if_not_exists {
        return Err(registry::Error::ModelExists { name: plan.name.to_string() }.into());
    }
    let mut lines = vec![format!("TrainModel {} using {}", name::quoted(&plan.name), plan.estimator_name())];
    let mut line = |key: &str, value: String| lines.push(format!("  {key}: {value}"));
    if exists && if_not_exists {
        line("effect", "none: the model exists".into());
    } else if exists {
        line("effect", "a new version".into());
    } else {
        line("effect", "version 1".into());
    }
    line("task", plan.trainable.task.name().into());
    if let Some(label) = &plan.columns.label {
        line("label", format!("{} {}", label.name, engine::data_type::simple_string(&label.field)));
    }
    let features: Vec<String> =
        plan.columns.features.iter().map(|feature| format!("{} {}", feature.name, feature.data_type)).collect();
    match &plan.transform {
        Some(transform) => {
            let stages: Vec<String> = transform.stages.iter().map(|stage| stage.operator.snake_name()).collect();
            line("features", transform.names.join(", "));
            line("stages", if stages.is_empty() { "none".into() } else { stages.join(", ") });
        }
        None => line("features", features.join(", ")),
    }
    if let Some(weight) = &plan.columns.weight {
        line("weight", weight.name.clone());
    }
    let options: Vec<String> = plan.settings.shown.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    line("options", if options.is_empty() { "defaults".into() } else { options.join(", ") });
    line("split", split_in_words(&plan));
    if let Some(tune) = &plan.tune {
        let axes: Vec<&str> = tune.axes.iter().map(|axis| axis.shown.as_str()).collect();
        let (trials, side_by_side, workers) = (tune.trials, tune.parallelism, tune.workers);
        line(
            "tune",
            format!("{trials} trials over {}, {side_by_side} at a time, {workers} workers each", axes.join(", ")),
        );
    }
    line("workers", plan.workers.to_string());
    Answer::new().texts("plan", vec![Some(lines.join("\n"))]).relation(session)
}
