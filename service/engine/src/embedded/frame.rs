//! A resolved relation: a DataFusion plan, and what Spark says of its columns.
//!
//! Spark lets two columns share a name, keeps the case of names and matches them without it, and lets `df["a"]` mean the
//! column of that very DataFrame. DataFusion's plans have none of this, so inside a plan every column has a name that is
//! unique in the whole resolution (`#7`), and Spark's names live beside it, here. Results get Spark's names at the end.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Column as PlanColumn;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// One output column of a [`Frame`].
#[derive(Debug, Clone)]
pub struct Column {
    /// The name Spark shows.
    pub name: String,
    /// The column's name in the DataFusion plan: unique, unqualified, and the column's identity. A projection that only
    /// passes the column on keeps it.
    pub internal: String,
    /// Type, nullability and metadata (user-defined type, Spark's column metadata); its name is `name`.
    pub field: FieldRef,
    /// The client's plan ids of the relations that put this column out, the outermost last: what `df["a"]` refers to.
    pub plan_ids: Vec<i64>,
    /// The qualifiers the column answers to, innermost last: `t` for `t.a`, `db`, `t` for `db.t.a`. Any suffix matches.
    pub qualifiers: Vec<String>,
    /// Not part of `*` and of the output, but resolvable: the right side's key of a USING join, a file's metadata column.
    pub is_hidden: bool,
}

impl Column {
    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    /// The expression that reads this column in the plan it belongs to.
    pub fn expr(&self) -> Expr {
        Expr::Column(PlanColumn::new_unqualified(self.internal.clone()))
    }
}

/// A resolved relation. The plan's schema holds exactly `columns`, hidden ones included, in this order, under their
/// internal names.
#[derive(Debug, Clone)]
pub struct Frame {
    pub plan: LogicalPlan,
    pub columns: Vec<Column>,
}

impl Frame {
    /// The columns a client sees, in order.
    pub fn visible(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_hidden)
    }

    /// The schema a client sees: Spark's names, types and metadata.
    pub fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> =
            self.visible().map(|column| column.field.as_ref().clone().with_name(&column.name)).collect();
        Arc::new(Schema::new(fields))
    }
}
