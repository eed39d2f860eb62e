//! Format `json`: an object a line, or a file that is one value.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, ListArray, MapArray, RecordBatch, StringArray, StringBuilder,
    StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use object_store::ObjectMeta;

use super::cells::{self, CellRules};
use super::chunks::{Chunk, Framing, fold, lines};
use super::csv::malformed;
use super::json_text::Json;
use super::listing::Files;
use super::options::{Options, ParseMode};
use super::record_scan::{RecordFormat, batch_of, plan};
use crate::data_type::SparkType;
use crate::{Conf, Error, Result};

const FORMAT: &str = "JSON";

#[derive(Debug, Clone)]
struct Layout {
    is_multi_line: bool,
    separator: Option<Vec<u8>>,
}

#[derive(Debug)]
struct JsonFormat {
    schema: SchemaRef,
    layout: Layout,
    rules: CellRules,
    mode: ParseMode,
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
    for key in [
        "primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames", "allowNumericLeadingZeros",
        "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "inferTimestamp", "dropFieldIfAllNull",
    ] {
        if options.flag(FORMAT, key, false)? {
            return Err(Error::Unsupported { feature: format!("option {key} of JSON") });
        }
    }
    options.refuse(FORMAT, &["singleVariantColumn"])?;
    let layout = Layout {
        is_multi_line: options.flag(FORMAT, "multiLine", false)?,
        separator: options.get("lineSep").filter(|separator| *separator != "\n").map(|s| s.as_bytes().to_vec()),
    };
    let rules = CellRules::of(FORMAT, options, conf)?;
    let mode = ParseMode::of(options);
    let corrupt_name = options
        .get("columnNameOfCorruptRecord")
        .map(str::to_string)
        .or_else(|| conf.get("spark.sql.columnNameOfCorruptRecord"))
        .unwrap_or_default();
    let schema = match wanted {
        Some(wanted) => {
            let is_partition = |name: &str| files.partition_columns.iter().any(|column| column.name() == name);
            let own = wanted.fields().iter().filter(|field| !is_partition(field.name()));
            Schema::new(own.map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>())
        }
        None => inferred(state, conf, &files, &layout, mode, &corrupt_name).await?,
    };
    let corrupt_column = schema.fields().iter().position(|field| field.name() == &corrupt_name);
    plan(Arc::new(JsonFormat { schema: Arc::new(schema), layout, rules, mode, corrupt_column }), files)
}

impl Layout {
    fn framing(&self) -> Framing {
        if self.is_multi_line || self.separator.is_some() { Framing::WholeFile } else { Framing::Lines }
    }

    /// Calls `visit` with every record: an object, or none and the text that is not one.
    fn for_each_record(&self, chunk: &Chunk, mut visit: impl FnMut(Option<Json<'_>>, &str) -> Result<()>) -> Result<()> {
        let texts: Vec<&[u8]> = match self.is_multi_line {
            true => vec![&chunk.text],
            false => lines(&chunk.text, self.separator.as_deref()).collect(),
        };
        for bytes in texts {
            let text = String::from_utf8_lossy(bytes);
            if text.trim().is_empty() {
                continue;
            }
            match Json::parse(&text) {
                Some(object @ Json::Object(_)) => visit(Some(object), &text)?,
                Some(Json::Array(values)) => {
                    for value in values {
                        let is_object = matches!(value, Json::Object(_));
                        visit(is_object.then_some(value), &text)?;
                    }
                }
                _ => visit(None, &text)?,
            }
        }
        Ok(())
    }
}

impl RecordFormat for JsonFormat {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn framing(&self) -> Framing {
        self.layout.framing()
    }

