//! How rows become bytes: one [`Encoding`] for each format that can be written.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use udt::field::is_vector;
use udt::vector::java_double;
use udt::VectorArray;

use super::json_encoder::push_object;
use super::unwritable;
use crate::conf::TimeZone;
use crate::data_type::{SparkType, schema_to_json};
use crate::show::string_column;
use crate::source::Format;
use crate::source::date_pattern::DatePattern;
use crate::source::options::{Options, invalid};
use crate::source::parquet::SCHEMA_KEY;
use crate::{Conf, Error, Result};

#[derive(Debug)]
pub(super) enum Encoding {
    Parquet { storage: SchemaRef, properties: WriterProperties, extension: &'static str },
    Text { encoder: Arc<TextEncoder>, compression: FileCompressionType, extension: String },
}

/// A format of text.
#[derive(Debug)]
pub(super) struct TextEncoder {
    kind: TextKind,
    schema: Schema,
    values: ValueRules,
    line_end: String,
    conf: Conf,
}

#[derive(Debug)]
enum TextKind {
    Csv(CsvRules),
    Json { keeps_nulls: bool },
    Text,
    Libsvm,
}

#[derive(Debug)]
struct CsvRules {
    has_header: bool,
    separator: String,
    quote: Option<char>,
    escape: Option<char>,
    null: String,
    empty: String,
    quotes_all: bool,
    trims_leading: bool,
    trims_trailing: bool,
}

/// How dates and times are written.
#[derive(Debug)]
pub(in crate::source) struct ValueRules {
    zone: TimeZone,
    date: DatePattern,
    timestamp: DatePattern,
    timestamp_ntz: DatePattern,
}

impl Encoding {
    pub fn of(format: Format, schema: &Schema, options: &Options, conf: &Conf) -> Result<Encoding> {
        if format == Format::Parquet {
            return parquet_encoding(schema, options, conf);
        }
        let name = format.name();
        options.require_utf8(name)?;
        let text = |key: &str, default: &str| options.get(key).unwrap_or(default).to_string();
        let kind = match format {
            Format::Csv => TextKind::Csv(CsvRules::of(schema, options)?),
            Format::Json => {
                let default = conf.get("spark.sql.jsonGenerator.ignoreNullFields").as_deref() != Some("false");
                TextKind::Json { keeps_nulls: !options.flag(name, "ignoreNullFields", default)? }
            }
            Format::Text => {
                if schema.fields().len() != 1 {
                    let found = schema.fields().len();
                    let detail = format!("text supports a single column only, found {found}");
                    return Err(Error::InvalidPlan { detail });
                }
                if schema.field(0).data_type() != &DataType::Utf8 {
                    return Err(unwritable(name, schema.field(0)));
                }
                TextKind::Text
            }
            Format::Libsvm => {
                let is_right = schema.fields().len() == 2
                    && schema.field(0).data_type() == &DataType::Float64
                    && is_vector(schema.field(1));
                if !is_right {
                    return Err(Error::InvalidPlan { detail: "libsvm takes a label of doubles and a vector".into() });
                }
                TextKind::Libsvm
            }
            Format::Parquet | Format::BinaryFile => {
                return Err(Error::Unsupported { feature: format!("writing {name}") });
            }
        };
        let (compression, suffix) = text_compression(name, options)?;
        let extension = match format {
            Format::Csv => text("extension", "csv"),
            Format::Json => "json".into(),
            Format::Text => "txt".into(),
            _ => "libsvm".into(),
        };
        let values = ValueRules::of(options, conf)?;
        let encoder =
            TextEncoder { kind, schema: schema.clone(), values, line_end: text("lineSep", "\n"), conf: conf.clone() };
        Ok(Encoding::Text { encoder: Arc::new(encoder), compression, extension: format!(".{extension}{suffix}") })
    }

