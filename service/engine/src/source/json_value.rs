//! JSON inside a column: the readers and printers of the functions, by the rules of the format's files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::cells::CellRules;
use super::csv::malformed;
use super::json::{Narrowest, build};
use super::json_text::Json;
use super::options::{Options, ParseMode};
use super::write::{ValueRules, push_value};
use crate::data_type::{SparkType, sql_name};
use crate::{Conf, Error, Result};

/// Reads texts as values of one type, as `from_json` does.
#[derive(Debug)]
pub struct JsonReader {
    field: FieldRef,
    rules: CellRules,
    mode: ParseMode,
}

impl JsonReader {
    /// # Errors
    /// [`Error::InvalidOption`], and [`Error::Unsupported`] for a column of corrupt records and for mode DROPMALFORMED,
    /// which Spark refuses in expressions too.
    pub fn new(field: &Field, options: &Options, conf: &Conf) -> Result<JsonReader> {
        let mode = ParseMode::of(options);
        if mode == ParseMode::DropMalformed {
            return Err(Error::Unsupported { feature: "mode DROPMALFORMED of from_json".into() });
        }
        let corrupt = options
            .get("columnNameOfCorruptRecord")
            .map(str::to_string)
            .or_else(|| conf.get("spark.sql.columnNameOfCorruptRecord"))
            .unwrap_or_default();
        if let DataType::Struct(fields) = field.data_type()
            && fields.iter().any(|field| field.name() == &corrupt)
        {
            return Err(Error::Unsupported { feature: format!("column {corrupt} of from_json") });
        }
        let field = Arc::new(optional(field));
        Ok(JsonReader { field, rules: CellRules::of("JSON", options, conf)?, mode })
    }

    /// The type of what is read: all that is in it may be null.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// # Errors
    /// A text that is not of the type, in mode FAILFAST.
    pub fn read(&self, texts: &StringArray) -> Result<ArrayRef> {
        let nothing = Json::Object(Vec::new());
        let wants_struct = matches!(self.field.data_type(), DataType::Struct(_));
        let wants_list = matches!(self.field.data_type(), DataType::List(_));
        let mut is_bad = vec![false; texts.len()];
        let parsed: Vec<Option<Json<'_>>> = texts
            .iter()
            .enumerate()
            .map(|(row, text)| {
                let text = text.filter(|text| !text.trim().is_empty())?;
                let value = match Json::parse(text) {
                    // Of several objects Spark takes the first one.
                    Some(Json::Array(values)) if wants_struct => values.into_iter().next().unwrap_or(Json::Null),
                    Some(object @ Json::Object(_)) if wants_list => Json::Array(vec![object]),
                    Some(value) => value,
                    None => {
                        is_bad[row] = true;
                        Json::Null
                    }
                };
                is_bad[row] |= wants_struct && !matches!(value, Json::Object(_) | Json::Null);
                Some(value)
            })
            .collect();
        let values: Vec<Option<&Json<'_>>> = parsed
            .iter()
            .zip(&is_bad)
            // A record that cannot be read is one without fields.
            .map(|(value, is_bad)| if *is_bad && wants_struct { Some(&nothing) } else { value.as_ref() })
            .collect();
        let column = build(&values, &self.field, &self.rules, &mut is_bad)?;
        if self.mode == ParseMode::FailFast
            && let Some(row) = is_bad.iter().position(|is_bad| *is_bad)
        {
            return Err(malformed(texts.value(row).as_bytes()));
        }
        Ok(column)
    }
}

/// Prints values, as `to_json` does.
#[derive(Debug)]
pub struct JsonPrinter {
    rules: ValueRules,
    keeps_nulls: bool,
    conf: Conf,
}

impl JsonPrinter {
    /// # Errors
    /// [`Error::InvalidOption`].
    pub fn new(options: &Options, conf: &Conf) -> Result<JsonPrinter> {
        let default = conf.get("spark.sql.jsonGenerator.ignoreNullFields").as_deref() != Some("false");
        let keeps_nulls = !options.flag("JSON", "ignoreNullFields", default)?;
        Ok(JsonPrinter { rules: ValueRules::of(options, conf)?, keeps_nulls, conf: conf.clone() })
    }

