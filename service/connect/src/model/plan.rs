//! `TRAIN MODEL` checked as a whole: what would be trained, on what, how. No row is read for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::embedded::Frame;
use ml::{Estimator, Kind, Operator};
use registry::ModelName;
use spark_connect_proto::Relation;
use sql::model::{Constant, Property, Resources, Split, Train, Word};

use super::columns::{self, Columns};
use super::options::{HandleInvalid, Settings};
use super::stage::{self, TransformPlan};
use super::tune::{self, TunePlan};
use super::{Refusal, name};
use crate::ml::fit::num_ranks;
use crate::{Error, Result, Session};

/// The seed where none is given: a constant, so that a statement alone says what comes out.
const SEED: i64 = 42;

/// What is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Classification,
    Regression,
}

impl Task {
    pub fn name(self) -> &'static str {
        match self {
            Task::Classification => "classification",
            Task::Regression => "regression",
        }
    }

    pub fn named(name: &str) -> Task {
        if name == "classification" { Task::Classification } else { Task::Regression }
    }
}

/// An estimator that SQL can train: it learns a label from a vector of features.
#[derive(Clone, Copy)]
pub struct Trainable {
    pub operator: &'static Operator,
    pub estimator: &'static dyn Estimator,
    pub task: Task,
}

/// Everything that TRAIN MODEL can train, from the same catalogue that clients' estimators come from.
pub fn trainables() -> impl Iterator<Item = Trainable> {
    ml::catalog::OPERATORS.iter().filter_map(|operator| {
        let Kind::Estimator(estimator) = operator.kind else { return None };
        let task = if operator.class.contains(".classification.") {
            Task::Classification
        } else if operator.class.contains(".regression.") {
            Task::Regression
        } else {
            return None;
        };
        let params = (operator.params)();
        let has = |name: &str| params.iter().any(|param| param.name == name);
        (has("featuresCol") && has("labelCol")).then_some(Trainable { operator, estimator, task })
    })
}

/// # Errors
/// [`Refusal::EstimatorNotFound`]
pub fn trainable(word: &Word) -> Result<Trainable> {
    let found = trainables().find(|known| known.operator.snake_name().eq_ignore_ascii_case(&word.text));
    Ok(found.ok_or_else(|| Refusal::EstimatorNotFound {
        name: word.text.clone(),
        known: trainables().map(|known| known.operator.snake_name()).collect(),
        place: word.place,
    })?)
}

/// A training that can begin.
pub struct TrainPlan {
    pub name: ModelName,
    pub replace: bool,
    pub trainable: Trainable,
    pub settings: Settings,
    pub columns: Columns,
    pub transform: Option<TransformPlan>,
    pub split: Option<Split>,
    pub seed: i64,
    pub workers: usize,
    pub frame: Frame,
    /// After VALIDATE ON.
    pub validate: Option<Frame>,
    pub tune: Option<TunePlan>,
    pub alias: Option<String>,
    pub keep_default: bool,
    pub tags: BTreeMap<String, String>,
    pub comment: Option<String>,
    pub statement: String,
}

impl TrainPlan {
    pub fn estimator_name(&self) -> String {
        self.trainable.operator.snake_name()
    }
}

