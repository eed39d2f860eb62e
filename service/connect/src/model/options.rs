//! OPTIONS: the estimator's own params under their names in SQL, and what every training takes.

use std::collections::BTreeMap;

use ml::{Operator, Param, ParamType, Params, Value};
use sql::model::{Constant, Place, Property};

use super::Refusal;
use crate::Result;

/// What a training does with features that miss a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HandleInvalid {
    #[default]
    Keep,
    Skip,
    Error,
}

impl HandleInvalid {
    pub fn name(self) -> &'static str {
        match self {
            HandleInvalid::Keep => "keep",
            HandleInvalid::Skip => "skip",
            HandleInvalid::Error => "error",
        }
    }

    pub fn named(name: &str) -> HandleInvalid {
        match name {
            "skip" => HandleInvalid::Skip,
            "error" => HandleInvalid::Error,
            _ => HandleInvalid::Keep,
        }
    }
}

/// How classes are weighted.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeight {
    Balanced,
    /// By label; 1 where a class is not listed.
    ByLabel(Vec<(String, f64)>),
}

/// The options of one training.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The estimator's params, under Spark's names.
    pub params: BTreeMap<String, Value>,
    pub label: Option<(String, Place)>,
    pub weight: Option<(String, Place)>,
    pub features: Option<(String, Place)>,
    pub handle_invalid: HandleInvalid,
    pub skips_null_labels: bool,
    pub classes_max: usize,
    pub categories_max: u64,
    pub positive_label: Option<String>,
    pub class_weight: Option<ClassWeight>,
    /// Whether the best trial is trained again on all rows but the test part.
    pub refits: bool,
    /// What was set, under its name in SQL, as SQL.
    pub shown: BTreeMap<String, String>,
}

const CLASSES_MAX: usize = 100;
const CATEGORIES_MAX: u64 = 1000;

/// The names that no estimator has; each training takes them.
const GENERAL: [&str; 7] =
    ["class_weight", "handle_invalid", "max_categories", "max_classes", "null_label", "positive_label", "refit"];
/// The params of estimators that clauses and functions say.
const COLUMNS: [&str; 6] =
    ["featuresCol", "labelCol", "weightCol", "predictionCol", "probabilityCol", "rawPredictionCol"];

