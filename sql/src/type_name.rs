//! Data types as Spark prints them in names: `CAST(a AS BIGINT)` for any way to write the type.

use spark_connect_proto::data_type::Kind;

/// The printed form of a type given as text.
pub(crate) fn sql_type_name(text: &str) -> String {
    /// Beyond this a type is shown as written, so that nesting cannot exhaust the stack.
    const NESTED_BYTES_MAX: usize = 4096;
    let text = text.trim();
    if text.len() > NESTED_BYTES_MAX {
        return text.to_ascii_uppercase();
    }
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "long" | "bigint" => return "BIGINT".into(),
        "integer" | "int" => return "INT".into(),
        "short" | "smallint" => return "SMALLINT".into(),
        "byte" | "tinyint" => return "TINYINT".into(),
        "real" | "float" => return "FLOAT".into(),
        "timestamp_ltz" => return "TIMESTAMP".into(),
        "decimal" | "dec" | "numeric" => return "DECIMAL(10,0)".into(),
        "interval day" | "interval" | "interval year" | "interval month" => return lower.to_ascii_uppercase(),
        _ => {}
    }
    for decimal in ["decimal(", "dec(", "numeric("] {
        if let Some(arguments) = lower.strip_prefix(decimal).and_then(|rest| rest.strip_suffix(')')) {
            let arguments = arguments.replace(' ', "");
            let scale = if arguments.contains(',') { "" } else { ",0" };
            return format!("DECIMAL({arguments}{scale})");
        }
    }
    for (prefix, name) in [("array<", "ARRAY"), ("map<", "MAP"), ("struct<", "STRUCT")] {
        let inner = lower.starts_with(prefix).then(|| text[prefix.len()..].strip_suffix('>')).flatten();
        if let Some(inner) = inner {
            let fields: Vec<String> = split_top(inner, ',').into_iter().map(|part| field_name(part, name)).collect();
            return format!("{name}<{}>", fields.join(", "));
        }
    }
    text.to_ascii_uppercase()
}

/// An element of a nested type: for a struct a name, then a colon or a space, then the type.
fn field_name(part: &str, nested: &str) -> String {
    let part = part.trim();
    if nested != "STRUCT" {
        return sql_type_name(part);
    }
    match part.find([':', ' ']) {
        Some(at) => format!("{}: {}", part[..at].trim(), sql_type_name(part[at + 1..].trim_start_matches([':', ' ']))),
        None => sql_type_name(part),
    }
}

/// Splits at a separator outside brackets.
fn split_top(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The printed form of a type given as a message.
pub(crate) fn proto_type_name(kind: &Kind) -> String {
    let inner = |data_type: &Option<Box<spark_connect_proto::DataType>>| {
        data_type
            .as_deref()
            .and_then(|data_type| data_type.kind.as_ref())
            .map_or_else(|| "VOID".into(), proto_type_name)
    };
    match kind {
        Kind::Null(_) => "VOID".into(),
        Kind::Binary(_) => "BINARY".into(),
        Kind::Boolean(_) => "BOOLEAN".into(),
        Kind::Byte(_) => "TINYINT".into(),
        Kind::Short(_) => "SMALLINT".into(),
        Kind::Integer(_) => "INT".into(),
        Kind::Long(_) => "BIGINT".into(),
        Kind::Float(_) => "FLOAT".into(),
        Kind::Double(_) => "DOUBLE".into(),
        Kind::Decimal(decimal) => {
            format!("DECIMAL({},{})", decimal.precision.unwrap_or(10), decimal.scale.unwrap_or(0))
        }
        Kind::String(_) => "STRING".into(),
        Kind::Char(char) => format!("CHAR({})", char.length),
        Kind::VarChar(varchar) => format!("VARCHAR({})", varchar.length),
        Kind::Date(_) => "DATE".into(),
        Kind::Timestamp(_) => "TIMESTAMP".into(),
        Kind::TimestampNtz(_) => "TIMESTAMP_NTZ".into(),
        Kind::CalendarInterval(_) => "INTERVAL".into(),
        Kind::YearMonthInterval(_) => "INTERVAL YEAR TO MONTH".into(),
        Kind::DayTimeInterval(_) => "INTERVAL DAY TO SECOND".into(),
        Kind::Array(array) => format!("ARRAY<{}>", inner(&array.element_type)),
        Kind::Map(map) => format!("MAP<{}, {}>", inner(&map.key_type), inner(&map.value_type)),
        Kind::Struct(fields) => {
            let fields = fields.fields.iter().map(|field| {
                let kind = field.data_type.as_ref().and_then(|data_type| data_type.kind.as_ref());
                format!("{}: {}", field.name, kind.map_or_else(|| "VOID".into(), proto_type_name))
            });
            format!("STRUCT<{}>", fields.collect::<Vec<_>>().join(", "))
        }
        Kind::Unparsed(unparsed) => sql_type_name(&unparsed.data_type_string),
        Kind::Variant(_) => "VARIANT".into(),
        Kind::Udt(udt) => inner(&udt.sql_type),
        other => format!("{other:?}").split('(').next().unwrap_or_default().to_ascii_uppercase(),
    }
}
