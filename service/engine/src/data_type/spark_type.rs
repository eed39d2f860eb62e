//! A Spark type, read off an Arrow field or written on one: the one place that pairs the two systems.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use udt::field::{
    MATRIX_JVM_CLASS, SPARK_TYPE, UDT_JVM_CLASS, UDT_PYTHON_CLASS, UDT_SERIALIZED_PYTHON_CLASS, VECTOR_JVM_CLASS,
    matrix_data_type, vector_data_type,
};

use super::name::{atomic_from_name, type_name};

/// The bounds of a day-time interval, in Spark's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DayTimeUnit {
    Day,
    Hour,
    Minute,
    Second,
}

/// The bounds of a year-month interval, in Spark's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum YearMonthUnit {
    Year,
    Month,
}

/// A user-defined type over a storage type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Udt<'a> {
    pub jvm_class: Option<&'a str>,
    pub python_class: Option<&'a str>,
    pub serialized_python_class: Option<&'a str>,
    pub storage: &'a DataType,
}

/// A Spark type whose parts borrow from the Arrow field it was read off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SparkType<'a> {
    Null,
    Boolean,
    Byte,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Decimal { precision: u8, scale: i8 },
    String,
    Char(u32),
    Varchar(u32),
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
    /// Time of day with `precision` fractional digits.
    Time { precision: u8 },
    DayTimeInterval { start: DayTimeUnit, end: DayTimeUnit },
    YearMonthInterval { start: YearMonthUnit, end: YearMonthUnit },
    CalendarInterval,
    Array(&'a FieldRef),
    Map { key: &'a FieldRef, value: &'a FieldRef },
    Struct(&'a Fields),
    Udt(Udt<'a>),
    /// An Arrow type that no Spark type stands for (a union).
    Foreign(&'a DataType),
}

/// Spark's `timestamp` in Arrow: an instant in microseconds.
pub fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

const DEFAULT_TIME_PRECISION: u8 = 6;

impl<'a> SparkType<'a> {
    /// Reads the Spark type of a field.
    pub fn of(field: &'a Field) -> SparkType<'a> {
        let mark = |key: &str| field.metadata().get(key).map(String::as_str);
        let (jvm_class, python_class) = (mark(UDT_JVM_CLASS), mark(UDT_PYTHON_CLASS));
        if jvm_class.is_some() || python_class.is_some() {
            return SparkType::Udt(Udt {
                jvm_class,
                python_class,
                serialized_python_class: mark(UDT_SERIALIZED_PYTHON_CLASS),
                storage: field.data_type(),
            });
        }
        let plain = SparkType::of_data_type(field.data_type());
        match mark(SPARK_TYPE).and_then(atomic_from_name) {
            // A mark that a cast has outlived says nothing.
            Some(marked) if marked.arrow_type() == plain.arrow_type() => marked,
            _ => plain,
        }
    }

    /// Reads an Arrow type that carries no marks of its own (parts of nested types may). Types that Spark lacks are read
    /// as the Spark type that holds their values.
    pub fn of_data_type(data_type: &'a DataType) -> SparkType<'a> {
        match data_type {
            DataType::Null => SparkType::Null,
            DataType::Boolean => SparkType::Boolean,
            DataType::Int8 => SparkType::Byte,
            DataType::Int16 | DataType::UInt8 => SparkType::Short,
            DataType::Int32 | DataType::UInt16 => SparkType::Integer,
            DataType::Int64 | DataType::UInt32 => SparkType::Long,
            DataType::UInt64 => SparkType::Decimal { precision: 20, scale: 0 },
            DataType::Float16 | DataType::Float32 => SparkType::Float,
            DataType::Float64 => SparkType::Double,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                SparkType::Decimal { precision: (*precision).min(38), scale: *scale }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => SparkType::String,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                SparkType::Binary
            }
            DataType::Date32 | DataType::Date64 => SparkType::Date,
            DataType::Timestamp(_, Some(_)) => SparkType::Timestamp,
            DataType::Timestamp(_, None) => SparkType::TimestampNtz,
            DataType::Time32(_) | DataType::Time64(_) => SparkType::Time { precision: DEFAULT_TIME_PRECISION },
            DataType::Duration(_) | DataType::Interval(IntervalUnit::DayTime) => {
                SparkType::DayTimeInterval { start: DayTimeUnit::Day, end: DayTimeUnit::Second }
            }
            DataType::Interval(IntervalUnit::YearMonth) => {
                SparkType::YearMonthInterval { start: YearMonthUnit::Year, end: YearMonthUnit::Month }
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => SparkType::CalendarInterval,
            DataType::List(element)
            | DataType::LargeList(element)
            | DataType::ListView(element)
            | DataType::LargeListView(element)
            | DataType::FixedSizeList(element, _) => SparkType::Array(element),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    SparkType::Map { key: &fields[0], value: &fields[1] }
                }
                _ => SparkType::Foreign(data_type),
            },
            DataType::Struct(fields) => SparkType::Struct(fields),
            DataType::Dictionary(_, value) => SparkType::of_data_type(value),
            DataType::RunEndEncoded(_, values) => SparkType::of(values),
            DataType::Union(..) => SparkType::Foreign(data_type),
        }
    }

    /// The Arrow type that this engine holds the type in.
    pub fn arrow_type(&self) -> DataType {
        match *self {
            SparkType::Null => DataType::Null,
            SparkType::Boolean => DataType::Boolean,
            SparkType::Byte => DataType::Int8,
            SparkType::Short => DataType::Int16,
            SparkType::Integer => DataType::Int32,
            SparkType::Long => DataType::Int64,
            SparkType::Float => DataType::Float32,
            SparkType::Double => DataType::Float64,
            SparkType::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
            SparkType::String | SparkType::Char(_) | SparkType::Varchar(_) => DataType::Utf8,
            SparkType::Binary => DataType::Binary,
            SparkType::Date => DataType::Date32,
            SparkType::Timestamp => timestamp_type(),
            SparkType::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
            SparkType::Time { .. } => DataType::Time64(TimeUnit::Nanosecond),
            SparkType::DayTimeInterval { .. } => DataType::Duration(TimeUnit::Microsecond),
            SparkType::YearMonthInterval { .. } => DataType::Interval(IntervalUnit::YearMonth),
            SparkType::CalendarInterval => DataType::Interval(IntervalUnit::MonthDayNano),
            SparkType::Array(element) => DataType::List(Arc::new(element.as_ref().clone().with_name("element"))),
            SparkType::Map { key, value } => {
                let key = key.as_ref().clone().with_name("key").with_nullable(false);
                let value = value.as_ref().clone().with_name("value");
                let entries = Field::new("entries", DataType::Struct(Fields::from(vec![key, value])), false);
                DataType::Map(Arc::new(entries), false)
            }
            SparkType::Struct(fields) => DataType::Struct(fields.clone()),
            SparkType::Udt(udt) => udt.storage.clone(),
            SparkType::Foreign(data_type) => data_type.clone(),
        }
    }

    /// A field of this type, with the marks that its Arrow type needs to be read back as it.
    pub fn field(&self, name: &str, nullable: bool) -> Field {
        let mut metadata = HashMap::new();
        match self {
            SparkType::Udt(udt) => {
                for (key, class) in [
                    (UDT_JVM_CLASS, udt.jvm_class),
                    (UDT_PYTHON_CLASS, udt.python_class),
                    (UDT_SERIALIZED_PYTHON_CLASS, udt.serialized_python_class),
                ] {
                    if let Some(class) = class {
                        metadata.insert(key.to_string(), class.to_string());
                    }
                }
            }
            _ if *self != SparkType::of_data_type(&self.arrow_type()) && !self.is_nested() => {
                metadata.insert(SPARK_TYPE.to_string(), type_name(self));
            }
            _ => {}
        }
        Field::new(name, self.arrow_type(), nullable).with_metadata(metadata)
    }

    pub fn is_nested(&self) -> bool {
        matches!(self, SparkType::Array(_) | SparkType::Map { .. } | SparkType::Struct(_))
    }
}

/// The storage of the user-defined types that Spark itself brings, which messages may leave out.
pub(super) fn known_storage(jvm_class: &str) -> Option<DataType> {
    match jvm_class {
        VECTOR_JVM_CLASS | "org.apache.spark.mllib.linalg.VectorUDT" => Some(vector_data_type()),
        MATRIX_JVM_CLASS | "org.apache.spark.mllib.linalg.MatrixUDT" => Some(matrix_data_type()),
        _ => None,
    }
}
