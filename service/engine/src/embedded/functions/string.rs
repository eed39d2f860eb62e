//! Functions of text.

pub mod format;
pub mod pattern;
mod split;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use base64::Engine as _;
use datafusion_spark::function as spark;

use super::kernel;
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{array_of, is_integral};
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("upper", 1, 1, |call| text(call, |text| text.to_uppercase())),
    function("ucase", 1, 1, |call| text(call, |text| text.to_uppercase())),
    function("lower", 1, 1, |call| text(call, |text| text.to_lowercase())),
    function("lcase", 1, 1, |call| text(call, |text| text.to_lowercase())),
    function("initcap", 1, 1, |call| text(call, initcap)),
    function("soundex", 1, 1, |call| text(call, soundex)),
    function("trim", 1, 2, |call| trim(call, Side::Both, true)),
    function("btrim", 1, 2, |call| trim(call, Side::Both, false)),
    function("ltrim", 1, 2, |call| trim(call, Side::Left, true)),
    function("rtrim", 1, 2, |call| trim(call, Side::Right, true)),
    function("length", 1, 1, length),
    function("len", 1, 1, length),
    function("char_length", 1, 1, length),
    function("character_length", 1, 1, length),
    function("octet_length", 1, 1, |call| bytes_length(call, 1)),
    function("bit_length", 1, 1, |call| bytes_length(call, 8)),
    function("lpad", 2, 3, |call| pad(call, Side::Left)),
    function("rpad", 2, 3, |call| pad(call, Side::Right)),
    function("replace", 2, 3, replace),
    function("translate", 3, 3, |call| texts3(call, translate)),
    function("reverse", 1, 1, reverse),
    function("repeat", 2, 2, repeat),
    function("space", 1, 1, space),
    function("instr", 2, 2, |call| position(call, true)),
    function("locate", 2, 3, |call| position(call, false)),
    function("position", 2, 3, |call| position(call, false)),
    function("charindex", 2, 3, |call| position(call, false)),
    function("substring", 2, 3, substring),
    function("substr", 2, 3, substring),
    function("left", 2, 2, |call| end(call, Side::Left)),
    function("right", 2, 2, |call| end(call, Side::Right)),
    function("substring_index", 3, 3, split::before_delimiter),
    function("split", 2, 3, split::by_pattern),
    function("split_part", 3, 3, split::part),
    function("concat", 0, usize::MAX, concat),
    function("||", 2, 2, concat),
    function("concat_ws", 1, usize::MAX, concat_ws),
    function("ascii", 1, 1, ascii),
    function("char", 1, 1, char),
    function("chr", 1, 1, char),
    function("base64", 1, 1, to_base64),
    function("unbase64", 1, 1, from_base64),
    function("encode", 2, 2, |call| charset(call, true)),
    function("decode", 2, 2, |call| charset(call, false)),
    function("to_binary", 1, 2, to_binary),
    function("contains", 2, 2, |call| test(call, |text, part| text.contains(part))),
    function("startswith", 2, 2, |call| test(call, |text, part| text.starts_with(part))),
    function("endswith", 2, 2, |call| test(call, |text, part| text.ends_with(part))),
    function("levenshtein", 2, 3, levenshtein),
    function("find_in_set", 2, 2, find_in_set),
    function("overlay", 3, 4, overlay),
    function("elt", 2, usize::MAX, elt),
    function("regexp_replace", 3, 4, pattern::replace),
    function("regexp_extract", 2, 3, pattern::extract),
    function("regexp_extract_all", 2, 3, pattern::extract_all),
    function("regexp_substr", 2, 2, pattern::substr),
    function("regexp_count", 2, 2, pattern::count),
    function("regexp_instr", 2, 3, pattern::position),
    function("format_number", 2, 2, format::number),
    function("format_string", 1, usize::MAX, format::string),
    function("printf", 1, usize::MAX, format::string),
    function("url_encode", 1, 1, |call| foreign_text(call, spark::url::url_encode())),
    function("url_decode", 1, 1, |call| foreign_text(call, spark::url::url_decode())),
    function("parse_url", 2, 3, |call| foreign_text(call, spark::url::parse_url())),
    function("luhn_check", 1, 1, luhn_check),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    Left,
    Right,
}

