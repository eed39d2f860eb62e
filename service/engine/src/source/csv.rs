//! Format `csv`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use object_store::ObjectMeta;

use super::cells::{self, Cell, CellRules, parse_boolean};
use super::chunks::{Chunk, ChunkReader, Framing, fold, lines};
use super::csv_syntax::CsvSyntax;
use super::listing::Files;
use super::options::{Options, ParseMode};
use super::record_scan::{RecordFormat, batch_of, plan};
use crate::data_type::SparkType;
use crate::{Conf, Error, Result};

const FORMAT: &str = "CSV";

/// How the text falls into records.
#[derive(Debug, Clone)]
struct Layout {
    syntax: CsvSyntax,
    has_header: bool,
    is_multi_line: bool,
    separator: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Csv {
    schema: SchemaRef,
    layout: Layout,
    rules: CellRules,
    mode: ParseMode,
    /// The column that takes records which do not fit; the others are read from the file.
    corrupt_column: Option<usize>,
}

pub(super) async fn read(
    state: &SessionState,
    conf: &Conf,
    files: Files,
    wanted: Option<&Schema>,
    options: &Options,
) -> Result<(LogicalPlan, SchemaRef)> {
    options.require_utf8(FORMAT)?;
    if !options.flag(FORMAT, "enforceSchema", true)? {
        return Err(Error::Unsupported { feature: "enforceSchema=false of CSV".into() });
    }
    options.refuse(FORMAT, &["charToEscapeQuoteEscaping", "singleVariantColumn"])?;
    let layout = Layout {
        syntax: CsvSyntax::of(options)?,
        has_header: options.flag(FORMAT, "header", false)?,
        is_multi_line: options.flag(FORMAT, "multiLine", false)?,
        separator: options.get("lineSep").filter(|separator| *separator != "\n").map(|s| s.as_bytes().to_vec()),
    };
    let rules = CellRules::of(FORMAT, options, conf)?;
    let schema = match wanted {
        Some(wanted) => {
            let is_partition = |name: &str| files.partition_columns.iter().any(|column| column.name() == name);
            let own = wanted.fields().iter().filter(|field| !is_partition(field.name()));
            Schema::new(own.map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>())
        }
        None => inferred(state, conf, &files, &layout, &rules, options).await?,
    };
    let corrupt_name = options
        .get("columnNameOfCorruptRecord")
        .map(str::to_string)
        .or_else(|| conf.get("spark.sql.columnNameOfCorruptRecord"));
    let is_corrupt = |field: &&Arc<Field>| Some(field.name()) == corrupt_name.as_ref();
    let corrupt_column = schema.fields().iter().position(|field| is_corrupt(&field));
    if let Some(column) = corrupt_column
        && schema.field(column).data_type() != &DataType::Utf8
    {
        return Err(Error::InvalidPlan { detail: "the column for corrupt records must be a nullable string".into() });
    }
    let csv = Csv { schema: Arc::new(schema), layout, rules, mode: ParseMode::of(options), corrupt_column };
    plan(Arc::new(csv), files)
}

impl Layout {
    fn framing(&self) -> Framing {
        if self.is_multi_line || self.separator.is_some() { Framing::WholeFile } else { Framing::Lines }
    }

    /// Calls `visit` with the cells and the text of every record, the header of a file left out.
    fn for_each_record<'a>(
        &self,
        chunk: &'a Chunk,
        mut visit: impl FnMut(&mut Vec<Cell<'a>>, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut is_header = self.has_header && chunk.is_file_start;
        let mut cells = Vec::new();
        let mut record = |cells: &mut Vec<Cell<'a>>, text: &'a [u8]| -> Result<()> {
            if std::mem::take(&mut is_header) { Ok(()) } else { visit(cells, text) }
        };
        if self.is_multi_line {
            let mut rest: &'a [u8] = &chunk.text;
            while !rest.is_empty() {
                let line = lines(rest, None).next().unwrap_or_default();
                let length = if self.syntax.is_skipped(line) {
                    line.len()
                } else {
                    cells.clear();
                    let length = self.syntax.record(rest, &mut cells);
                    record(&mut cells, &rest[..length])?;
                    length
                };
                let end = &rest[length..];
                let end_length = if end.starts_with(b"\r\n") { 2 } else { end.len().min(1) };
                rest = &end[end_length..];
            }
            return Ok(());
        }
        for line in lines(&chunk.text, self.separator.as_deref()) {
            if !self.syntax.is_skipped(line) {
                cells.clear();
                self.syntax.record(line, &mut cells);
                record(&mut cells, line)?;
            }
        }
        Ok(())
    }
}

impl RecordFormat for Csv {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn framing(&self) -> Framing {
        self.layout.framing()
    }

