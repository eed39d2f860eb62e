//! Params: what an operator can be told, and what it was told.
//!
//! A client sends only what was set explicitly; defaults are the server's. Values are checked when they arrive, so that
//! an operator reads params of the right type and range.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value as Json, json};
use udt::{Matrix, Vector};

use crate::{Error, Operator, Result};

/// A param's value, or a fetched one.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    String(String),
    /// All elements are of one type; `element` tells which when there are none.
    Array { element: ParamType, values: Vec<Value> },
    Vector(Vector),
    Matrix(Matrix),
}

impl Value {
    pub fn doubles(values: &[f64]) -> Value {
        Value::Array { element: ParamType::Double, values: values.iter().map(|v| Value::Double(*v)).collect() }
    }

    pub fn ints(values: &[i32]) -> Value {
        Value::Array { element: ParamType::Int, values: values.iter().map(|v| Value::Int(*v)).collect() }
    }

    pub fn longs(values: &[i64]) -> Value {
        Value::Array { element: ParamType::Long, values: values.iter().map(|v| Value::Long(*v)).collect() }
    }

    pub fn strings(values: &[String]) -> Value {
        Value::Array { element: ParamType::String, values: values.iter().map(|v| Value::String(v.clone())).collect() }
    }
}

/// As Spark prints it in messages.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Long(v) => write!(f, "{v}"),
            Value::Double(v) => f.write_str(&udt::vector::java_double(*v)),
            Value::String(v) => f.write_str(v),
            Value::Array { values, .. } => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "[{}]", values.join(","))
            }
            Value::Vector(v) => write!(f, "{v}"),
            Value::Matrix(v) => write!(f, "{} x {} matrix", v.num_rows(), v.num_cols()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    Boolean,
    Int,
    Long,
    Double,
    String,
    IntArray,
    LongArray,
    DoubleArray,
    StringArray,
    DoubleArrayArray,
    StringArrayArray,
    Vector,
    Matrix,
}

impl ParamType {
    fn element(self) -> Option<ParamType> {
        match self {
            ParamType::IntArray => Some(ParamType::Int),
            ParamType::LongArray => Some(ParamType::Long),
            ParamType::DoubleArray => Some(ParamType::Double),
            ParamType::StringArray => Some(ParamType::String),
            ParamType::DoubleArrayArray => Some(ParamType::DoubleArray),
            ParamType::StringArrayArray => Some(ParamType::StringArray),
            _ => None,
        }
    }

    /// Converts as Spark Connect's server does: numbers widen, an integer may stand for a double, nothing is lost.
    fn coerce(self, value: Value) -> Option<Value> {
        if let Some(element) = self.element() {
            let Value::Array { values, .. } = value else { return None };
            let values = values.into_iter().map(|v| element.coerce(v)).collect::<Option<Vec<Value>>>()?;
            return Some(Value::Array { element, values });
        }
        match (self, value) {
            (ParamType::Boolean, value @ Value::Boolean(_))
            | (ParamType::Int, value @ Value::Int(_))
            | (ParamType::Long, value @ Value::Long(_))
            | (ParamType::Double, value @ Value::Double(_))
            | (ParamType::String, value @ Value::String(_))
            | (ParamType::Vector, value @ Value::Vector(_))
            | (ParamType::Matrix, value @ Value::Matrix(_)) => Some(value),
            (ParamType::Int, Value::Long(v)) => i32::try_from(v).ok().map(Value::Int),
            (ParamType::Long, Value::Int(v)) => Some(Value::Long(v.into())),
            (ParamType::Double, Value::Int(v)) => Some(Value::Double(v.into())),
            (ParamType::Double, Value::Long(v)) => Some(Value::Double(v as f64)),
            _ => None,
        }
    }
}

/// What a param may be, beyond its type.
#[derive(Clone, Copy)]
pub enum Check {
    Any,
    /// `value >= bound`
    AtLeast(f64),
    /// `value > bound`
    Above(f64),
    /// `low <= value <= high`
    Within(f64, f64),
    OneOf(&'static [&'static str]),
    /// Anything else, with what is expected in words.
    Holds(fn(&Value) -> bool, &'static str),
}

/// One param of an operator.
#[derive(Clone)]
pub struct Param {
    pub name: &'static str,
    pub param_type: ParamType,
    pub default: Option<Value>,
    pub check: Check,
}