    pub fn extension(&self) -> &str {
        match self {
            Encoding::Parquet { extension, .. } => extension,
            Encoding::Text { extension, .. } => extension,
        }
    }
}

fn parquet_encoding(schema: &Schema, options: &Options, conf: &Conf) -> Result<Encoding> {
    let from_conf = conf.get("spark.sql.parquet.compression.codec");
    let codec = options.first(&["compression", "parquet.compression"]).map(str::to_string).or(from_conf);
    let codec = codec.unwrap_or_else(|| "snappy".into());
    let (compression, extension) = match codec.to_lowercase().as_str() {
        "none" | "uncompressed" => (Compression::UNCOMPRESSED, ".parquet"),
        "snappy" => (Compression::SNAPPY, ".snappy.parquet"),
        "gzip" => (Compression::GZIP(Default::default()), ".gz.parquet"),
        "zstd" => (Compression::ZSTD(ZstdLevel::default()), ".zstd.parquet"),
        "lz4" | "lz4_raw" | "lz4raw" | "brotli" | "lzo" => {
            return Err(Error::Unsupported { feature: format!("compression {codec} of Parquet") });
        }
        _ => return Err(invalid("Parquet", "compression", &codec, "expected none, snappy, gzip or zstd")),
    };
    let storage: Vec<Field> =
        schema.fields().iter().map(|field| stored(field).ok_or_else(|| unwritable("Parquet", field))).collect::<Result<_>>()?;
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_coerce_types(true)
        .set_created_by(format!("phalanx {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(SCHEMA_KEY.into(), schema_to_json(schema))]))
        .build();
    Ok(Encoding::Parquet { storage: Arc::new(Schema::new(storage)), properties, extension })
}

/// A field as Parquet files hold it; none for types that they cannot hold. Marks stay out of the file: Spark's own key
/// has them.
fn stored(field: &Field) -> Option<Field> {
    let data_type = match SparkType::of(field) {
        SparkType::Null | SparkType::CalendarInterval | SparkType::Foreign(_) => return None,
        SparkType::YearMonthInterval { .. } => DataType::Int32,
        SparkType::DayTimeInterval { .. } => DataType::Int64,
        SparkType::Time { .. } => DataType::Time64(TimeUnit::Microsecond),
        SparkType::Array(element) => SparkType::Array(&Arc::new(stored_part(element)?)).arrow_type(),
        SparkType::Map { key, value } => {
            SparkType::Map { key: &Arc::new(stored_part(key)?), value: &Arc::new(stored_part(value)?) }.arrow_type()
        }
        // A group without columns does not exist in Parquet.
        SparkType::Struct(fields) if fields.is_empty() => return None,
        SparkType::Struct(fields) => DataType::Struct(fields.iter().map(|field| stored_part(field)).collect::<Option<_>>()?),
        SparkType::Udt(udt) => return stored(&Field::new(field.name(), udt.storage.clone(), field.is_nullable())),
        atomic => atomic.arrow_type(),
    };
    Some(Field::new(field.name(), data_type, field.is_nullable()))
}

/// A part of a nested field. Months of intervals are turned into integers in columns of their own only.
fn stored_part(field: &Field) -> Option<Field> {
    match SparkType::of(field) {
        SparkType::YearMonthInterval { .. } => None,
        _ => stored(field),
    }
}

fn text_compression(format: &str, options: &Options) -> Result<(FileCompressionType, &'static str)> {
    let codec = options.first(&["compression", "codec"]).unwrap_or("none").to_lowercase();
    match codec.as_str() {
        "none" | "uncompressed" => Ok((FileCompressionType::UNCOMPRESSED, "")),
        "gzip" => Ok((FileCompressionType::GZIP, ".gz")),
        "bzip2" => Ok((FileCompressionType::BZIP2, ".bz2")),
        "zstd" => Ok((FileCompressionType::ZSTD, ".zst")),
        "lz4" | "snappy" | "deflate" => {
            Err(Error::Unsupported { feature: format!("compression {codec} of {format}") })
        }
        _ => Err(invalid(format, "compression", &codec, "expected none, gzip, bzip2 or zstd")),
    }
}

impl CsvRules {
    fn of(schema: &Schema, options: &Options) -> Result<CsvRules> {
        const FORMAT: &str = "CSV";
        for field in schema.fields() {
            match SparkType::of(field) {
                SparkType::Array(_)
                | SparkType::Map { .. }
                | SparkType::Struct(_)
                | SparkType::Udt(_)
                | SparkType::Binary
                | SparkType::CalendarInterval
                | SparkType::Foreign(_) => return Err(unwritable(FORMAT, field)),
                _ => {}
            }
        }
        if !options.flag(FORMAT, "escapeQuotes", true)? {
            return Err(Error::Unsupported { feature: "escapeQuotes=false of CSV".into() });
        }
        options.refuse(FORMAT, &["charToEscapeQuoteEscaping"])?;
        let separator = match options.first(&["sep", "delimiter"]).unwrap_or(",") {
            "\\t" => "\t",
            "" => return Err(invalid(FORMAT, "sep", "", "it must not be empty")),
            separator => separator,
        };
        Ok(CsvRules {
            has_header: options.flag(FORMAT, "header", false)?,
            separator: separator.into(),
            quote: options.character(FORMAT, &["quote"], Some('"'))?,
            escape: options.character(FORMAT, &["escape"], Some('\\'))?,
            null: options.get("nullValue").unwrap_or_default().into(),
            empty: options.get("emptyValue").unwrap_or("\"\"").into(),
            quotes_all: options.flag(FORMAT, "quoteAll", false)?,
            trims_leading: options.flag(FORMAT, "ignoreLeadingWhiteSpace", true)?,
            trims_trailing: options.flag(FORMAT, "ignoreTrailingWhiteSpace", true)?,
        })
    }

    fn push(&self, value: Option<&str>, line: &mut String) {
        let (text, is_empty) = match value {
            None => (self.null.as_str(), false),
            Some("") => (self.empty.as_str(), true),
            Some(value) => (value, false),
        };
        let text = if self.trims_leading { text.trim_start_matches([' ', '\t']) } else { text };
        let text = if self.trims_trailing { text.trim_end_matches([' ', '\t']) } else { text };
        let Some(quote) = self.quote else { return line.push_str(text) };
        // What stands for the empty string is written as it is: it brings its own quotes.
        if is_empty {
            return line.push_str(text);
        }
        let needs_quotes = text.contains([quote, '\n', '\r']) || text.contains(&self.separator);
        if !needs_quotes && !self.quotes_all {
            return line.push_str(text);
        }
        line.push(quote);
        for c in text.chars() {
            if let Some(escape) = self.escape
                && (c == quote || c == escape)
            {
                line.push(escape);
            }
            line.push(c);
        }
        line.push(quote);
    }
}

impl ValueRules {
    pub fn of(options: &Options, conf: &Conf) -> Result<ValueRules> {
        let pattern = |key: &str, default: &str| DatePattern::parse(options.get(key).unwrap_or(default));
        let zone = match options.get("timeZone") {
            Some(name) => crate::conf::parse_time_zone(name)
                .ok_or_else(|| invalid("files", "timeZone", name, "expected a time zone"))?,
            None => conf.session_time_zone(),
        };
        Ok(ValueRules {
            zone,
            date: pattern("dateFormat", "yyyy-MM-dd")?,
            timestamp: pattern("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]")?,
            timestamp_ntz: pattern("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSS]")?,
        })
    }

    /// A date or timestamp as text; none for other types.
    pub fn date_time(&self, column: &ArrayRef, field: &Field, row: usize) -> Option<String> {
        let mut text = String::new();
        match SparkType::of(field) {
            SparkType::Date => {
                let days = column.as_primitive_opt::<arrow::datatypes::Date32Type>()?.value(row);
                self.date.format(i64::from(days).checked_mul(86_400_000_000)?, 0, &mut text);
            }
            SparkType::Timestamp => {
                let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
                let offset_s = self.zone.offset_s(micros.div_euclid(1_000_000));
                self.timestamp.format(micros.checked_add(offset_s * 1_000_000)?, offset_s, &mut text);
            }
            SparkType::TimestampNtz => {
                let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
                self.timestamp_ntz.format(micros, 0, &mut text);
            }
            _ => return None,
        }
        Some(text)
    }
}

impl TextEncoder {
    /// What a file begins with.
    pub fn head(&self) -> Vec<u8> {
        match &self.kind {
            TextKind::Csv(rules) if rules.has_header => {
                let mut line = String::new();
                for (position, field) in self.schema.fields().iter().enumerate() {
                    if position > 0 {
                        line.push_str(&rules.separator);
                    }
                    rules.push(Some(field.name()), &mut line);
                }
                (line + &self.line_end).into_bytes()
            }
            _ => Vec::new(),
        }
    }

    pub fn encode(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let mut lines = String::new();
        match &self.kind {
            TextKind::Csv(rules) => self.encode_csv(batch, rules, &mut lines)?,
            TextKind::Json { keeps_nulls } => {
                for row in 0..batch.num_rows() {
                    push_object(self.schema.fields(), batch.columns(), row, &self.values, *keeps_nulls, &self.conf, &mut lines)?;
                    lines.push_str(&self.line_end);
                }
            }
            TextKind::Text => {
                let texts = batch.column(0).as_string_opt::<i32>().ok_or_else(unexpected)?;
                for text in texts {
                    lines.push_str(text.unwrap_or_default());
                    lines.push_str(&self.line_end);
                }
            }
            TextKind::Libsvm => self.encode_libsvm(batch, &mut lines)?,
        }
        out.extend_from_slice(lines.as_bytes());
        Ok(())
    }

    fn encode_csv(&self, batch: &RecordBatch, rules: &CsvRules, lines: &mut String) -> Result<()> {
        let fields = self.schema.fields();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| {
            let is_date_time = matches!(SparkType::of(field), SparkType::Date | SparkType::Timestamp | SparkType::TimestampNtz);
            match is_date_time {
                true => Ok(None),
                false => string_column(column, field, &self.conf).map(Some),
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (position, texts) in columns.iter().enumerate() {
                if position > 0 {
                    lines.push_str(&rules.separator);
                }
                match texts {
                    Some(texts) => rules.push(texts.is_valid(row).then(|| texts.value(row)), lines),
                    None => {
                        let column = batch.column(position);
                        let text = match column.is_valid(row) {
                            true => self.values.date_time(column, &fields[position], row),
                            false => None,
                        };
                        rules.push(text.as_deref(), lines);
                    }
                }
            }
            lines.push_str(&self.line_end);
        }
        Ok(())
    }

    fn encode_libsvm(&self, batch: &RecordBatch, lines: &mut String) -> Result<()> {
        let labels = batch.column(0).as_primitive_opt::<Float64Type>().ok_or_else(unexpected)?;
        let vectors = VectorArray::try_new(batch.column(1)).map_err(|error| Error::Extension { source: Box::new(error) })?;
        for row in 0..batch.num_rows() {
            if labels.is_null(row) {
                return Err(Error::Row {
                    class: "NULL_VALUE",
                    message: "libsvm cannot hold a row without a label".into(),
                    parameters: Vec::new(),
                });
            }
            let vector = vectors.row(row).map_err(|error| Error::Extension { source: Box::new(error) })?;
            lines.push_str(&java_double(labels.value(row)));
            vector.for_each(|index, value| {
                if value != 0.0 {
                    lines.push_str(&format!(" {}:{}", index + 1, java_double(value)));
                }
            });
            lines.push_str(&self.line_end);
        }
        Ok(())
    }
}

fn unexpected() -> Error {
    Error::Bug { invariant: "written columns have the types of their schema".into() }
}
