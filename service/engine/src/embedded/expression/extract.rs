//! Values inside values: struct fields, array elements, map entries; and structs with a field changed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion::common::ScalarValue;
use spark_connect_proto::expression::UpdateFields;

use super::coercion::{array_of, implicit, is_integral};
use super::resolver::child;
use super::{Resolver, Typed};
use crate::data_type::sql_name;
use crate::embedded::functions::kernel::{self, Kernel};
use crate::{Error, Result};

impl Resolver<'_> {
    /// The field of a struct, or of each struct of an array, by name.
    pub(super) fn field_of(&self, value: Typed, name: &str) -> Result<Typed> {
        match value.data_type().clone() {
            DataType::Struct(fields) => field_at(value, self.field_index(&fields, name)?),
            DataType::List(element) => match element.data_type() {
                DataType::Struct(fields) => {
                    let index = self.field_index(fields, name)?;
                    field_of_elements(value, &element, index)
                }
                _ => Err(self.not_extractable(&value, name)),
            },
            DataType::Map(_, _) => self.extract(value, Typed::literal(ScalarValue::from(name))),
            _ => Err(self.not_extractable(&value, name)),
        }
    }

    fn not_extractable(&self, value: &Typed, name: &str) -> Error {
        Error::InvalidPlan { detail: format!("cannot extract {name} from {}", sql_name(&value.field)) }
    }

    fn field_index(&self, fields: &Fields, name: &str) -> Result<usize> {
        let found: Vec<usize> = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| self.context.same_name(field.name(), name))
            .map(|(index, _)| index)
            .collect();
        match found.as_slice() {
            [index] => Ok(*index),
            [] => Err(Error::FieldNotFound {
                name: name.into(),
                fields: fields.iter().map(|field| field.name().clone()).collect(),
            }),
            several => Err(Error::AmbiguousReference {
                name: name.into(),
                candidates: several.iter().map(|index| fields[*index].name().clone()).collect(),
            }),
        }
    }

    /// `container[key]`.
    pub fn extract(&self, container: Typed, key: Typed) -> Result<Typed> {
        match container.data_type().clone() {
            DataType::List(element) => {
                if let (DataType::Struct(fields), Some(ScalarValue::Utf8(Some(name)))) =
                    (element.data_type(), key.value())
                {
                    let index = self.field_index(fields, name)?;
                    return field_of_elements(container, &element, index);
                }
                if !is_integral(key.data_type()) {
                    return Err(self.not_extractable(&container, "an element by a key that is no integer"));
                }
                let key = implicit(key, &DataType::Int64, self.conf())?;
                Ok(element_at_index(container, key, &element, 0, self.conf().ansi()))
            }
            DataType::Map(entries, _) => map_value(self, container, key, &entries),
            DataType::Struct(_) => match key.value() {
                Some(ScalarValue::Utf8(Some(name))) => self.field_of(container, name),
                _ => Err(self.not_extractable(&container, "a field whose name is no string literal")),
            },
            _ => Err(self.not_extractable(&container, "a value")),
        }
    }

    /// A struct with one field set, added or (without a value) dropped; a dotted name reaches into nested structs.
    pub(super) fn update_fields(&self, update: &UpdateFields) -> Result<Typed> {
        let value = self.typed(child(&update.struct_expression)?)?;
        let new = match &update.value_expression {
            Some(expression) => Some(self.typed(expression)?),
            None => None,
        };
        let path = super::parse_name(&update.field_name)?;
        self.updated(value, &path, new)
    }

    fn updated(&self, value: Typed, path: &[String], new: Option<Typed>) -> Result<Typed> {
        let DataType::Struct(fields) = value.data_type().clone() else {
            return Err(self.not_extractable(&value, &path.join(".")));
        };
        let Some((name, rest)) = path.split_first() else {
            return Err(Error::InvalidPlan { detail: "update of a field without a name".into() });
        };
        let mut members = Vec::with_capacity(fields.len() + 1);
        let mut is_found = false;
        for (index, field) in fields.iter().enumerate() {
            let member = field_at(value.clone(), index)?;
            if !self.context.same_name(field.name(), name) {
                members.push((field.name().clone(), member));
                continue;
            }
            is_found = true;
            if !rest.is_empty() {
                members.push((field.name().clone(), self.updated(member, rest, new.clone())?));
            } else if let Some(new) = &new {
                members.push((name.clone(), new.clone()));
            }
        }
        if !is_found {
            match (&new, rest) {
                (Some(new), []) => members.push((name.clone(), new.clone())),
                (None, []) => {}
                _ => {
                    return Err(Error::FieldNotFound {
                        name: name.clone(),
                        fields: fields.iter().map(|field| field.name().clone()).collect(),
                    });
                }
            }
        }
        if members.is_empty() {
            return Err(Error::DatatypeMismatch {
                kind: "CANNOT_DROP_ALL_FIELDS",
                expression: format!("update_fields({})", value.expr),
                detail: "cannot drop all fields of a struct".into(),
            });
        }
        Ok(struct_where(members, Some(value)))
    }
}

