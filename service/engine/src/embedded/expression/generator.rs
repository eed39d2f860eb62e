//! `explode` and its kin: functions of one row that give several.
//!
//! A generator resolves to a list of structs, one struct a row to be, one field a column to be. The `_outer` forms put one
//! struct of nulls where there would be no row. So whoever plans it only unnests the list (dropping empty ones) and takes
//! the fields out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StructArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::ScalarValue;
use spark_connect_proto::expression::UnresolvedFunction;

use super::coercion::{cast_all, common_type};
use super::{Resolved, Resolver, Typed};
use crate::embedded::functions::kernel;
use crate::{Error, Result};

/// The columns a generator puts out.
#[derive(Debug, Clone)]
pub struct Generator {
    pub columns: Vec<FieldRef>,
}

impl Generator {
    /// Gives the columns the names of an alias.
    pub fn rename(&mut self, names: &[String]) -> Result<()> {
        if names.len() != self.columns.len() {
            return Err(Error::InvalidPlan {
                detail: format!("generator gives {} columns, but has {} names", self.columns.len(), names.len()),
            });
        }
        for (column, name) in self.columns.iter_mut().zip(names) {
            *column = Arc::new(column.as_ref().clone().with_name(name));
        }
        Ok(())
    }
}

impl Resolver<'_> {
    /// The call as a generator, if the function is one.
    pub(super) fn generator(&self, call: &UnresolvedFunction) -> Result<Option<Resolved>> {
        let lower = call.function_name.to_lowercase();
        let (name, is_outer) = match lower.strip_suffix("_outer") {
            Some(name) => (name, true),
            None => (lower.as_str(), false),
        };
        if !matches!(name, "explode" | "posexplode" | "inline" | "stack") {
            return Ok(None);
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.typed(argument)?);
        }
        if name == "stack" {
            return Ok(Some(generated(self.stack(arguments)?, &lower, is_outer)?));
        }
        let [argument] = <[Typed; 1]>::try_from(arguments).map_err(|arguments| Error::WrongNumArgs {
            name: lower.clone(),
            expected: "1".into(),
            found: arguments.len(),
        })?;
        let rows = rows_of(name, argument)?;
        Ok(Some(generated(rows, &lower, is_outer)?))
    }

    /// `stack(n, a, b, ...)`: the values laid out in n rows.
    fn stack(&self, arguments: Vec<Typed>) -> Result<Typed> {
        let invalid = || Error::WrongNumArgs { name: "stack".into(), expected: "> 1".into(), found: arguments.len() };
        let num_rows = match arguments.first().and_then(Typed::value) {
            Some(ScalarValue::Int32(Some(rows))) if *rows > 0 && arguments.len() > 1 => *rows as usize,
            _ => return Err(invalid()),
        };
        let values = arguments[1..].to_vec();
        let width = values.len().div_ceil(num_rows);
        let mut columns = Vec::with_capacity(width);
        for column in 0..width {
            let mut cells: Vec<Typed> = (0..num_rows)
                .map(|row| {
                    let null = || Typed::literal(ScalarValue::Null);
                    values.get(row * width + column).cloned().unwrap_or_else(null)
                })
                .collect();
            let Some(data_type) = common_type(&cells, self.conf()) else {
                return Err(Error::DatatypeMismatch {
                    kind: "STACK_COLUMN_DIFF_TYPES",
                    expression: "stack".into(),
                    detail: format!("column {column} has values of different types"),
                });
            };
            cells = cast_all(cells, &data_type, self.conf())?;
            columns.push((Field::new(format!("col{column}"), data_type, true), cells));
        }
        let fields: Fields = columns.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>().into();
        let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), false));
        let arguments = columns.into_iter().flat_map(|(_, cells)| cells).collect();
        let output = DataType::List(element.clone());
        Ok(kernel::nullable(format!("stack {num_rows}"), arguments, output, move |arguments, length| {
            let mut columns = Vec::with_capacity(fields.len());
            for cells in arguments.chunks(num_rows) {
                let sources: Vec<&dyn Array> = cells.iter().map(AsRef::as_ref).collect();
                let order: Vec<(usize, usize)> =
                    (0..length).flat_map(|row| (0..num_rows).map(move |cell| (cell, row))).collect();
                columns.push(arrow::compute::interleave(&sources, &order)?);
            }
            let rows = StructArray::try_new(fields.clone(), columns, None)?;
            let offsets = OffsetBuffer::from_repeated_length(num_rows, length);
            Ok(Arc::new(ListArray::try_new(element.clone(), offsets, Arc::new(rows), None)?))
        }))
    }
}

