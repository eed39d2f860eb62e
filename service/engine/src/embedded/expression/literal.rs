//! Literals.

use std::sync::Arc;

use datafusion::common::metadata::FieldMetadata;
use datafusion::logical_expr::Expr;
use spark_connect_proto::expression::Literal;

use super::Typed;
use crate::Result;

pub fn literal(message: &Literal) -> Result<Typed> {
    let (value, field) = crate::literal::scalar_from_literal(message)?;
    let field = field.with_nullable(value.is_null());
    let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(&field));
    Ok(Typed { expr: Expr::Literal(value, metadata), field: Arc::new(field) })
}
