//! A schema as `printSchema` draws it.

use arrow::datatypes::{Field, Schema};

use super::name::type_name;
use super::spark_type::SparkType;

/// Spark's `StructType.treeString`, down to `level` (all levels when none is given or it is not positive).
pub fn tree_string(schema: &Schema, level: Option<i32>) -> String {
    let depth_max = level.filter(|level| *level > 0).map_or(usize::MAX, |level| level as usize);
    let mut tree = String::from("root\n");
    for field in schema.fields() {
        draw_field(field, " |", depth_max, &mut tree);
    }
    tree
}

fn draw_field(field: &Field, prefix: &str, depth_max: usize, tree: &mut String) {
    if depth_max == 0 {
        return;
    }
    let spark_type = SparkType::of(field);
    let (name, nullable) = (field.name(), field.is_nullable());
    tree.push_str(&format!("{prefix}-- {name}: {} (nullable = {nullable})\n", type_name(&spark_type)));
    draw_parts(&spark_type, &format!("{prefix}    |"), depth_max, tree);
}

/// Draws what is inside a nested type. Elements, keys and values count as a level, as fields do.
fn draw_parts(spark_type: &SparkType<'_>, prefix: &str, depth_max: usize, tree: &mut String) {
    let depth_max = depth_max - 1;
    if depth_max == 0 {
        return;
    }
    let part = |label: &str, field: &Field, note: String, tree: &mut String| {
        let part_type = SparkType::of(field);
        tree.push_str(&format!("{prefix}-- {label}: {}{note}\n", type_name(&part_type)));
        draw_parts(&part_type, &format!("{prefix}    |"), depth_max, tree);
    };
    match spark_type {
        SparkType::Array(element) => {
            part("element", element, format!(" (containsNull = {})", element.is_nullable()), tree);
        }
        SparkType::Map { key, value } => {
            part("key", key, String::new(), tree);
            part("value", value, format!(" (valueContainsNull = {})", value.is_nullable()), tree);
        }
        SparkType::Struct(fields) => fields.iter().for_each(|f| draw_field(f, prefix, depth_max, tree)),
        _ => {}
    }
}
