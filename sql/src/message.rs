//! Short constructors for the messages this crate builds, spelled as pyspark spells them.

use spark_connect_proto as proto;
use spark_connect_proto::expression as ex;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};

use crate::identifier::quote_parts;

pub(crate) fn expression(expr_type: ExprType) -> Expression {
    Expression { common: None, expr_type: Some(expr_type) }
}

pub(crate) fn relation(rel_type: RelType) -> Relation {
    Relation { common: None, rel_type: Some(rel_type) }
}

pub(crate) fn literal(value: LiteralType) -> Expression {
    expression(ExprType::Literal(ex::Literal { data_type: None, literal_type: Some(value) }))
}

pub(crate) fn string(value: impl Into<String>) -> Expression {
    literal(LiteralType::String(value.into()))
}

pub(crate) fn integer(value: i32) -> Expression {
    literal(LiteralType::Integer(value))
}

pub(crate) fn boolean(value: bool) -> Expression {
    literal(LiteralType::Boolean(value))
}

pub(crate) fn null() -> Expression {
    let kind = proto::data_type::Kind::Null(proto::data_type::Null::default());
    literal(LiteralType::Null(proto::DataType { kind: Some(kind) }))
}

/// A column by the parts of its name.
pub(crate) fn column<S: AsRef<str>>(parts: &[S]) -> Expression {
    expression(ExprType::UnresolvedAttribute(ex::UnresolvedAttribute {
        unparsed_identifier: quote_parts(parts),
        ..Default::default()
    }))
}

pub(crate) fn function(name: &str, arguments: Vec<Expression>) -> Expression {
    expression(ExprType::UnresolvedFunction(ex::UnresolvedFunction {
        function_name: name.to_string(),
        arguments,
        ..Default::default()
    }))
}

pub(crate) fn alias(expr: Expression, name: Vec<String>) -> Expression {
    expression(ExprType::Alias(Box::new(ex::Alias { expr: Some(Box::new(expr)), name, metadata: None })))
}

pub(crate) fn star(target: Option<String>) -> Expression {
    expression(ExprType::UnresolvedStar(ex::UnresolvedStar { unparsed_target: target, plan_id: None }))
}

pub(crate) fn cast(expr: Expression, type_text: String, mode: ex::cast::EvalMode) -> Expression {
    expression(ExprType::Cast(Box::new(ex::Cast {
        expr: Some(Box::new(expr)),
        eval_mode: mode as i32,
        cast_to_type: Some(ex::cast::CastToType::TypeStr(type_text)),
    })))
}

pub(crate) fn extract(child: Expression, extraction: Expression) -> Expression {
    expression(ExprType::UnresolvedExtractValue(Box::new(ex::UnresolvedExtractValue {
        child: Some(Box::new(child)),
        extraction: Some(Box::new(extraction)),
    })))
}

pub(crate) fn project(input: Option<Relation>, expressions: Vec<Expression>) -> Relation {
    relation(RelType::Project(Box::new(proto::Project { input: input.map(Box::new), expressions })))
}

pub(crate) fn filter(input: Relation, condition: Expression) -> Relation {
    relation(RelType::Filter(Box::new(proto::Filter { input: Some(Box::new(input)), condition: Some(condition) })))
}

pub(crate) fn subquery_alias(input: Relation, name: &str) -> Relation {
    relation(RelType::SubqueryAlias(Box::new(proto::SubqueryAlias {
        input: Some(Box::new(input)),
        alias: name.to_string(),
        qualifier: Vec::new(),
    })))
}

pub(crate) fn to_df(input: Relation, column_names: Vec<String>) -> Relation {
    relation(RelType::ToDf(Box::new(proto::ToDf { input: Some(Box::new(input)), column_names })))
}

pub(crate) fn drop_columns(input: Relation, column_names: Vec<String>) -> Relation {
    relation(RelType::Drop(Box::new(proto::Drop { input: Some(Box::new(input)), columns: Vec::new(), column_names })))
}

pub(crate) fn distinct(input: Relation) -> Relation {
    relation(RelType::Deduplicate(Box::new(proto::Deduplicate {
        input: Some(Box::new(input)),
        column_names: Vec::new(),
        all_columns_as_keys: Some(true),
        within_watermark: Some(false),
    })))
}

pub(crate) fn sort(input: Relation, order: Vec<ex::SortOrder>, is_global: bool) -> Relation {
    relation(RelType::Sort(Box::new(proto::Sort { input: Some(Box::new(input)), order, is_global: Some(is_global) })))
}

pub(crate) fn limit(input: Relation, limit: i32) -> Relation {
    relation(RelType::Limit(Box::new(proto::Limit { input: Some(Box::new(input)), limit })))
}

pub(crate) fn set_operation(
    left: Relation,
    right: Relation,
    kind: proto::set_operation::SetOpType,
    is_all: bool,
    by_name: bool,
) -> Relation {
    relation(RelType::SetOp(Box::new(proto::SetOperation {
        left_input: Some(Box::new(left)),
        right_input: Some(Box::new(right)),
        set_op_type: kind as i32,
        is_all: Some(is_all),
        by_name: Some(by_name),
        allow_missing_columns: Some(false),
    })))
}

/// Folds a list in halves, so that the depth is the logarithm of its length.
pub(crate) fn balanced<T>(mut items: Vec<T>, join: &mut impl FnMut(T, T) -> T) -> Option<T> {
    match items.len() {
        0 => None,
        1 => items.pop(),
        n => {
            // The left half takes the middle element, as Spark's own fold of AND and OR does.
            let right = items.split_off(n.div_ceil(2));
            match (balanced(items, join), balanced(right, join)) {
                (Some(left), Some(right)) => Some(join(left, right)),
                (left, right) => left.or(right),
            }
        }
    }
}