    fn decode(&self, chunk: &Chunk, _file: &ObjectMeta, projection: &[usize]) -> Result<RecordBatch> {
        let texts: Vec<std::borrow::Cow<'_, str>> = match self.layout.is_multi_line {
            true => vec![String::from_utf8_lossy(&chunk.text)],
            false => {
                lines(&chunk.text, self.layout.separator.as_deref()).map(|line| String::from_utf8_lossy(line)).collect()
            }
        };
        let mut rows: Vec<(Option<Json<'_>>, &str)> = Vec::with_capacity(texts.len());
        for text in &texts {
            match Json::parse(text) {
                _ if text.trim().is_empty() => {}
                Some(object @ Json::Object(_)) => rows.push((Some(object), text)),
                Some(Json::Array(values)) => {
                    rows.extend(values.into_iter().map(|value| (matches!(value, Json::Object(_)).then_some(value), &**text)));
                }
                _ => rows.push((None, text)),
            }
        }
        let mut is_bad: Vec<bool> = rows.iter().map(|(row, _)| row.is_none()).collect();
        let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(projection.len());
        for column in projection {
            if Some(*column) == self.corrupt_column {
                columns.push(None);
                continue;
            }
            let field = self.schema.field(*column);
            let values: Vec<Option<&Json<'_>>> =
                rows.iter().map(|(row, _)| row.as_ref().and_then(|row| row.get(field.name()))).collect();
            columns.push(Some(build(&values, field, &self.rules, &mut is_bad)?));
        }
        if self.mode == ParseMode::FailFast
            && let Some(row) = is_bad.iter().position(|is_bad| *is_bad)
        {
            return Err(malformed(rows[row].1.as_bytes()));
        }
        let columns = columns.into_iter().map(|column| match column {
            Some(column) => column,
            None => {
                let texts = rows.iter().zip(&is_bad).map(|((_, text), is_bad)| is_bad.then_some(*text));
                Arc::new(StringArray::from_iter(texts))
            }
        });
        let batch = batch_of(&self.schema, projection, columns.collect(), rows.len())?;
        match self.mode {
            ParseMode::DropMalformed if is_bad.contains(&true) => {
                let keep: BooleanArray = is_bad.iter().map(|is_bad| Some(!is_bad)).collect();
                Ok(filter_record_batch(&batch, &keep)?)
            }
            _ => Ok(batch),
        }
    }
}

/// Builds a column of values. One that is not of the type is null, and its row is marked in `is_bad`.
pub(super) fn build(values: &[Option<&Json<'_>>], field: &Field, rules: &CellRules, is_bad: &mut [bool]) -> Result<ArrayRef> {
    let spark_type = SparkType::of(field);
    match spark_type {
        SparkType::Array(element) => return build_list(values, field, element, rules, is_bad),
        SparkType::Map { key, value } => return build_map(values, field, key, value, rules, is_bad),
        SparkType::Struct(fields) => return build_struct(values, fields, rules, is_bad),
        SparkType::String | SparkType::Char(_) | SparkType::Varchar(_) => {
            let mut builder = StringBuilder::new();
            for value in values {
                match value {
                    None | Some(Json::Null) => builder.append_null(),
                    Some(Json::String(text)) => builder.append_value(text),
                    Some(other) => {
                        let mut text = String::new();
                        other.write(&mut text);
                        builder.append_value(text);
                    }
                }
            }
            return Ok(Arc::new(builder.finish()));
        }
        SparkType::Binary => {
            let mut builder = BinaryBuilder::new();
            for (row, value) in values.iter().enumerate() {
                let bytes = match value {
                    Some(Json::String(text)) => base64_decoded(text),
                    _ => None,
                };
                is_bad[row] |= bytes.is_none() && !matches!(value, None | Some(Json::Null));
                builder.append_option(bytes);
            }
            return Ok(Arc::new(builder.finish()));
        }
        SparkType::Boolean => {
            let booleans = values.iter().enumerate().map(|(row, value)| match value {
                Some(Json::Boolean(value)) => Some(*value),
                None | Some(Json::Null) => None,
                Some(_) => {
                    is_bad[row] = true;
                    None
                }
            });
            return Ok(Arc::new(BooleanArray::from_iter(booleans.collect::<Vec<_>>())));
        }
        _ => {}
    }
    let takes_text = matches!(spark_type, SparkType::Date | SparkType::Timestamp | SparkType::TimestampNtz);
    let takes_both = matches!(spark_type, SparkType::Decimal { .. });
    let is_fractional = matches!(spark_type, SparkType::Float | SparkType::Double);
    let mut texts: Vec<Option<&str>> = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        texts.push(match value {
            None | Some(Json::Null) => None,
            Some(Json::Number(number)) if !takes_text => Some(number),
            Some(Json::String(text)) if takes_text || takes_both => Some(text),
            Some(Json::String(text)) if is_fractional => match text.as_ref() {
                "NaN" | "Infinity" | "-Infinity" => Some(text),
                "INF" | "+INF" | "+Infinity" => Some("Infinity"),
                "-INF" => Some("-Infinity"),
                _ => {
                    is_bad[row] = true;
                    None
                }
            },
            Some(_) => {
                is_bad[row] = true;
                None
            }
        });
    }
    cells::column(&mut texts.into_iter(), values.len(), field, rules, is_bad)
}

fn build_list(
    values: &[Option<&Json<'_>>],
    field: &Field,
    element: &FieldRef,
    rules: &CellRules,
    is_bad: &mut [bool],
) -> Result<ArrayRef> {
    let (mut elements, mut row_of, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, value) in values.iter().enumerate() {
        let items = match value {
            Some(Json::Array(items)) => Some(items),
            None | Some(Json::Null) => None,
            Some(_) => {
                is_bad[row] = true;
                None
            }
        };
        elements.extend(items.into_iter().flatten().map(Some));
        row_of.resize(elements.len(), row);
        lengths.push(items.map_or(0, Vec::len));
        valid.push(items.is_some());
    }
    let array = parts(&elements, &row_of, element, rules, is_bad)?;
    let DataType::List(element) = field.data_type() else {
        return Err(Error::Unsupported { feature: format!("reading JSON as {}", field.data_type()) });
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(nullable(element), offsets, array, Some(NullBuffer::from(valid)))?;
    Ok(arrow::compute::cast(&list, field.data_type())?)
}

fn build_map(
    values: &[Option<&Json<'_>>],
    field: &Field,
    key: &FieldRef,
    value: &FieldRef,
    rules: &CellRules,
    is_bad: &mut [bool],
) -> Result<ArrayRef> {
    if key.data_type() != &DataType::Utf8 {
        return Err(Error::Unsupported { feature: format!("reading JSON as {}", field.data_type()) });
    }
    let (mut keys, mut items, mut row_of) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lengths, mut valid) = (Vec::new(), Vec::new());
    for (row, entry) in values.iter().enumerate() {
        let pairs = match entry {
            Some(Json::Object(pairs)) => Some(pairs),
            None | Some(Json::Null) => None,
            Some(_) => {
                is_bad[row] = true;
                None
            }
        };
        for (key, item) in pairs.into_iter().flatten() {
            keys.push(key.as_ref());
            items.push(Some(item));
        }
        row_of.resize(items.len(), row);
        lengths.push(pairs.map_or(0, Vec::len));
        valid.push(pairs.is_some());
    }
    let array = parts(&items, &row_of, value, rules, is_bad)?;
    let fields = Fields::from(vec![key.clone(), nullable(value)]);
    let entries = StructArray::try_new(fields.clone(), vec![Arc::new(StringArray::from(keys)), array], None)?;
    let entries_field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let map = MapArray::try_new(entries_field, offsets, entries, Some(NullBuffer::from(valid)), false)?;
    Ok(arrow::compute::cast(&map, field.data_type())?)
}

fn build_struct(
    values: &[Option<&Json<'_>>],
    fields: &Fields,
    rules: &CellRules,
    is_bad: &mut [bool],
) -> Result<ArrayRef> {
    let mut valid = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        valid.push(matches!(value, Some(Json::Object(_))));
        is_bad[row] |= !matches!(value, None | Some(Json::Null | Json::Object(_)));
    }
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let parts: Vec<Option<&Json<'_>>> =
            values.iter().map(|value| value.and_then(|value| value.get(field.name()))).collect();
        columns.push(build(&parts, field, rules, is_bad)?);
    }
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(values.len(), Some(NullBuffer::from(valid)))));
    }
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, Some(NullBuffer::from(valid)))?))
}