/// Checks a statement.
///
/// # Errors
/// The first thing that is wrong with it.
pub async fn plan(
    session: &Arc<Session>,
    train: Train,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<TrainPlan> {
    let model = name::resolve(session, &train.model.parts)?;
    let trainable = trainable(&train.estimator)?;
    let estimator = trainable.operator.snake_name();
    if train.warm_start.is_some() {
        return Err(Refusal::UnsupportedOperation { what: format!("WARM START of `{estimator}`") }.into());
    }
    let settings = Settings::new(trainable.operator, &train.options)?;
    if trainable.task == Task::Regression {
        let classes_only = ["class_weight", "positive_label", "max_classes"];
        if let Some(option) = classes_only.into_iter().find(|option| settings.shown.contains_key(*option)) {
            return Err(Refusal::UnsupportedOperation { what: format!("Option `{option}` of `{estimator}`") }.into());
        }
    }
    let workers = workers(session, train.resources.as_ref())?;
    let tags = tags(&train.tags)?;
    if let Some(alias) = &train.alias {
        registry_alias(&alias.text)?;
    }
    let tune = train.tune.as_ref().map(|tune| tune::plan(tune, trainable, &settings, workers, session)).transpose()?;
    let query = around(train.query.clone());
    let mut frame = session.engine.resolve(&query, session.as_ref()).await?;
    let schema = frame.schema();
    let is_case_sensitive = session.engine.conf().case_sensitive();
    let columns = columns::choose(&train, &settings, &schema, trainable.task, &estimator, is_case_sensitive)?;
    let transform = match &train.transform {
        Some(items) => {
            if settings.handle_invalid == HandleInvalid::Skip {
                let what = "handle_invalid = 'skip' beside TRANSFORM".into();
                return Err(Refusal::UnsupportedOperation { what }.into());
            }
            let label = columns.label.as_ref().map(|label| label.name.as_str()).unwrap_or_default();
            Some(stage::plan(items, &schema, label, &columns.taken, is_case_sensitive)?)
        }
        None => None,
    };
    let projected = transform.as_ref().map(|transform| transform.kept.projected.as_slice()).unwrap_or_default();
    if !projected.is_empty() {
        frame = session.engine.resolve(&stage::projection(query, projected)?, session.as_ref()).await?;
    }
    let validate = match &train.validate {
        Some(query) => {
            let query = stage::projection(around(query.clone()), projected)?;
            let frame = session.engine.resolve(&query, session.as_ref()).await?;
            check_validation(&frame, &columns, is_case_sensitive)?;
            Some(frame)
        }
        None => None,
    };
    let seed = match &train.split {
        Some(Split::Random { seed: Some(seed), .. }) => *seed,
        _ => SEED,
    };
    Ok(TrainPlan {
        name: model,
        replace: train.replace,
        trainable,
        settings,
        columns,
        transform,
        split: train.split,
        seed,
        workers,
        frame,
        validate,
        tune,
        alias: train.alias.map(|alias| alias.text),
        keep_default: train.keep_default,
        tags,
        comment: train.comment,
        statement: redacted(&train.text, &train.options, &train.tags),
    })
}

fn workers(session: &Session, resources: Option<&Resources>) -> Result<usize> {
    let slots = session.services.options.slots;
    let requested = match resources {
        None => i64::try_from(num_ranks(session)?).unwrap_or(i64::MAX),
        Some(Resources::Workers { number, .. }) => *number,
        Some(Resources::Named(properties)) => {
            let mut requested = None;
            for property in properties {
                match (property.key.text.to_lowercase().as_str(), &property.value) {
                    ("workers", Constant::Integer(number)) => requested = Some(*number),
                    (key, _) => return Err(Error::Unsupported { feature: format!("the resource {key}") }),
                }
            }
            match requested {
                Some(requested) => requested,
                None => i64::try_from(num_ranks(session)?).unwrap_or(i64::MAX),
            }
        }
    };
    match usize::try_from(requested) {
        Ok(workers) if (1..=slots).contains(&workers) => Ok(workers),
        _ => Err(Refusal::TooFewWorkers { requested, available: slots }.into()),
    }
}

/// Tags are texts.
pub fn tags(properties: &[Property]) -> Result<BTreeMap<String, String>> {
    let tag = |property: &Property| {
        let value = match &property.value {
            Constant::Text(text) => text.clone(),
            Constant::Integer(_) | Constant::Double(_) | Constant::Boolean(_) => property.value.to_string(),
            other => {
                return Err(Error::Sql(sql::Error::NotAConstant {
                    what: "TAGS",
                    expected: "STRING",
                    found: other.type_name(),
                    place: property.place,
                }));
            }
        };
        Ok((property.key.text.clone(), value))
    };
    properties.iter().map(tag).collect()
}

/// An alias is refused before the training rather than after it.
fn registry_alias(alias: &str) -> Result<()> {
    Ok(registry::check_alias(alias)?)
}

/// The rows of VALIDATE ON need the columns of the query, of the same types.
fn check_validation(frame: &Frame, columns: &Columns, is_case_sensitive: bool) -> Result<()> {
    let schema = frame.schema();
    let needed = columns.features.iter().map(|feature| feature.name.clone());
    let needed = needed.chain(columns.label.iter().chain(&columns.weight).map(|column| column.name.clone()));
    for name in needed {
        if super::rows::find(&schema, &name, is_case_sensitive).is_none() {
            return Err(Refusal::ColumnNotFound { name, columns: super::rows::names(&schema), place: None }.into());
        }
    }
    Ok(())
}

/// The values of keys that sound like secrets are not kept.
fn redacted(text: &str, options: &[Property], tags: &[Property]) -> String {
    let mut text = text.to_string();
    for property in options.iter().chain(tags) {
        let key = property.key.text.to_lowercase();
        let is_secret =
            ["secret", "password", "token", "access.key", "access_key"].iter().any(|word| key.contains(word));
        if let (true, Constant::Text(value)) = (is_secret, &property.value) {
            text = text.replace(value.as_str(), "*********(redacted)");
        }
    }
    text
}
