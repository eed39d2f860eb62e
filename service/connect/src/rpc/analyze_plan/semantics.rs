//! Whether two plans say the same: the same messages, whatever numbers and call sites the client gave their parts.
//!
//! As in Spark, a yes is certain and a no is not: plans that come to the same in different ways are not found out.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use spark_connect_proto::Relation;

const PLAN_ID: &str = "plan_id: Some(";
const ORIGIN: &str = "origin: Some(";

pub fn are_same(left: &Relation, right: &Relation) -> bool {
    left == right || canonical(left) == canonical(right)
}

pub fn hash(relation: &Relation) -> i32 {
    let mut hasher = DefaultHasher::new();
    canonical(relation).hash(&mut hasher);
    // The upper half of a hash is as good as the whole.
    (hasher.finish() >> 32) as i32
}

/// The message as text, its plan ids numbered in order of appearance, without the places in the client's program.
fn canonical(relation: &Relation) -> String {
    let text = format!("{relation:?}");
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut canonical = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(PLAN_ID) {
            let (id, after) = after.split_at(after.find(')').unwrap_or(after.len()));
            let next = numbers.len();
            let number = *numbers.entry(id).or_insert(next);
            canonical.push_str(PLAN_ID);
            canonical.push_str(&number.to_string());
            rest = after;
        } else if let Some(after) = rest.strip_prefix(ORIGIN) {
            rest = after.get(closing(after)..).unwrap_or_default();
        } else {
            let length = if character == '"' { quoted(rest) } else { character.len_utf8() };
            let (taken, after) = rest.split_at(length);
            canonical.push_str(taken);
            rest = after;
        }
    }
    canonical
}

/// Length of the quoted string that the text begins with.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where the parenthesis that is open at the start of the text closes.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let mut at = 0;
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let length = if character == '"' { quoted(&text[at..]) } else { character.len_utf8() };
        at += length;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use spark_connect_proto::relation::RelType;
    use spark_connect_proto::{Limit, Origin, PythonOrigin, Range, RelationCommon, Sql, origin};

    use super::*;

    #[expect(deprecated, reason = "the message has the field")]
    fn common(plan_id: i64, call_site: &str) -> Option<RelationCommon> {
        let python = PythonOrigin { fragment: "f".into(), call_site: call_site.into() };
        let origin = Some(Origin { function: Some(origin::Function::PythonOrigin(python)) });
        Some(RelationCommon { source_info: String::new(), plan_id: Some(plan_id), origin })
    }

    fn limited(plan_id: i64, call_site: &str, end: i64) -> Relation {
        let range = Range { end, step: 1, ..Range::default() };
        let input = Relation { common: common(plan_id, call_site), rel_type: Some(RelType::Range(range)) };
        let limit = Limit { input: Some(Box::new(input)), limit: 3 };
        Relation { common: common(plan_id + 1, call_site), rel_type: Some(RelType::Limit(Box::new(limit))) }
    }

    #[test]
    fn numbers_and_call_sites_make_no_difference_but_contents_do() {
        assert!(are_same(&limited(1, "a.py:(1)", 10), &limited(7, "b\"(.py:2", 10)));
        assert!(!are_same(&limited(1, "a.py:1", 10), &limited(1, "a.py:1", 11)));
        assert_eq!(hash(&limited(1, "x", 10)), hash(&limited(5, "y", 10)));
    }

    #[test]
    fn what_looks_like_a_number_in_a_literal_is_text() {
        let sql = |query: &str| Relation {
            common: None,
            rel_type: Some(RelType::Sql(Sql { query: query.into(), ..Sql::default() })),
        };
        assert!(!are_same(&sql("select 'plan_id: Some(1)'"), &sql("select 'plan_id: Some(2)'")));
    }
}