impl Param {
    pub fn new(name: &'static str, param_type: ParamType, default: Option<Value>, check: Check) -> Param {
        Param { name, param_type, default, check }
    }

    pub fn string(name: &'static str, default: &str) -> Param {
        Param::new(name, ParamType::String, Some(Value::String(default.into())), Check::Any)
    }

    pub fn one_of(name: &'static str, default: &str, allowed: &'static [&'static str]) -> Param {
        Param::new(name, ParamType::String, Some(Value::String(default.into())), Check::OneOf(allowed))
    }

    pub fn double(name: &'static str, default: f64, check: Check) -> Param {
        Param::new(name, ParamType::Double, Some(Value::Double(default)), check)
    }

    pub fn int(name: &'static str, default: i32, check: Check) -> Param {
        Param::new(name, ParamType::Int, Some(Value::Int(default)), check)
    }

    pub fn boolean(name: &'static str, default: bool) -> Param {
        Param::new(name, ParamType::Boolean, Some(Value::Boolean(default)), Check::Any)
    }

    /// A param that has no default.
    pub fn unset(name: &'static str, param_type: ParamType) -> Param {
        Param::new(name, param_type, None, Check::Any)
    }

    /// `outputCol`, whose default is `<uid>__output`.
    pub fn output_col() -> Param {
        Param::unset("outputCol", ParamType::String)
    }

    fn accepts(&self, value: &Value) -> std::result::Result<(), String> {
        let number = match value {
            Value::Int(v) => Some(f64::from(*v)),
            Value::Long(v) => Some(*v as f64),
            Value::Double(v) => Some(*v),
            _ => None,
        };
        match (self.check, number) {
            (Check::AtLeast(low), Some(v)) if !(v >= low) => Err(format!(", expected at least {low}")),
            (Check::Above(low), Some(v)) if !(v > low) => Err(format!(", expected more than {low}")),
            (Check::Within(low, high), Some(v)) if !(v >= low && v <= high) => {
                Err(format!(", expected a number from {low} to {high}"))
            }
            (Check::OneOf(allowed), _) => match value {
                Value::String(v) if allowed.iter().any(|a| a.eq_ignore_ascii_case(v)) => Ok(()),
                _ => Err(format!(", expected one of {}", allowed.join(", "))),
            },
            (Check::Holds(holds, expected), _) if !holds(value) => Err(format!(", expected {expected}")),
            _ => Ok(()),
        }
    }
}

/// The params of one instance of an operator: which are set, over which defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    pub uid: String,
    operator: &'static str,
    set: BTreeMap<String, Value>,
    defaults: BTreeMap<String, Value>,
}

impl Params {
    /// Checks what a client sent against what the operator has.
    ///
    /// # Errors
    /// [`Error::UnknownParam`], [`Error::InvalidParam`]
    pub fn new(operator: &Operator, uid: &str, supplied: BTreeMap<String, Value>) -> Result<Params> {
        let specs = (operator.params)();
        let mut defaults: BTreeMap<String, Value> =
            specs.iter().filter_map(|p| p.default.clone().map(|d| (p.name.to_string(), d))).collect();
        if specs.iter().any(|p| p.name == "outputCol") {
            defaults.entry("outputCol".into()).or_insert_with(|| Value::String(format!("{uid}__output")));
        }
        let mut params = Params { uid: uid.into(), operator: operator.short_name(), set: BTreeMap::new(), defaults };
        for (name, value) in supplied {
            params.check_and_set(&specs, name, value)?;
        }
        Ok(params)
    }