    fn decode(&self, chunk: &Chunk, _file: &ObjectMeta, projection: &[usize]) -> Result<RecordBatch> {
        let width = self.schema.fields().len() - usize::from(self.corrupt_column.is_some());
        let mut table: Vec<Cell<'_>> = Vec::new();
        let mut records: Vec<&[u8]> = Vec::new();
        let mut is_bad: Vec<bool> = Vec::new();
        self.layout.for_each_record(chunk, |cells, text| {
            // Rows that are not asked for any value are not looked at.
            is_bad.push(cells.len() != width && !projection.is_empty());
            cells.resize(width, None);
            table.append(cells);
            records.push(text);
            Ok(())
        })?;
        let num_rows = records.len();
        let in_file = |column: usize| column - usize::from(self.corrupt_column.is_some_and(|corrupt| corrupt < column));
        let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(projection.len());
        for column in projection {
            if Some(*column) == self.corrupt_column {
                columns.push(None);
                continue;
            }
            let position = in_file(*column);
            let mut cells = (0..num_rows).map(|row| table[row * width + position].as_deref());
            let field = self.schema.field(*column);
            columns.push(Some(cells::column(&mut cells, num_rows, field, &self.rules, &mut is_bad)?));
        }
        if self.mode == ParseMode::FailFast
            && let Some(row) = is_bad.iter().position(|is_bad| *is_bad)
        {
            return Err(malformed(records[row]));
        }
        let columns = columns.into_iter().map(|column| match column {
            Some(column) => column,
            None => {
                let texts = records.iter().zip(&is_bad).map(|(text, is_bad)| is_bad.then(|| String::from_utf8_lossy(text)));
                Arc::new(StringArray::from_iter(texts))
            }
        });
        let batch = batch_of(&self.schema, projection, columns.collect(), num_rows)?;
        match self.mode {
            ParseMode::DropMalformed if is_bad.contains(&true) => {
                let keep: BooleanArray = is_bad.iter().map(|is_bad| Some(!is_bad)).collect();
                Ok(filter_record_batch(&batch, &keep)?)
            }
            _ => Ok(batch),
        }
    }
}

pub(super) fn malformed(record: &[u8]) -> Error {
    const SHOWN_MAX: usize = 200;
    let shown: String = String::from_utf8_lossy(record).chars().take(SHOWN_MAX).collect();
    Error::Row {
        class: "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
        message: format!("malformed records are detected in record parsing: {shown}"),
        parameters: vec![("badRecord", shown), ("failFastMode", "FAILFAST".into())],
    }
}

/// The narrowest type that holds the values seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Narrowest {
    Nothing,
    Integer,
    Long,
    /// A whole number beyond 64 bits.
    Decimal(u8),
    Double,
    Date,
    Timestamp,
    TimestampNtz,
    Boolean,
    String,
}

impl Narrowest {
    fn of(text: &str, rules: &CellRules, prefers_date: bool, is_ntz: bool) -> Narrowest {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if text.parse::<i32>().is_ok() {
            Narrowest::Integer
        } else if text.parse::<i64>().is_ok() {
            Narrowest::Long
        } else if is_whole && digits.trim_start_matches('0').len() <= 38 {
            Narrowest::Decimal(digits.trim_start_matches('0').len() as u8)
        } else if rules.double(text).is_some() {
            Narrowest::Double
        } else if prefers_date && is_date(text, rules) {
            Narrowest::Date
        } else if is_ntz && rules.timestamp_ntz(text).is_some() {
            Narrowest::TimestampNtz
        } else if rules.timestamp(text).is_some() {
            Narrowest::Timestamp
        } else if parse_boolean(text).is_some() {
            Narrowest::Boolean
        } else {
            Narrowest::String
        }
    }

    fn with(self, other: Narrowest) -> Narrowest {
        use Narrowest::{Date, Decimal, Double, Integer, Long, Nothing, String, Timestamp, TimestampNtz};
        match (self, other) {
            (left, right) if left == right => left,
            (Nothing, right) => right,
            (left, Nothing) => left,
            (Integer, Long) | (Long, Integer) => Long,
            (Decimal(left), Decimal(right)) => Decimal(left.max(right)),
            (Decimal(digits), Integer | Long) | (Integer | Long, Decimal(digits)) => Decimal(digits.max(20)),
            (Double, Integer | Long | Decimal(_)) | (Integer | Long | Decimal(_), Double) => Double,
            (Date, Timestamp) | (Timestamp, Date) => Timestamp,
            (Date, TimestampNtz) | (TimestampNtz, Date) => TimestampNtz,
            (Timestamp, TimestampNtz) | (TimestampNtz, Timestamp) => Timestamp,
            _ => String,
        }
    }

