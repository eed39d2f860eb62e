//! Rows as `df.show()` draws them.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;

use super::value::{Style, styled_column};
use crate::{Conf, Error, Result};

const COLUMN_WIDTH_MIN: usize = 3;

/// Spark's `showString`. `batches` hold the first `num_rows` rows and, if there are more, at least one more: the last
/// line says so. `truncate` cuts cells to that many characters (0 or less: not at all).
pub fn show_string(
    batches: &[RecordBatch],
    schema: &Schema,
    num_rows: i32,
    truncate: i32,
    vertical: bool,
    conf: &Conf,
) -> Result<String> {
    let rows = Rows::read(batches, schema, num_rows, truncate, conf)?;
    let mut text = if vertical { vertical_table(&rows) } else { table(&rows, truncate > 0) };
    if vertical && rows.cells.is_empty() {
        text.push_str("(0 rows)");
    } else if let Some(more) = rows.more() {
        text.push_str(&more);
    }
    Ok(text)
}

/// Spark's `htmlString`, which notebooks show.
pub fn html_string(
    batches: &[RecordBatch],
    schema: &Schema,
    num_rows: i32,
    truncate: i32,
    conf: &Conf,
) -> Result<String> {
    let rows = Rows::read(batches, schema, num_rows, truncate, conf)?;
    let line = |cells: &[String], tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped_html(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let mut html = String::from("<table border='1'>\n");
    html.push_str(&line(&rows.header, "th"));
    rows.cells.iter().for_each(|cells| html.push_str(&line(cells, "td")));
    html.push_str("</table>\n");
    if let Some(more) = rows.more() {
        html.push_str(&more);
        html.push('\n');
    }
    Ok(html)
}

struct Rows {
    header: Vec<String>,
    cells: Vec<Vec<String>>,
    num_rows: usize,
    has_more: bool,
}

impl Rows {
    fn read(batches: &[RecordBatch], schema: &Schema, num_rows: i32, truncate: i32, conf: &Conf) -> Result<Rows> {
        let num_rows = num_rows.max(0) as usize;
        let available: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let mut cells = Vec::with_capacity(num_rows.min(available));
        for batch in batches {
            let wanted = (num_rows - cells.len()).min(batch.num_rows());
            let batch = batch.slice(0, wanted);
            if batch.num_columns() != schema.fields().len() {
                return Err(Error::Bug { invariant: "shown batches have the columns of their schema".into() });
            }
            let first = cells.len();
            cells.resize_with(first + wanted, || Vec::with_capacity(batch.num_columns()));
            for (column, field) in batch.columns().iter().zip(schema.fields()) {
                let texts = styled_column(column, field, Style::Show, conf)?;
                for (row, cell) in cells[first..].iter_mut().enumerate() {
                    let text = if texts.is_null(row) { "NULL" } else { texts.value(row) };
                    cell.push(truncated(escaped(text), truncate.max(0) as usize));
                }
            }
        }
        let header = schema.fields().iter().map(|field| escaped(field.name())).collect();
        Ok(Rows { header, cells, num_rows, has_more: available > num_rows })
    }

    fn more(&self) -> Option<String> {
        let rows = if self.num_rows == 1 { "row" } else { "rows" };
        self.has_more.then(|| format!("only showing top {} {rows}", self.num_rows))
    }
}

fn table(rows: &Rows, is_right_aligned: bool) -> String {
    let lines = || std::iter::once(&rows.header).chain(&rows.cells);
    let mut widths = vec![COLUMN_WIDTH_MIN; rows.header.len()];
    for line in lines() {
        widths.iter_mut().zip(line).for_each(|(width, cell)| *width = (*width).max(half_width(cell)));
    }
    let separator: String = widths.iter().map(|width| format!("+{}", "-".repeat(*width))).collect::<String>() + "+\n";
    let mut text = separator.clone();
    for (position, line) in lines().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            let padding = " ".repeat(width - half_width(cell));
            text.push('|');
            text.push_str(&if is_right_aligned { padding + cell } else { cell.clone() + &padding });
        }
        text.push_str("|\n");
        if position == 0 {
            text.push_str(&separator);
        }
    }
    text.push_str(&separator);
    text
}

fn vertical_table(rows: &Rows) -> String {
    let widest = |cells: &mut dyn Iterator<Item = &String>| {
        cells.map(|cell| half_width(cell)).max().unwrap_or(0).max(COLUMN_WIDTH_MIN)
    };
    let name_width = widest(&mut rows.header.iter());
    let value_width = widest(&mut rows.cells.iter().flatten());
    let padded = |cell: &str, width: usize| format!("{cell}{}", " ".repeat(width - half_width(cell)));
    let mut text = String::new();
    for (number, cells) in rows.cells.iter().enumerate() {
        let head = format!("-RECORD {number}");
        // The rule is as long as the lines below it: a blank, name, bar with blanks, value, blank.
        text.push_str(&format!("{head:-<width$}\n", width = name_width + value_width + 5));
        for (name, cell) in rows.header.iter().zip(cells) {
            text.push_str(&format!(" {} | {} \n", padded(name, name_width), padded(cell, value_width)));
        }
        if cells.is_empty() {
            text.push('\n');
        }
    }
    text
}

/// Characters that would break the table, as their escapes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{c}' => escaped.push_str("\\f"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{b}' => escaped.push_str("\\v"),
            '\u{7}' => escaped.push_str("\\a"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn truncated(text: String, length_max: usize) -> String {
    if length_max == 0 || text.chars().count() <= length_max {
        return text;
    }
    match length_max {
        // No room for dots.
        ..4 => text.chars().take(length_max).collect(),
        _ => text.chars().take(length_max - 3).collect::<String>() + "...",
    }
}

/// The width on a terminal, where East Asian characters take two columns. Characters beyond 16 bits count two, as in
/// Java.
fn half_width(text: &str) -> usize {
    let is_wide = |c: char| {
        matches!(c,
            '\u{1100}'..='\u{115F}' | '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
            | '\u{FE10}'..='\u{FE19}' | '\u{FE30}'..='\u{FE6F}' | '\u{FF00}'..='\u{FF60}' | '\u{FFE0}'..='\u{FFE6}')
    };
    text.chars().map(|c| c.len_utf16() + usize::from(is_wide(c))).sum()
}

fn escaped_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