    /// These params with what a client has changed since.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub fn with(&self, operator: &Operator, changes: BTreeMap<String, Value>) -> Result<Params> {
        let specs = (operator.params)();
        let mut params = self.clone();
        for (name, value) in changes {
            params.check_and_set(&specs, name, value)?;
        }
        Ok(params)
    }

    /// These params as if some had never been set.
    pub fn without(&self, names: &[&str]) -> Params {
        let mut params = self.clone();
        names.iter().for_each(|name| {
            params.set.remove(*name);
        });
        params
    }

    fn check_and_set(&mut self, specs: &[Param], name: String, value: Value) -> Result<()> {
        let Some(spec) = specs.iter().find(|p| p.name == name) else {
            let known = specs.iter().map(|p| p.name.to_string()).collect();
            return Err(Error::UnknownParam { operator: self.operator.into(), param: name, known });
        };
        let shown = value.to_string();
        let invalid = |detail: String| Error::InvalidParam {
            operator: self.uid.clone(),
            param: name.clone(),
            value: shown.clone(),
            detail,
        };
        let value = spec
            .param_type
            .coerce(value)
            .ok_or_else(|| invalid(format!(", expected a value of type {:?}", spec.param_type)))?;
        spec.accepts(&value).map_err(invalid)?;
        self.set.insert(name, value);
        Ok(())
    }

    /// The set value, else the default.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.set.get(name).or_else(|| self.defaults.get(name))
    }

    /// Whether the client set it.
    pub fn is_set(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    /// Whether there is a value at all.
    pub fn is_defined(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn explicit(&self) -> &BTreeMap<String, Value> {
        &self.set
    }

    pub fn defaults(&self) -> &BTreeMap<String, Value> {
        &self.defaults
    }

    fn not_set(&self, name: &str) -> Error {
        Error::ParamNotSet { operator: self.uid.clone(), param: name.into() }
    }

    /// # Errors
    /// [`Error::ParamNotSet`], here and in the other readers: a value of another type counts as not set, since types were
    /// checked on the way in.
    pub fn double(&self, name: &str) -> Result<f64> {
        match self.get(name) {
            Some(Value::Double(v)) => Ok(*v),
            _ => Err(self.not_set(name)),
        }
    }

    pub fn int(&self, name: &str) -> Result<i32> {
        match self.get(name) {
            Some(Value::Int(v)) => Ok(*v),
            _ => Err(self.not_set(name)),
        }
    }

    pub fn long(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(Value::Long(v)) => Ok(*v),
            _ => Err(self.not_set(name)),
        }
    }

    pub fn boolean(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            Some(Value::Boolean(v)) => Ok(*v),
            _ => Err(self.not_set(name)),
        }
    }

    pub fn string(&self, name: &str) -> Result<&str> {
        match self.get(name) {
            Some(Value::String(v)) => Ok(v),
            _ => Err(self.not_set(name)),
        }
    }

    pub fn doubles(&self, name: &str) -> Result<Vec<f64>> {
        let Some(Value::Array { values, .. }) = self.get(name) else { return Err(self.not_set(name)) };
        Ok(values.iter().filter_map(|v| if let Value::Double(v) = v { Some(*v) } else { None }).collect())
    }

    pub fn ints(&self, name: &str) -> Result<Vec<i32>> {
        let Some(Value::Array { values, .. }) = self.get(name) else { return Err(self.not_set(name)) };
        Ok(values.iter().filter_map(|v| if let Value::Int(v) = v { Some(*v) } else { None }).collect())
    }

    pub fn strings(&self, name: &str) -> Result<Vec<String>> {
        let Some(Value::Array { values, .. }) = self.get(name) else { return Err(self.not_set(name)) };
        Ok(values.iter().filter_map(|v| if let Value::String(v) = v { Some(v.clone()) } else { None }).collect())
    }

    /// A column param whose value is not the empty string.
    pub fn column(&self, name: &str) -> Option<&str> {
        self.string(name).ok().filter(|column| !column.is_empty())
    }

    /// `paramMap` of Spark's metadata.
    pub fn explicit_json(&self) -> Json {
        Json::Object(self.set.iter().map(|(k, v)| (k.clone(), value_to_json(v))).collect())
    }

    /// `defaultParamMap` of Spark's metadata.
    pub fn defaults_json(&self) -> Json {
        Json::Object(self.defaults.iter().map(|(k, v)| (k.clone(), value_to_json(v))).collect())
    }

    /// Reads `paramMap` back. Params that this version does not know are an error that names them.
    ///
    /// # Errors
    /// As [`Params::new`], and [`Error::InvalidParam`] for JSON of a wrong shape.
    pub fn from_json(operator: &Operator, uid: &str, explicit: &Map<String, Json>) -> Result<Params> {
        let specs = (operator.params)();
        let mut supplied = BTreeMap::new();
        for (name, json) in explicit {
            let value = match specs.iter().find(|p| p.name == name.as_str()) {
                Some(spec) => value_from_json(spec.param_type, json).ok_or_else(|| Error::InvalidParam {
                    operator: uid.into(),
                    param: name.clone(),
                    value: json.to_string(),
                    detail: format!(", expected JSON of a value of type {:?}", spec.param_type),
                })?,
                None => Value::Null,
            };
            supplied.insert(name.clone(), value);
        }
        Params::new(operator, uid, supplied)
    }
}

