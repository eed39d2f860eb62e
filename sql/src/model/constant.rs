//! Values that are known before anything runs: literals, and arrays and maps of them.

use std::fmt;

use spark_connect_proto::Expression;
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::expression::{ExprType, Literal};

/// A constant of a statement. Decimals are doubles here: options have no use for their digits.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    Array(Vec<Constant>),
    Map(Vec<(Constant, Constant)>),
}

impl Constant {
    /// The value of an expression without columns: a literal with a sign or none, `array(..)` or `map(..)` of such.
    pub fn fold(expression: &Expression) -> Option<Constant> {
        match expression.expr_type.as_ref()? {
            ExprType::Literal(literal) => Constant::of_literal(literal),
            ExprType::Alias(alias) => Constant::fold(alias.expr.as_deref()?),
            ExprType::UnresolvedFunction(call) => {
                let mut arguments = call.arguments.iter().map(Constant::fold);
                match call.function_name.to_ascii_lowercase().as_str() {
                    "negative" => match (arguments.next()??, arguments.next()) {
                        (Constant::Integer(value), None) => value.checked_neg().map(Constant::Integer),
                        (Constant::Double(value), None) => Some(Constant::Double(-value)),
                        _ => None,
                    },
                    "positive" => arguments.next()?,
                    "array" => arguments.collect::<Option<Vec<Constant>>>().map(Constant::Array),
                    "map" => {
                        let items = arguments.collect::<Option<Vec<Constant>>>()?;
                        let (pairs, rest) = items.as_chunks::<2>();
                        let pairs = pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect();
                        rest.is_empty().then_some(Constant::Map(pairs))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn of_literal(literal: &Literal) -> Option<Constant> {
        Some(match literal.literal_type.as_ref()? {
            LiteralType::Null(_) => Constant::Null,
            LiteralType::Boolean(value) => Constant::Boolean(*value),
            LiteralType::Byte(value) | LiteralType::Short(value) | LiteralType::Integer(value) => {
                Constant::Integer(i64::from(*value))
            }
            LiteralType::Long(value) => Constant::Integer(*value),
            // the shortest text of a float is what was written
            LiteralType::Float(value) => Constant::Double(value.to_string().parse().unwrap_or(f64::from(*value))),
            LiteralType::Double(value) => Constant::Double(*value),
            LiteralType::Decimal(value) => Constant::Double(value.value.parse().ok()?),
            LiteralType::String(value) => Constant::Text(value.clone()),
            LiteralType::Array(array) => {
                Constant::Array(array.elements.iter().map(Constant::of_literal).collect::<Option<_>>()?)
            }
            LiteralType::Map(map) => {
                let pairs = map.keys.iter().zip(&map.values);
                let pair = |(key, value)| Some((Constant::of_literal(key)?, Constant::of_literal(value)?));
                Constant::Map(pairs.map(pair).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// The type as messages name it.
    pub fn type_name(&self) -> String {
        let of = |value: Option<&Constant>| value.map_or_else(|| "VOID".to_string(), Constant::type_name);
        match self {
            Constant::Null => "VOID".into(),
            Constant::Boolean(_) => "BOOLEAN".into(),
            Constant::Integer(value) if i32::try_from(*value).is_ok() => "INT".into(),
            Constant::Integer(_) => "BIGINT".into(),
            Constant::Double(_) => "DOUBLE".into(),
            Constant::Text(_) => "STRING".into(),
            Constant::Array(values) => format!("ARRAY<{}>", of(values.first())),
            Constant::Map(pairs) => {
                let (key, value) = (of(pairs.first().map(|pair| &pair.0)), of(pairs.first().map(|pair| &pair.1)));
                format!("MAP<{key}, {value}>")
            }
        }
    }

    pub fn as_double(&self) -> Option<f64> {
        match self {
            Constant::Integer(value) => Some(*value as f64),
            Constant::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// As SQL that says the same.
impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[String]| values.join(", ");
        match self {
            Constant::Null => f.write_str("NULL"),
            Constant::Boolean(value) => write!(f, "{value}"),
            Constant::Integer(value) => write!(f, "{value}"),
            Constant::Double(value) => write!(f, "{value:?}"),
            Constant::Text(value) => write!(f, "'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
            Constant::Array(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "array({})", list(&values))
            }
            Constant::Map(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}, {value}")).collect();
                write!(f, "map({})", list(&pairs))
            }
        }
    }
}
