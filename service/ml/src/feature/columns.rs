//! `inputCol` and `inputCols`, `outputCol` and `outputCols`: one operator over one column or several.

use arrow::datatypes::Schema;

use crate::{Error, Param, ParamType, Params, Result};

/// The four params.
pub fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::unset("inputCols", ParamType::StringArray),
        Param::output_col(),
        Param::unset("outputCols", ParamType::StringArray),
    ]
}

/// The input columns, and the output column of each.
///
/// # Errors
/// Both of a pair or neither is set; the lists differ in length.
pub fn pairs(params: &Params) -> Result<Vec<(String, String)>> {
    let invalid = |param: &str, detail: &str| Error::InvalidParam {
        operator: params.uid.clone(),
        param: param.into(),
        value: params.get(param).map(ToString::to_string).unwrap_or_default(),
        detail: detail.into(),
    };
    match (params.is_set("inputCol"), params.is_set("inputCols")) {
        (true, true) => Err(invalid("inputCols", ", expected only one of inputCol and inputCols")),
        (false, false) => Err(Error::ParamNotSet { operator: params.uid.clone(), param: "inputCol".into() }),
        (true, false) => {
            if params.is_set("outputCols") {
                return Err(invalid("outputCols", ", expected outputCol beside inputCol"));
            }
            Ok(vec![(params.string("inputCol")?.into(), params.string("outputCol")?.into())])
        }
        (false, true) => {
            let (inputs, outputs) = (params.strings("inputCols")?, params.strings("outputCols")?);
            if inputs.len() != outputs.len() {
                let message = "requirement failed: The number of input columns does not match output columns".into();
                return Err(Error::InvalidData { class: String::new(), message });
            }
            Ok(inputs.into_iter().zip(outputs).collect())
        }
    }
}

/// # Errors
/// [`Error::OutputColumnExists`]
pub fn check_new(schema: &Schema, output: &str) -> Result<()> {
    match schema.fields().iter().any(|field| field.name() == output) {
        true => Err(Error::OutputColumnExists { name: output.into() }),
        false => Ok(()),
    }
}

/// `, numInputCols=2, numOutputCols=2` for the operator's text, when it has several columns.
pub fn describe(params: &Params) -> String {
    let count = |param| params.strings(param).ok().filter(|_| params.is_set(param)).map(|names| names.len());
    let mut text = String::new();
    if let Some(count) = count("inputCols") {
        text.push_str(&format!(", numInputCols={count}"));
    }
    if let Some(count) = count("outputCols") {
        text.push_str(&format!(", numOutputCols={count}"));
    }
    text
}
