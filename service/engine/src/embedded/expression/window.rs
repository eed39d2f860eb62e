//! `OVER`: window and aggregate functions over partitions, orders and frames.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};
use spark_connect_proto::expression::Window;
use spark_connect_proto::expression::window::WindowFrame as FrameMessage;
use spark_connect_proto::expression::window::window_frame::{FrameType, frame_boundary::Boundary};

use super::cast::{Mode, cast_to};
use super::order::canonical_float;
use super::resolver::child;
use super::{Resolver, Typed};
use crate::{Error, Result};

impl Resolver<'_> {
    pub(super) fn window(&self, window: &Window) -> Result<Typed> {
        let mut partition_by = Vec::with_capacity(window.partition_spec.len());
        for expression in &window.partition_spec {
            partition_by.push(canonical_float(self.typed(expression)?).expr);
        }
        let mut order_by = Vec::with_capacity(window.order_spec.len());
        let mut order_type = None;
        for order in &window.order_spec {
            let sort = self.sort(order)?;
            if order_type.is_none() {
                order_type = Some(self.typed(child(&order.child)?)?.data_type().clone());
            }
            order_by.push(sort);
        }
        let frame = self.frame(window.frame_spec.as_deref(), &order_by, order_type.as_ref())?;
        let function = Resolver { is_windowed: true, ..self.clone() }.typed(child(&window.window_function)?)?;
        over(function, &partition_by, &order_by, &frame)
    }

    fn frame(
        &self,
        message: Option<&FrameMessage>,
        order_by: &[Sort],
        order_type: Option<&DataType>,
    ) -> Result<WindowFrame> {
        let Some(message) = message else {
            return Ok(default_frame(order_by));
        };
        let units = match message.frame_type() {
            FrameType::Row => WindowFrameUnits::Rows,
            FrameType::Range => WindowFrameUnits::Range,
            FrameType::Undefined => return Err(Error::InvalidPlan { detail: "window frame of no type".into() }),
        };
        let of = |boundary: &Option<Box<spark_connect_proto::expression::window::window_frame::FrameBoundary>>,
                  is_lower| {
            let boundary = boundary.as_ref().and_then(|boundary| boundary.boundary.clone());
            let Some(boundary) = boundary else {
                return Err(Error::InvalidPlan { detail: "window frame without a boundary".into() });
            };
            self.bound(boundary, is_lower, units, order_type)
        };
        let (start, end) = (of(&message.lower, true)?, of(&message.upper, false)?);
        if units == WindowFrameUnits::Range && order_by.is_empty() {
            let is_whole = |bound: &WindowFrameBound| match bound {
                WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => value.is_null(),
                WindowFrameBound::CurrentRow => true,
            };
            if !(is_whole(&start) && is_whole(&end)) {
                return Err(Error::DatatypeMismatch {
                    kind: "RANGE_FRAME_WITHOUT_ORDER",
                    expression: "RANGE".into(),
                    detail: "a range window frame cannot be used in an unordered window specification".into(),
                });
            }
            return Ok(default_frame(order_by));
        }
        Ok(WindowFrame::new_bounds(units, start, end))
    }

    fn bound(
        &self,
        boundary: Boundary,
        is_lower: bool,
        units: WindowFrameUnits,
        order_type: Option<&DataType>,
    ) -> Result<WindowFrameBound> {
        let value = match boundary {
            Boundary::CurrentRow(_) => return Ok(WindowFrameBound::CurrentRow),
            Boundary::Unbounded(_) if is_lower => return Ok(WindowFrameBound::Preceding(ScalarValue::Null)),
            Boundary::Unbounded(_) => return Ok(WindowFrameBound::Following(ScalarValue::Null)),
            Boundary::Value(value) => self.typed(&value)?,
        };
        let not_literal = || Error::DatatypeMismatch {
            kind: "SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
            expression: "window frame".into(),
            detail: "a frame boundary must be a literal number".into(),
        };
        let signed = |data_type: &DataType| -> Result<f64> {
            let as_double = cast_to(value.clone(), data_type, Mode::Ansi, self.conf())?;
            match as_double.value() {
                Some(ScalarValue::Float64(Some(double))) => Ok(*double),
                _ => Err(not_literal()),
            }
        };
        let amount = signed(&DataType::Float64)?;
        if amount == 0.0 {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let magnitude = match units {
            WindowFrameUnits::Range => {
                let data_type = match order_type {
                    Some(DataType::Date32) => return Ok(directed(days(amount.abs()), amount)),
                    Some(DataType::Timestamp(_, _)) => {
                        let interval = arrow::datatypes::IntervalMonthDayNano::new(0, 0, (amount.abs() * 1e9) as i64);
                        return Ok(directed(ScalarValue::IntervalMonthDayNano(Some(interval)), amount));
                    }
                    Some(data_type) => data_type.clone(),
                    None => return Err(not_literal()),
                };
                let absolute = Typed::literal(ScalarValue::Float64(Some(amount.abs())));
                cast_to(absolute, &data_type, Mode::Ansi, self.conf())?.value().cloned().ok_or_else(not_literal)?
            }
            _ => ScalarValue::UInt64(Some(amount.abs() as u64)),
        };
        Ok(directed(magnitude, amount))
    }
}

