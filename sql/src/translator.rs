//! The state of one translation: parameters, names in scope, and what the expressions ask of the relation around them.

use std::collections::BTreeMap;

use spark_connect_proto as proto;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation, RelationCommon};
use sqlparser::ast::WindowSpec;

use crate::error::Error;
use crate::message::relation;
use crate::name::Namer;
use crate::{DEPTH_MAX, Parameters};

/// Plan ids of subqueries start here, far above those that a client counts from 0.
pub const FIRST_PLAN_ID: i64 = 1 << 40;
/// The most relations that one statement may grow to once its CTEs are put in place.
const RELATIONS_MAX: usize = 100_000;
/// Columns that a query needs below and does not give out have this prefix.
pub const HIDDEN_PREFIX: &str = "__phalanx_hidden_";

/// A common table expression in scope.
#[derive(Debug, Clone)]
pub(crate) struct Cte {
    pub name: String,
    pub relation: Relation,
    /// How many relations a reference adds.
    pub size: usize,
}

/// What one SELECT defines for the expressions in it.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Names that a column may be qualified with.
    pub qualifiers: Vec<String>,
    /// Lateral views: their columns are the select's own, so that the qualifier is dropped.
    pub views: Vec<String>,
    /// The WINDOW clause.
    pub windows: BTreeMap<String, WindowSpec>,
}

#[derive(Debug)]
pub(crate) struct Translator<'a> {
    pub parameters: &'a Parameters,
    pub ctes: Vec<Cte>,
    pub scopes: Vec<Scope>,
    pub lambda_variables: Vec<String>,
    /// Plans of the subqueries met since the last relation was built.
    pub references: Vec<Relation>,
    /// Automatic names that the message no longer tells, since a FILTER or WITHIN GROUP was rewritten.
    pub written_names: Vec<(Expression, String)>,
    next_plan_id: i64,
    next_hidden: usize,
    relations: usize,
    depth: usize,
}

impl<'a> Translator<'a> {
    pub fn new(parameters: &'a Parameters) -> Self {
        Translator {
            parameters,
            ctes: Vec::new(),
            scopes: vec![Scope::default()],
            lambda_variables: Vec::new(),
            references: Vec::new(),
            written_names: Vec::new(),
            next_plan_id: FIRST_PLAN_ID,
            next_hidden: 0,
            relations: 0,
            depth: 0,
        }
    }

    /// Runs a step one level deeper.
    pub fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::TooDeep { limit: DEPTH_MAX });
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    pub fn hidden_name(&mut self) -> String {
        self.next_hidden += 1;
        format!("{HIDDEN_PREFIX}{}", self.next_hidden - 1)
    }

    pub fn count_relations(&mut self, more: usize) -> Result<(), Error> {
        self.relations += more;
        if self.relations > RELATIONS_MAX { Err(Error::TooLarge { limit: RELATIONS_MAX }) } else { Ok(()) }
    }

    pub fn relations(&self) -> usize {
        self.relations
    }

    /// Gives a plan the id by which an expression refers to it, and keeps it for the relation around.
    pub fn add_reference(&mut self, mut plan: Relation) -> i64 {
        let plan_id = self.next_plan_id;
        self.next_plan_id += 1;
        plan.common = Some(RelationCommon { plan_id: Some(plan_id), ..Default::default() });
        self.references.push(plan);
        plan_id
    }

    /// Puts the plans of the subqueries met so far around the relation that uses them.
    pub fn with_references(&mut self, root: Relation) -> Relation {
        if self.references.is_empty() {
            return root;
        }
        let references = std::mem::take(&mut self.references);
        relation(RelType::WithRelations(Box::new(proto::WithRelations { root: Some(Box::new(root)), references })))
    }

    pub fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// How many of the parts in front qualify a column rather than name it.
    pub fn qualifier_parts(&self, parts: &[String]) -> usize {
        let known = |name: &String| {
            self.scopes.iter().any(|scope| scope.qualifiers.iter().any(|q| q.eq_ignore_ascii_case(name)))
        };
        // A qualifier may itself be qualified, by a database and a catalog.
        (0..parts.len().saturating_sub(1)).take(3).find(|at| known(&parts[*at])).map_or(0, |at| at + 1)
    }

    /// The automatic name of a column.
    pub fn name_of(&self, expr: &Expression) -> String {
        let qualifier_parts = &|parts: &[String]| self.qualifier_parts(parts);
        Namer { qualifier_parts, written: &self.written_names }.top(expr)
    }

    /// The automatic name where the message alone no longer tells it.
    pub fn written_name(&self, expr: &Expression) -> Option<String> {
        let is_written = |expr: &Expression| self.written_names.iter().any(|(known, _)| known == expr);
        let tells_less = !self.written_names.is_empty() && crate::tree::any(expr, &mut |expr| is_written(expr));
        tells_less.then(|| self.name_of(expr))
    }

    /// The text of an expression inside the name of another.
    pub fn nested_name_of(&self, expr: &Expression) -> String {
        let qualifier_parts = &|parts: &[String]| self.qualifier_parts(parts);
        Namer { qualifier_parts, written: &self.written_names }.text(expr)
    }
}
