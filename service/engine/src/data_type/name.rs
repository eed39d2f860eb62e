//! Spark's names of types: in JSON (`long`), for people (`bigint`) and in SQL (`BIGINT`).

use arrow::datatypes::Field;

use super::spark_type::{DayTimeUnit, SparkType, Udt, YearMonthUnit};

/// Spark prints at most this many fields of a struct (`spark.sql.debug.maxToStringFields`).
const STRUCT_FIELDS_SHOWN_MAX: usize = 25;

/// Spark's `DataType.simpleString`: `bigint`, `array<double>`, `struct<a:int>`, `vector`.
pub fn simple_string(field: &Field) -> String {
    simple(&SparkType::of(field))
}

fn simple(spark_type: &SparkType<'_>) -> String {
    match spark_type {
        SparkType::Byte => "tinyint".into(),
        SparkType::Short => "smallint".into(),
        SparkType::Integer => "int".into(),
        SparkType::Long => "bigint".into(),
        SparkType::Array(element) => format!("array<{}>", simple_string(element)),
        SparkType::Map { key, value } => format!("map<{},{}>", simple_string(key), simple_string(value)),
        SparkType::Struct(fields) => {
            let shown = if fields.len() > STRUCT_FIELDS_SHOWN_MAX { STRUCT_FIELDS_SHOWN_MAX - 1 } else { fields.len() };
            let mut parts: Vec<String> =
                fields.iter().take(shown).map(|f| format!("{}:{}", f.name(), simple_string(f))).collect();
            if shown < fields.len() {
                parts.push(format!("... {} more fields", fields.len() - shown));
            }
            format!("struct<{}>", parts.join(","))
        }
        other => type_name(other),
    }
}

/// Spark's `DataType.sql`: `BIGINT`, `ARRAY<DOUBLE>`, `STRUCT<a: INT>`. A user-defined type is written as its storage.
pub fn sql_name(field: &Field) -> String {
    sql(&SparkType::of(field))
}

fn sql(spark_type: &SparkType<'_>) -> String {
    match spark_type {
        SparkType::Array(element) => format!("ARRAY<{}>", sql_name(element)),
        SparkType::Map { key, value } => format!("MAP<{}, {}>", sql_name(key), sql_name(value)),
        SparkType::Struct(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|f| {
                    let not_null = if f.is_nullable() { "" } else { " NOT NULL" };
                    format!("{}: {}{not_null}", quoted_if_needed(f.name()), sql_name(f))
                })
                .collect();
            format!("STRUCT<{}>", parts.join(", "))
        }
        SparkType::Udt(udt) => sql(&SparkType::of_data_type(udt.storage)),
        atomic => simple(atomic).to_uppercase(),
    }
}

/// A name as SQL text has it: in backticks unless it is a plain identifier.
fn quoted_if_needed(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.chars().all(|c| c.is_ascii_digit());
    if is_plain { name.to_string() } else { format!("`{}`", name.replace('`', "``")) }
}

/// Spark's `DataType.typeName`, the name that JSON and schema trees use: `long`, `decimal(10,2)`, `array`, `vector`.
pub fn type_name(spark_type: &SparkType<'_>) -> String {
    match spark_type {
        SparkType::Null => "void".into(),
        SparkType::Boolean => "boolean".into(),
        SparkType::Byte => "byte".into(),
        SparkType::Short => "short".into(),
        SparkType::Integer => "integer".into(),
        SparkType::Long => "long".into(),
        SparkType::Float => "float".into(),
        SparkType::Double => "double".into(),
        SparkType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        SparkType::String => "string".into(),
        SparkType::Char(length) => format!("char({length})"),
        SparkType::Varchar(length) => format!("varchar({length})"),
        SparkType::Binary => "binary".into(),
        SparkType::Date => "date".into(),
        SparkType::Timestamp => "timestamp".into(),
        SparkType::TimestampNtz => "timestamp_ntz".into(),
        SparkType::Time { precision } => format!("time({precision})"),
        SparkType::DayTimeInterval { start, end } if start == end => format!("interval {}", day_time_name(*start)),
        SparkType::DayTimeInterval { start, end } => {
            format!("interval {} to {}", day_time_name(*start), day_time_name(*end))
        }
        SparkType::YearMonthInterval { start, end } if start == end => format!("interval {}", year_month_name(*start)),
        SparkType::YearMonthInterval { start, end } => {
            format!("interval {} to {}", year_month_name(*start), year_month_name(*end))
        }
        SparkType::CalendarInterval => "interval".into(),
        SparkType::Array(_) => "array".into(),
        SparkType::Map { .. } => "map".into(),
        SparkType::Struct(_) => "struct".into(),
        SparkType::Udt(udt) => udt_name(udt),
        SparkType::Foreign(data_type) => data_type.to_string(),
    }
}