/// The texts of an argument that was cast to text.
pub fn texts(array: &ArrayRef) -> &StringArray {
    array.as_string::<i32>()
}

fn text(mut call: Call<'_>, change: fn(&str) -> String) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Utf8, move |arguments, _| {
        Ok(Arc::new(texts(&arguments[0]).iter().map(|text| text.map(change)).collect::<StringArray>()))
    }))
}

fn texts3(mut call: Call<'_>, change: fn(&str, &str, &str) -> String) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Utf8, move |arguments, _| {
        let (a, b, c) = (texts(&arguments[0]), texts(&arguments[1]), texts(&arguments[2]));
        let rows = a.iter().zip(b).zip(c);
        Ok(Arc::new(rows.map(|((a, b), c)| Some(change(a?, b?, c?))).collect::<StringArray>()))
    }))
}

fn test(mut call: Call<'_>, holds: fn(&str, &str) -> bool) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Boolean, move |arguments, _| {
        let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1]));
        Ok(Arc::new(rows.map(|(text, part)| Some(holds(text?, part?))).collect::<BooleanArray>()))
    }))
}

fn foreign_text(mut call: Call<'_>, function: Arc<datafusion::logical_expr::ScalarUDF>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::foreign(function, call.arguments, DataType::Utf8, true))
}

/// Every word of a text, told apart by blanks, begins with a capital and goes on in small letters.
fn initcap(text: &str) -> String {
    let mut is_start = true;
    let mut out = String::with_capacity(text.len());
    for character in text.to_lowercase().chars() {
        if is_start {
            out.extend(character.to_uppercase());
        } else {
            out.push(character);
        }
        is_start = character == ' ';
    }
    out
}

fn soundex(text: &str) -> String {
    let code = |c: char| match c.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '7',
        _ => '0',
    };
    let Some(first) = text.chars().next().filter(char::is_ascii_alphabetic) else { return text.into() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for character in text.chars().skip(1) {
        if out.len() == 4 {
            break;
        }
        let digit = if character.is_ascii_alphabetic() { code(character) } else { '0' };
        if digit == '7' {
            continue;
        }
        if digit != '0' && digit != last {
            out.push(digit);
        }
        last = digit;
    }
    format!("{out:0<4}")
}

