//! The name Spark gives a column whose expression has no alias, read off the expression message.

mod literal;

use spark_connect_proto::expression::cast::{CastToType, EvalMode};
use spark_connect_proto::expression::sort_order::{NullOrdering, SortDirection};
use spark_connect_proto::expression::window::window_frame::{FrameBoundary, FrameType, frame_boundary::Boundary};
use spark_connect_proto::expression::{self as ex, ExprType, literal::LiteralType};
use spark_connect_proto::subquery_expression::SubqueryType;
use spark_connect_proto::{DataType, Expression};

use crate::identifier::split_identifier;
use crate::type_name::{proto_type_name, sql_type_name};

/// The automatic name of an expression, its columns taken to be qualified where they have more than one part.
///
/// A resolver that knows which parts are qualifiers and which are fields asks [`automatic_name_with`].
pub fn automatic_name(expr: &Expression) -> String {
    automatic_name_with(expr, &|parts| usize::from(parts.len() > 1))
}

/// The automatic name of an expression; `qualifier_parts` tells how many parts in front of a column are its qualifier.
pub fn automatic_name_with(expr: &Expression, qualifier_parts: &dyn Fn(&[String]) -> usize) -> String {
    Namer { qualifier_parts, written: &[] }.top(expr)
}

pub(crate) struct Namer<'a> {
    pub qualifier_parts: &'a dyn Fn(&[String]) -> usize,
    /// Names of expressions that no longer show how they were written.
    pub written: &'a [(Expression, String)],
}

/// Functions that Spark names in capitals.
const CAPITALS: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "cot",
    "csc",
    "degrees",
    "dense_rank",
    "e",
    "exp",
    "expm1",
    "hypot",
    "log10",
    "log1p",
    "log2",
    "percent_rank",
    "pi",
    "power",
    "radians",
    "rank",
    "regexp_like",
    "sec",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];

/// Functions that stand for a cast, which an automatic name leaves out.
const CASTS: &[&str] = &[
    "bigint",
    "binary",
    "boolean",
    "date",
    "decimal",
    "double",
    "float",
    "int",
    "smallint",
    "string",
    "timestamp",
    "tinyint",
];

