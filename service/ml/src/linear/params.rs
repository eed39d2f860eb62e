//! Params that linear estimators share, and the checks of their columns.

use arrow::datatypes::Schema;

use crate::evaluation::column;
use crate::{Check, Error, Param, ParamType, Params, Result};

/// The params of Spark's linear estimators, `LogisticRegression` and `LinearRegression` alike.
pub fn shared() -> Vec<Param> {
    vec![
        // how Spark adds up over its partitions, which changes no result: all-reduce has its own topology
        Param::int("aggregationDepth", 2, Check::AtLeast(2.0)),
        Param::double("elasticNetParam", 0.0, Check::Within(0.0, 1.0)),
        Param::string("featuresCol", "features"),
        Param::boolean("fitIntercept", true),
        Param::string("labelCol", "label"),
        // how Spark cuts rows into blocks, which changes no result either
        Param::double("maxBlockSizeInMB", 0.0, Check::AtLeast(0.0)),
        Param::int("maxIter", 100, Check::AtLeast(0.0)),
        Param::string("predictionCol", "prediction"),
        Param::double("regParam", 0.0, Check::AtLeast(0.0)),
        Param::boolean("standardization", true),
        Param::double("tol", 1e-6, Check::AtLeast(0.0)),
        Param::unset("weightCol", ParamType::String),
    ]
}

/// The columns that a fit reads: features, label and, when there is one, weight.
///
/// # Errors
/// A column that is missing, or of a type that cannot be trained on.
pub fn training_columns(params: &Params, schema: &Schema) -> Result<Vec<String>> {
    let features = features_column(params, schema)?;
    let label = params.string("labelCol")?;
    column::numeric(schema, label)?;
    let mut columns = vec![features.to_string(), label.to_string()];
    columns.extend(column::weight(params, schema)?.map(String::from));
    Ok(columns)
}

/// The vector column that a fit or a transform reads.
///
/// # Errors
/// [`Error::ColumnNotFound`], [`Error::ColumnType`]
pub fn features_column<'a>(params: &'a Params, schema: &Schema) -> Result<&'a str> {
    let name = params.string("featuresCol")?;
    let field = column::field(schema, name)?;
    if udt::field::is_vector(field) { Ok(name) } else { Err(column::wrong_type(name, "vector", field)) }
}

/// Refuses output columns that the input has already.
///
/// # Errors
/// [`Error::OutputColumnExists`]
pub fn check_outputs(params: &Params, schema: &Schema, outputs: &[&str]) -> Result<()> {
    for name in outputs.iter().filter_map(|param| params.column(param)) {
        if schema.fields().iter().any(|field| field.name() == name) {
            return Err(Error::OutputColumnExists { name: name.into() });
        }
    }
    Ok(())
}