fn trim(mut call: Call<'_>, side: Side, characters_first: bool) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    let mut arguments = std::mem::take(&mut call.arguments);
    if arguments.len() == 2 && characters_first {
        arguments.reverse();
    }
    let name = format!("trim {side:?}");
    Ok(kernel::strict(name, arguments, DataType::Utf8, move |arguments, num_rows| {
        let source = texts(&arguments[0]);
        let characters = arguments.get(1).map(texts);
        let rows = (0..num_rows).map(|row| {
            if source.is_null(row) || characters.is_some_and(|characters| characters.is_null(row)) {
                return None;
            }
            let set = characters.map_or(" ", |characters| characters.value(row));
            let text = source.value(row);
            let is_in = |character: char| set.contains(character);
            Some(match side {
                Side::Both => text.trim_matches(is_in),
                Side::Left => text.trim_start_matches(is_in),
                Side::Right => text.trim_end_matches(is_in),
            })
        });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

fn length(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments[0].data_type() == &DataType::Binary {
        return bytes_length(call, 1);
    }
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::strict("length", call.arguments, DataType::Int32, |arguments, _| {
        let lengths = texts(&arguments[0]).iter().map(|text| text.map(|text| text.chars().count() as i32));
        Ok(Arc::new(lengths.collect::<Int32Array>()))
    }))
}

fn bytes_length(mut call: Call<'_>, unit: i32) -> Result<Typed> {
    let [value] = call.take()?;
    let value = binary(&call, value)?;
    Ok(kernel::strict(format!("length in bytes times {unit}"), vec![value], DataType::Int32, move |arguments, _| {
        let lengths = arguments[0].as_binary::<i32>().iter().map(|bytes| bytes.map(|bytes| bytes.len() as i32 * unit));
        Ok(Arc::new(lengths.collect::<Int32Array>()))
    }))
}

/// The argument's bytes: those of a binary, or of its text.
pub fn binary(call: &Call<'_>, value: Typed) -> Result<Typed> {
    if value.data_type() == &DataType::Binary {
        return Ok(value);
    }
    let text = call.cast(value, &DataType::Utf8)?;
    call.cast(text, &DataType::Binary)
}

fn pad(mut call: Call<'_>, side: Side) -> Result<Typed> {
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal(" ".into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Int32, DataType::Utf8])?;
    Ok(kernel::strict(format!("pad {side:?}"), call.arguments, DataType::Utf8, move |arguments, _| {
        let lengths = arguments[1].as_primitive::<Int32Type>();
        let rows = texts(&arguments[0]).iter().zip(lengths).zip(texts(&arguments[2]));
        let padded = rows.map(|((text, length), fill)| {
            let (text, length, fill) = (text?, length?.max(0) as usize, fill?);
            let own = text.chars().count();
            if own >= length || fill.is_empty() {
                return Some(text.chars().take(length).collect::<String>());
            }
            let filling: String = fill.chars().cycle().take(length - own).collect();
            Some(if side == Side::Left { filling + text } else { text.to_string() + &filling })
        });
        Ok(Arc::new(padded.collect::<StringArray>()))
    }))
}

fn replace(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal("".into()));
    }
    texts3(call, |text, from, to| if from.is_empty() { text.into() } else { text.replace(from, to) })
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let change = |character: char| match from.chars().position(|other| other == character) {
        None => Some(character),
        Some(position) => to.get(position).copied(),
    };
    text.chars().filter_map(change).collect()
}

fn reverse(mut call: Call<'_>) -> Result<Typed> {
    if matches!(call.arguments[0].data_type(), DataType::List(_)) {
        return super::array::reverse(call);
    }
    call.cast_arguments(&[DataType::Utf8])?;
    text(call, |text| text.chars().rev().collect())
}

fn repeat(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Int32])?;
    Ok(kernel::strict("repeat", call.arguments, DataType::Utf8, |arguments, _| {
        let rows = texts(&arguments[0]).iter().zip(arguments[1].as_primitive::<Int32Type>());
        Ok(Arc::new(rows.map(|(text, times)| Some(text?.repeat(times?.max(0) as usize))).collect::<StringArray>()))
    }))
}

fn space(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Int32])?;
    Ok(kernel::strict("space", call.arguments, DataType::Utf8, |arguments, _| {
        let rows = arguments[0].as_primitive::<Int32Type>().iter();
        Ok(Arc::new(rows.map(|times| Some(" ".repeat(times?.max(0) as usize))).collect::<StringArray>()))
    }))
}

/// The 1-based character where a part begins at or after a start; 0 when it does not occur.
fn find(text: &str, part: &str, start: i32) -> i32 {
    if start < 1 {
        return 0;
    }
    let skipped = start as usize - 1;
    let Some((from, _)) =
        text.char_indices().map(Some).chain([None]).nth(skipped).map(|at| at.unwrap_or((text.len(), ' ')))
    else {
        return 0;
    };
    match text[from..].find(part) {
        Some(at) => (text[..from + at].chars().count() + 1) as i32,
        None => 0,
    }
}

