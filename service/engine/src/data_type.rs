//! Spark's types over Arrow: their names, messages, JSON and DDL.
//!
//! An Arrow [`Field`](arrow::datatypes::Field) is a Spark type here: the Arrow type, plus the marks of `udt::field` in its
//! metadata for what Arrow lacks. [`SparkType`] reads such a field, and every textual form is written from it.

mod ddl;
mod json;
mod name;
mod proto;
mod spark_type;
mod tree;

#[cfg(test)]
mod tests;

pub use ddl::{parse_ddl, parse_ddl_or_type, parse_type};
pub use json::{field_from_json, field_to_json, schema_from_json, schema_from_text, schema_to_json};
pub use name::{simple_string, sql_name, type_name};
pub use proto::{field_from_proto, field_to_proto, schema_from_proto, schema_to_proto};
pub use spark_type::{DayTimeUnit, SparkType, Udt, YearMonthUnit, timestamp_type};
pub use tree::tree_string;