    /// # Errors
    /// A value whose type has no text.
    pub fn print(&self, field: &Field, column: &ArrayRef) -> Result<StringArray> {
        let mut texts = Vec::with_capacity(column.len());
        for row in 0..column.len() {
            if column.is_null(row) {
                texts.push(None);
                continue;
            }
            let mut text = String::new();
            push_value(field, column, row, &self.rules, self.keeps_nulls, &self.conf, &mut text)?;
            texts.push(Some(text));
        }
        Ok(StringArray::from(texts))
    }
}

/// One step of a path such as `$.a[0].*`.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    AnyKey,
    AnyIndex,
}

/// A path into JSON, as `get_json_object` takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

impl JsonPath {
    pub fn parse(text: &str) -> Option<JsonPath> {
        let mut rest = text.strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("['") {
                let (key, after) = after.split_once("']")?;
                steps.push(if key == "*" { Step::AnyKey } else { Step::Key(key.to_string()) });
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']')?;
                steps.push(if index == "*" { Step::AnyIndex } else { Step::Index(index.parse().ok()?) });
                rest = after;
            } else {
                let after = rest.strip_prefix('.')?;
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (key, after) = after.split_at(end);
                if key.is_empty() {
                    return None;
                }
                steps.push(if key == "*" { Step::AnyKey } else { Step::Key(key.to_string()) });
                rest = after;
            }
        }
        Some(JsonPath { steps })
    }

    /// The value in a text: strings bare, all else as JSON. Several matches of a wildcard are a list.
    pub fn find(&self, text: &str) -> Option<String> {
        let root = Json::parse(text)?;
        let mut found = Vec::new();
        walk(&root, &self.steps, &mut found);
        let has_wildcard = self.steps.iter().any(|step| matches!(step, Step::AnyIndex | Step::AnyKey));
        let mut printed = String::new();
        match found.as_slice() {
            [] | [Json::Null] => return None,
            [Json::String(text)] if !has_wildcard => printed.push_str(text),
            [one] => one.write(&mut printed),
            all => Json::Array(all.iter().map(|value| (*value).clone()).collect()).write(&mut printed),
        }
        Some(printed)
    }
}

fn walk<'v, 't>(value: &'v Json<'t>, steps: &[Step], found: &mut Vec<&'v Json<'t>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match (step, value) {
        (Step::Key(key), object @ Json::Object(_)) => {
            if let Some(value) = object.get(key) {
                walk(value, rest, found);
            }
        }
        (Step::Index(index), Json::Array(values)) => {
            if let Some(value) = values.get(*index) {
                walk(value, rest, found);
            }
        }
        (Step::AnyIndex, Json::Array(values)) => values.iter().for_each(|value| walk(value, rest, found)),
        (Step::AnyKey, Json::Object(pairs)) => pairs.iter().for_each(|(_, value)| walk(value, rest, found)),
        _ => {}
    }
}

/// How many elements the outermost list of a text has.
pub fn array_length(text: &str) -> Option<usize> {
    match Json::parse(text)? {
        Json::Array(values) => Some(values.len()),
        _ => None,
    }
}

/// The keys of the outermost object of a text.
pub fn object_keys(text: &str) -> Option<Vec<String>> {
    match Json::parse(text)? {
        Json::Object(pairs) => Some(pairs.into_iter().map(|(key, _)| key.into_owned()).collect()),
        _ => None,
    }
}

/// The type of an example, in DDL.
pub fn schema_of(text: &str) -> Option<String> {
    let narrowest = Narrowest::of(&Json::parse(text)?);
    let empty = || SparkType::Struct(&Fields::empty()).field("", true);
    let field = narrowest.field("").unwrap_or_else(|| match &narrowest {
        Narrowest::Object(parts) if *parts == BTreeMap::new() => empty(),
        _ => SparkType::String.field("", true),
    });
    Some(sql_name(&field))
}

/// The field with all that is in it nullable.
fn optional(field: &Field) -> Field {
    let inner = |field: &FieldRef| Arc::new(optional(field));
    let data_type = match field.data_type() {
        DataType::List(element) => DataType::List(inner(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let pair = Fields::from(vec![Arc::clone(&pair[0]), inner(&pair[1])]);
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(pair))), *sorted)
            }
            _ => field.data_type().clone(),
        },
        other => other.clone(),
    };
    field.clone().with_data_type(data_type).with_nullable(true)
}