/// A field of a struct, by position.
pub fn field_at(value: Typed, index: usize) -> Result<Typed> {
    let DataType::Struct(fields) = value.data_type() else {
        return Err(Error::Bug { invariant: "only structs have fields".into() });
    };
    let field = fields[index].clone();
    let nullable = value.nullable() || field.is_nullable();
    let output = Arc::new(field.as_ref().clone().with_nullable(nullable));
    let kernel = Kernel { output, ..Kernel::new(format!("field {index}"), field.data_type().clone(), nullable) };
    Ok(kernel.call(vec![value], move |arguments, _| child_column(arguments[0].as_struct(), index)))
}

/// A struct's column, null where the struct is.
pub fn child_column(rows: &StructArray, index: usize) -> Result<ArrayRef> {
    let column = rows.column(index);
    if rows.null_count() == 0 || column.data_type() == &DataType::Null {
        return Ok(column.clone());
    }
    let nulls = NullBuffer::union(rows.nulls(), column.nulls());
    Ok(arrow::array::make_array(column.to_data().into_builder().nulls(nulls).build()?))
}

fn field_of_elements(value: Typed, element: &Arc<Field>, index: usize) -> Result<Typed> {
    let DataType::Struct(fields) = element.data_type() else {
        return Err(Error::Bug { invariant: "only structs have fields".into() });
    };
    let field = fields[index].clone();
    let member =
        field.as_ref().clone().with_name("element").with_nullable(field.is_nullable() || element.is_nullable());
    let member = Arc::new(member);
    let output = DataType::List(member.clone());
    Ok(kernel::strict(format!("elements' field {index}"), vec![value], output, move |arguments, _| {
        let list = arguments[0].as_list::<i32>();
        let values = child_column(list.values().as_struct(), index)?;
        let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
        Ok(Arc::new(arrow::array::ListArray::try_new(member.clone(), offsets, values, nulls)?))
    }))
}

/// An element by index from `base`; outside the array null, or INVALID_ARRAY_INDEX under ANSI.
pub fn element_at_index(array: Typed, index: Typed, element: &Arc<Field>, base: i64, ansi: bool) -> Typed {
    let output = Arc::new(element.as_ref().clone().with_nullable(true));
    let name = format!("element by index from {base}, ansi {ansi}");
    let kernel = Kernel { output, raises: ansi, ..Kernel::new(name, element.data_type().clone(), true) };
    kernel.call(vec![array, index], move |arguments, _| {
        let list = arguments[0].as_list::<i32>();
        let indices = arguments[1].as_primitive::<Int64Type>();
        let offsets = list.value_offsets();
        let mut taken = Vec::with_capacity(list.len());
        for row in 0..list.len() {
            if list.is_null(row) || indices.is_null(row) {
                taken.push(None);
                continue;
            }
            let length = i64::from(offsets[row + 1] - offsets[row]);
            let index = indices.value(row);
            let position = match base {
                0 => index,
                _ if index > 0 => index - 1,
                _ if index < 0 => length + index,
                _ => return Err(zero_index()),
            };
            if (0..length).contains(&position) {
                taken.push(Some((i64::from(offsets[row]) + position) as u64));
            } else if ansi {
                return Err(out_of_bounds(index, length, base));
            } else {
                taken.push(None);
            }
        }
        Ok(arrow::compute::take(list.values(), &UInt64Array::from(taken), None)?)
    })
}

