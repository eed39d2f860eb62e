//! Function calls: DISTINCT, FILTER, WITHIN GROUP, IGNORE NULLS, named arguments and windows.

use spark_connect_proto::expression::sort_order::{NullOrdering, SortDirection};
use spark_connect_proto::expression::window::window_frame::{FrameBoundary, FrameType, frame_boundary::Boundary};
use spark_connect_proto::expression::{self as ex, ExprType};
use spark_connect_proto::{Expression, NamedArgumentExpression};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    NullTreatment, OrderByExpr, Value, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use crate::aggregate::skips_nulls;
use crate::error::{Error, unsupported};
use crate::expression::one;
use crate::grouping::single_part;
use crate::identifier::{object_parts, quote_parts};
use crate::message::{boolean, expression, function, star, string};
use crate::translator::Translator;

/// Functions whose `IGNORE NULLS` is a second argument of true, as pyspark sends it.
const IGNORES_NULLS_BY_ARGUMENT: [&str; 5] = ["first", "first_value", "last", "last_value", "any_value"];

impl Translator<'_> {
    pub fn function_call(&mut self, call: &Function) -> Result<Expression, Error> {
        let parts = object_parts(&call.name)?;
        let name = match parts.as_slice() {
            [name] => name.clone(),
            parts => quote_parts(parts),
        };
        let (mut arguments, is_distinct, clauses) = match &call.args {
            FunctionArguments::None => (Vec::new(), false, &[][..]),
            FunctionArguments::Subquery(_) => return unsupported(format!("{name} over a subquery without brackets")),
            FunctionArguments::List(list) => (
                self.arguments(&list.args)?,
                list.duplicate_treatment == Some(DuplicateTreatment::Distinct),
                list.clauses.as_slice(),
            ),
        };
        let mut null_treatment = call.null_treatment;
        for clause in clauses {
            match clause {
                FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => null_treatment = Some(*treatment),
                other => return unsupported(format!("{other} in the arguments of {name}")),
            }
        }
        if null_treatment == Some(NullTreatment::IgnoreNulls) {
            let by_argument = IGNORES_NULLS_BY_ARGUMENT.iter().any(|n| name.eq_ignore_ascii_case(n));
            if !by_argument || arguments.len() != 1 {
                return unsupported(format!("IGNORE NULLS for {name}"));
            }
            arguments.push(boolean(true));
        }
        let name = unit_call(name, &mut arguments);
        if name.eq_ignore_ascii_case("count") && !is_distinct {
            for argument in &mut arguments {
                if matches!(&argument.expr_type, Some(ExprType::UnresolvedStar(star)) if star.unparsed_target.is_none())
                {
                    *argument = one();
                }
            }
        }
        let mut written = self.written_call(&name, &arguments, is_distinct);
        self.within_group(&name, &call.within_group, &mut arguments, &mut written)?;
        if let Some(condition) = &call.filter {
            let condition = self.expression(condition)?;
            written.push_str(&format!(" FILTER (WHERE {})", self.nested_name_of(&condition)));
            Self::filter_arguments(&name, &mut arguments, condition)?;
        }
        let result = expression(ExprType::UnresolvedFunction(ex::UnresolvedFunction {
            function_name: name,
            arguments,
            is_distinct,
            ..Default::default()
        }));
        if call.filter.is_some() || !call.within_group.is_empty() {
            self.written_names.push((result.clone(), written));
        }
        match &call.over {
            None => Ok(result),
            Some(over) => self.window(result, over),
        }
    }

    fn written_call(&self, name: &str, arguments: &[Expression], is_distinct: bool) -> String {
        let call = expression(ExprType::UnresolvedFunction(ex::UnresolvedFunction {
            function_name: name.to_string(),
            arguments: arguments.to_vec(),
            is_distinct,
            ..Default::default()
        }));
        self.name_of(&call)
    }

    fn arguments(&mut self, arguments: &[FunctionArg]) -> Result<Vec<Expression>, Error> {
        arguments
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(value) => self.argument(value),
                FunctionArg::Named { name, arg, .. } => {
                    let value = self.argument(arg)?;
                    Ok(expression(ExprType::NamedArgumentExpression(Box::new(NamedArgumentExpression {
                        key: name.value.clone(),
                        value: Some(Box::new(value)),
                    }))))
                }
                FunctionArg::ExprNamed { name, .. } => unsupported(format!("the argument name {name}")),
            })
            .collect()
    }

    fn argument(&mut self, argument: &FunctionArgExpr) -> Result<Expression, Error> {
        match argument {
            FunctionArgExpr::Expr(expr) => self.expression(expr),
            FunctionArgExpr::Wildcard => Ok(star(None)),
            FunctionArgExpr::QualifiedWildcard(name) => {
                Ok(star(Some(format!("{}.*", quote_parts(&object_parts(name)?)))))
            }
            other => unsupported(format!("the argument {other}")),
        }
    }

    /// `percentile_cont(p) WITHIN GROUP (ORDER BY a)` becomes the call of `(a, p)`; descending, of `(a, 1 - p)`.
    fn within_group(
        &mut self,
        name: &str,
        order: &[OrderByExpr],
        arguments: &mut Vec<Expression>,
        written: &mut String,
    ) -> Result<(), Error> {
        let [key] = order else {
            if order.is_empty() {
                return Ok(());
            }
            return unsupported(format!("WITHIN GROUP with several keys for {name}"));
        };
        let value = self.expression(&key.expr)?;
        let descending = key.options.asc == Some(false);
        let suffix = if descending { " DESC" } else { "" };
        written.push_str(&format!(" WITHIN GROUP (ORDER BY {}{suffix})", self.nested_name_of(&value)));
        match (name.to_ascii_lowercase().as_str(), arguments.as_mut_slice()) {
            ("percentile_cont" | "percentile_disc", [fraction]) => {
                if descending {
                    *fraction = function("-", vec![one(), fraction.clone()]);
                }
            }
            ("mode", []) if !descending => {}
            _ => return unsupported(format!("WITHIN GROUP for {name}")),
        }
        arguments.insert(0, value);
        Ok(())
    }

    /// FILTER as a null in place of the first argument where the condition does not hold.
    fn filter_arguments(name: &str, arguments: &mut [Expression], condition: Expression) -> Result<(), Error> {
        match arguments.first_mut() {
            Some(first) if skips_nulls(name) && !matches!(first.expr_type, Some(ExprType::UnresolvedStar(_))) => {
                let value = std::mem::take(first);
                *first = function("when", vec![condition, value]);
                Ok(())
            }
            _ => unsupported(format!("FILTER for {name}")),
        }
    }

    fn window(&mut self, call: Expression, over: &WindowType) -> Result<Expression, Error> {
        let spec = match over {
            WindowType::NamedWindow(name) => self.named_window(&name.value)?,
            WindowType::WindowSpec(spec) => spec.clone(),
        };
        let window = self.window_spec(call, spec, 0)?;
        Ok(expression(ExprType::Window(Box::new(window))))
    }

    fn named_window(&mut self, name: &str) -> Result<WindowSpec, Error> {
        let found = self.scope().windows.get(&name.to_ascii_lowercase()).cloned();
        found.ok_or_else(|| Error::UnknownWindow { name: name.to_string() })
    }

    fn window_spec(&mut self, call: Expression, spec: WindowSpec, depth: usize) -> Result<ex::Window, Error> {
        let mut spec = spec;
        if let Some(base) = spec.window_name.take() {
            // A window that builds on another adds what the other lacks.
            let named = self.named_window(&base.value)?;
            if depth > 16 {
                return Err(Error::UnknownWindow { name: base.value });
            }
            if spec.partition_by.is_empty() {
                spec.partition_by = named.partition_by;
            }
            if spec.order_by.is_empty() {
                spec.order_by = named.order_by;
            }
            spec.window_frame = spec.window_frame.or(named.window_frame);
            spec.window_name = named.window_name;
            return self.window_spec(call, spec, depth + 1);
        }
        let partition_spec = self.expressions(&spec.partition_by)?;
        let order_spec = spec.order_by.iter().map(|key| self.sort_order(key)).collect::<Result<_, _>>()?;
        let frame_spec = match &spec.window_frame {
            None => None,
            Some(frame) => {
                let frame_type = match frame.units {
                    WindowFrameUnits::Rows => FrameType::Row,
                    WindowFrameUnits::Range => FrameType::Range,
                    WindowFrameUnits::Groups => return unsupported("a window frame in GROUPS"),
                };
                let end = frame.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
                Some(Box::new(ex::window::WindowFrame {
                    frame_type: frame_type as i32,
                    lower: Some(Box::new(self.frame_bound(&frame.start_bound)?)),
                    upper: Some(Box::new(self.frame_bound(end)?)),
                }))
            }
        };
        Ok(ex::Window { window_function: Some(Box::new(call)), partition_spec, order_spec, frame_spec })
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound) -> Result<FrameBoundary, Error> {
        let boundary = match bound {
            WindowFrameBound::CurrentRow => Boundary::CurrentRow(true),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => Boundary::Unbounded(true),
            WindowFrameBound::Following(Some(value)) => Boundary::Value(Box::new(self.expression(value)?)),
            WindowFrameBound::Preceding(Some(value)) => {
                // Preceding is a negative offset, in the message as in Spark.
                let negative = match value.as_ref() {
                    Expr::Value(v) if matches!(v.value, Value::Number(..)) => {
                        Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr: value.clone() }
                    }
                    Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr } => expr.as_ref().clone(),
                    other => Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr: Box::new(other.clone()) },
                };
                Boundary::Value(Box::new(self.expression(&negative)?))
            }
        };
        Ok(FrameBoundary { boundary: Some(boundary) })
    }

    pub fn sort_order(&mut self, key: &OrderByExpr) -> Result<ex::SortOrder, Error> {
        let child = self.expression(&key.expr)?;
        Ok(sort_order(child, key.options.asc, key.options.nulls_first))
    }
}

/// `date_add(DAY, 1, d)` and its kind: the unit is a word, which the function of pyspark takes as a string.
fn unit_call(name: String, arguments: &mut [Expression]) -> String {
    let written = match name.to_ascii_lowercase().as_str() {
        "dateadd" | "date_add" | "timestampadd" => "timestampadd",
        "datediff" | "date_diff" | "timestampdiff" => "timestampdiff",
        _ => return name,
    };
    match arguments {
        [unit, _, _] => match single_part(unit) {
            Some(word) => {
                *unit = string(word);
                written.to_string()
            }
            None => name,
        },
        _ => name,
    }
}

/// A sort key; nulls come first when ascending and last when descending, unless told.
pub(crate) fn sort_order(child: Expression, ascending: Option<bool>, nulls_first: Option<bool>) -> ex::SortOrder {
    let ascending = ascending.unwrap_or(true);
    let direction = if ascending { SortDirection::Ascending } else { SortDirection::Descending };
    let nulls =
        if nulls_first.unwrap_or(ascending) { NullOrdering::SortNullsFirst } else { NullOrdering::SortNullsLast };
    ex::SortOrder { child: Some(Box::new(child)), direction: direction as i32, null_ordering: nulls as i32 }
}
