//! Params and fetched values as Spark Connect's literals, both ways.

use std::collections::BTreeMap;

use ml::{ParamType, Params, Value};
use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::{Array, LiteralType, SpecializedArray, Struct, specialized_array::ValueType};
use spark_connect_proto::{DataType, Doubles, Ints, MlParams, data_type};
use udt::{Matrix, Vector, field};

use super::missing;
use crate::{Error, Result};

/// The params a client sent.
///
/// # Errors
/// A literal that no param can hold, by the param's name.
pub fn params(params: Option<&MlParams>) -> Result<BTreeMap<String, Value>> {
    let Some(params) = params else { return Ok(BTreeMap::new()) };
    params.params.iter().map(|(name, literal)| Ok((name.clone(), to_value(literal)?))).collect()
}

/// The params to tell a client: the explicitly set ones.
pub fn ml_params(params: &Params) -> MlParams {
    MlParams { params: params.explicit().iter().map(|(name, value)| (name.clone(), from_value(value))).collect() }
}

/// # Errors
/// [`Error::Engine`] with an invalid plan for kinds of literals that ML has no use for.
pub fn to_value(literal: &Literal) -> Result<Value> {
    let unsupported = |what: &str| {
        Error::Engine(engine::Error::InvalidPlan { detail: format!("{what} is not a value of an ML param") })
    };
    let stated = literal.data_type.as_ref();
    match literal.literal_type.as_ref().ok_or_else(|| missing("value of a literal"))? {
        LiteralType::Null(_) => Ok(Value::Null),
        LiteralType::Boolean(v) => Ok(Value::Boolean(*v)),
        LiteralType::Byte(v) | LiteralType::Short(v) | LiteralType::Integer(v) => Ok(Value::Int(*v)),
        LiteralType::Long(v) => Ok(Value::Long(*v)),
        LiteralType::Float(v) => Ok(Value::Double(f64::from(*v))),
        LiteralType::Double(v) => Ok(Value::Double(*v)),
        LiteralType::String(v) => Ok(Value::String(v.clone())),
        LiteralType::Array(array) => {
            let values = array.elements.iter().map(to_value).collect::<Result<Vec<Value>>>()?;
            let element = values.iter().find_map(param_type).or_else(|| empty_element(array, stated)).unwrap_or(ParamType::String);
            // a list of mixed integers and doubles is a list of doubles
            let has_doubles = values.iter().any(|v| matches!(v, Value::Double(_)));
            let element = if has_doubles { ParamType::Double } else { element };
            Ok(Value::Array { element, values })
        }
        LiteralType::SpecializedArray(array) => match array.value_type.as_ref() {
            Some(ValueType::Ints(v)) => Ok(Value::ints(&v.values)),
            Some(ValueType::Longs(v)) => Ok(Value::longs(&v.values)),
            Some(ValueType::Doubles(v)) => Ok(Value::doubles(&v.values)),
            Some(ValueType::Strings(v)) => Ok(Value::strings(&v.values)),
            _ => Err(unsupported("an array of this element type")),
        },
        LiteralType::Struct(value) => linalg(value, stated),
        _ => Err(unsupported("a literal of this type")),
    }
}

fn param_type(value: &Value) -> Option<ParamType> {
    match value {
        Value::Boolean(_) => Some(ParamType::Boolean),
        Value::Int(_) => Some(ParamType::Int),
        Value::Long(_) => Some(ParamType::Long),
        Value::Double(_) => Some(ParamType::Double),
        Value::String(_) => Some(ParamType::String),
        Value::Vector(_) => Some(ParamType::Vector),
        Value::Matrix(_) => Some(ParamType::Matrix),
        Value::Array { element: ParamType::Int, .. } => Some(ParamType::IntArray),
        Value::Array { element: ParamType::Long, .. } => Some(ParamType::LongArray),
        Value::Array { element: ParamType::Double, .. } => Some(ParamType::DoubleArray),
        Value::Array { element: ParamType::String, .. } => Some(ParamType::StringArray),
        Value::Null | Value::Array { .. } => None,
    }
}

/// The element type of an empty array, which the array states, or since 4.1 the literal around it.
#[expect(deprecated, reason = "clients before 4.1 state the element type in the array only")]
fn empty_element(array: &Array, stated: Option<&DataType>) -> Option<ParamType> {
    let of_literal = || match stated?.kind.as_ref()? {
        data_type::Kind::Array(array) => array.element_type.as_deref(),
        _ => None,
    };
    match array.element_type.as_ref().or_else(of_literal)?.kind.as_ref()? {
        data_type::Kind::Integer(_) => Some(ParamType::Int),
        data_type::Kind::Long(_) => Some(ParamType::Long),
        data_type::Kind::Double(_) => Some(ParamType::Double),
        _ => Some(ParamType::String),
    }
}