impl Namer<'_> {
    /// The name of a whole column.
    pub fn top(&self, expr: &Expression) -> String {
        match &expr.expr_type {
            Some(ExprType::Alias(alias)) => alias.name.join(", "),
            Some(ExprType::UnresolvedAttribute(attribute)) => {
                split_identifier(&attribute.unparsed_identifier).pop().unwrap_or_default()
            }
            // A cast column keeps its name.
            Some(ExprType::Cast(cast)) => match cast.expr.as_deref() {
                Some(child) if self.is_column(child) => self.top(child),
                _ => self.text(expr),
            },
            _ => self.text(expr),
        }
    }

    fn is_column(&self, expr: &Expression) -> bool {
        match &expr.expr_type {
            Some(ExprType::UnresolvedAttribute(attribute)) => {
                let parts = split_identifier(&attribute.unparsed_identifier);
                parts.len() - (self.qualifier_parts)(&parts).min(parts.len()) == 1
            }
            _ => false,
        }
    }

    fn child(&self, expr: &Option<Box<Expression>>) -> String {
        expr.as_deref().map(|expr| self.text(expr)).unwrap_or_default()
    }

    fn list<'e>(&self, exprs: impl IntoIterator<Item = &'e Expression>) -> String {
        exprs.into_iter().map(|expr| self.text(expr)).collect::<Vec<_>>().join(", ")
    }

    /// The text of an expression inside a name.
    pub fn text(&self, expr: &Expression) -> String {
        if let Some((_, written)) = self.written.iter().rev().find(|(known, _)| known == expr) {
            return written.clone();
        }
        let Some(kind) = &expr.expr_type else { return String::new() };
        match kind {
            ExprType::Literal(value) => literal::text(value),
            ExprType::UnresolvedAttribute(attribute) => {
                let parts = split_identifier(&attribute.unparsed_identifier);
                parts[(self.qualifier_parts)(&parts).min(parts.len() - 1)..].join(".")
            }
            ExprType::UnresolvedStar(star) => star.unparsed_target.clone().unwrap_or_else(|| "*".into()),
            ExprType::UnresolvedRegex(regex) => regex.col_name.clone(),
            ExprType::ExpressionString(text) => text.expression.clone(),
            ExprType::Alias(alias) => format!("{} AS {}", self.child(&alias.expr), alias.name.join(", ")),
            ExprType::Cast(cast) => self.cast(cast),
            ExprType::SortOrder(order) => self.sort_order(order),
            ExprType::UnresolvedFunction(call) => self.call(&call.function_name, &call.arguments, call.is_distinct),
            ExprType::CallFunction(call) => {
                let name = split_identifier(&call.function_name).pop().unwrap_or_default();
                self.call(&name, &call.arguments, false)
            }
            ExprType::CommonInlineUserDefinedFunction(call) => {
                let distinct = if call.is_distinct { "DISTINCT " } else { "" };
                format!("{}({distinct}{})", call.function_name, self.list(&call.arguments))
            }
            ExprType::NamedArgumentExpression(named) => format!("{} => {}", named.key, self.child(&named.value)),
            ExprType::LambdaFunction(lambda) => {
                let variables = lambda.arguments.iter().map(|_| ", namedlambdavariable()").collect::<String>();
                format!("lambdafunction({}{variables})", self.child(&lambda.function))
            }
            ExprType::UnresolvedNamedLambdaVariable(_) => "namedlambdavariable()".into(),
            ExprType::UnresolvedExtractValue(extract) => self.extract(extract),
            ExprType::UpdateFields(update) => {
                let operation = match &update.value_expression {
                    Some(value) => format!("WithField({})", self.text(value)),
                    None => "dropfield()".into(),
                };
                format!("update_fields({}, {operation})", self.child(&update.struct_expression))
            }
            ExprType::Window(window) => self.window(window),
            ExprType::SubqueryExpression(subquery) => match subquery.subquery_type() {
                SubqueryType::Exists => "exists()".into(),
                SubqueryType::In => match subquery.in_subquery_values.as_slice() {
                    [value] => format!("({} IN (listquery()))", self.text(value)),
                    values => format!("(named_struct({}) IN (listquery()))", self.list(values)),
                },
                _ => "scalarsubquery()".into(),
            },
            ExprType::TypedAggregateExpression(_) => "typedaggregateexpression()".into(),
            ExprType::DirectShufflePartitionId(id) => format!("direct_shuffle_partition_id({})", self.child(&id.child)),
            ExprType::MergeAction(_) => "mergeaction()".into(),
            ExprType::Extension(any) => any.type_url.rsplit(['/', '.']).next().unwrap_or_default().to_string(),
        }
    }

    fn cast(&self, cast: &ex::Cast) -> String {
        let child = self.child(&cast.expr);
        let type_name = match &cast.cast_to_type {
            Some(CastToType::TypeStr(text)) => sql_type_name(text),
            Some(CastToType::Type(DataType { kind: Some(kind) })) => proto_type_name(kind),
            _ => String::new(),
        };
        if cast.eval_mode() == EvalMode::Ansi && is_string(cast.expr.as_deref()) {
            return format!("{type_name} '{child}'");
        }
        if ["ARRAY", "MAP", "STRUCT"].iter().any(|nested| type_name.starts_with(nested)) {
            return child;
        }
        let word = if cast.eval_mode() == EvalMode::Try { "TRY_CAST" } else { "CAST" };
        format!("{word}({child} AS {type_name})")
    }

    fn sort_order(&self, order: &ex::SortOrder) -> String {
        let direction = if order.direction() == SortDirection::Descending { "DESC" } else { "ASC" };
        let nulls = match order.null_ordering() {
            NullOrdering::SortNullsLast => "NULLS LAST",
            NullOrdering::SortNullsFirst => "NULLS FIRST",
            NullOrdering::SortNullsUnspecified if direction == "DESC" => "NULLS LAST",
            NullOrdering::SortNullsUnspecified => "NULLS FIRST",
        };
        format!("{} {direction} {nulls}", self.child(&order.child))
    }

    fn extract(&self, extract: &ex::UnresolvedExtractValue) -> String {
        let (child, key) = (self.child(&extract.child), self.child(&extract.extraction));
        let of_column = matches!(
            extract.child.as_deref().and_then(|child| child.expr_type.as_ref()),
            Some(ExprType::UnresolvedAttribute(_))
        );
        // A string key of a column is one of a map; further inside it is the field of a struct more often.
        if is_string(extract.extraction.as_deref()) && !of_column {
            format!("{child}.{key}")
        } else {
            format!("{child}[{key}]")
        }
    }

    fn call(&self, name: &str, arguments: &[Expression], is_distinct: bool) -> String {
        let lower = name.to_ascii_lowercase();
        let texts: Vec<String> = arguments.iter().map(|argument| self.text(argument)).collect();
        if !is_distinct && let Some(text) = operator(&lower, &texts) {
            return text;
        }
        let mut texts = texts;
        let shown = complete(&lower, &mut texts);
        let distinct = if is_distinct { "DISTINCT " } else { "" };
        format!("{shown}({distinct}{})", texts.join(", "))
    }

    fn window(&self, window: &ex::Window) -> String {
        let mut parts = Vec::new();
        if !window.partition_spec.is_empty() {
            parts.push(format!("PARTITION BY {}", self.list(&window.partition_spec)));
        }
        if !window.order_spec.is_empty() {
            let keys: Vec<String> = window.order_spec.iter().map(|order| self.sort_order(order)).collect();
            parts.push(format!("ORDER BY {}", keys.join(", ")));
        }
        parts.push(match &window.frame_spec {
            Some(frame) => {
                let unit = if frame.frame_type() == FrameType::Range { "RANGE" } else { "ROWS" };
                let lower = self.bound(frame.lower.as_deref(), "UNBOUNDED PRECEDING");
                let upper = self.bound(frame.upper.as_deref(), "UNBOUNDED FOLLOWING");
                format!("{unit} BETWEEN {lower} AND {upper}")
            }
            None => self.default_frame(window),
        });
        format!("{} OVER ({})", self.child(&window.window_function), parts.join(" "))
    }

    fn default_frame(&self, window: &ex::Window) -> String {
        if let Some(ExprType::UnresolvedFunction(call)) =
            window.window_function.as_ref().and_then(|f| f.expr_type.as_ref())
        {
            let name = call.function_name.to_ascii_lowercase();
            let offset = call.arguments.get(1).map_or_else(|| "1".to_string(), |offset| self.text(offset));
            match name.as_str() {
                "lead" => return format!("ROWS BETWEEN {offset} FOLLOWING AND {offset} FOLLOWING"),
                "lag" => return format!("ROWS BETWEEN -{offset} FOLLOWING AND -{offset} FOLLOWING"),
                "row_number" | "rank" | "dense_rank" | "percent_rank" | "ntile" => {
                    return "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".into();
                }
                _ => {}
            }
        }
        if window.order_spec.is_empty() {
            "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING".into()
        } else {
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".into()
        }
    }

    fn bound(&self, bound: Option<&FrameBoundary>, unbounded: &str) -> String {
        match bound.and_then(|bound| bound.boundary.as_ref()) {
            Some(Boundary::CurrentRow(true)) => "CURRENT ROW".into(),
            Some(Boundary::Value(value)) => {
                let text = self.text(value);
                match text.strip_prefix('-') {
                    Some(before) => format!("{before} PRECEDING"),
                    None => format!("{text} FOLLOWING"),
                }
            }
            _ => unbounded.into(),
        }
    }
}

