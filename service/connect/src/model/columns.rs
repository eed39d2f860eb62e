//! Which columns of the query are label, weight and features.

use arrow::datatypes::{DataType, Field, Schema};
use engine::data_type::sql_name;
use ml::tabular::{Classes, RawType};
use sql::model::{Features, Place, Split, Train, Word};

use super::Refusal;
use super::options::Settings;
use super::plan::Task;
use super::rows::{find, names};
use crate::{Error, Result};

/// A column of the query.
#[derive(Debug, Clone)]
pub struct Column {
    pub index: usize,
    pub name: String,
    pub field: Field,
}

/// A feature.
#[derive(Debug, Clone)]
pub struct FeatureInput {
    pub index: usize,
    pub name: String,
    /// As Spark names it.
    pub data_type: String,
    pub raw_type: RawType,
}

/// The columns of a training.
#[derive(Debug, Clone)]
pub struct Columns {
    pub label: Option<Column>,
    pub weight: Option<Column>,
    pub features: Vec<FeatureInput>,
    /// What SPLIT names: the column it goes by, or the keys that stay together.
    pub split: Vec<Column>,
    /// What can be no feature: label, weight and keys.
    pub taken: Vec<usize>,
}

/// Finds columns in one query's schema.
struct Finder<'a> {
    schema: &'a Schema,
    is_case_sensitive: bool,
}

impl Finder<'_> {
    fn find(&self, name: &str, place: Option<Place>) -> Result<Column> {
        let Some(index) = find(self.schema, name, self.is_case_sensitive) else {
            return Err(Refusal::ColumnNotFound { name: name.into(), columns: names(self.schema), place }.into());
        };
        Ok(self.column(index))
    }

    fn column(&self, index: usize) -> Column {
        let field = self.schema.field(index);
        Column { index, name: field.name().clone(), field: field.clone() }
    }

    fn word(&self, word: &Word) -> Result<Column> {
        self.find(&word.text, Some(word.place))
    }
}

/// # Errors
/// Columns that are not there, are there twice, or have types that cannot be what they are to be.
pub fn choose(
    train: &Train,
    settings: &Settings,
    schema: &Schema,
    task: Task,
    estimator: &str,
    is_case_sensitive: bool,
) -> Result<Columns> {
    check_names(schema, is_case_sensitive)?;
    let finder = Finder { schema, is_case_sensitive };
    let label = label(&finder, train, settings, task, estimator)?;
    let weight = match (&train.weight, &settings.weight) {
        (Some(_), Some((_, place))) => return Err(beside("weight_col", "WEIGHT", *place)),
        (Some(word), None) => Some(finder.word(word)?),
        (None, Some((name, place))) => Some(finder.find(name, Some(*place))?),
        (None, None) => None,
    };
    if let Some(weight) = weight.as_ref().filter(|weight| !weight.field.data_type().is_numeric()) {
        let (column, found) = (weight.name.clone(), sql_name(&weight.field));
        return Err(Refusal::WeightType { column, found }.into());
    }
    let split = match &train.split {
        Some(Split::Column { column, .. } | Split::Sequential { column, .. }) => vec![finder.word(column)?],
        Some(Split::Random { by, .. }) => by.iter().map(|word| finder.word(word)).collect::<Result<_>>()?,
        Some(Split::None { .. }) | None => Vec::new(),
    };
    let is_keys = matches!(&train.split, Some(Split::Random { .. } | Split::Column { .. }));
    let mut taken: Vec<usize> = label.iter().chain(&weight).map(|column| column.index).collect();
    if is_keys {
        taken.extend(split.iter().map(|column| column.index));
    }
    // TRANSFORM says itself what the features are
    let features = match (&train.transform, &train.features) {
        (None, _) => features(&finder, train, settings, &taken)?,
        (Some(_), None) => Vec::new(),
        (Some(_), Some(_)) => {
            return Err(Refusal::UnsupportedOperation { what: "FEATURES beside TRANSFORM".into() }.into());
        }
    };
    Ok(Columns { label, weight, features, split, taken })
}

