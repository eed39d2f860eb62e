//! TRANSFORM's items against the query's columns: what is projected, which stages follow, and what becomes a feature.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::Schema;
use ml::{Kind, Operator, Value};
use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;
use sql::model::{Constant, Place, TransformItem, Word};

use super::{HIDDEN, KeptTransform, Projected};
use crate::model::document::KeptColumn;
use crate::model::options::check_param;
use crate::model::rows::{find, names};
use crate::model::Refusal;
use crate::{Error, Result};

/// A stage's name in SQL, and the params that its arguments behind the column mean, in order.
const STAGES: &[(&str, &[&str])] = &[
    ("imputer", &["strategy"]),
    ("standard_scaler", &["with_mean", "with_std"]),
    ("min_max_scaler", &["min", "max"]),
    ("robust_scaler", &["lower", "upper"]),
    ("max_abs_scaler", &[]),
    ("normalizer", &["p"]),
    ("string_indexer", &[]),
    ("one_hot_encoder", &[]),
    ("bucketizer", &["splits"]),
    ("quantile_discretizer", &["num_buckets"]),
    ("polynomial_expansion", &["degree"]),
    ("hashing_tf", &["num_features"]),
    ("feature_hasher", &[]),
    ("vector_assembler", &[]),
    ("pca", &["k"]),
];
/// Stages over several columns.
const OF_MANY: [&str; 2] = ["feature_hasher", "vector_assembler"];

/// Functions whose result is not the row's alone.
const NOT_ROWWISE: &[&str] = &[
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or", "bit_xor",
    "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "covar_pop", "covar_samp",
    "current_date", "current_timestamp", "every", "explode", "explode_outer", "first", "first_value", "grouping",
    "histogram_numeric", "inline", "input_file_name", "kurtosis", "last", "last_value", "listagg", "localtimestamp", "max",
    "max_by", "mean", "median", "min", "min_by", "mode", "monotonically_increasing_id", "now", "percentile",
    "percentile_approx", "posexplode", "rand", "randn", "random", "regr_slope", "shuffle", "skewness", "some",
    "spark_partition_id", "stack", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum",
    "uuid", "var_pop", "var_samp", "variance",
];

/// One stage before it is fitted.
#[derive(Clone)]
pub struct StagePlan {
    pub operator: &'static Operator,
    pub params: BTreeMap<String, Value>,
    pub inputs: Vec<String>,
    pub output: String,
    /// Whether the operator takes vectors, so that numbers are made ones first.
    pub takes_vectors: bool,
    /// Whether it has one input column, or a list of them.
    pub is_of_many: bool,
}

/// TRANSFORM, checked.
#[derive(Clone)]
pub struct TransformPlan {
    pub kept: KeptTransform,
    pub stages: Vec<StagePlan>,
    /// The names of the features, in the order of `kept.columns`.
    pub names: Vec<String>,
}

struct Planner<'a> {
    schema: &'a Schema,
    is_case_sensitive: bool,
    /// The label, which is not there at prediction.
    label: &'a str,
    place: Place,
    text: &'a str,
    plan: &'a mut TransformPlan,
    inputs: &'a mut BTreeSet<usize>,
}

/// # Errors
/// Items that cannot be replayed at prediction, stages that there are not, and names that are there twice.
pub fn plan(
    items: &[TransformItem],
    schema: &Schema,
    label: &str,
    taken: &[usize],
    is_case_sensitive: bool,
) -> Result<TransformPlan> {
    let mut plan = TransformPlan { kept: KeptTransform::default(), stages: Vec::new(), names: Vec::new() };
    let mut inputs = BTreeSet::new();
    for item in items {
        match item {
            TransformItem::Star { except, .. } => {
                let except = except.iter().map(|word| column(schema, word, is_case_sensitive)).collect::<Result<Vec<_>>>()?;
                for index in (0..schema.fields().len()).filter(|index| !taken.contains(index) && !except.contains(index)) {
                    let name = schema.field(index).name().clone();
                    inputs.insert(index);
                    plan.kept.columns.push(name.clone());
                    plan.names.push(name);
                }
            }
            TransformItem::Expression { expression, text, alias, place } => {
                let (place, plan_of, inputs) = (*place, &mut plan, &mut inputs);
                let mut planner = Planner { schema, is_case_sensitive, label, place, text, plan: plan_of, inputs };
                let column = planner.item(expression)?;
                plan.kept.columns.push(column);
                plan.names.push(output_name(expression, text, alias.as_ref()));
            }
        }
    }
    for (at, name) in plan.names.iter().enumerate() {
        let same = |known: &String| if is_case_sensitive { known == name } else { known.to_lowercase() == name.to_lowercase() };
        if plan.names[..at].iter().any(same) {
            return Err(Error::Engine(engine::Error::ColumnAlreadyExists { name: name.clone() }));
        }
    }
    plan.kept.inputs = inputs.into_iter().map(|index| KeptColumn::of(schema.field(index))).collect();
    plan.kept.num_stages = plan.stages.len();
    Ok(plan)
}