fn is_string(expr: Option<&Expression>) -> bool {
    matches!(
        expr.and_then(|expr| expr.expr_type.as_ref()),
        Some(ExprType::Literal(ex::Literal { literal_type: Some(LiteralType::String(_)), .. }))
    )
}

/// Calls that are shown otherwise than as a name with its arguments in brackets.
fn operator(name: &str, arguments: &[String]) -> Option<String> {
    let text = match (name, arguments) {
        // A time moved by an interval is no arithmetic to Spark.
        ("+" | "-", [left, right]) if right.starts_with("INTERVAL '") => format!("{left} {name} {right}"),
        (
            "+" | "-" | "*" | "/" | "%" | "div" | "&" | "|" | "^" | "<=>" | "<" | "<=" | ">" | ">=" | "=",
            [left, right],
        ) => {
            format!("({left} {name} {right})")
        }
        ("==", [left, right]) => format!("({left} = {right})"),
        ("!=" | "<>", [left, right]) => format!("(NOT ({left} = {right}))"),
        ("and", [left, right]) => format!("({left} AND {right})"),
        ("or", [left, right]) => format!("({left} OR {right})"),
        ("not" | "!", [value]) => format!("(NOT {value})"),
        ("-", [value]) => format!("(- {value})"),
        ("positive" | "+", [value]) => format!("(+ {value})"),
        ("~", [value]) => format!("~{value}"),
        ("isnull", [value]) => format!("({value} IS NULL)"),
        ("isnotnull", [value]) => format!("({value} IS NOT NULL)"),
        ("in", [value, list @ ..]) => format!("({value} IN ({}))", list.join(", ")),
        ("like", [value, pattern]) => format!("{value} LIKE {pattern}"),
        ("like", [value, pattern, escape]) => format!("{value} LIKE {pattern} ESCAPE '{escape}'"),
        ("rlike" | "regexp", [value, pattern]) => format!("RLIKE({value}, {pattern})"),
        ("if", [condition, yes, no]) => format!("(IF({condition}, {yes}, {no}))"),
        ("when", [_, _, ..]) => {
            let (pairs, otherwise) = arguments.split_at(arguments.len() / 2 * 2);
            let mut text = "CASE".to_string();
            for pair in pairs.chunks_exact(2) {
                text.push_str(&format!(" WHEN {} THEN {}", pair[0], pair[1]));
            }
            if let [otherwise] = otherwise {
                text.push_str(&format!(" ELSE {otherwise}"));
            }
            text.push_str(" END");
            text
        }
        ("extract", [field, source]) => format!("extract({field} FROM {source})"),
        ("trim", [characters, text]) => format!("TRIM(BOTH {characters} FROM {text})"),
        ("ltrim", [characters, text]) => format!("TRIM(LEADING {characters} FROM {text})"),
        ("rtrim", [characters, text]) => format!("TRIM(TRAILING {characters} FROM {text})"),
        ("log", [value]) => format!("LOG(E(), {value})"),
        ("log", [base, value]) => format!("LOG({base}, {value})"),
        ("ceil" | "floor", [value]) => format!("{}({value})", name.to_ascii_uppercase()),
        (name, [value]) if CASTS.contains(&name) => value.clone(),
        _ => return None,
    };
    Some(text)
}