fn position(mut call: Call<'_>, text_first: bool) -> Result<Typed> {
    if text_first {
        call.arguments.reverse();
    }
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal(1i32.into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    Ok(kernel::strict("locate", call.arguments, DataType::Int32, |arguments, _| {
        let starts = arguments[2].as_primitive::<Int32Type>();
        let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(starts);
        Ok(Arc::new(rows.map(|((part, text), start)| Some(find(text?, part?, start?))).collect::<Int32Array>()))
    }))
}

/// Where Spark's `substring` begins and ends among `length` units.
fn bounds(position: i32, count: i32, length: usize) -> std::ops::Range<usize> {
    let length = length as i64;
    let start = match position {
        0 => 0,
        position if position > 0 => i64::from(position) - 1,
        position => length + i64::from(position),
    };
    let end = (start + i64::from(count)).clamp(0, length);
    let start = start.clamp(0, length);
    start as usize..end.max(start) as usize
}

fn substring(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal(i32::MAX.into()));
    }
    if call.arguments[0].data_type() == &DataType::Binary {
        call.cast_arguments(&[DataType::Binary, DataType::Int32, DataType::Int32])?;
        return Ok(kernel::strict("substring", call.arguments, DataType::Binary, |arguments, _| {
            let (positions, counts) =
                (arguments[1].as_primitive::<Int32Type>(), arguments[2].as_primitive::<Int32Type>());
            let rows = arguments[0].as_binary::<i32>().iter().zip(positions).zip(counts);
            let parts = rows.map(|((bytes, position), count)| {
                let bytes = bytes?;
                Some(&bytes[bounds(position?, count?, bytes.len())])
            });
            Ok(Arc::new(parts.collect::<BinaryArray>()))
        }));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Int32, DataType::Int32])?;
    Ok(kernel::strict("substring", call.arguments, DataType::Utf8, |arguments, _| {
        let (positions, counts) = (arguments[1].as_primitive::<Int32Type>(), arguments[2].as_primitive::<Int32Type>());
        let rows = texts(&arguments[0]).iter().zip(positions).zip(counts);
        let parts = rows.map(|((text, position), count)| {
            let text = text?;
            let range = bounds(position?, count?, text.chars().count());
            Some(text.chars().skip(range.start).take(range.len()).collect::<String>())
        });
        Ok(Arc::new(parts.collect::<StringArray>()))
    }))
}

fn end(mut call: Call<'_>, side: Side) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Int32])?;
    Ok(kernel::strict(format!("end {side:?}"), call.arguments, DataType::Utf8, move |arguments, _| {
        let rows = texts(&arguments[0]).iter().zip(arguments[1].as_primitive::<Int32Type>());
        let parts = rows.map(|(text, count)| {
            let (text, count) = (text?, count?.max(0) as usize);
            let skipped = if side == Side::Left { 0 } else { text.chars().count().saturating_sub(count) };
            Some(text.chars().skip(skipped).take(count).collect::<String>())
        });
        Ok(Arc::new(parts.collect::<StringArray>()))
    }))
}

