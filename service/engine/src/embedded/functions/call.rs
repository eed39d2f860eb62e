//! A function's entry in the table, and a call of it.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use spark_connect_proto::Expression;

use crate::data_type::sql_name;
use crate::embedded::expression::cast::{Mode, cast_to};
use crate::embedded::expression::coercion::{cast_all, common_type, implicit};
use crate::embedded::expression::{Resolver, Typed};
use crate::{Conf, Error, Result};

/// How a call becomes an expression.
#[derive(Clone, Copy)]
pub enum Build {
    /// From resolved arguments.
    Values(fn(Call<'_>) -> Result<Typed>),
    /// From arguments some of which are lambda functions.
    Lambda(fn(&Resolver<'_>, &str, &[Expression]) -> Result<Typed>),
}

/// One function of Spark.
pub struct Function {
    pub name: &'static str,
    pub min: usize,
    pub max: usize,
    pub build: Build,
}

impl Function {
    /// The numbers of arguments it takes, as Spark says them.
    pub fn arity(&self) -> String {
        match (self.min, self.max) {
            (min, max) if min == max => min.to_string(),
            (0, usize::MAX) => ">= 0".into(),
            (min, usize::MAX) => format!("> {}", min - 1),
            (min, max) => format!("[{}]", (min..=max).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// An entry for a function of `min` to `max` arguments.
pub const fn function(name: &'static str, min: usize, max: usize, build: fn(Call<'_>) -> Result<Typed>) -> Function {
    Function { name, min, max, build: Build::Values(build) }
}

/// An entry for a function that takes lambda functions.
pub const fn lambda(
    name: &'static str,
    min: usize,
    max: usize,
    build: fn(&Resolver<'_>, &str, &[Expression]) -> Result<Typed>,
) -> Function {
    Function { name, min, max, build: Build::Lambda(build) }
}

/// A call with its arguments resolved; their number is right.
pub struct Call<'a> {
    /// In lower case.
    pub name: &'a str,
    pub arguments: Vec<Typed>,
    pub is_distinct: bool,
    pub resolver: &'a Resolver<'a>,
    pub expression: &'a Expression,
}

impl<'a> Call<'a> {
    pub fn conf(&self) -> &'a Conf {
        &self.resolver.context.conf
    }

    pub fn ansi(&self) -> bool {
        self.conf().ansi()
    }

    /// Takes the arguments, which are exactly so many.
    pub fn take<const N: usize>(&mut self) -> Result<[Typed; N]> {
        let arguments = std::mem::take(&mut self.arguments);
        arguments.try_into().map_err(|arguments: Vec<Typed>| Error::WrongNumArgs {
            name: self.name.into(),
            expected: N.to_string(),
            found: arguments.len(),
        })
    }

    /// The arguments cast to these types; further ones are left as they are.
    pub fn cast_arguments(&mut self, types: &[DataType]) -> Result<()> {
        let arguments = std::mem::take(&mut self.arguments);
        let mut cast = Vec::with_capacity(arguments.len());
        for (position, argument) in arguments.into_iter().enumerate() {
            cast.push(match types.get(position) {
                Some(data_type) => self.cast(argument, data_type)?,
                None => argument,
            });
        }
        self.arguments = cast;
        Ok(())
    }

    /// An implicit cast of an argument; one that Spark would not make is a mismatch.
    pub fn cast(&self, value: Typed, data_type: &DataType) -> Result<Typed> {
        let field = value.field.clone();
        let nested =
            |data_type: &DataType| matches!(data_type, DataType::List(_) | DataType::Map(_, _) | DataType::Struct(_));
        if nested(value.data_type()) && !nested(data_type) {
            return Err(self.unexpected(&value, &sql_name(&arrow::datatypes::Field::new("", data_type.clone(), true))));
        }
        implicit(value, data_type, self.conf()).map_err(|error| match error {
            Error::DatatypeMismatch { .. } => Error::DatatypeMismatch {
                kind: "UNEXPECTED_INPUT_TYPE",
                expression: self.sql(),
                detail: format!(
                    "an argument requires the {} type, but has the type {}",
                    sql_name(&arrow::datatypes::Field::new("", data_type.clone(), true)),
                    sql_name(&field)
                ),
            },
            error => error,
        })
    }

    /// The arguments cast to the type all of them have in common.
    pub fn unify(&mut self) -> Result<DataType> {
        let arguments = std::mem::take(&mut self.arguments);
        let (arguments, data_type) = self.unified(arguments)?;
        self.arguments = arguments;
        Ok(data_type)
    }

    /// Some values cast to the type all of them have in common.
    pub fn unified(&self, values: Vec<Typed>) -> Result<(Vec<Typed>, DataType)> {
        let Some(data_type) = common_type(&values, self.conf()) else {
            let types: Vec<String> = values.iter().map(|value| format!("\"{}\"", sql_name(&value.field))).collect();
            return Err(self.mismatch(
                "DATA_DIFF_TYPES",
                format!("input to `{}` should all be the same type, but it's ({})", self.name, types.join(", ")),
            ));
        };
        let values = cast_all(values, &data_type, self.conf())?;
        Ok((values, data_type))
    }

    /// Spark's SQL text of the call.
    pub fn sql(&self) -> String {
        crate::embedded::expression::automatic_name(self.expression)
    }

    pub fn mismatch(&self, kind: &'static str, detail: String) -> Error {
        Error::DatatypeMismatch { kind, expression: self.sql(), detail }
    }

    /// The error of an argument of the wrong type.
    pub fn unexpected(&self, value: &Typed, required: &str) -> Error {
        self.mismatch(
            "UNEXPECTED_INPUT_TYPE",
            format!("an argument requires the {required} type, but has the type {}", sql_name(&value.field)),
        )
    }

    /// A literal argument as text.
    pub fn constant_string(&self, value: &Typed) -> Result<String> {
        match value.value() {
            Some(ScalarValue::Utf8(Some(text))) => Ok(text.clone()),
            _ => Err(self.not_constant()),
        }
    }

    /// A literal argument as an integer.
    pub fn constant_integer(&self, value: &Typed) -> Result<i64> {
        let cast = cast_to(value.clone(), &DataType::Int64, Mode::Ansi, self.conf())?;
        match cast.value() {
            Some(ScalarValue::Int64(Some(number))) => Ok(*number),
            _ => Err(self.not_constant()),
        }
    }

    /// A literal argument as a boolean.
    pub fn constant_boolean(&self, value: &Typed) -> Result<bool> {
        match value.value() {
            Some(ScalarValue::Boolean(Some(truth))) => Ok(*truth),
            _ => Err(self.not_constant()),
        }
    }

    fn not_constant(&self) -> Error {
        self.mismatch("NON_FOLDABLE_INPUT", format!("an argument of {} must be a constant", self.name))
    }
}