/// `maxIter`, `max_iter` and `MAX_ITER` are one name.
pub fn normalized(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// `maxIter` to `max_iter`.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// The param of an estimator that a name in SQL means; not one of those that name columns.
pub fn param(operator: &Operator, name: &str) -> Option<Param> {
    let wanted = normalized(name);
    let params = (operator.params)();
    params.into_iter().find(|param| normalized(param.name) == wanted && !COLUMNS.contains(&param.name))
}

/// The names of the estimator's options in SQL.
pub fn names(operator: &Operator) -> Vec<String> {
    let params = (operator.params)();
    let params = params.iter().filter(|param| !COLUMNS.contains(&param.name)).map(|param| snake(param.name));
    params.chain(GENERAL.iter().map(ToString::to_string)).collect()
}

impl Settings {
    /// # Errors
    /// An option that is unknown, of a wrong type, out of its range, or beside the clause that says the same.
    pub fn new(operator: &Operator, properties: &[Property]) -> Result<Settings> {
        let mut settings = Settings {
            params: BTreeMap::new(),
            label: None,
            weight: None,
            features: None,
            handle_invalid: HandleInvalid::Keep,
            skips_null_labels: false,
            classes_max: CLASSES_MAX,
            categories_max: CATEGORIES_MAX,
            positive_label: None,
            class_weight: None,
            refits: true,
            shown: BTreeMap::new(),
        };
        for property in properties {
            let reader = Reader { operator, property };
            settings.set(&reader)?;
            settings.shown.insert(reader.name(), property.value.to_string());
        }
        check_params(operator, &settings.params, properties)?;
        Ok(settings)
    }

    fn set(&mut self, reader: &Reader<'_>) -> Result<()> {
        let property = reader.property;
        match normalized(&property.key.text).as_str() {
            "labelcol" => self.label = Some((reader.text()?, property.place)),
            "weightcol" => self.weight = Some((reader.text()?, property.place)),
            "featurescol" => self.features = Some((reader.text()?, property.place)),
            "handleinvalid" if param(reader.operator, "handleInvalid").is_none() => {
                self.handle_invalid = match reader.one_of(&["keep", "skip", "error"])? {
                    "skip" => HandleInvalid::Skip,
                    "error" => HandleInvalid::Error,
                    _ => HandleInvalid::Keep,
                };
            }
            "nulllabel" => self.skips_null_labels = reader.one_of(&["error", "skip"])? == "skip",
            "maxclasses" => self.classes_max = reader.count(2)? as usize,
            "maxcategories" => self.categories_max = reader.count(1)?,
            "positivelabel" => self.positive_label = Some(reader.label(&property.value)?),
            "classweight" => self.class_weight = Some(reader.class_weight()?),
            "refit" => {
                self.refits = match property.value {
                    Constant::Boolean(refits) => refits,
                    _ => return Err(reader.wrong_type("BOOLEAN").into()),
                };
            }
            _ => {
                let Some(param) = param(reader.operator, &property.key.text) else {
                    return Err(Refusal::OptionUnknown {
                        option: property.key.text.clone(),
                        estimator: reader.operator.snake_name(),
                        known: names(reader.operator),
                        place: property.key.place,
                    }
                    .into());
                };
                let value = value(param.param_type, &property.value)
                    .ok_or_else(|| reader.wrong_type(&type_name(param.param_type)))?;
                self.params.insert(param.name.to_string(), value);
            }
        }
        Ok(())
    }
}

/// Checks ranges as the estimator itself does.
fn check_params(operator: &Operator, params: &BTreeMap<String, Value>, properties: &[Property]) -> Result<()> {
    for (name, value) in params {
        let one = BTreeMap::from([(name.clone(), value.clone())]);
        if let Err(ml::Error::InvalidParam { detail, .. }) = Params::new(operator, "options", one) {
            let place = properties.iter().find(|property| normalized(&property.key.text) == normalized(name));
            return Err(Refusal::OptionRange {
                option: snake(name),
                estimator: operator.snake_name(),
                value: value.to_string(),
                detail,
                place: place.map_or_else(Place::default, |property| property.place),
            }
            .into());
        }
    }
    Ok(())
}

/// Checks one value of a search.
pub fn check_param(operator: &Operator, name: &str, constant: &Constant, place: Place) -> Result<(String, Value)> {
    let key = sql::model::Word { text: name.to_string(), place };
    let property = Property { key, value: constant.clone(), place };
    let reader = Reader { operator, property: &property };
    let Some(param) = param(operator, name) else {
        let (option, estimator) = (name.to_string(), operator.snake_name());
        return Err(Refusal::OptionUnknown { option, estimator, known: names(operator), place }.into());
    };
    let value = value(param.param_type, constant).ok_or_else(|| reader.wrong_type(&type_name(param.param_type)))?;
    check_params(
        operator,
        &BTreeMap::from([(param.name.to_string(), value.clone())]),
        std::slice::from_ref(&property),
    )?;
    Ok((param.name.to_string(), value))
}

struct Reader<'a> {
    operator: &'a Operator,
    property: &'a Property,
}

impl Reader<'_> {
    fn name(&self) -> String {
        param(self.operator, &self.property.key.text)
            .map_or_else(|| self.property.key.text.to_lowercase(), |param| snake(param.name))
    }

    fn wrong_type(&self, expected: &str) -> Refusal {
        Refusal::OptionType {
            option: self.property.key.text.clone(),
            estimator: self.operator.snake_name(),
            expected: expected.to_string(),
            found: self.property.value.type_name(),
            place: self.property.place,
        }
    }

    fn out_of_range(&self, detail: String) -> Refusal {
        Refusal::OptionRange {
            option: self.property.key.text.clone(),
            estimator: self.operator.snake_name(),
            value: self.property.value.to_string(),
            detail,
            place: self.property.place,
        }
    }

    fn text(&self) -> Result<String> {
        match &self.property.value {
            Constant::Text(text) => Ok(text.clone()),
            _ => Err(self.wrong_type("STRING").into()),
        }
    }

    fn one_of(&self, allowed: &'static [&'static str]) -> Result<&'static str> {
        let text = self.text()?;
        let found = allowed.iter().find(|known| known.eq_ignore_ascii_case(&text)).copied();
        Ok(found.ok_or_else(|| self.out_of_range(format!(", expected one of {}", allowed.join(", "))))?)
    }

    fn count(&self, least: i64) -> Result<u64> {
        match self.property.value {
            Constant::Integer(value) if value >= least => Ok(value as u64),
            Constant::Integer(_) => Err(self.out_of_range(format!(", expected at least {least}")).into()),
            _ => Err(self.wrong_type("INT").into()),
        }
    }

    /// A label as its column shows it.
    fn label(&self, constant: &Constant) -> Result<String> {
        match constant {
            Constant::Text(text) => Ok(text.clone()),
            Constant::Boolean(value) => Ok(value.to_string()),
            Constant::Integer(value) => Ok(value.to_string()),
            Constant::Double(value) => Ok(format!("{value:?}")),
            _ => Err(self.wrong_type("STRING").into()),
        }
    }

    fn class_weight(&self) -> Result<ClassWeight> {
        match &self.property.value {
            Constant::Text(text) if text.eq_ignore_ascii_case("balanced") => Ok(ClassWeight::Balanced),
            Constant::Map(pairs) => {
                let weight = |(label, weight): &(Constant, Constant)| match weight.as_double() {
                    Some(weight) if weight >= 0.0 && weight.is_finite() => Ok((self.label(label)?, weight)),
                    Some(_) => Err(self.out_of_range(", expected weights of at least 0".into()).into()),
                    None => Err(self.wrong_type("MAP<STRING, DOUBLE>").into()),
                };
                Ok(ClassWeight::ByLabel(pairs.iter().map(weight).collect::<Result<_>>()?))
            }
            Constant::Text(_) => {
                Err(self.out_of_range(", expected 'balanced' or a map of labels to weights".into()).into())
            }
            _ => Err(self.wrong_type("MAP<STRING, DOUBLE>").into()),
        }
    }
}

