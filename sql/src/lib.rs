//! Spark SQL text to Spark Connect messages, so that SQL and DataFrames share one resolver.
//!
//! It knows Spark's grammar and the messages' shapes. It must not know catalogs, schemas, plans that run, gRPC or gangs:
//! every name it emits is unresolved.
//!
//! # The path of a text
//! [`tokens`] cuts it, [`parser`] and [`dialect`] make sqlparser's tree of it, [`command`] tells statements apart by
//! their first words, [`query`], [`from`], [`select`] and [`grouping`] make relations, [`expression`] and
//! [`function_call`] expressions. [`name`] says what Spark would call an expression's column. [`model`] reads the
//! statements about models, TRAIN MODEL and its kin.
//!
//! # What a resolver meets
//! - A query that aggregates is an Aggregate of hidden columns ([`HIDDEN_PREFIX`]), one for each group and each aggregate
//!   call, under a projection that names them.
//! - ORDER BY over what a query does not give out adds hidden columns to the projection and a Drop above the Sort.
//! - A literal integer as a Sort key is an ordinal, left only where a `*` hides how many columns there are.
//! - A subquery is a SubqueryExpression whose plan is a reference of a WithRelations around; outer columns are named in
//!   it as any others are.
//! - NATURAL JOIN over unknown columns is a join using the one column [`NATURAL_JOIN`].
//! - A timestamp literal is a cast of its text in ANSI mode.

mod aggregate;
mod columns;
mod command;
mod dialect;
mod error;
mod expression;
mod from;
mod function_call;
mod grouping;
mod identifier;
mod interval;
mod literal;
mod message;
pub mod model;
mod name;
mod parser;
mod query;
mod select;
mod statement;
mod tokens;
mod translator;
mod tree;
mod type_name;

pub use error::Error;
pub use from::NATURAL_JOIN;
pub use identifier::split_identifier;
pub use name::{automatic_name, automatic_name_with};
pub use statement::{CreateTable, ExplainMode, FunctionScope, Parameters, Statement};
pub use translator::{FIRST_PLAN_ID, HIDDEN_PREFIX};

use spark_connect_proto::Expression;
use translator::Translator;

/// The deepest nesting of expressions and queries that is taken on.
pub const DEPTH_MAX: usize = 256;

/// Parses one statement.
///
/// # Errors
/// Where the text is not Spark SQL, not offered, nested too deep, or has a parameter without a value.
pub fn parse(text: &str, parameters: &Parameters) -> Result<Statement, Error> {
    parser::with_stack(|| command::parse_statement(text, parameters))
}

/// Parses one expression, with an alias or without, as `df.selectExpr` and `F.expr` take it.
///
/// # Errors
/// As [`parse`]; subqueries are refused, since a lone expression has no relation to carry their plans.
pub fn parse_expression(text: &str) -> Result<Expression, Error> {
    parser::with_stack(|| {
        let source = parser::Source::new(text)?;
        let mut parser = source.parser();
        let item = parser.parse_select_item().map_err(|error| source.error(error))?;
        source.finish(&mut parser)?;
        let parameters = Parameters::default();
        let mut translator = Translator::new(&parameters);
        let expression = translator.lone_item(&item)?;
        if translator.references.is_empty() {
            Ok(expression)
        } else {
            error::unsupported("a subquery in an expression without a query around it")
        }
    })
}
