//! Takes the calls of Python functions out of a plan's expressions, into nodes below.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::Column as PlanColumn;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::node::{Evaluation, EvaluationArgument, PythonNode, PythonOperation};
use super::{EvalType, Host, PythonCall};
use crate::Error;

static COLUMNS: AtomicU64 = AtomicU64::new(0);

/// Leaves no call in a plan's expressions. A call where rows have no one input, as in an outer join's condition, is an
/// [`Error::Unsupported`].
#[derive(Debug)]
pub struct ExtractRule;

impl AnalyzerRule for ExtractRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        extract(plan)
    }

    fn name(&self) -> &str {
        "extract_python"
    }
}

fn extract(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        if !node.expressions().iter().any(has_call) {
            return Ok(Transformed::no(node));
        }
        let rewritten = match node {
            LogicalPlan::Join(join) => of_join(join)?,
            node => match node.inputs().as_slice() {
                [input] => of_node(&node, (*input).clone())?,
                _ => return Err(unsupported("a relation without rows of its own")),
            },
        };
        Ok(Transformed::yes(rewritten))
    })
    .data()
}

fn has_call(expr: &Expr) -> bool {
    expr.exists(|part| Ok(PythonCall::of(part).is_some())).unwrap_or(false)
}

fn unsupported(place: &str) -> datafusion::error::DataFusionError {
    Error::Unsupported { feature: format!("Python functions in {place}") }.into()
}

/// A node with one input: the calls go between the two.
fn of_node(node: &LogicalPlan, input: LogicalPlan) -> Result<LogicalPlan> {
    let passes_on = node.schema() == input.schema();
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let names = NamePreserver::new(node);
    let saved: Vec<_> = node.expressions().iter().map(|expr| names.save(expr)).collect();
    let (exprs, input) = evaluated(node.expressions(), input)?;
    let exprs = exprs.into_iter().zip(saved).map(|(expr, name)| name.restore(expr)).collect();
    let node = node.with_new_exprs(exprs, vec![input])?;
    // A node that gives its input's columns must not give those of the calls.
    if passes_on { projection(columns, node) } else { Ok(node) }
}

fn projection(columns: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
}

/// A call over one side of a join goes to that side; one over both makes a filter of an inner join's condition.
fn of_join(mut join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let is_inner = join.join_type == JoinType::Inner;
    let mut over_both = Vec::new();
    if let Some(filter) = join.filter.take() {
        let (with_calls, plain): (Vec<Expr>, Vec<Expr>) =
            datafusion::logical_expr::utils::split_conjunction_owned(filter).into_iter().partition(has_call);
        join.filter = datafusion::logical_expr::utils::conjunction(plain);
        if !is_inner && !with_calls.is_empty() {
            return Err(unsupported("the condition of a join that is not an inner one"));
        }
        over_both = with_calls;
    }
    if !is_inner && join.on.iter().any(|(left, right)| has_call(left) || has_call(right)) {
        return Err(unsupported("the condition of a join that is not an inner one"));
    }
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.into_iter().unzip();
    let (left_keys, left) = evaluated(left_keys, join.left.as_ref().clone())?;
    let (right_keys, right) = evaluated(right_keys, join.right.as_ref().clone())?;
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        left_keys.into_iter().zip(right_keys).collect(),
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let mut plan = projection(columns, LogicalPlan::Join(joined))?;
    if let Some(condition) = datafusion::logical_expr::utils::conjunction(over_both) {
        let filter = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan.clone()))?);
        plan = of_node(&filter, plan)?;
    }
    Ok(plan)
}

/// The expressions with columns in the place of calls, and the plan that has these columns.
fn evaluated(mut exprs: Vec<Expr>, mut input: LogicalPlan) -> Result<(Vec<Expr>, LogicalPlan)> {
    loop {
        let mut ready: Vec<Ready> = Vec::new();
        for expr in &exprs {
            collect(expr, &mut ready)?;
        }
        let Some(first) = ready.first() else { return Ok((exprs, input)) };
        let (eval_type, host) = (first.eval_type(), Arc::clone(&first.host));
        let is_together = |other: &Ready| {
            !eval_type.is_iterator()
                && other.eval_type() == eval_type
                && other.python_version() == first.python_version()
        };
        let together: Vec<Ready> = ready
            .iter()
            .enumerate()
            .filter(|(index, ready)| *index == 0 || is_together(ready))
            .map(|(_, ready)| ready.clone())
            .collect();
        exprs = exprs
            .into_iter()
            .map(|expr| {
                expr.transform_down(|part| {
                    let found = together.iter().find(|ready| ready.call == part);
                    Ok(match found {
                        Some(ready) => {
                            let column = PlanColumn::new_unqualified(&ready.evaluation.column);
                            Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump)
                        }
                        None => Transformed::no(part),
                    })
                })
                .data()
            })
            .collect::<Result<_>>()?;
        let evaluations = together.into_iter().map(|ready| ready.evaluation).collect();
        input = PythonNode::plan(PythonOperation::Evaluate(evaluations), host, vec![input])?;
    }
}

/// A call whose arguments have no calls in them, but for those it is chained to.
#[derive(Clone)]
struct Ready {
    call: Expr,
    host: Arc<Host>,
    evaluation: Evaluation,
}

impl Ready {
    fn eval_type(&self) -> EvalType {
        self.evaluation.functions.first().map_or(EvalType::ArrowBatched, |function| function.eval_type)
    }

    fn python_version(&self) -> Option<&str> {
        self.evaluation.functions.first().map(|function| function.python_version.as_str())
    }
}

fn collect(expr: &Expr, ready: &mut Vec<Ready>) -> Result<()> {
    expr.apply(|part| {
        let Some((call, _)) = PythonCall::of(part) else { return Ok(TreeNodeRecursion::Continue) };
        if call.function.eval_type.is_aggregate() {
            return Err(unsupported("this place of a query, which aggregate rows"));
        }
        let Some((functions, arguments)) = chain(part) else { return Ok(TreeNodeRecursion::Continue) };
        if !ready.iter().any(|known| known.call == *part) {
            let column = format!("#py{:x}", COLUMNS.fetch_add(1, Ordering::Relaxed));
            ready.push(Ready {
                call: part.clone(),
                host: Arc::clone(&call.host),
                evaluation: Evaluation { functions, arguments, column },
            });
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(())
}

type Chain = (Vec<Arc<super::PythonFunction>>, Vec<EvaluationArgument>);

/// The functions that a call applies one after the other in one worker, and the innermost one's arguments; None where an
/// argument has a call that must be evaluated before.
fn chain(expr: &Expr) -> Option<Chain> {
    let (call, arguments) = PythonCall::of(expr)?;
    if let ([argument], [None]) = (arguments, call.argument_names.as_slice())
        && let Some((inner, _)) = PythonCall::of(argument)
        && inner.function.eval_type == call.function.eval_type
        && inner.function.python_version == call.function.python_version
        && !call.function.eval_type.is_iterator()
    {
        let (mut functions, arguments) = chain(argument)?;
        functions.push(Arc::clone(&call.function));
        return Some((functions, arguments));
    }
    if arguments.iter().any(has_call) {
        return None;
    }
    let arguments = arguments.iter().zip(&call.argument_names).zip(&call.argument_fields);
    let arguments = arguments.map(|((expr, name), field)| EvaluationArgument {
        name: name.clone(),
        expr: expr.clone(),
        field: Arc::clone(field),
    });
    Some((vec![Arc::clone(&call.function)], arguments.collect()))
}
