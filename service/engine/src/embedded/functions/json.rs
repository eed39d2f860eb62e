//! JSON in columns of text.

use std::sync::Arc;

use arrow::array::{Array, Int32Array, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field};
use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;

use super::kernel::{self, Kernel};
use super::string::texts;
use super::{Call, Function, function};
use crate::data_type::{field_from_json, parse_ddl_or_type};
use crate::embedded::expression::Typed;
use crate::source::Options;
use crate::source::json_value::{JsonPath, JsonPrinter, JsonReader, array_length, object_keys, schema_of};
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("get_json_object", 2, 2, get_json_object),
    function("from_json", 2, 3, from_json),
    function("to_json", 1, 2, to_json),
    function("schema_of_json", 1, 2, schema_of_json),
    function("json_array_length", 1, 1, json_array_length),
    function("json_object_keys", 1, 1, json_object_keys),
];

fn get_json_object(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::nullable("get_json_object", call.arguments, DataType::Utf8, |arguments, _| {
        let mut known: Option<(&str, Option<JsonPath>)> = None;
        let mut found = Vec::with_capacity(arguments[0].len());
        for (text, path) in texts(&arguments[0]).iter().zip(texts(&arguments[1])) {
            let (Some(text), Some(path)) = (text, path) else {
                found.push(None);
                continue;
            };
            let parsed = match known.take() {
                Some((same, parsed)) if same == path => parsed,
                _ => JsonPath::parse(path),
            };
            found.push(parsed.as_ref().and_then(|path| path.find(text)));
            known = Some((path, parsed));
        }
        Ok(Arc::new(StringArray::from(found)))
    }))
}

fn from_json(mut call: Call<'_>) -> Result<Typed> {
    let options = options(&call, 2)?;
    let schema = call.constant_string(&call.arguments[1])?;
    let field = schema_field(&schema)?;
    if !matches!(field.data_type(), DataType::Struct(_) | DataType::List(_) | DataType::Map(_, _)) {
        return Err(call.mismatch("INVALID_JSON_SCHEMA", format!("from_json gives no {schema}")));
    }
    let reader = JsonReader::new(&field, &options, call.conf())?;
    call.arguments.truncate(1);
    call.cast_arguments(&[DataType::Utf8])?;
    let name = format!("from_json {options:?} {:?} {:?}", reader.field().data_type(), call.conf().session_time_zone());
    let kernel = Kernel { output: Arc::clone(reader.field()), raises: true, ..Kernel::new(name, DataType::Null, true) };
    Ok(kernel.call(call.arguments, move |arguments, _| reader.read(texts(&arguments[0]))))
}

/// A schema as clients write it: the JSON of a type, or DDL.
fn schema_field(text: &str) -> Result<Field> {
    let is_json = text.trim_start().starts_with(['{', '"']);
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) if is_json => field_from_json("", &value, true),
        _ => parse_ddl_or_type(text),
    }
}

fn to_json(mut call: Call<'_>) -> Result<Typed> {
    let options = options(&call, 1)?;
    call.arguments.truncate(1);
    let [value] = call.take()?;
    if !matches!(value.data_type(), DataType::Struct(_) | DataType::List(_) | DataType::Map(_, _)) {
        return Err(call.unexpected(&value, "STRUCT or ARRAY or MAP"));
    }
    let printer = JsonPrinter::new(&options, call.conf())?;
    let field = Arc::clone(&value.field);
    let name = format!("to_json {options:?} {:?}", call.conf().session_time_zone());
    Ok(kernel::strict(name, vec![value], DataType::Utf8, move |arguments, _| {
        Ok(Arc::new(printer.print(&field, &arguments[0])?))
    }))
}

fn schema_of_json(call: Call<'_>) -> Result<Typed> {
    let options = options(&call, 1)?;
    if options != Options::default() {
        return Err(Error::Unsupported { feature: "options of schema_of_json".into() });
    }
    let example = call.constant_string(&call.arguments[0])?;
    match schema_of(&example) {
        Some(schema) => Ok(Typed::literal(schema.into())),
        None => Err(call.mismatch("INVALID_JSON_SCHEMA", format!("{example} is no JSON"))),
    }
}

fn json_array_length(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::nullable("json_array_length", call.arguments, DataType::Int32, |arguments, _| {
        let rows = texts(&arguments[0]).iter().map(|text| array_length(text?).map(|length| length as i32));
        Ok(Arc::new(rows.collect::<Int32Array>()))
    }))
}

fn json_object_keys(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    let element = Arc::new(Field::new("element", DataType::Utf8, true));
    let output = DataType::List(Arc::clone(&element));
    Ok(kernel::nullable("json_object_keys", call.arguments, output, move |arguments, _| {
        let mut builder = ListBuilder::new(StringBuilder::new()).with_field(Arc::clone(&element));
        for text in texts(&arguments[0]) {
            builder.append_option(text.and_then(object_keys).map(|keys| keys.into_iter().map(Some)));
        }
        Ok(Arc::new(builder.finish()))
    }))
}

/// The options in an argument that is a call of `map` over texts.
fn options(call: &Call<'_>, position: usize) -> Result<Options> {
    let Some(ExprType::UnresolvedFunction(function)) = &call.expression.expr_type else { return Ok(Options::default()) };
    let Some(argument) = function.arguments.get(position) else { return Ok(Options::default()) };
    let texts: Option<Vec<String>> = match &argument.expr_type {
        Some(ExprType::UnresolvedFunction(map)) if map.function_name.eq_ignore_ascii_case("map") => {
            map.arguments.iter().map(text_of).collect()
        }
        _ => None,
    };
    match texts {
        Some(texts) => Ok(texts.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect()),
        None => Err(call.mismatch("NON_MAP_FUNCTION", "options must be a map of texts".into())),
    }
}

fn text_of(expression: &Expression) -> Option<String> {
    match &expression.expr_type {
        Some(ExprType::Literal(literal)) => match &literal.literal_type {
            Some(LiteralType::String(text)) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
