//! An expression with its Spark type: what resolution passes from argument to function.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// A resolved expression and its type, nullability and metadata. The field's name has no meaning.
#[derive(Debug, Clone)]
pub struct Typed {
    pub expr: Expr,
    pub field: FieldRef,
}

impl Typed {
    pub fn new(expr: Expr, data_type: DataType, nullable: bool) -> Typed {
        Typed { expr, field: Arc::new(Field::new("", data_type, nullable)) }
    }

    /// A literal without metadata.
    pub fn literal(value: ScalarValue) -> Typed {
        let data_type = value.data_type();
        let nullable = value.is_null();
        Typed::new(Expr::Literal(value, None), data_type, nullable)
    }

    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    pub fn nullable(&self) -> bool {
        self.field.is_nullable()
    }

    /// The value, if the expression is a literal.
    pub fn value(&self) -> Option<&ScalarValue> {
        match &self.expr {
            Expr::Literal(value, _) => Some(value),
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same expression, said to be nullable.
    pub fn into_nullable(self) -> Typed {
        let field = Arc::new(self.field.as_ref().clone().with_nullable(true));
        Typed { expr: self.expr, field }
    }
}

/// Whether a Spark comparison of types sees the two as one: nested names and nullability aside.
pub fn same_type(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::List(left), DataType::List(right)) => same_type(left.data_type(), right.data_type()),
        (DataType::Map(left, _), DataType::Map(right, _)) => same_type(left.data_type(), right.data_type()),
        (DataType::Struct(left), DataType::Struct(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same_type(l.data_type(), r.data_type()))
        }
        _ => left == right,
    }
}