fn zero_index() -> Error {
    Error::Row {
        class: "INVALID_INDEX_OF_ZERO",
        message: "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).".into(),
        parameters: vec![],
    }
}

fn out_of_bounds(index: i64, length: i64, base: i64) -> Error {
    let (class, remedy) = match base {
        0 => (
            "INVALID_ARRAY_INDEX",
            "Use the SQL function `get()` to tolerate accessing element at invalid index and return NULL instead.",
        ),
        _ => (
            "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
            "Use `try_element_at` to tolerate accessing element at invalid index and return NULL instead.",
        ),
    };
    Error::Row {
        class,
        message: format!("The index {index} is out of bounds. The array has {length} elements. {remedy}"),
        parameters: vec![("indexValue", index.to_string()), ("arraySize", length.to_string())],
    }
}

/// The value of a map's key, or null.
pub fn map_value(resolver: &Resolver<'_>, map: Typed, key: Typed, entries: &Arc<Field>) -> Result<Typed> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::Bug { invariant: "a map holds structs".into() });
    };
    let key = implicit(key, fields[0].data_type(), resolver.conf())?;
    let output = Arc::new(fields[1].as_ref().clone().with_nullable(true));
    let kernel = Kernel { output, ..Kernel::new("value of key", fields[1].data_type().clone(), true) };
    Ok(kernel.call(vec![map, key], |arguments, _| {
        let map = arguments[0].as_map();
        let (wanted, keys) = (&arguments[1], map.keys());
        let rows = arrow::row::RowConverter::new(vec![arrow::row::SortField::new(keys.data_type().clone())])?;
        let keys = rows.convert_columns(std::slice::from_ref(keys))?;
        let wanted_keys = rows.convert_columns(std::slice::from_ref(wanted))?;
        let offsets = map.value_offsets();
        let taken: UInt64Array = (0..map.len())
            .map(|row| {
                if map.is_null(row) || wanted.is_null(row) {
                    return None;
                }
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                range.rev().find(|entry| keys.row(*entry) == wanted_keys.row(row)).map(|entry| entry as u64)
            })
            .collect();
        Ok(arrow::compute::take(map.values(), &taken, None)?)
    }))
}

/// A struct of named members, null where `of` is.
pub fn struct_where(members: Vec<(String, Typed)>, of: Option<Typed>) -> Typed {
    let fields: Fields = members
        .iter()
        .map(|(name, member)| member.field.as_ref().clone().with_name(name))
        .collect::<Vec<Field>>()
        .into();
    let nullable = of.as_ref().is_some_and(Typed::nullable);
    let has_guard = of.is_some();
    let mut arguments: Vec<Typed> = members.into_iter().map(|(_, member)| member).collect();
    arguments.extend(of);
    let num_members = fields.len();
    Kernel::new(format!("struct, guarded {has_guard}"), DataType::Struct(fields.clone()), nullable).call(
        arguments,
        move |arguments, num_rows| {
            let nulls = if has_guard { arguments[num_members].logical_nulls() } else { None };
            let columns = arguments[..num_members].to_vec();
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, num_rows)?))
        },
    )
}

/// The list type over a field of any name.
pub fn list_of(field: &Field) -> DataType {
    let DataType::List(plain) = array_of(field.data_type().clone()) else { return DataType::Null };
    let element = field.clone().with_name(plain.name());
    DataType::List(Arc::new(element))
}