/// A vector or a matrix: a struct literal of a user-defined type.
#[expect(deprecated, reason = "clients of all versions state the struct type there")]
fn linalg(value: &Struct, stated: Option<&DataType>) -> Result<Value> {
    let malformed = || Error::Engine(engine::Error::InvalidPlan { detail: "malformed vector or matrix literal".into() });
    let Some(data_type::Kind::Udt(udt)) = value.struct_type.as_ref().or(stated).and_then(|t| t.kind.as_ref()) else {
        return Err(malformed());
    };
    let int = |i: usize| match value.elements.get(i).and_then(|e| e.literal_type.as_ref()) {
        Some(LiteralType::Byte(v) | LiteralType::Short(v) | LiteralType::Integer(v)) => Some(*v),
        _ => None,
    };
    let ints = |i: usize| match value.elements.get(i).and_then(|e| e.literal_type.as_ref()) {
        Some(LiteralType::SpecializedArray(SpecializedArray { value_type: Some(ValueType::Ints(v)) })) => {
            Some(v.values.clone())
        }
        _ => None,
    };
    let doubles = |i: usize| match value.elements.get(i).and_then(|e| e.literal_type.as_ref()) {
        Some(LiteralType::SpecializedArray(SpecializedArray { value_type: Some(ValueType::Doubles(v)) })) => {
            Some(v.values.clone())
        }
        _ => None,
    };
    let flag = |i: usize| match value.elements.get(i).and_then(|e| e.literal_type.as_ref()) {
        Some(LiteralType::Boolean(v)) => Some(*v),
        _ => None,
    };
    let size = |i: usize| int(i).and_then(|v| usize::try_from(v).ok());
    let parsed = match udt.jvm_class() {
        field::VECTOR_JVM_CLASS => match int(0) {
            Some(1) => doubles(3).map(|values| Value::Vector(Vector::Dense(values))),
            Some(0) => sparse_vector(size(1), ints(2), doubles(3)),
            _ => None,
        },
        field::MATRIX_JVM_CLASS => matrix(int(0), size(1), size(2), (ints(3), ints(4), doubles(5)), flag(6)),
        _ => None,
    };
    parsed.ok_or_else(malformed)
}

fn sparse_vector(size: Option<usize>, indices: Option<Vec<i32>>, values: Option<Vec<f64>>) -> Option<Value> {
    let (size, indices, values) = (size?, indices?, values?);
    let is_sorted = indices.windows(2).all(|pair| pair[0] < pair[1]);
    let is_inside = indices.iter().all(|i| usize::try_from(*i).is_ok_and(|i| i < size));
    (is_sorted && is_inside && indices.len() == values.len())
        .then_some(Value::Vector(Vector::Sparse { size, indices, values }))
}

type Buffers = (Option<Vec<i32>>, Option<Vec<i32>>, Option<Vec<f64>>);

fn matrix(
    storage: Option<i32>,
    num_rows: Option<usize>,
    num_cols: Option<usize>,
    (col_ptrs, row_indices, values): Buffers,
    is_transposed: Option<bool>,
) -> Option<Value> {
    let (num_rows, num_cols, values, is_transposed) = (num_rows?, num_cols?, values?, is_transposed?);
    match storage? {
        1 if values.len() == num_rows.checked_mul(num_cols)? => {
            Some(Value::Matrix(Matrix::Dense { num_rows, num_cols, values, is_transposed }))
        }
        0 => {
            let (col_ptrs, row_indices) = (col_ptrs?, row_indices?);
            let (num_major, num_minor) = if is_transposed { (num_rows, num_cols) } else { (num_cols, num_rows) };
            let is_valid = col_ptrs.len() == num_major + 1
                && col_ptrs.first() == Some(&0)
                && col_ptrs.windows(2).all(|pair| pair[0] <= pair[1])
                && col_ptrs.last().is_some_and(|last| *last as usize == values.len())
                && row_indices.len() == values.len()
                && row_indices.iter().all(|i| usize::try_from(*i).is_ok_and(|i| i < num_minor));
            is_valid.then_some(Value::Matrix(Matrix::Sparse {
                num_rows,
                num_cols,
                col_ptrs,
                row_indices,
                values,
                is_transposed,
            }))
        }
        _ => None,
    }
}

fn kind(kind: data_type::Kind) -> DataType {
    DataType { kind: Some(kind) }
}

fn literal(literal_type: LiteralType) -> Literal {
    Literal { literal_type: Some(literal_type), data_type: None }
}

fn null() -> Literal {
    literal(LiteralType::Null(kind(data_type::Kind::Null(data_type::Null::default()))))
}

fn int_array(values: &[i32]) -> Literal {
    literal(LiteralType::SpecializedArray(SpecializedArray {
        value_type: Some(ValueType::Ints(Ints { values: values.to_vec() })),
    }))
}