/// A constant as a param's value, where the type allows; no value changes.
fn value(param_type: ParamType, constant: &Constant) -> Option<Value> {
    let array = |element: ParamType| match constant {
        Constant::Array(values) => {
            let values = values.iter().map(|one| value(element, one)).collect::<Option<Vec<Value>>>()?;
            Some(Value::Array { element, values })
        }
        _ => None,
    };
    match (param_type, constant) {
        (ParamType::Boolean, Constant::Boolean(value)) => Some(Value::Boolean(*value)),
        (ParamType::Int, Constant::Integer(value)) => i32::try_from(*value).ok().map(Value::Int),
        (ParamType::Long, Constant::Integer(value)) => Some(Value::Long(*value)),
        (ParamType::Double, Constant::Integer(value)) => Some(Value::Double(*value as f64)),
        (ParamType::Double, Constant::Double(value)) => Some(Value::Double(*value)),
        (ParamType::String, Constant::Text(value)) => Some(Value::String(value.clone())),
        (ParamType::IntArray, _) => array(ParamType::Int),
        (ParamType::LongArray, _) => array(ParamType::Long),
        (ParamType::DoubleArray, _) => array(ParamType::Double),
        (ParamType::StringArray, _) => array(ParamType::String),
        (ParamType::DoubleArrayArray, _) => array(ParamType::DoubleArray),
        (ParamType::StringArrayArray, _) => array(ParamType::StringArray),
        (ParamType::Vector, Constant::Array(values)) => values
            .iter()
            .map(Constant::as_double)
            .collect::<Option<_>>()
            .map(|values| Value::Vector(udt::Vector::Dense(values))),
        _ => None,
    }
}

fn type_name(param_type: ParamType) -> String {
    match param_type {
        ParamType::Boolean => "BOOLEAN".into(),
        ParamType::Int => "INT".into(),
        ParamType::Long => "BIGINT".into(),
        ParamType::Double => "DOUBLE".into(),
        ParamType::String => "STRING".into(),
        ParamType::IntArray => "ARRAY<INT>".into(),
        ParamType::LongArray => "ARRAY<BIGINT>".into(),
        ParamType::DoubleArray | ParamType::Vector => "ARRAY<DOUBLE>".into(),
        ParamType::StringArray => "ARRAY<STRING>".into(),
        ParamType::DoubleArrayArray => "ARRAY<ARRAY<DOUBLE>>".into(),
        ParamType::StringArrayArray => "ARRAY<ARRAY<STRING>>".into(),
        // SQL has no constant for it
        ParamType::Matrix => "MATRIX".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_in_two_ways() {
        assert_eq!(normalized("maxIter"), normalized("MAX_ITER"));
        assert_eq!(snake("elasticNetParam"), "elastic_net_param");
        let operator = ml::catalog::operator("org.apache.spark.ml.classification.LogisticRegression").unwrap();
        assert_eq!(param(operator, "reg_param").unwrap().name, "regParam");
        assert!(param(operator, "label_col").is_none());
        assert!(names(operator).contains(&"max_iter".to_string()));
    }

    #[test]
    fn constants_become_values_of_the_type() {
        assert_eq!(value(ParamType::Double, &Constant::Integer(1)), Some(Value::Double(1.0)));
        assert_eq!(value(ParamType::Int, &Constant::Double(1.0)), None);
        let array = Constant::Array(vec![Constant::Integer(64), Constant::Integer(32)]);
        assert_eq!(value(ParamType::IntArray, &array), Some(Value::ints(&[64, 32])));
        assert_eq!(value(ParamType::IntArray, &Constant::Text("x".into())), None);
    }
}