/// Adds the arguments that Spark shows although they were left out, drops those it hides, and gives the shown name.
fn complete(name: &str, arguments: &mut Vec<String>) -> String {
    let default = |value: &str| value.to_string();
    match (name, arguments.len()) {
        ("round" | "bround", 1) => arguments.push(default("0")),
        ("split", 2) | ("overlay", 3) => arguments.push(default("-1")),
        ("locate" | "position", 2) | ("regexp_replace", 3) | ("percentile", 2) => arguments.push(default("1")),
        ("substring" | "substr", 2) => arguments.push(default("2147483647")),
        ("sort_array", 1) | ("months_between", 2) => arguments.push(default("true")),
        ("percentile_approx" | "approx_percentile", 2) => arguments.push(default("10000")),
        ("unix_timestamp", 0) => arguments.extend([default("current_timestamp()"), default("yyyy-MM-dd HH:mm:ss")]),
        ("unix_timestamp" | "from_unixtime" | "to_unix_timestamp", 1) => arguments.push(default("yyyy-MM-dd HH:mm:ss")),
        ("string_agg" | "listagg", 1) => arguments.push(default("NULL")),
        ("lag" | "lead", 1) => arguments.extend([default("1"), default("NULL")]),
        ("lag" | "lead", 2) => arguments.push(default("NULL")),
        ("first" | "last" | "first_value" | "last_value" | "any_value" | "approx_count_distinct", 2) => {
            arguments.pop();
        }
        // the schema and the options
        ("from_json", _) => arguments.truncate(1),
        ("aggregate" | "reduce", 3) => {
            arguments.push(default("lambdafunction(namedlambdavariable(), namedlambdavariable())"));
        }
        ("count", 1) if arguments[0] == "*" => arguments[0] = default("1"),
        _ => {}
    }
    match name {
        "array_agg" => default("collect_list"),
        "random" => default("rand"),
        "dateadd" => default("date_add"),
        name if CAPITALS.contains(&name) => name.to_ascii_uppercase(),
        name => default(name),
    }
}

#[cfg(test)]
mod tests;
