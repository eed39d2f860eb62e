//! A pickled function as a client describes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use bytes::Bytes;
use spark_connect_proto as proto;
use spark_connect_proto::common_inline_user_defined_function::Function as Kind;

use crate::{Error, Result, data_type};

/// How a function is called: `pyspark.util.PythonEvalType`, as far as it is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvalType {
    ArrowBatched,
    ScalarPandas,
    GroupedMapPandas,
    GroupedAggPandas,
    ScalarPandasIter,
    MapPandasIter,
    CogroupedMapPandas,
    MapArrowIter,
    GroupedMapArrow,
    CogroupedMapArrow,
    GroupedMapArrowIter,
    GroupedMapPandasIter,
    GroupedAggPandasIter,
    ScalarArrow,
    ScalarArrowIter,
    GroupedAggArrow,
    GroupedAggArrowIter,
}

/// The numbers that clients and workers use.
const NUMBERS: &[(i32, EvalType)] = &[
    (101, EvalType::ArrowBatched),
    (200, EvalType::ScalarPandas),
    (201, EvalType::GroupedMapPandas),
    (202, EvalType::GroupedAggPandas),
    (204, EvalType::ScalarPandasIter),
    (205, EvalType::MapPandasIter),
    (206, EvalType::CogroupedMapPandas),
    (207, EvalType::MapArrowIter),
    (209, EvalType::GroupedMapArrow),
    (210, EvalType::CogroupedMapArrow),
    (215, EvalType::GroupedMapArrowIter),
    (216, EvalType::GroupedMapPandasIter),
    (217, EvalType::GroupedAggPandasIter),
    (250, EvalType::ScalarArrow),
    (251, EvalType::ScalarArrowIter),
    (252, EvalType::GroupedAggArrow),
    (254, EvalType::GroupedAggArrowIter),
];

/// Functions of rows that clients want pickled.
const PLAIN: i32 = 100;

impl EvalType {
    pub fn of(number: i32) -> Result<EvalType> {
        let found = NUMBERS.iter().find(|(known, _)| *known == number).map(|(_, eval_type)| *eval_type);
        found.ok_or_else(|| Error::Unsupported { feature: format!("Python functions of evaluation type {number}") })
    }

    pub fn number(self) -> i32 {
        NUMBERS.iter().find(|(_, known)| *known == self).map_or(0, |(number, _)| *number)
    }

    /// Whether it gives a value for each row.
    pub fn is_scalar(self) -> bool {
        use EvalType::*;
        matches!(self, ArrowBatched | ScalarPandas | ScalarPandasIter | ScalarArrow | ScalarArrowIter)
    }

    /// Whether it gives a value for each group of rows.
    pub fn is_aggregate(self) -> bool {
        use EvalType::*;
        matches!(self, GroupedAggPandas | GroupedAggPandasIter | GroupedAggArrow | GroupedAggArrowIter)
    }

    /// Whether one worker can run only one function of the kind at a time.
    pub fn is_iterator(self) -> bool {
        use EvalType::*;
        matches!(self, ScalarPandasIter | ScalarArrowIter | GroupedAggPandasIter | GroupedAggArrowIter)
    }
}

/// Registered functions by lower-case name. Shared with the plans that are being resolved.
pub type Functions = Arc<BTreeMap<String, PythonFunction>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PythonFunction {
    pub name: String,
    /// The function and its result's type, pickled.
    pub command: Bytes,
    pub eval_type: EvalType,
    /// The client's Python, such as `3.11`.
    pub python_version: String,
    /// Files of the session that go on the import path.
    pub includes: Vec<String>,
    /// Type of its result.
    pub output: FieldRef,
    pub is_deterministic: bool,
}

impl PythonFunction {
    /// # Errors
    /// [`Error::Unsupported`] for functions that are not Python's and for kinds that are not known.
    pub fn from_proto(message: &proto::CommonInlineUserDefinedFunction) -> Result<PythonFunction> {
        let udf = match &message.function {
            Some(Kind::PythonUdf(udf)) => udf,
            Some(_) => return Err(Error::Unsupported { feature: "JVM UDF".into() }),
            None => return Err(Error::InvalidPlan { detail: "user-defined function without a kind".into() }),
        };
        let output = udf.output_type.as_ref().ok_or_else(|| Error::InvalidPlan {
            detail: format!("user-defined function {} without its type", message.function_name),
        })?;
        // A plain function of rows runs over Arrow too: what gives what it declares gives the same either way.
        let eval_type = match udf.eval_type {
            PLAIN => EvalType::ArrowBatched,
            number => EvalType::of(number)?,
        };
        Ok(PythonFunction {
            name: message.function_name.clone(),
            command: udf.command.clone(),
            eval_type,
            python_version: udf.python_ver.clone(),
            includes: udf.additional_includes.clone(),
            output: Arc::new(data_type::field_from_proto("", output, true)?),
            is_deterministic: message.deterministic,
        })
    }
}