/// Two columns of one name cannot be told apart in a model.
fn check_names(schema: &Schema, is_case_sensitive: bool) -> Result<()> {
    let fields = schema.fields();
    for (index, field) in fields.iter().enumerate() {
        if find(schema, field.name(), is_case_sensitive) != Some(index) {
            return Err(Error::Engine(engine::Error::ColumnAlreadyExists { name: field.name().clone() }));
        }
    }
    Ok(())
}

fn beside(option: &str, clause: &'static str, place: Place) -> Error {
    Refusal::OptionBesideClause { option: option.into(), clause, place }.into()
}

fn label(
    finder: &Finder<'_>,
    train: &Train,
    settings: &Settings,
    task: Task,
    estimator: &str,
) -> Result<Option<Column>> {
    let place = train.label.as_ref().map(|word| word.place).or(settings.label.as_ref().map(|(_, place)| *place));
    let label = match (&train.label, &settings.label) {
        (Some(_), Some((_, place))) => return Err(beside("label_col", "LABEL", *place)),
        (Some(word), None) => finder.word(word)?,
        (None, Some((name, place))) => finder.find(name, Some(*place))?,
        (None, None) => match find(finder.schema, "label", false) {
            Some(index) => finder.column(index),
            None => {
                let (estimator, columns) = (estimator.to_string(), names(finder.schema));
                return Err(Refusal::LabelMissing { estimator, columns }.into());
            }
        },
    };
    let data_type = label.field.data_type();
    let (is_taken, expected) = match task {
        Task::Classification => (Classes::takes(data_type), "a string, boolean or numeric label"),
        Task::Regression => (data_type.is_numeric(), "a numeric label"),
    };
    if is_taken && !udt::field::is_vector(&label.field) {
        return Ok(Some(label));
    }
    Err(Refusal::LabelType {
        found: sql_name(&label.field),
        label: label.name,
        estimator: estimator.into(),
        expected,
        place,
    }
    .into())
}

fn features(finder: &Finder<'_>, train: &Train, settings: &Settings, taken: &[usize]) -> Result<Vec<FeatureInput>> {
    let chosen: Vec<Column> = match (&train.features, &settings.features) {
        (Some(_), Some((_, place))) => return Err(beside("features_col", "FEATURES", *place)),
        (None, Some((name, place))) => vec![finder.find(name, Some(*place))?],
        (Some(Features::Named(words)), None) => {
            let columns: Vec<Column> = words.iter().map(|word| finder.word(word)).collect::<Result<_>>()?;
            let is_repeated = |(at, column): &(usize, &Column)| columns[..*at].iter().any(|c| c.index == column.index);
            if let Some((_, column)) = columns.iter().enumerate().find(is_repeated) {
                return Err(Error::Engine(engine::Error::ColumnAlreadyExists { name: column.name.clone() }));
            }
            columns
        }
        (features, None) => {
            let mut except = taken.to_vec();
            if let Some(Features::AllExcept(words)) = features {
                for word in words {
                    except.push(finder.word(word)?.index);
                }
            }
            let all = 0..finder.schema.fields().len();
            all.filter(|index| !except.contains(index)).map(|index| finder.column(index)).collect()
        }
    };
    if chosen.is_empty() {
        return Err(Refusal::NoFeatures { columns: names(finder.schema) }.into());
    }
    let input = |column: Column| match raw_type(&column.field) {
        Some(raw_type) => Ok(FeatureInput {
            index: column.index,
            name: column.name,
            data_type: engine::data_type::simple_string(&column.field),
            raw_type,
        }),
        None => Err(Refusal::FeatureType { column: column.name, found: sql_name(&column.field) }.into()),
    };
    chosen.into_iter().map(input).collect()
}

/// What a column is as a feature. Numbers with the marks of another type are none.
pub fn raw_type(field: &Field) -> Option<RawType> {
    match field.data_type() {
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Interval(_) => None,
        _ => RawType::of(field),
    }
}