fn column(schema: &Schema, word: &Word, is_case_sensitive: bool) -> Result<usize> {
    let missing = || Refusal::ColumnNotFound {
        name: word.text.clone(),
        columns: names(schema),
        place: Some(word.place),
    };
    Ok(find(schema, &word.text, is_case_sensitive).ok_or_else(missing)?)
}

/// The alias, the column that an item is or is made of alone, or the text.
fn output_name(expression: &Expression, text: &str, alias: Option<&Word>) -> String {
    if let Some(alias) = alias {
        return alias.text.clone();
    }
    let mut inner = expression;
    loop {
        match &inner.expr_type {
            Some(ExprType::UnresolvedAttribute(attribute)) => {
                let parts = sql::split_identifier(&attribute.unparsed_identifier);
                return parts.last().cloned().unwrap_or_else(|| text.to_string());
            }
            Some(ExprType::UnresolvedFunction(call)) if is_stage(&call.function_name) && !call.arguments.is_empty() => {
                inner = &call.arguments[0];
            }
            _ => return text.to_string(),
        }
    }
}

fn is_stage(name: &str) -> bool {
    STAGES.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

impl Planner<'_> {
    /// Plans an item; the column that holds it.
    fn item(&mut self, expression: &Expression) -> Result<String> {
        if let Some(ExprType::UnresolvedFunction(call)) = &expression.expr_type
            && let Some((name, positional)) = STAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&call.function_name))
        {
            return self.stage(name, positional, &call.arguments);
        }
        self.check(expression)?;
        if let Some(ExprType::UnresolvedAttribute(attribute)) = &expression.expr_type {
            let parts = sql::split_identifier(&attribute.unparsed_identifier);
            if let [name] = parts.as_slice()
                && let Some(index) = find(self.schema, name, self.is_case_sensitive)
            {
                return Ok(self.schema.field(index).name().clone());
            }
        }
        Ok(self.project(expression))
    }

    fn project(&mut self, expression: &Expression) -> String {
        let column = format!("{HIDDEN}{}", self.plan.kept.projected.len());
        self.plan.kept.projected.push(Projected::new(column.clone(), expression, self.text));
        column
    }

    fn stage(&mut self, name: &'static str, positional: &[&str], arguments: &[Expression]) -> Result<String> {
        let place = self.place;
        let unknown = || Refusal::UnknownStage { stage: name.to_string(), place };
        let is_of_many = OF_MANY.contains(&name);
        let mut inputs = Vec::new();
        let mut given: Vec<(String, Constant)> = Vec::new();
        for argument in arguments {
            match &argument.expr_type {
                Some(ExprType::NamedArgumentExpression(named)) => {
                    let value = named.value.as_deref().and_then(Constant::fold);
                    given.push((named.key.clone(), value.ok_or_else(|| self.not_constant(&named.key))?));
                }
                _ if is_of_many || inputs.is_empty() => inputs.push(self.item(argument)?),
                _ => {
                    let param = positional.get(given.len()).ok_or_else(|| self.not_constant(name))?;
                    let value = Constant::fold(argument).ok_or_else(|| self.not_constant(param))?;
                    given.push((param.to_string(), value));
                }
            }
        }
        if inputs.is_empty() {
            return Err(self.not_constant(name).into());
        }
        // A text column is one level hot as it is; anything else becomes text first.
        if name == "one_hot_encoder" {
            if let Some((param, _)) = given.first() {
                return Err(self.not_constant(param).into());
            }
            let text = attribute(&inputs[0]);
            return Ok(if self.is_text(&inputs[0]) { inputs.remove(0) } else { self.project(&as_text(text)) });
        }
        let operator = ml::catalog::OPERATORS.iter().find(|operator| operator.snake_name() == name).ok_or_else(unknown)?;
        if matches!(operator.kind, Kind::Evaluator(_)) {
            return Err(unknown().into());
        }
        let mut params = BTreeMap::new();
        for (param, value) in given {
            let (param, value) = check_param(operator, &param, &value, self.place)?;
            params.insert(param, value);
        }
        let has = |param: &str| (operator.params)().iter().any(|known| known.name == param);
        match params.get("handleInvalid") {
            Some(Value::String(text)) if text == "skip" => {
                let what = format!("handle_invalid = 'skip' of the stage `{name}`: a prediction keeps every row; it");
                return Err(Refusal::UnsupportedOperation { what }.into());
            }
            None if has("handleInvalid") && name != "vector_assembler" => {
                params.insert("handleInvalid".into(), Value::String("keep".into()));
            }
            _ => {}
        }
        let output = format!("{HIDDEN}stage_{}", self.plan.stages.len());
        let takes_vectors = matches!(
            name,
            "standard_scaler" | "min_max_scaler" | "robust_scaler" | "max_abs_scaler" | "normalizer" | "polynomial_expansion"
        );
        self.plan.stages.push(StagePlan { operator, params, inputs, output: output.clone(), takes_vectors, is_of_many });
        Ok(output)
    }

    fn not_constant(&self, param: &str) -> Refusal {
        Refusal::StageArgument { argument: param.to_string(), item: self.text.to_string(), place: self.place }
    }

    fn is_text(&self, column: &str) -> bool {
        let field = find(self.schema, column, self.is_case_sensitive).map(|index| self.schema.field(index));
        field.is_some_and(|field| ml::tabular::RawType::of(field) == Some(ml::tabular::RawType::Text))
    }

    /// Refuses what a prediction could not compute from its row.
    fn check(&mut self, expression: &Expression) -> Result<()> {
        let not_rowwise =
            || Error::Sql(sql::Error::TransformNotRowwise { expression: self.text.to_string(), place: self.place });
        match &expression.expr_type {
            Some(ExprType::UnresolvedFunction(call)) => {
                let name = call.function_name.to_lowercase();
                if NOT_ROWWISE.binary_search(&name.as_str()).is_ok() {
                    return Err(not_rowwise());
                }
                if is_stage(&name) {
                    let what = format!("The stage `{name}` inside an expression");
                    return Err(Refusal::UnsupportedOperation { what }.into());
                }
            }
            Some(ExprType::Window(_) | ExprType::SubqueryExpression(_)) => return Err(not_rowwise()),
            Some(ExprType::UnresolvedAttribute(attribute)) => {
                let parts = sql::split_identifier(&attribute.unparsed_identifier);
                let first = parts.first().map(String::as_str).unwrap_or_default();
                let Some(index) = find(self.schema, first, self.is_case_sensitive) else {
                    let (name, columns) = (first.to_string(), names(self.schema));
                    return Err(Refusal::ColumnNotFound { name, columns, place: Some(self.place) }.into());
                };
                if self.schema.field(index).name() == self.label {
                    return Err(Refusal::UsesLabel { label: self.label.to_string(), place: self.place }.into());
                }
                self.inputs.insert(index);
            }
            _ => {}
        }
        engine::embedded::children(expression).into_iter().try_for_each(|child| self.check(child))
    }
}

fn attribute(name: &str) -> Expression {
    let unparsed_identifier = format!("`{}`", name.replace('`', "``"));
    let attribute = spark_connect_proto::expression::UnresolvedAttribute { unparsed_identifier, ..Default::default() };
    Expression { common: None, expr_type: Some(ExprType::UnresolvedAttribute(attribute)) }
}

fn as_text(expression: Expression) -> Expression {
    use spark_connect_proto::expression::Cast;
    use spark_connect_proto::expression::cast::CastToType;
    let cast = Cast {
        expr: Some(Box::new(expression)),
        eval_mode: 0,
        cast_to_type: Some(CastToType::TypeStr("string".into())),
    };
    Expression { common: None, expr_type: Some(ExprType::Cast(Box::new(cast))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_in_order() {
        assert!(NOT_ROWWISE.is_sorted());
    }
}