    fn spark_type(self) -> SparkType<'static> {
        match self {
            Narrowest::Integer => SparkType::Integer,
            Narrowest::Long => SparkType::Long,
            Narrowest::Decimal(digits) => SparkType::Decimal { precision: digits.max(1), scale: 0 },
            Narrowest::Double => SparkType::Double,
            Narrowest::Date => SparkType::Date,
            Narrowest::Timestamp => SparkType::Timestamp,
            Narrowest::TimestampNtz => SparkType::TimestampNtz,
            Narrowest::Boolean => SparkType::Boolean,
            Narrowest::Nothing | Narrowest::String => SparkType::String,
        }
    }
}

/// Inference takes full dates only, unlike reading.
fn is_date(text: &str, rules: &CellRules) -> bool {
    rules.date(text).is_some() && (rules.date_format.is_some() || text.len() == 10 && !text.contains([' ', 'T']))
}

/// Names from the header or by position, types from the values if asked for.
async fn inferred(
    state: &SessionState,
    conf: &Conf,
    files: &Files,
    layout: &Layout,
    rules: &CellRules,
    options: &Options,
) -> Result<Schema> {
    let Some(names) = column_names(files, layout, conf).await? else { return Ok(Schema::empty()) };
    let mut types = vec![Narrowest::String; names.len()];
    if options.flag(FORMAT, "inferSchema", false)? {
        let prefers_date = options.flag(FORMAT, "preferDate", true)?;
        let is_ntz = conf.timestamp_is_ntz();
        types.fill(Narrowest::Nothing);
        let (layout, rules, width) = (layout.clone(), rules.clone(), names.len());
        let framing = layout.framing();
        let visit = move |chunk: &Chunk| {
            let mut types = vec![Narrowest::Nothing; width];
            layout.for_each_record(chunk, |cells, _| {
                for (known, cell) in types.iter_mut().zip(cells.iter()) {
                    if let (Some(text), false) = (cell, *known == Narrowest::String) {
                        *known = known.with(Narrowest::of(text, &rules, prefers_date, is_ntz));
                    }
                }
                Ok(())
            })?;
            Ok(types)
        };
        let metas = files.with_content().map(|file| file.meta.clone()).collect();
        fold(files.store(), metas, framing, state.config().target_partitions(), visit, |seen| {
            types.iter_mut().zip(seen).for_each(|(known, seen)| *known = known.with(seen));
            Ok(())
        })
        .await?;
    }
    let fields = names.iter().zip(types).map(|(name, narrowest)| narrowest.spark_type().field(name, true));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The names of the first file's columns; none when no file holds a record.
async fn column_names(files: &Files, layout: &Layout, conf: &Conf) -> Result<Option<Vec<String>>> {
    for file in files.with_content() {
        let mut reader = ChunkReader::open(files.store(), &file.meta, layout.framing(), 0..file.meta.size).await?;
        let mut first: Option<Vec<Option<String>>> = None;
        while let (None, Some(chunk)) = (&first, reader.next().await?) {
            // The header is looked at like any record.
            let headless = Layout { has_header: false, ..layout.clone() };
            headless.for_each_record(&chunk, |cells, _| {
                first.get_or_insert_with(|| cells.iter().map(|cell| cell.as_deref().map(str::to_string)).collect());
                Ok(())
            })?;
        }
        let Some(first) = first else { continue };
        if !layout.has_header {
            return Ok(Some((0..first.len()).map(|position| format!("_c{position}")).collect()));
        }
        let folded = |name: &str| if conf.case_sensitive() { name.to_string() } else { name.to_lowercase() };
        let all: Vec<String> = first.iter().flatten().map(|name| folded(name)).collect();
        let is_repeated = |name: &str| all.iter().filter(|other| **other == folded(name)).count() > 1;
        let names = first.iter().enumerate().map(|(position, name)| match name {
            None => format!("_c{position}"),
            Some(name) if is_repeated(name) => format!("{name}{position}"),
            Some(name) => name.clone(),
        });
        return Ok(Some(names.collect()));
    }
    Ok(None)
}