/// Spark's JSON of a param: doubles that JSON lacks are strings, vectors and matrices are tagged objects.
pub fn value_to_json(value: &Value) -> Json {
    let double = |v: f64| match Number::from_f64(v) {
        Some(number) => Json::Number(number),
        None => Json::String(if v.is_nan() { "NaN".into() } else if v > 0.0 { "Inf".into() } else { "-Inf".into() }),
    };
    match value {
        Value::Null => Json::Null,
        Value::Boolean(v) => json!(v),
        Value::Int(v) => json!(v),
        Value::Long(v) => json!(v),
        Value::Double(v) => double(*v),
        Value::String(v) => json!(v),
        Value::Array { values, .. } => Json::Array(values.iter().map(value_to_json).collect()),
        Value::Vector(Vector::Dense(values)) => {
            json!({"type": 1, "values": values.iter().map(|v| double(*v)).collect::<Vec<Json>>()})
        }
        Value::Vector(Vector::Sparse { size, indices, values }) => json!({
            "type": 0, "size": size, "indices": indices,
            "values": values.iter().map(|v| double(*v)).collect::<Vec<Json>>(),
        }),
        Value::Matrix(Matrix::Dense { num_rows, num_cols, values, is_transposed }) => json!({
            "class": "matrix", "type": 1, "numRows": num_rows, "numCols": num_cols,
            "values": values.iter().map(|v| double(*v)).collect::<Vec<Json>>(), "isTransposed": is_transposed,
        }),
        Value::Matrix(Matrix::Sparse { num_rows, num_cols, col_ptrs, row_indices, values, is_transposed }) => json!({
            "class": "matrix", "type": 0, "numRows": num_rows, "numCols": num_cols,
            "colPtrs": col_ptrs, "rowIndices": row_indices,
            "values": values.iter().map(|v| double(*v)).collect::<Vec<Json>>(), "isTransposed": is_transposed,
        }),
    }
}

fn value_from_json(param_type: ParamType, json: &Json) -> Option<Value> {
    let double = |json: &Json| match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Inf" | "Infinity" => Some(f64::INFINITY),
            "-Inf" | "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    let doubles = |json: Option<&Json>| json?.as_array()?.iter().map(double).collect::<Option<Vec<f64>>>();
    let ints = |json: Option<&Json>| {
        json?.as_array()?.iter().map(|v| v.as_i64().and_then(|v| i32::try_from(v).ok())).collect::<Option<Vec<i32>>>()
    };
    let size = |json: Option<&Json>| json?.as_u64().map(|v| v as usize);
    if let Some(element) = param_type.element() {
        let values = json.as_array()?.iter().map(|v| value_from_json(element, v)).collect::<Option<Vec<Value>>>()?;
        return Some(Value::Array { element, values });
    }
    match param_type {
        ParamType::Boolean => json.as_bool().map(Value::Boolean),
        ParamType::Int => json.as_i64().and_then(|v| i32::try_from(v).ok()).map(Value::Int),
        ParamType::Long => json.as_i64().map(Value::Long),
        ParamType::Double => double(json).map(Value::Double),
        ParamType::String => json.as_str().map(|v| Value::String(v.into())),
        ParamType::Vector => {
            let values = doubles(json.get("values"))?;
            Some(Value::Vector(match json.get("type")?.as_i64()? {
                1 => Vector::Dense(values),
                _ => Vector::Sparse { size: size(json.get("size"))?, indices: ints(json.get("indices"))?, values },
            }))
        }
        ParamType::Matrix => {
            let (num_rows, num_cols) = (size(json.get("numRows"))?, size(json.get("numCols"))?);
            let is_transposed = json.get("isTransposed").and_then(Json::as_bool).unwrap_or(false);
            let values = doubles(json.get("values"))?;
            Some(Value::Matrix(match json.get("type")?.as_i64()? {
                1 => Matrix::Dense { num_rows, num_cols, values, is_transposed },
                _ => Matrix::Sparse {
                    num_rows,
                    num_cols,
                    col_ptrs: ints(json.get("colPtrs"))?,
                    row_indices: ints(json.get("rowIndices"))?,
                    values,
                    is_transposed,
                },
            }))
        }
        _ => None,
    }
}