/// An array or a map as a list of structs.
fn rows_of(name: &str, argument: Typed) -> Result<Typed> {
    let with_position = name == "posexplode";
    let mut fields = Vec::new();
    if with_position {
        fields.push(Field::new("pos", DataType::Int32, false));
    }
    match argument.data_type() {
        DataType::List(element) if name == "inline" => match element.data_type() {
            DataType::Struct(members) => {
                let nullable = element.is_nullable();
                let widen = |field: &FieldRef| field.as_ref().clone().with_nullable(nullable || field.is_nullable());
                fields.extend(members.iter().map(widen));
            }
            _ => return Err(unexpected(name, &argument, "an array of structs")),
        },
        DataType::List(element) => fields.push(element.as_ref().clone().with_name("col")),
        DataType::Map(entries, _) if name != "inline" => match entries.data_type() {
            DataType::Struct(members) => fields.extend(members.iter().map(|field| field.as_ref().clone())),
            _ => return Err(unexpected(name, &argument, "a map")),
        },
        _ if name == "inline" => return Err(unexpected(name, &argument, "an array of structs")),
        _ => return Err(unexpected(name, &argument, "an array or a map")),
    }
    let fields: Fields = fields.into();
    let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), true));
    let output = DataType::List(element.clone());
    let is_inline = name == "inline";
    Ok(kernel::nullable(format!("rows of {name}"), vec![argument], output, move |arguments, _| {
        let (offsets, nulls, mut columns) = match arguments[0].data_type() {
            DataType::Map(_, _) => {
                let map = arguments[0].as_map();
                (map.offsets().clone(), map.nulls().cloned(), map.entries().columns().to_vec())
            }
            _ => {
                let list = arguments[0].as_list::<i32>();
                let columns = if is_inline {
                    let rows = list.values().as_struct();
                    (0..rows.num_columns())
                        .map(|index| super::extract::child_column(rows, index))
                        .collect::<Result<_>>()?
                } else {
                    vec![list.values().clone()]
                };
                (list.offsets().clone(), list.nulls().cloned(), columns)
            }
        };
        if with_position {
            let mut positions = vec![0; columns[0].len()];
            for range in offsets.windows(2) {
                for (position, slot) in positions[range[0] as usize..range[1] as usize].iter_mut().enumerate() {
                    *slot = position as i32;
                }
            }
            columns.insert(0, Arc::new(Int32Array::from(positions)) as ArrayRef);
        }
        let rows = StructArray::try_new(fields.clone(), columns, None)?;
        Ok(Arc::new(ListArray::try_new(element.clone(), offsets, Arc::new(rows), nulls)?))
    }))
}

fn unexpected(name: &str, argument: &Typed, expected: &str) -> Error {
    Error::DatatypeMismatch {
        kind: "UNEXPECTED_INPUT_TYPE",
        expression: format!("{name}({})", argument.expr),
        detail: format!("the first parameter requires {expected}, has {}", crate::data_type::sql_name(&argument.field)),
    }
}

fn generated(rows: Typed, name: &str, is_outer: bool) -> Result<Resolved> {
    let DataType::List(element) = rows.data_type().clone() else {
        return Err(Error::Bug { invariant: "a generator gives a list".into() });
    };
    let DataType::Struct(fields) = element.data_type().clone() else {
        return Err(Error::Bug { invariant: "a generator gives structs".into() });
    };
    let (rows, columns) = if is_outer {
        let nullable: Vec<FieldRef> =
            fields.iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
        (at_least_one(rows, nullable.clone().into()), nullable)
    } else {
        (rows, fields.iter().cloned().collect())
    };
    let field = Arc::new(rows.field.as_ref().clone().with_name(name));
    Ok(Resolved { name: name.into(), expr: rows.expr, field, column: None, generator: Some(Generator { columns }) })
}

/// The list, with one struct of nulls in place of an empty or null list.
fn at_least_one(rows: Typed, fields: Fields) -> Typed {
    let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), true));
    kernel::strict("at least one row", vec![rows], DataType::List(element.clone()), move |arguments, _| {
        let list = arguments[0].as_list::<i32>();
        let mut taken: Vec<Option<u64>> = Vec::with_capacity(list.values().len());
        let mut lengths = Vec::with_capacity(list.len());
        for row in 0..list.len() {
            let (start, end) = (list.value_offsets()[row] as u64, list.value_offsets()[row + 1] as u64);
            if list.is_null(row) || start == end {
                taken.push(None);
                lengths.push(1);
            } else {
                taken.extend((start..end).map(Some));
                lengths.push((end - start) as usize);
            }
        }
        let taken = UInt64Array::from(taken);
        let rows = list.values().as_struct();
        let columns = rows
            .columns()
            .iter()
            .map(|column| Ok(arrow::compute::take(column, &taken, None)?))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let rows = StructArray::try_new(fields.clone(), columns, None)?;
        Ok(Arc::new(ListArray::try_new(element.clone(), OffsetBuffer::from_lengths(lengths), Arc::new(rows), None)?))
    })
}