fn double_array(values: &[f64]) -> Literal {
    literal(LiteralType::SpecializedArray(SpecializedArray {
        value_type: Some(ValueType::Doubles(Doubles { values: values.to_vec() })),
    }))
}

fn element_type(element: ParamType) -> DataType {
    let array = |element| {
        let element_type = Some(Box::new(element_type(element)));
        kind(data_type::Kind::Array(Box::new(data_type::Array { element_type, contains_null: false, type_variation_reference: 0 })))
    };
    match element {
        ParamType::Boolean => kind(data_type::Kind::Boolean(data_type::Boolean::default())),
        ParamType::Int => kind(data_type::Kind::Integer(data_type::Integer::default())),
        ParamType::Long => kind(data_type::Kind::Long(data_type::Long::default())),
        ParamType::Double => kind(data_type::Kind::Double(data_type::Double::default())),
        ParamType::String => kind(data_type::Kind::String(data_type::String::default())),
        ParamType::IntArray => array(ParamType::Int),
        ParamType::LongArray => array(ParamType::Long),
        ParamType::DoubleArray | ParamType::DoubleArrayArray => array(ParamType::Double),
        ParamType::StringArray | ParamType::StringArrayArray => array(ParamType::String),
        ParamType::Vector => linalg_type(field::VECTOR_JVM_CLASS, field::VECTOR_PYTHON_CLASS),
        ParamType::Matrix => linalg_type(field::MATRIX_JVM_CLASS, field::MATRIX_PYTHON_CLASS),
    }
}

fn linalg_type(jvm_class: &str, python_class: &str) -> DataType {
    kind(data_type::Kind::Udt(Box::new(data_type::Udt {
        r#type: "udt".into(),
        jvm_class: Some(jvm_class.into()),
        python_class: Some(python_class.into()),
        ..Default::default()
    })))
}

#[expect(deprecated, reason = "clients of all versions still read the types there")]
pub fn from_value(value: &Value) -> Literal {
    let structure = |struct_type, elements| literal(LiteralType::Struct(Struct { struct_type: Some(struct_type), elements }));
    let int = |v: usize| literal(LiteralType::Integer(v as i32));
    match value {
        Value::Null => null(),
        Value::Boolean(v) => literal(LiteralType::Boolean(*v)),
        Value::Int(v) => literal(LiteralType::Integer(*v)),
        Value::Long(v) => literal(LiteralType::Long(*v)),
        Value::Double(v) => literal(LiteralType::Double(*v)),
        Value::String(v) => literal(LiteralType::String(v.clone())),
        Value::Array { element, values } => literal(LiteralType::Array(Array {
            element_type: Some(element_type(*element)),
            elements: values.iter().map(from_value).collect(),
        })),
        Value::Vector(Vector::Dense(values)) => structure(
            element_type(ParamType::Vector),
            vec![literal(LiteralType::Byte(1)), null(), null(), double_array(values)],
        ),
        Value::Vector(Vector::Sparse { size, indices, values }) => structure(
            element_type(ParamType::Vector),
            vec![literal(LiteralType::Byte(0)), int(*size), int_array(indices), double_array(values)],
        ),
        Value::Matrix(Matrix::Dense { num_rows, num_cols, values, is_transposed }) => structure(
            element_type(ParamType::Matrix),
            vec![
                literal(LiteralType::Byte(1)),
                int(*num_rows),
                int(*num_cols),
                null(),
                null(),
                double_array(values),
                literal(LiteralType::Boolean(*is_transposed)),
            ],
        ),
        Value::Matrix(Matrix::Sparse { num_rows, num_cols, col_ptrs, row_indices, values, is_transposed }) => structure(
            element_type(ParamType::Matrix),
            vec![
                literal(LiteralType::Byte(0)),
                int(*num_rows),
                int(*num_cols),
                int_array(col_ptrs),
                int_array(row_indices),
                double_array(values),
                literal(LiteralType::Boolean(*is_transposed)),
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went_out() {
        let values = [
            Value::Boolean(true),
            Value::Int(-3),
            Value::Long(1 << 40),
            Value::Double(f64::INFINITY),
            Value::String("a".into()),
            Value::doubles(&[1.0, 2.5]),
            Value::strings(&[]),
            Value::Vector(Vector::Dense(vec![1.0, 0.0])),
            Value::Vector(Vector::Sparse { size: 4, indices: vec![3], values: vec![2.0] }),
            Value::Matrix(Matrix::from_rows(2, 2, vec![1.0, 2.0, 3.0, 4.0])),
        ];
        for value in values {
            assert_eq!(to_value(&from_value(&value)).unwrap(), value);
        }
    }

    #[test]
    fn a_sparse_vector_with_an_index_outside_is_refused() {
        let literal = from_value(&Value::Vector(Vector::Sparse { size: 2, indices: vec![5], values: vec![1.0] }));
        assert!(to_value(&literal).is_err());
    }
}
