//! Expressions of the syntax tree to expression messages.

use spark_connect_proto::expression::cast::EvalMode;
use spark_connect_proto::expression::{self as ex, ExprType};
use spark_connect_proto::subquery_expression::SubqueryType;
use spark_connect_proto::{Expression, SubqueryExpression};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, Expr, Ident, LambdaFunction,
    OneOrManyWithParens, Query, Subscript, TrimWhereField, UnaryOperator, Value,
};

use crate::dialect::unit_name;
use crate::error::{Error, unsupported};
use crate::identifier::{object_parts, quote_parts};
use crate::message::{balanced, boolean, cast, column, expression, extract, function, integer, null, star, string};
use crate::translator::Translator;
use crate::{DEPTH_MAX, interval, literal};

impl Translator<'_> {
    pub fn expression(&mut self, expr: &Expr) -> Result<Expression, Error> {
        self.nested(|t| t.expression_inner(expr))
    }

    pub fn expressions(&mut self, exprs: &[Expr]) -> Result<Vec<Expression>, Error> {
        exprs.iter().map(|expr| self.expression(expr)).collect()
    }

    fn call(&mut self, name: &str, arguments: &[&Expr]) -> Result<Expression, Error> {
        let arguments = arguments.iter().map(|expr| self.expression(expr)).collect::<Result<_, _>>()?;
        Ok(function(name, arguments))
    }

    fn negate_if(negated: bool, expr: Expression) -> Expression {
        if negated { function("not", vec![expr]) } else { expr }
    }

    /// One flat table of what each kind of expression becomes.
    fn expression_inner(&mut self, expr: &Expr) -> Result<Expression, Error> {
        match expr {
            Expr::Identifier(ident) => Ok(self.name(std::slice::from_ref(ident))),
            Expr::CompoundIdentifier(parts) if parts.len() > DEPTH_MAX => Err(Error::TooDeep { limit: DEPTH_MAX }),
            Expr::CompoundIdentifier(parts) => Ok(self.name(parts)),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Expr::Nested(inner) => self.expression(inner),
            Expr::Value(value) => self.value(&value.value),
            Expr::TypedString(typed) => match (&typed.data_type, &typed.value.value) {
                (DataType::Custom(name, _), Value::SingleQuotedString(text)) => literal::typed(&name.to_string(), text),
                (other, _) => unsupported(format!("the literal type {other}")),
            },
            Expr::Interval(interval) => self.interval(interval),
            Expr::Function(call) => self.function_call(call),
            Expr::Lambda(lambda) => self.lambda(lambda),
            Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::IsNull(inner) | Expr::IsUnknown(inner) => self.call("isNull", &[inner]),
            Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => self.call("isNotNull", &[inner]),
            Expr::IsTrue(inner) => self.is_boolean(inner, true, false),
            Expr::IsNotTrue(inner) => self.is_boolean(inner, true, true),
            Expr::IsFalse(inner) => self.is_boolean(inner, false, false),
            Expr::IsNotFalse(inner) => self.is_boolean(inner, false, true),
            Expr::IsDistinctFrom(left, right) => {
                let equal = self.call("<=>", &[left, right])?;
                Ok(function("not", vec![equal]))
            }
            Expr::IsNotDistinctFrom(left, right) => self.call("<=>", &[left, right]),
            Expr::InList { expr, list, negated } => {
                let mut arguments = vec![self.expression(expr)?];
                arguments.extend(self.expressions(list)?);
                Ok(Self::negate_if(*negated, function("in", arguments)))
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let values = match expr.as_ref() {
                    Expr::Tuple(values) => self.expressions(values)?,
                    value => vec![self.expression(value)?],
                };
                let within = self.subquery(subquery, SubqueryType::In, values)?;
                Ok(Self::negate_if(*negated, within))
            }
            Expr::Between { expr, negated, low, high } => {
                let value = self.repeatable(expr)?;
                let (low, high) = (self.expression(low)?, self.expression(high)?);
                let written = self.name_of(&function("between", vec![value.clone(), low.clone(), high.clone()]));
                // Spelled as the two comparisons it stands for, which is what `Column.between` sends.
                let above = function(">=", vec![value.clone(), low]);
                let within = function("and", vec![above, function("<=", vec![value, high])]);
                self.written_names.push((within.clone(), written));
                Ok(Self::negate_if(*negated, within))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like("like", *negated, expr, pattern, escape_char.as_ref().map(|value| &value.value))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like("ilike", *negated, expr, pattern, escape_char.as_ref().map(|value| &value.value))
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                let like = self.call("rlike", &[expr, pattern])?;
                Ok(Self::negate_if(*negated, like))
            }
            Expr::AnyOp { left, compare_op, right, .. } => self.quantified(left, compare_op, right, "or"),
            Expr::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, "and"),
            Expr::Cast { kind, expr, data_type, .. } => {
                let mode = match kind {
                    CastKind::TryCast => EvalMode::Try,
                    _ => EvalMode::Unspecified,
                };
                let text = match data_type {
                    DataType::Custom(name, _) => object_parts(name)?.join(""),
                    other => other.to_string(),
                };
                Ok(cast(self.expression(expr)?, text, mode))
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Exists { subquery, negated } => {
                let exists = self.subquery(subquery, SubqueryType::Exists, Vec::new())?;
                Ok(Self::negate_if(*negated, exists))
            }
            Expr::Subquery(query) => self.subquery(query, SubqueryType::Scalar, Vec::new()),
            Expr::Tuple(values) => self.tuple(values),
            Expr::Struct { values, fields } if fields.is_empty() => Ok(function("struct", self.expressions(values)?)),
            Expr::Named { expr, name } => Ok(crate::message::alias(self.expression(expr)?, vec![name.value.clone()])),
            Expr::Array(array) => Ok(function("array", self.expressions(&array.elem)?)),
            Expr::Wildcard(_) => Ok(star(None)),
            Expr::QualifiedWildcard(name, _) => Ok(star(Some(format!("{}.*", quote_parts(&object_parts(name)?))))),
            Expr::Extract { field, expr, .. } => {
                let value = self.expression(expr)?;
                Ok(function("extract", vec![string(field.to_string().to_ascii_lowercase()), value]))
            }
            Expr::Ceil { expr, field } => self.ceil_or_floor("ceil", expr, field),
            Expr::Floor { expr, field } => self.ceil_or_floor("floor", expr, field),
            Expr::Position { expr, r#in } => self.call("locate", &[expr, r#in]),
            Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
                let name = if *shorthand { "substr" } else { "substring" };
                let arguments: Vec<&Expr> =
                    std::iter::once(expr).chain(substring_from).chain(substring_for).map(AsRef::as_ref).collect();
                self.call(name, &arguments)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "trim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                match (trim_what, trim_characters.as_deref()) {
                    // The characters come first in the function that pyspark calls, as in `trim(characters, text)`.
                    (Some(what), _) => self.call(name, &[what, expr]),
                    (None, Some([text])) => {
                        let arguments = vec![self.expression(expr)?, self.expression(text)?];
                        Ok(function(name, arguments))
                    }
                    (None, Some(_)) => unsupported("trim with more than two arguments"),
                    (None, None) => self.call(name, &[expr]),
                }
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments: Vec<&Expr> = vec![expr, overlay_what, overlay_from];
                arguments.extend(overlay_for.as_deref());
                self.call("overlay", &arguments)
            }
            Expr::Collate { expr, collation } => {
                let value = self.expression(expr)?;
                Ok(function("collate", vec![value, string(object_parts(collation)?.join("."))]))
            }
            other => unsupported(format!("the expression {}", brief(&other.to_string()))),
        }
    }

    /// An expression that a rewriting repeats: repeated within each other, large ones would grow without bound.
    fn repeatable(&mut self, expr: &Expr) -> Result<Expression, Error> {
        const NODES_MAX: usize = 1000;
        let expr = self.expression(expr)?;
        let mut nodes = 0;
        let is_large = crate::tree::any(&expr, &mut |_| {
            nodes += 1;
            nodes > NODES_MAX
        });
        if is_large { Err(Error::TooLarge { limit: NODES_MAX }) } else { Ok(expr) }
    }

    /// A name: a lambda's variable, a column, or one of the functions that go without brackets.
    fn name(&mut self, idents: &[Ident]) -> Expression {
        let Some((first, fields)) = idents.split_first() else { return column::<&str>(&[]) };
        if let Some(variable) = self.lambda_variables.iter().rev().find(|v| v.eq_ignore_ascii_case(&first.value)) {
            let variable = expression(ExprType::UnresolvedNamedLambdaVariable(ex::UnresolvedNamedLambdaVariable {
                name_parts: vec![variable.clone()],
            }));
            return fields.iter().fold(variable, |value, field| extract(value, string(&field.value)));
        }
        let is_function = fields.is_empty()
            && first.quote_style.is_none()
            && ["current_user", "session_user"].iter().any(|name| first.value.eq_ignore_ascii_case(name));
        if is_function {
            return function(&first.value, Vec::new());
        }
        let parts: Vec<&str> = idents.iter().map(|ident| ident.value.as_str()).collect();
        let is_view =
            !fields.is_empty() && self.scope().views.iter().any(|view| view.eq_ignore_ascii_case(&first.value));
        column(if is_view { &parts[1..] } else { &parts[..] })
    }

    fn access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Expression, Error> {
        // Each access is a level of the message.
        if chain.len() > DEPTH_MAX {
            return Err(Error::TooDeep { limit: DEPTH_MAX });
        }
        let mut chain = chain;
        // Names in front belong to the column: `t.s.f[0]` takes element 0 of the column `t.s.f`.
        let mut idents = match root {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(idents) => idents.clone(),
            _ => Vec::new(),
        };
        while let (false, Some((AccessExpr::Dot(Expr::Identifier(ident)), rest))) =
            (idents.is_empty(), chain.split_first())
        {
            idents.push(ident.clone());
            chain = rest;
        }
        let mut value = if idents.is_empty() { self.expression(root)? } else { self.name(&idents) };
        for access in chain {
            value = match access {
                AccessExpr::Dot(Expr::Identifier(field)) => extract(value, string(&field.value)),
                AccessExpr::Subscript(Subscript::Index { index }) => extract(value, self.expression(index)?),
                AccessExpr::Dot(other) => return unsupported(format!("the field access .{other}")),
                AccessExpr::Subscript(other) => return unsupported(format!("the subscript [{other}]")),
            };
        }
        Ok(value)
    }

    pub fn value(&mut self, value: &Value) -> Result<Expression, Error> {
        match value {
            Value::Number(text, long) => literal::number(text, *long),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(string(text)),
            Value::Boolean(value) => Ok(boolean(*value)),
            Value::Null => Ok(null()),
            Value::HexStringLiteral(text) => literal::binary(text),
            Value::Placeholder(marker) => self.parameter(marker),
            other => unsupported(format!("the literal {other}")),
        }
    }

    fn parameter(&self, marker: &str) -> Result<Expression, Error> {
        let bound = match (marker.strip_prefix(':'), marker.strip_prefix('?')) {
            (Some(name), _) => self.parameters.named.get(name),
            (None, Some(position)) => position.parse::<usize>().ok().and_then(|at| self.parameters.positional.get(at)),
            (None, None) => return unsupported(format!("the parameter marker {marker}")),
        };
        let name = marker.trim_start_matches([':', '?']);
        bound.cloned().ok_or_else(|| Error::UnboundParameter { name: name.to_string() })
    }

    fn interval(&mut self, interval: &sqlparser::ast::Interval) -> Result<Expression, Error> {
        let Expr::Tuple(parts) = interval.value.as_ref() else {
            return unsupported(format!("the interval {}", interval.value));
        };
        let mut pairs: Vec<(String, &'static str)> = Vec::new();
        let mut value = None;
        for part in parts {
            match part {
                Expr::Identifier(unit) => {
                    if let (Some(value), Some(unit)) = (value.take(), unit_name(&unit.value)) {
                        pairs.push((value, unit));
                    }
                }
                part => value = Some(self.interval_value(part)?),
            }
        }
        match (value, pairs.as_slice(), &interval.last_field) {
            (None, [(text, from)], Some(to)) => interval::from_range(text, from, &to.to_string()),
            (None, _, None) => interval::from_units(&pairs),
            (Some(text), [], None) => interval::from_text(&text),
            _ => unsupported("an interval that mixes units and ranges"),
        }
    }

    fn interval_value(&mut self, part: &Expr) -> Result<String, Error> {
        match part {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                let text = self.interval_value(expr)?;
                Ok(text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_string))
            }
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) | Value::SingleQuotedString(text) => Ok(text.clone()),
                other => unsupported(format!("the interval value {other}")),
            },
            other => unsupported(format!("the interval value {other}")),
        }
    }

    fn lambda(&mut self, lambda: &LambdaFunction) -> Result<Expression, Error> {
        let parameters = match &lambda.params {
            OneOrManyWithParens::One(parameter) => std::slice::from_ref(parameter),
            OneOrManyWithParens::Many(parameters) => parameters.as_slice(),
        };
        let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.value.clone()).collect();
        if names.is_empty() || names.len() > 3 {
            return unsupported("a lambda function with other than 1 to 3 parameters");
        }
        let outer = self.lambda_variables.len();
        self.lambda_variables.extend(names.iter().cloned());
        let body = self.expression(&lambda.body);
        self.lambda_variables.truncate(outer);
        Ok(expression(ExprType::LambdaFunction(Box::new(ex::LambdaFunction {
            function: Some(Box::new(body?)),
            arguments: names
                .into_iter()
                .map(|name| ex::UnresolvedNamedLambdaVariable { name_parts: vec![name] })
                .collect(),
        }))))
    }

    fn binary(&mut self, whole: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Expression, Error> {
        let name = match op {
            BinaryOperator::And => return self.chain(whole, op, "and"),
            BinaryOperator::Or => return self.chain(whole, op, "or"),
            BinaryOperator::NotEq => {
                let equal = self.call("==", &[left, right])?;
                return Ok(function("not", vec![equal]));
            }
            BinaryOperator::StringConcat => return self.chain(whole, op, "concat"),
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::MyIntegerDivide => "div",
            BinaryOperator::Eq => "==",
            BinaryOperator::Spaceship => "<=>",
            BinaryOperator::Lt => "<",
            BinaryOperator::LtEq => "<=",
            BinaryOperator::Gt => ">",
            BinaryOperator::GtEq => ">=",
            BinaryOperator::BitwiseAnd => "&",
            BinaryOperator::BitwiseOr => "|",
            BinaryOperator::BitwiseXor => "^",
            BinaryOperator::PGBitwiseShiftLeft => return self.shift("shiftleft", "<<", left, right),
            BinaryOperator::PGBitwiseShiftRight => return self.shift("shiftright", ">>", left, right),
            BinaryOperator::Custom(op) if op == ">>>" => return self.shift("shiftrightunsigned", ">>>", left, right),
            other => return unsupported(format!("the operator {other}")),
        };
        self.call(name, &[left, right])
    }

    /// The function for a shift, which in a name stays the operator it was written as.
    fn shift(&mut self, name: &str, operator: &str, left: &Expr, right: &Expr) -> Result<Expression, Error> {
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        let written = format!("({} {operator} {})", self.nested_name_of(&left), self.nested_name_of(&right));
        let shifted = function(name, vec![left, right]);
        self.written_names.push((shifted.clone(), written));
        Ok(shifted)
    }

    fn negative(&mut self, inner: &Expr) -> Result<Expression, Error> {
        let inner = self.expression(inner)?;
        let written = format!("(- {})", self.nested_name_of(&inner));
        let negative = function("negative", vec![inner]);
        self.written_names.push((negative.clone(), written));
        Ok(negative)
    }

    /// A chain of one associative operator: flattened, then folded in halves, so that a long one stays shallow.
    fn chain(&mut self, whole: &Expr, op: &BinaryOperator, name: &str) -> Result<Expression, Error> {
        let mut operands = Vec::new();
        let mut rest = whole;
        while let Expr::BinaryOp { left, op: this, right } = rest {
            if this != op {
                break;
            }
            operands.push(right.as_ref());
            rest = left;
        }
        operands.push(rest);
        operands.reverse();
        let operands = operands.into_iter().map(|operand| self.expression(operand)).collect::<Result<Vec<_>, _>>()?;
        let folded = balanced(operands, &mut |left, right| function(name, vec![left, right]));
        folded.map_or_else(|| unsupported("an empty chain"), Ok)
    }

    fn unary(&mut self, op: UnaryOperator, inner: &Expr) -> Result<Expression, Error> {
        match op {
            UnaryOperator::Minus => match inner {
                // A sign belongs to its number: the smallest integers have no positive counterpart.
                Expr::Value(value) => match &value.value {
                    Value::Number(text, long) => literal::number(&format!("-{text}"), *long),
                    _ => self.negative(inner),
                },
                _ => self.negative(inner),
            },
            UnaryOperator::Plus => self.call("positive", &[inner]),
            UnaryOperator::Not | UnaryOperator::BangNot => self.call("not", &[inner]),
            UnaryOperator::BitwiseNot => self.call("~", &[inner]),
            other => unsupported(format!("the operator {other}")),
        }
    }

    fn is_boolean(&mut self, inner: &Expr, value: bool, negated: bool) -> Result<Expression, Error> {
        let inner = self.expression(inner)?;
        Ok(Self::negate_if(negated, function("<=>", vec![inner, boolean(value)])))
    }

    fn like(
        &mut self,
        name: &str,
        negated: bool,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Value>,
    ) -> Result<Expression, Error> {
        let mut arguments = vec![self.expression(expr)?, self.expression(pattern)?];
        if let Some(escape) = escape {
            arguments.push(self.value(escape)?);
        }
        Ok(Self::negate_if(negated, function(name, arguments)))
    }

    /// `LIKE ANY` and `LIKE ALL`: the disjunction or conjunction over the patterns.
    fn quantified(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr, join: &str) -> Result<Expression, Error> {
        let (name, negated) = match op {
            BinaryOperator::PGLikeMatch => ("like", false),
            BinaryOperator::PGNotLikeMatch => ("like", true),
            BinaryOperator::PGILikeMatch => ("ilike", false),
            BinaryOperator::PGNotILikeMatch => ("ilike", true),
            other => return unsupported(format!("the comparison {other} with ANY or ALL")),
        };
        let Expr::Tuple(patterns) = right else { return unsupported("LIKE ANY or ALL over a subquery") };
        let value = self.repeatable(left)?;
        let mut tests = Vec::new();
        for pattern in patterns {
            let test = function(name, vec![value.clone(), self.expression(pattern)?]);
            tests.push(Self::negate_if(negated, test));
        }
        let folded = balanced(tests, &mut |left, right| function(join, vec![left, right]));
        folded.map_or_else(|| unsupported("LIKE ANY or ALL without patterns"), Ok)
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        else_result: Option<&Expr>,
    ) -> Result<Expression, Error> {
        let operand = operand.map(|operand| self.repeatable(operand)).transpose()?;
        let mut arguments = Vec::new();
        for CaseWhen { condition, result } in conditions {
            let condition = self.expression(condition)?;
            arguments.push(match &operand {
                Some(operand) => function("==", vec![operand.clone(), condition]),
                None => condition,
            });
            arguments.push(self.expression(result)?);
        }
        if let Some(result) = else_result {
            arguments.push(self.expression(result)?);
        }
        Ok(function("when", arguments))
    }

    /// `(a, b)` is a struct whose fields are named after their columns.
    fn tuple(&mut self, values: &[Expr]) -> Result<Expression, Error> {
        let mut arguments = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let name = match value {
                Expr::Identifier(ident) => ident.value.clone(),
                Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()).unwrap_or_default(),
                _ => format!("col{}", at + 1),
            };
            arguments.push(string(name));
            arguments.push(self.expression(value)?);
        }
        Ok(function("named_struct", arguments))
    }

    fn ceil_or_floor(&mut self, name: &str, expr: &Expr, field: &CeilFloorKind) -> Result<Expression, Error> {
        let mut arguments = vec![self.expression(expr)?];
        match field {
            CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime) => {}
            CeilFloorKind::DateTimeField(field) => return unsupported(format!("{name} to {field}")),
            CeilFloorKind::Scale(scale) => arguments.push(self.value(&scale.value)?),
        }
        Ok(function(name, arguments))
    }

    fn subquery(&mut self, query: &Query, kind: SubqueryType, values: Vec<Expression>) -> Result<Expression, Error> {
        // The subquery's own references belong to relations inside it.
        let outer = std::mem::take(&mut self.references);
        let plan = self.query(query);
        self.references = outer;
        let plan_id = self.add_reference(plan?);
        Ok(expression(ExprType::SubqueryExpression(SubqueryExpression {
            plan_id,
            subquery_type: kind as i32,
            table_arg_options: None,
            in_subquery_values: values,
        })))
    }
}

/// The start of a text, for a message.
pub(crate) fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// The literal 1 that `count(*)` counts.
pub(crate) fn one() -> Expression {
    integer(1)
}