/// The class's own name in lower case, without `UDT` or `Type`; all types that exist in Python only share one class.
fn udt_name(udt: &Udt<'_>) -> String {
    let class = udt.jvm_class.map_or("PythonUserDefinedType", |class| class.rsplit(['.', '$']).next().unwrap_or(class));
    let class = class.strip_suffix("Type").unwrap_or(class);
    class.strip_suffix("UDT").unwrap_or(class).to_lowercase()
}

fn day_time_name(unit: DayTimeUnit) -> &'static str {
    match unit {
        DayTimeUnit::Day => "day",
        DayTimeUnit::Hour => "hour",
        DayTimeUnit::Minute => "minute",
        DayTimeUnit::Second => "second",
    }
}

fn year_month_name(unit: YearMonthUnit) -> &'static str {
    match unit {
        YearMonthUnit::Year => "year",
        YearMonthUnit::Month => "month",
    }
}

pub(super) fn day_time_unit(name: &str) -> Option<DayTimeUnit> {
    match name.to_lowercase().as_str() {
        "day" | "days" => Some(DayTimeUnit::Day),
        "hour" | "hours" => Some(DayTimeUnit::Hour),
        "minute" | "minutes" => Some(DayTimeUnit::Minute),
        "second" | "seconds" => Some(DayTimeUnit::Second),
        _ => None,
    }
}

pub(super) fn year_month_unit(name: &str) -> Option<YearMonthUnit> {
    match name.to_lowercase().as_str() {
        "year" | "years" => Some(YearMonthUnit::Year),
        "month" | "months" => Some(YearMonthUnit::Month),
        _ => None,
    }
}

/// The interval type from the names of its first and last unit.
pub(super) fn interval_of_units(start: &str, end: &str) -> Option<SparkType<'static>> {
    if let (Some(start), Some(end)) = (day_time_unit(start), day_time_unit(end)) {
        return (start <= end).then_some(SparkType::DayTimeInterval { start, end });
    }
    match (year_month_unit(start), year_month_unit(end)) {
        (Some(start), Some(end)) if start <= end => Some(SparkType::YearMonthInterval { start, end }),
        _ => None,
    }
}

/// The atomic type that [`type_name`] names so.
pub(super) fn atomic_from_name(name: &str) -> Option<SparkType<'static>> {
    let plain = match name {
        "void" | "null" => SparkType::Null,
        "boolean" => SparkType::Boolean,
        "byte" => SparkType::Byte,
        "short" => SparkType::Short,
        "integer" => SparkType::Integer,
        "long" => SparkType::Long,
        "float" => SparkType::Float,
        "double" => SparkType::Double,
        "decimal" => SparkType::Decimal { precision: 10, scale: 0 },
        "string" | "string collate UTF8_BINARY" => SparkType::String,
        "binary" => SparkType::Binary,
        "date" => SparkType::Date,
        "timestamp" | "timestamp_ltz" => SparkType::Timestamp,
        "timestamp_ntz" => SparkType::TimestampNtz,
        "time" => SparkType::Time { precision: 6 },
        "interval" | "calendarinterval" => SparkType::CalendarInterval,
        _ => return parametrized_from_name(name),
    };
    Some(plain)
}

fn parametrized_from_name(name: &str) -> Option<SparkType<'static>> {
    if let Some(units) = name.strip_prefix("interval ") {
        return match units.split_once(" to ") {
            Some((start, end)) => interval_of_units(start, end),
            None => interval_of_units(units, units),
        };
    }
    let (base, arguments) = name.strip_suffix(')')?.split_once('(')?;
    let mut arguments = arguments.split(',').map(str::trim);
    let spark_type = match base {
        "decimal" => {
            let (precision, scale) = (arguments.next()?.parse().ok()?, arguments.next()?.parse().ok()?);
            decimal(precision, scale)?
        }
        "char" => SparkType::Char(arguments.next()?.parse().ok()?),
        "varchar" => SparkType::Varchar(arguments.next()?.parse().ok()?),
        "time" => SparkType::Time { precision: arguments.next()?.parse().ok().filter(|p| *p <= 6)? },
        _ => return None,
    };
    arguments.next().is_none().then_some(spark_type)
}

/// A decimal type within Spark's bounds.
pub(super) fn decimal(precision: i64, scale: i64) -> Option<SparkType<'static>> {
    ((1..=38).contains(&precision) && (-38..=precision).contains(&scale))
        .then_some(SparkType::Decimal { precision: precision as u8, scale: scale as i8 })
}