/// Builds what is inside lists or maps; what is bad there makes the row bad that it belongs to.
fn parts(
    values: &[Option<&Json<'_>>],
    row_of: &[usize],
    field: &Field,
    rules: &CellRules,
    is_bad: &mut [bool],
) -> Result<ArrayRef> {
    let mut is_bad_part = vec![false; values.len()];
    let array = build(values, field, rules, &mut is_bad_part)?;
    is_bad_part.iter().zip(row_of).filter(|(is_bad, _)| **is_bad).for_each(|(_, row)| is_bad[*row] = true);
    Ok(array)
}

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(true))
}

fn base64_decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut num_bits) = (0u32, 0);
    for byte in digits.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        num_bits += 6;
        if num_bits >= 8 {
            num_bits -= 8;
            bytes.push((bits >> num_bits) as u8);
            bits &= (1 << num_bits) - 1;
        }
    }
    Some(bytes)
}

/// The narrowest type that holds the values seen so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Narrowest {
    Nothing,
    Boolean,
    Long,
    /// A whole number beyond 64 bits.
    Decimal(u8),
    Double,
    String,
    Array(Box<Narrowest>),
    Object(BTreeMap<String, Narrowest>),
}

impl Narrowest {
    pub fn of(value: &Json<'_>) -> Narrowest {
        match value {
            Json::Null => Narrowest::Nothing,
            Json::Boolean(_) => Narrowest::Boolean,
            Json::String(_) => Narrowest::String,
            Json::Number(number) if number.parse::<i64>().is_ok() => Narrowest::Long,
            Json::Number(number) => {
                let digits = number.strip_prefix('-').unwrap_or(number);
                match digits.len() <= 38 && digits.bytes().all(|b| b.is_ascii_digit()) {
                    true => Narrowest::Decimal(digits.len() as u8),
                    false => Narrowest::Double,
                }
            }
            Json::Array(values) => {
                let element = values.iter().map(Narrowest::of).fold(Narrowest::Nothing, Narrowest::with);
                Narrowest::Array(Box::new(element))
            }
            Json::Object(pairs) => {
                Narrowest::Object(pairs.iter().map(|(key, value)| (key.to_string(), Narrowest::of(value))).collect())
            }
        }
    }

