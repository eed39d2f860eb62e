//! Columns turned into rows.

use std::sync::Arc;

use arrow::array::{Array, ListArray, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use spark_connect_proto as proto;

use super::columns::passed_on;
use super::{Outer, Resolution};
use crate::embedded::Frame;
use crate::embedded::expression::{Generator, Resolved, Typed, coercion};
use crate::embedded::functions::kernel;
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn unpivot(&self, message: &proto::Unpivot, input: Frame, outer: &Outer) -> Result<Frame> {
        let ids = self.projection(&message.ids, &input, outer).await?;
        let values = match &message.values {
            Some(values) => self.projection(&values.values, &input, outer).await?,
            None => {
                let is_id = |index: usize| ids.iter().any(|id| id.column == Some(index));
                let visible = input.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden);
                visible.filter(|(index, _)| !is_id(*index)).map(|(index, column)| passed_on(index, column)).collect()
            }
        };
        if values.is_empty() {
            return Err(Error::InvalidPlan { detail: "unpivot needs at least one value column".into() });
        }
        let conf = &self.context.conf;
        let typed: Vec<Typed> =
            values.iter().map(|value| Typed { expr: value.expr.clone(), field: Arc::clone(&value.field) }).collect();
        let common = coercion::common_type(&typed, conf).ok_or_else(|| Error::DatatypeMismatch {
            kind: "UNPIVOT_VALUE_DATA_TYPE_MISMATCH",
            expression: "UNPIVOT".into(),
            detail: values
                .iter()
                .map(|value| format!("{}: {}", value.name, crate::data_type::simple_string(&value.field)))
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        let cells = coercion::cast_all(typed, &common, conf)?;
        let names: Vec<String> = values.iter().map(|value| value.name.clone()).collect();
        let nullable = cells.iter().any(Typed::nullable);
        let columns: Vec<FieldRef> = vec![
            Arc::new(Field::new(&message.variable_column_name, DataType::Utf8, false)),
            Arc::new(Field::new(&message.value_column_name, common, nullable)),
        ];
        let fields: Fields = columns.iter().cloned().collect();
        let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), false));
        let list = DataType::List(Arc::clone(&element));
        let rows = kernel::nullable(format!("unpivot {names:?}"), cells, list, move |cells, num_rows| {
            let sources: Vec<&dyn Array> = cells.iter().map(AsRef::as_ref).collect();
            let order: Vec<(usize, usize)> =
                (0..num_rows).flat_map(|row| (0..cells.len()).map(move |cell| (cell, row))).collect();
            let variables: StringArray = order.iter().map(|(cell, _)| Some(names[*cell].as_str())).collect();
            let values = interleave(&sources, &order)?;
            let rows = StructArray::try_new(fields.clone(), vec![Arc::new(variables), values], None)?;
            let offsets = OffsetBuffer::from_repeated_length(cells.len(), num_rows);
            Ok(Arc::new(ListArray::try_new(Arc::clone(&element), offsets, Arc::new(rows), None)?))
        });
        let mut outputs = ids;
        outputs.push(Resolved {
            name: "unpivot".into(),
            expr: rows.expr,
            field: rows.field,
            column: None,
            generator: Some(Generator { columns }),
        });
        let (frame, outputs) = self.generated(input, outputs)?;
        Ok(self.projected(frame, &outputs)?.0)
    }
}
