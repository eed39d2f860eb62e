//! `max_by` and `min_by`: the value beside the greatest or least of another column.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::aggregate;
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::order::canonical_float;
use crate::embedded::functions::Call;

pub fn by(mut call: Call<'_>, is_max: bool) -> Result<Typed> {
    let [value, order] = call.take()?;
    if matches!(order.data_type(), DataType::Map(_, _)) {
        return Err(call.mismatch("INVALID_ORDERING_TYPE", "maps have no order".into()));
    }
    let order = canonical_float(order);
    let output = Arc::new(value.field.as_ref().clone().with_nullable(true));
    let function = Best {
        is_max,
        output: output.clone(),
        order: order.data_type().clone(),
        signature: Signature::any(2, Volatility::Immutable),
    };
    let function = Arc::new(AggregateUDF::new_from_impl(function));
    Ok(Typed { expr: aggregate(function, vec![value, order], false, vec![], None), field: output })
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Best {
    is_max: bool,
    output: FieldRef,
    order: DataType,
    signature: Signature,
}

impl AggregateUDFImpl for Best {
    fn name(&self) -> &str {
        if self.is_max { "max_by" } else { "min_by" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::common::Result<DataType> {
        Ok(self.output.data_type().clone())
    }

    fn return_field(&self, _: &[FieldRef]) -> datafusion::common::Result<FieldRef> {
        Ok(Arc::new(self.output.as_ref().clone().with_name(self.name())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> datafusion::common::Result<Vec<FieldRef>> {
        Ok(vec![
            Arc::new(self.output.as_ref().clone().with_name(format_state_name(args.name, "value"))),
            Arc::new(Field::new(format_state_name(args.name, "order"), self.order.clone(), true)),
        ])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> datafusion::common::Result<Box<dyn Accumulator>> {
        Ok(Box::new(Running {
            is_max: self.is_max,
            value: ScalarValue::try_from(self.output.data_type())?,
            order: ScalarValue::try_from(&self.order)?,
        }))
    }

    fn order_sensitivity(&self) -> datafusion::logical_expr::utils::AggregateOrderSensitivity {
        datafusion::logical_expr::utils::AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct Running {
    is_max: bool,
    value: ScalarValue,
    order: ScalarValue,
}

impl Accumulator for Running {
    fn update_batch(&mut self, values: &[ArrayRef]) -> datafusion::common::Result<()> {
        let options = arrow::compute::SortOptions { descending: self.is_max, nulls_first: false };
        let best = arrow::compute::sort_to_indices(&values[1], Some(options), Some(1))?;
        let Some(row) = best.values().first().map(|row| *row as usize).filter(|row| values[1].is_valid(*row)) else {
            return Ok(());
        };
        let order = ScalarValue::try_from_array(&values[1], row)?;
        let is_better = self.order.is_null()
            || match order.partial_cmp(&self.order) {
                Some(ordering) if self.is_max => ordering.is_gt(),
                Some(ordering) => ordering.is_lt(),
                None => false,
            };
        if is_better {
            self.value = ScalarValue::try_from_array(&values[0], row)?;
            self.order = order;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> datafusion::common::Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() + self.order.size()
    }

    fn state(&mut self) -> datafusion::common::Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.order.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> datafusion::common::Result<()> {
        self.update_batch(states)
    }
}