/// `concat` of texts, binaries or arrays: null if any part is.
fn concat(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.is_empty() {
        return Ok(Typed::literal("".into()));
    }
    if call.arguments.iter().any(|argument| matches!(argument.data_type(), DataType::List(_))) {
        return super::array::concat(call);
    }
    if call.arguments.iter().all(|argument| argument.data_type() == &DataType::Binary) {
        return Ok(kernel::strict("concat", call.arguments, DataType::Binary, |arguments, num_rows| {
            let columns: Vec<&BinaryArray> = arguments.iter().map(|column| column.as_binary::<i32>()).collect();
            let rows = (0..num_rows).map(|row| {
                let all = columns.iter().all(|column| column.is_valid(row));
                all.then(|| columns.iter().flat_map(|column| column.value(row)).copied().collect::<Vec<u8>>())
            });
            Ok(Arc::new(rows.collect::<BinaryArray>()))
        }));
    }
    let types = vec![DataType::Utf8; call.arguments.len()];
    call.cast_arguments(&types)?;
    Ok(kernel::strict("concat", call.arguments, DataType::Utf8, |arguments, num_rows| {
        let columns: Vec<&StringArray> = arguments.iter().map(texts).collect();
        let rows = (0..num_rows).map(|row| {
            let all = columns.iter().all(|column| column.is_valid(row));
            all.then(|| columns.iter().map(|column| column.value(row)).collect::<String>())
        });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

/// `concat_ws(separator, text or array of texts, ...)`: nulls are left out.
fn concat_ws(mut call: Call<'_>) -> Result<Typed> {
    let types: Vec<DataType> =
        call.arguments
            .iter()
            .map(|argument| {
                if matches!(argument.data_type(), DataType::List(_)) {
                    array_of(DataType::Utf8)
                } else {
                    DataType::Utf8
                }
            })
            .collect();
    call.cast_arguments(&types)?;
    let nullable = call.arguments[0].nullable();
    Ok(kernel::Kernel::new("concat_ws", DataType::Utf8, nullable).call(call.arguments, |arguments, num_rows| {
        let separators = texts(&arguments[0]);
        let mut joined = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if separators.is_null(row) {
                joined.push(None);
                continue;
            }
            let mut parts: Vec<Cow<'_, str>> = Vec::new();
            for column in &arguments[1..] {
                if column.is_null(row) {
                    continue;
                }
                match column.as_list_opt::<i32>() {
                    Some(list) => {
                        let elements = list.value(row);
                        parts.extend(texts(&elements).iter().flatten().map(|text| Cow::Owned(text.to_string())));
                    }
                    None => parts.push(Cow::Borrowed(texts(column).value(row))),
                }
            }
            joined.push(Some(parts.join(separators.value(row))));
        }
        Ok(Arc::new(StringArray::from(joined)))
    }))
}

fn ascii(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::strict("ascii", call.arguments, DataType::Int32, |arguments, _| {
        let codes = texts(&arguments[0]).iter().map(|text| Some(text?.chars().next().map_or(0, |c| c as i32)));
        Ok(Arc::new(codes.collect::<Int32Array>()))
    }))
}

fn char(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Int64])?;
    Ok(kernel::strict("char", call.arguments, DataType::Utf8, |arguments, _| {
        let rows = arguments[0].as_primitive::<Int64Type>().iter().map(|code| {
            let code = code?;
            Some(if code < 0 { String::new() } else { String::from((code & 0xff) as u8 as char) })
        });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

fn to_base64(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let value = binary(&call, value)?;
    Ok(kernel::strict("base64", vec![value], DataType::Utf8, |arguments, _| {
        let engine = base64::engine::general_purpose::STANDARD;
        let rows = arguments[0].as_binary::<i32>().iter().map(|bytes| bytes.map(|bytes| engine.encode(bytes)));
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

fn from_base64(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::raising("unbase64", call.arguments, DataType::Binary, |arguments, _| {
        let config = base64::engine::GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true);
        let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, config);
        let mut rows = Vec::with_capacity(arguments[0].len());
        for text in texts(&arguments[0]) {
            rows.push(match text {
                None => None,
                Some(text) => {
                    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                    Some(engine.decode(compact).map_err(|_| conversion(text, "BASE64", "unbase64"))?)
                }
            });
        }
        Ok(Arc::new(rows.iter().map(Option::as_deref).collect::<BinaryArray>()))
    }))
}

/// CONVERSION_INVALID_INPUT.
fn conversion(text: &str, format: &str, function: &str) -> Error {
    Error::Row {
        class: "CONVERSION_INVALID_INPUT",
        message: format!(
            "The value '{text}' ({format}) cannot be converted to \"BINARY\" because it is malformed. Correct the value as \
             per the syntax, or change its format. Use `try_to_binary` to tolerate malformed input and return NULL instead."
        ),
        parameters: vec![
            ("str", format!("'{text}'")),
            ("fmt", format.into()),
            ("targetType", "\"BINARY\"".into()),
            ("suggestion", format!("`try_{function}`")),
        ],
    }
}

fn to_binary(mut call: Call<'_>) -> Result<Typed> {
    let format = match call.arguments.get(1) {
        Some(format) => call.constant_string(format)?.to_lowercase(),
        None => "hex".into(),
    };
    call.arguments.truncate(1);
    match format.as_str() {
        "hex" => super::math::unhex(call),
        "utf-8" | "utf8" => {
            let [value] = call.take()?;
            binary(&call, value)
        }
        "base64" => from_base64(call),
        _ => Err(call.mismatch("INVALID_ARG_VALUE", format!("format {format} is none of base64, hex, utf-8, utf8"))),
    }
}

fn charset(mut call: Call<'_>, encodes: bool) -> Result<Typed> {
    let name = call.constant_string(&call.arguments[1])?;
    let is_utf8 = matches!(name.to_uppercase().as_str(), "UTF-8" | "US-ASCII");
    if !is_utf8 {
        return Err(Error::Unsupported { feature: format!("charset {name}") });
    }
    call.arguments.truncate(1);
    let [value] = call.take()?;
    let bytes = binary(&call, value)?;
    if encodes { Ok(bytes) } else { call.cast(bytes, &DataType::Utf8) }
}

fn levenshtein(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    Ok(kernel::strict("levenshtein", call.arguments, DataType::Int32, |arguments, _| {
        let limits = arguments.get(2).map(|limits| limits.as_primitive::<Int32Type>());
        let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).enumerate().map(|(row, (left, right))| {
            let distance = crate::embedded::expression::edit_distance(left?, right?) as i32;
            match limits {
                Some(limits) if limits.is_null(row) => None,
                Some(limits) if distance > limits.value(row) => Some(-1),
                _ => Some(distance),
            }
        });
        Ok(Arc::new(rows.collect::<Int32Array>()))
    }))
}

fn find_in_set(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::strict("find_in_set", call.arguments, DataType::Int32, |arguments, _| {
        let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).map(|(word, set)| {
            let (word, set) = (word?, set?);
            Some(if word.contains(',') {
                0
            } else {
                set.split(',').position(|other| other == word).map_or(0, |at| at as i32 + 1)
            })
        });
        Ok(Arc::new(rows.collect::<Int32Array>()))
    }))
}

fn overlay(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 3 {
        call.arguments.push(Typed::literal((-1i32).into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32, DataType::Int32])?;
    Ok(kernel::strict("overlay", call.arguments, DataType::Utf8, |arguments, _| {
        let (positions, lengths) = (arguments[2].as_primitive::<Int32Type>(), arguments[3].as_primitive::<Int32Type>());
        let rows = texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(positions).zip(lengths);
        let overlaid = rows.map(|(((text, new), position), length)| {
            let (text, new, position, length) = (text?, new?, position?, length?);
            let replaced = if length >= 0 { length as usize } else { new.chars().count() };
            let before = (position.max(1) - 1) as usize;
            let head: String = text.chars().take(before).collect();
            let tail: String = text.chars().skip(before + replaced).collect();
            Some(format!("{head}{new}{tail}"))
        });
        Ok(Arc::new(overlaid.collect::<StringArray>()))
    }))
}

/// `elt(n, a, b, ...)`: the n-th of the texts.
fn elt(mut call: Call<'_>) -> Result<Typed> {
    if !is_integral(call.arguments[0].data_type()) {
        return Err(call.unexpected(&call.arguments[0], "INT"));
    }
    let mut types = vec![DataType::Utf8; call.arguments.len()];
    types[0] = DataType::Int32;
    call.cast_arguments(&types)?;
    let ansi = call.ansi();
    let kernel =
        kernel::Kernel { raises: ansi, ..kernel::Kernel::new(format!("elt, ansi {ansi}"), DataType::Utf8, true) };
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let indices = arguments[0].as_primitive::<Int32Type>();
        let mut chosen = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if indices.is_null(row) {
                chosen.push(None);
                continue;
            }
            let index = indices.value(row);
            if index < 1 || index as usize >= arguments.len() {
                if ansi {
                    return Err(Error::Row {
                        class: "INVALID_ARRAY_INDEX",
                        message: format!(
                            "The index {index} is out of bounds. The array has {} elements.",
                            arguments.len() - 1
                        ),
                        parameters: vec![
                            ("indexValue", index.to_string()),
                            ("arraySize", (arguments.len() - 1).to_string()),
                        ],
                    });
                }
                chosen.push(None);
                continue;
            }
            let column = texts(&arguments[index as usize]);
            chosen.push(column.is_valid(row).then(|| column.value(row)));
        }
        Ok(Arc::new(StringArray::from(chosen)))
    }))
}

fn luhn_check(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::foreign(spark::string::luhn_check(), call.arguments, DataType::Boolean, true))
}