fn days(days: f64) -> ScalarValue {
    ScalarValue::IntervalMonthDayNano(Some(arrow::datatypes::IntervalMonthDayNano::new(0, days as i32, 0)))
}

/// A boundary so far before (negative) or after the current row.
fn directed(magnitude: ScalarValue, amount: f64) -> WindowFrameBound {
    if amount < 0.0 { WindowFrameBound::Preceding(magnitude) } else { WindowFrameBound::Following(magnitude) }
}

/// Everything up to the current row's peers if there is an order, else the whole partition.
fn default_frame(order_by: &[Sort]) -> WindowFrame {
    let unbounded = || WindowFrameBound::Preceding(ScalarValue::Null);
    if order_by.is_empty() {
        return WindowFrame::new_bounds(
            WindowFrameUnits::Rows,
            unbounded(),
            WindowFrameBound::Following(ScalarValue::Null),
        );
    }
    WindowFrame::new_bounds(WindowFrameUnits::Range, unbounded(), WindowFrameBound::CurrentRow)
}

/// Puts the window on the aggregate or window function inside an expression (Spark's function may be several of ours).
fn over(function: Typed, partition_by: &[Expr], order_by: &[Sort], frame: &WindowFrame) -> Result<Typed> {
    let mut num_functions = 0;
    let expr = function.expr.transform_down(|node| {
        let (fun, args, filter, null_treatment, distinct, ignores_frame) = match node {
            Expr::AggregateFunction(aggregate) => {
                let params = aggregate.params;
                (
                    WindowFunctionDefinition::AggregateUDF(aggregate.func),
                    params.args,
                    params.filter,
                    params.null_treatment,
                    params.distinct,
                    false,
                )
            }
            Expr::WindowFunction(window) => {
                let ignores_frame = !matches!(window.fun.name(), "nth_value" | "first_value" | "last_value");
                let params = window.params;
                (window.fun, params.args, params.filter, params.null_treatment, params.distinct, ignores_frame)
            }
            node => return Ok(Transformed::no(node)),
        };
        num_functions += 1;
        let window_frame = if ignores_frame {
            WindowFrame::new(if order_by.is_empty() { None } else { Some(true) })
        } else {
            frame.clone()
        };
        let params = WindowFunctionParams {
            args,
            partition_by: partition_by.to_vec(),
            order_by: order_by.to_vec(),
            window_frame,
            filter,
            null_treatment,
            distinct,
        };
        let window = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
        Ok(Transformed::new(window, true, TreeNodeRecursion::Jump))
    })?;
    if num_functions == 0 {
        return Err(Error::InvalidPlan { detail: "expression is not supported within a window function".into() });
    }
    Ok(Typed { expr: expr.data, field: function.field })
}