    fn with(self, other: Narrowest) -> Narrowest {
        use Narrowest::{Array, Decimal, Double, Long, Nothing, Object, String};
        match (self, other) {
            (Array(left), Array(right)) => Array(Box::new(left.with(*right))),
            (Object(mut left), Object(right)) => {
                for (key, value) in right {
                    let known = left.remove(&key).unwrap_or(Nothing);
                    left.insert(key, known.with(value));
                }
                Object(left)
            }
            (left, right) if left == right => left,
            (Nothing, right) => right,
            (left, Nothing) => left,
            (Decimal(left), Decimal(right)) => Decimal(left.max(right)),
            (Decimal(digits), Long) | (Long, Decimal(digits)) => Decimal(digits.max(20)),
            (Double, Long | Decimal(_)) | (Long | Decimal(_), Double) => Double,
            _ => String,
        }
    }

    /// The column or field of this type; none for an object that never had a key.
    pub fn field(&self, name: &str) -> Option<Field> {
        Some(match self {
            Narrowest::Nothing | Narrowest::String => SparkType::String.field(name, true),
            Narrowest::Boolean => SparkType::Boolean.field(name, true),
            Narrowest::Long => SparkType::Long.field(name, true),
            Narrowest::Decimal(digits) => SparkType::Decimal { precision: *digits, scale: 0 }.field(name, true),
            Narrowest::Double => SparkType::Double.field(name, true),
            Narrowest::Array(element) => SparkType::Array(&Arc::new(element.field("element")?)).field(name, true),
            Narrowest::Object(parts) => {
                let fields: Fields = parts.iter().filter_map(|(name, part)| part.field(name)).collect();
                if fields.is_empty() {
                    return None;
                }
                SparkType::Struct(&fields).field(name, true)
            }
        })
    }
}

async fn inferred(
    state: &SessionState,
    conf: &Conf,
    files: &Files,
    layout: &Layout,
    mode: ParseMode,
    corrupt_name: &str,
) -> Result<Schema> {
    let (layout_of_task, corrupt) = (layout.clone(), corrupt_name.to_string());
    let visit = move |chunk: &Chunk| {
        let mut seen = Narrowest::Object(BTreeMap::new());
        layout_of_task.for_each_record(chunk, |record, text| {
            let record = match (record, mode) {
                (Some(record), _) => Narrowest::of(&record),
                (None, ParseMode::Permissive) => Narrowest::Object([(corrupt.clone(), Narrowest::String)].into()),
                (None, ParseMode::DropMalformed) => return Ok(()),
                (None, ParseMode::FailFast) => return Err(malformed(text.as_bytes())),
            };
            seen = std::mem::replace(&mut seen, Narrowest::Nothing).with(record);
            Ok(())
        })?;
        Ok(seen)
    };
    let mut all = Narrowest::Object(BTreeMap::new());
    let metas = files.with_content().map(|file| file.meta.clone()).collect();
    fold(files.store(), metas, layout.framing(), state.config().target_partitions(), visit, |seen| {
        all = std::mem::replace(&mut all, Narrowest::Nothing).with(seen);
        Ok(())
    })
    .await?;
    let Narrowest::Object(columns) = all else {
        return Err(Error::Bug { invariant: "objects merge to an object".into() });
    };
    let fields: Vec<Field> = columns.iter().filter_map(|(name, column)| column.field(name)).collect();
    if !conf.case_sensitive() {
        let mut names: Vec<String> = fields.iter().map(|field| field.name().to_lowercase()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::ColumnAlreadyExists { name: pair[0].clone() });
        }
    }
    Ok(Schema::new(fields))
}
